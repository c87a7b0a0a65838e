//! Checks the origin of an HTTP request and the host it names.
//!
//! A web page may open a WebSocket to any address, this machine's loopback included, and send
//! anything there; no same-origin rule prevents it. Three headers identify it, which a page cannot
//! forge: `Origin` names the page, `Sec-Fetch-Site` marks another site's page, and `Host` is the
//! name that was resolved to us (a page whose name was re-bound to 127.0.0.1 sends its own).

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

/// Which origins and hosts a listener accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPolicy {
    /// Accepted origins, exactly as browsers spell them: `https://example.org`. Programs other than
    /// browsers send none.
    pub origins: Vec<String>,
    /// Names that are accepted besides, with a port (`agents.example:8080`) or for any port.
    pub hosts: Vec<String>,
    /// The host names that requests may use.
    pub names: HostNames,
}

/// The host names that requests to a listener may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostNames {
    /// Any; the listener is on the network, and so are the clients that know its name.
    Any,
    /// A loopback address or `localhost`, with this port.
    Loopback {
        /// The port it is bound to.
        port: u16,
        /// The port of a host without one.
        default_port: u16,
    },
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A web page that is not in the list.
    #[error("web pages of this origin are not admitted")]
    Origin,
    /// A web page of another site without an `Origin`.
    #[error("web pages of other sites are not admitted")]
    Site,
    /// The `Host` header is missing, occurs twice, or names another host.
    #[error(
        "the Host header does not name this listener; `serve --allow-host NAME[:PORT]` allows \
         another name, such as that of a tunnel's port"
    )]
    Host,
}

impl OriginPolicy {
    /// For a listener at this port of loopback that only its own pages may ask.
    #[must_use]
    pub fn own_pages(port: u16) -> Self {
        Self {
            origins: vec![format!("http://127.0.0.1:{port}")],
            hosts: Vec::new(),
            names: HostNames::Loopback {
                port,
                default_port: 80,
            },
        }
    }

    /// Whether a request with these headers comes from an admitted page or from a program.
    #[must_use]
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        let all = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        let sites = headers.get_all("sec-fetch-site").into_iter();
        let sites = sites.map(HeaderValue::as_bytes);
        self.check(all(ORIGIN), all(HOST), sites).is_ok()
    }

    /// Checks the values of all `Origin`, `Host` and `Sec-Fetch-Site` headers of a request.
    ///
    /// # Errors
    /// When the request is to be answered with 403.
    pub fn check<'a>(
        &self,
        origins: impl IntoIterator<Item = &'a [u8]>,
        hosts: impl IntoIterator<Item = &'a [u8]>,
        sites: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        let mut named = false;
        for origin in origins {
            if !self.origins.iter().any(|one| one.as_bytes() == origin) {
                return Err(Refusal::Origin);
            }
            named = true;
        }
        let mut sites = sites.into_iter();
        if !named && sites.any(|site| site != b"none" && site != b"same-origin") {
            return Err(Refusal::Site);
        }
        if self.names == HostNames::Any && self.hosts.is_empty() {
            return Ok(());
        }
        let mut hosts = hosts.into_iter();
        let host = hosts.next().ok_or(Refusal::Host)?;
        if hosts.next().is_some() || !self.accepts_host(host) {
            return Err(Refusal::Host);
        }
        Ok(())
    }

    fn accepts_host(&self, host: &[u8]) -> bool {
        let listed = |one: &String| is_named(host, one.as_bytes());
        self.hosts.iter().any(listed)
            || match self.names {
                HostNames::Any => false,
                HostNames::Loopback { port, default_port } => {
                    is_loopback_at(host, port, default_port)
                }
            }
    }
}

/// Whether `host`, without brackets, is a loopback address or `localhost`.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            // ::ffff:127.0.0.1 is the same host as 127.0.0.1.
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether the value of a `Host` header is a loopback address or `localhost`, with any port.
#[must_use]
pub fn names_loopback(host: &[u8]) -> bool {
    let host = std::str::from_utf8(host).ok();
    host.and_then(split)
        .is_some_and(|(name, _)| is_loopback_host(name))
}

