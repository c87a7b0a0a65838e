//! Access control of the viewer, and the headers of its answers.
//!
//! The viewer listens on loopback, which every program of this machine and every web page in its
//! browsers can reach. So an address contains a token that is generated for each run, the `Host`
//! must be ours, and a request that another page caused is rejected.

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Response, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};

use super::page;
use crate::auth::origin::{Door as Origins, Names};

/// Bytes of a token.
const TOKEN: usize = 16;

/// Checks requests.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Door {
    token: String,
    origins: Origins,
}

impl Door {
    /// Generates a token, for a listener at `port`; `None` if there is no randomness.
    pub(in crate::cli) fn new(port: u16) -> Option<Self> {
        let mut bytes = [0; TOKEN];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let origins = [format!("http://127.0.0.1:{port}")];
        Some(Self {
            token: data_encoding::BASE64URL_NOPAD.encode(&bytes),
            origins: Origins {
                origins: origins.into(),
                hosts: Vec::new(),
                names: Names::Loopback {
                    port,
                    default_port: 80,
                },
            },
        })
    }

    /// The path of the page.
    pub(in crate::cli) fn path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// The part of the path after the token, if the request is admitted.
    ///
    /// # Errors
    /// The status of the rejection.
    pub(in crate::cli) fn admit<'a>(
        &self,
        path: &'a str,
        headers: &HeaderMap,
    ) -> Result<&'a str, StatusCode> {
        let all = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        let sites = headers.get_all("sec-fetch-site").into_iter();
        let sites = sites.map(HeaderValue::as_bytes);
        let come = self.origins.admit(all(ORIGIN), all(HOST), sites);
        come.map_err(|_| StatusCode::FORBIDDEN)?;
        let (token, rest) = path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .ok_or(StatusCode::NOT_FOUND)?;
        // Hashes are compared, so that the duration reveals nothing about the token.
        if blake3::hash(token.as_bytes()) != blake3::hash(self.token.as_bytes()) {
            return Err(StatusCode::NOT_FOUND);
        }
        Ok(rest)
    }
}

/// Adds the headers of every answer.
pub(super) fn seal<B>(mut response: Response<B>) -> Response<B> {
    for (name, value) in [
        ("content-security-policy", page::POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(door: &Door, path: &str, headers: &[(&'static str, &str)]) -> Result<String, u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let rest = door.admit(path, &map);
        rest.map(str::to_owned).map_err(|status| status.as_u16())
    }

    #[test]
    fn only_our_own_page_comes_in() {
        let door = Door::new(4711).unwrap();
        let path = format!("{}api/recordings", door.path());
        let host = ("host", "127.0.0.1:4711");
        let rest = || Ok("api/recordings".to_owned());
        assert_eq!(admit(&door, &path, &[host]), rest());
        let origin = ("origin", "http://127.0.0.1:4711");
        let site = ("sec-fetch-site", "same-origin");
        assert_eq!(admit(&door, &path, &[host, origin, site]), rest());
        for headers in [
            &[][..],
            &[("host", "evil.example:4711")],
            &[("host", "127.0.0.1:4712")],
            &[host, host],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site")],
        ] {
            assert_eq!(admit(&door, &path, headers), Err(403), "{headers:?}");
        }
        let other = Door::new(4711).unwrap();
        for path in ["/", "", "/api/recordings", "//api", &other.path()] {
            assert_eq!(admit(&door, path, &[host]), Err(404), "{path}");
        }
    }
}