/// Whether `host` is `name`, or `name` with a port.
fn is_named(host: &[u8], name: &[u8]) -> bool {
    let Some((start, rest)) = host.split_at_checked(name.len()) else {
        return false;
    };
    let port = rest.strip_prefix(b":").unwrap_or(rest);
    let at_a_port = rest.is_empty() || rest.len() > 1 && port.len() < rest.len();
    start.eq_ignore_ascii_case(name) && at_a_port && port.iter().all(u8::is_ascii_digit)
}

/// Whether `host` is `NAME`, `NAME:PORT` or `[ADDRESS]:PORT`, and this listener.
fn is_loopback_at(host: &[u8], port: u16, default_port: u16) -> bool {
    let Some((name, given)) = std::str::from_utf8(host).ok().and_then(split) else {
        return false;
    };
    let given = match given {
        None => Some(default_port),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        Some(_) => None,
    };
    given == Some(port) && is_loopback_host(name)
}

/// The name, without brackets, and the port, if there is one.
fn split(host: &str) -> Option<(&str, Option<&str>)> {
    let Some(inner) = host.strip_prefix('[') else {
        return Some(match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        });
    };
    match inner.split_once(']')? {
        (address, "") => Some((address, None)),
        (address, after) => Some((address, Some(after.strip_prefix(':')?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(origins: &[&str], hosts: &[&str]) -> Result<(), Refusal> {
        let policy = OriginPolicy {
            origins: vec!["https://editor.example".to_owned()],
            hosts: vec!["Agents.example".to_owned(), "relay.example:99".to_owned()],
            names: HostNames::Loopback {
                port: 8080,
                default_port: 80,
            },
        };
        let origins = origins.iter().map(|one| one.as_bytes());
        policy.check(origins, hosts.iter().map(|one| one.as_bytes()), [])
    }

    #[test]
    fn only_listed_origins_are_admitted() {
        let (page, host) = ("https://editor.example", &["localhost:8080"]);
        assert_eq!(admit(&[], host), Ok(()));
        assert_eq!(admit(&[page], host), Ok(()));
        let others = "null https://editor.example:443 https://editor.example.evil \
            http://editor.example https://EDITOR.example http://localhost:8080";
        for other in others.split(' ').chain([""]) {
            assert_eq!(admit(&[other], host), Err(Refusal::Origin), "{other}");
            assert_eq!(admit(&[page, other], host), Err(Refusal::Origin), "{other}");
        }
    }

    #[test]
    fn only_loopback_names_are_accepted_on_loopback() {
        let ours = "localhost:8080 LocalHost:8080 127.0.0.1:8080 127.1.2.3:8080 [::1]:8080 \
            agents.example AGENTS.EXAMPLE:1 relay.example:99";
        for ours in ours.split(' ') {
            assert_eq!(admit(&[], &[ours]), Ok(()), "{ours}");
        }
        let others = "localhost localhost:80 localhost: localhost:+8080 localhost.:8080 evil.example:8080 \
            127.0.0.1.evil.example:8080 0.0.0.0:8080 [::]:8080 [::1]8080 [::1 ::1:8080 \
            agents.example: agents.example:x agents.example.evil agents.exampl relay.example \
            relay.example:999";
        for other in others.split(' ').chain([""]) {
            assert_eq!(admit(&[], &[other]), Err(Refusal::Host), "{other}");
        }
        assert_eq!(admit(&[], &[]), Err(Refusal::Host));
        assert_eq!(admit(&[], &["localhost:8080"; 2]), Err(Refusal::Host));
        // The default port may be omitted.
        assert!(is_loopback_at(b"localhost", 443, 443) && is_loopback_at(b"[::1]", 80, 80));
        assert!(!is_loopback_at(b"localhost", 80, 443) && !is_loopback_at(b"\xff", 80, 80));
    }

    #[test]
    fn any_host_name_is_accepted_on_the_network() {
        let policy = |hosts| OriginPolicy {
            origins: Vec::new(),
            hosts,
            names: HostNames::Any,
        };
        let (any, named) = (
            policy(Vec::new()),
            policy(vec!["agents.example".to_owned()]),
        );
        let host = [&b"agents.example"[..]];
        assert_eq!(any.check([], host, []), Ok(()));
        let page = [&b"https://agents.example"[..]];
        assert_eq!(any.check(page, [], []), Err(Refusal::Origin));
        assert_eq!(named.check([], host, []), Ok(()));
        let other = [&b"rebound.example"[..]];
        assert_eq!(named.check([], other, []), Err(Refusal::Host));
    }
}
