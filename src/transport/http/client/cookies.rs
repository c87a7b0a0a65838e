//! The cookies of one link: what its server sets is returned to it until the link ends.
//!
//! ACP's remote transport needs them for load balancers with session affinity. The subset of RFC
//! 6265 that one server can use for itself: name, value, path, domain, secure, expires and max-age.
//! Cookies are not kept beyond the link and not shared between servers.

use std::time::{Duration, Instant, SystemTime};

use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};

/// Most cookies that are kept. Beyond it: the oldest is removed.
const MAX_COOKIES: usize = 64;
/// Longest cookie that is kept, in bytes (RFC 6265, 6.1). Beyond it: not kept.
const MAX_LENGTH: usize = 4096;

/// The cookies of one server.
#[derive(Debug)]
pub(super) struct CookieJar {
    /// The server's name or address.
    host: String,
    /// Whether it is reached over TLS.
    tls: bool,
    /// The path of the endpoint.
    path: String,
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: String,
    value: String,
    path: String,
    expires: Option<Instant>,
}

impl CookieJar {
    pub(super) fn new(host: &str, tls: bool, path: &str) -> Self {
        Self {
            host: host.to_ascii_lowercase(),
            tls,
            path: path.to_owned(),
            cookies: Vec::new(),
        }
    }

    /// Stores the cookies that a response sets.
    pub(super) fn store(&mut self, headers: &HeaderMap, now: Instant) {
        for value in headers.get_all(SET_COOKIE) {
            let text = value.to_str().ok().filter(|text| text.len() <= MAX_LENGTH);
            if let Some((cookie, is_valid)) = text.and_then(|text| self.read(text, now)) {
                self.cookies
                    .retain(|old| old.name != cookie.name || old.path != cookie.path);
                if is_valid {
                    self.cookies.push(cookie);
                }
                if self.cookies.len() > MAX_COOKIES {
                    self.cookies.remove(0);
                }
            }
        }
    }

    /// The value of a request's `Cookie` header, after `given`, which the user has configured.
    pub(super) fn header(&self, given: Option<&HeaderValue>, now: Instant) -> Option<HeaderValue> {
        let mut text = given
            .map(|value| value.as_bytes().to_vec())
            .unwrap_or_default();
        for cookie in &self.cookies {
            let is_valid = cookie.expires.is_none_or(|at| now < at);
            if is_valid && path_matches(&cookie.path, &self.path) {
                if !text.is_empty() {
                    text.extend_from_slice(b"; ");
                }
                text.extend_from_slice(cookie.name.as_bytes());
                text.push(b'=');
                text.extend_from_slice(cookie.value.as_bytes());
            }
        }
        let mut value = HeaderValue::from_bytes(&text)
            .ok()
            .filter(|_| !text.is_empty())?;
        value.set_sensitive(true);
        Some(value)
    }

    /// One `Set-Cookie` and whether it has not expired already (RFC 6265, 5.2 and 5.3).
    fn read(&self, text: &str, now: Instant) -> Option<(Cookie, bool)> {
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let mut cookie = Cookie {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            path: default_path(&self.path).to_owned(),
            expires: None,
        };
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                "domain" if !self.is_in_domain(value) => return None,
                "secure" if !self.tls => return None,
                "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
                "expires" => expires = time_until(value).or(expires),
                _ => {}
            }
        }
        let lifetime = max_age
            .map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or(0)))
            .or(expires);
        cookie.expires = lifetime.and_then(|left| now.checked_add(left));
        let is_valid = lifetime.is_none_or(|left| !left.is_zero());
        (!cookie.name.is_empty()).then_some((cookie, is_valid))
    }

    /// Whether the server belongs to a domain (RFC 6265, 5.1.3). A domain without a dot would be a
    /// whole top-level domain.
    fn is_in_domain(&self, domain: &str) -> bool {
        let domain = domain.trim_start_matches('.').to_ascii_lowercase();
        let below = self.host.strip_suffix(&domain);
        domain == self.host
            || domain.contains('.')
                && self.host.parse::<std::net::IpAddr>().is_err()
                && below.is_some_and(|name| name.ends_with('.'))
    }
}

/// The path of a cookie that names none (RFC 6265, 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(last) => &path[..last],
    }
}

/// Whether a cookie for `above` is sent to `path` (RFC 6265, 5.1.4).
fn path_matches(above: &str, path: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || above.ends_with('/'))
}

/// The time until a date; zero when it has passed. Dates in other forms count as none.
fn time_until(date: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(&date.replace('-', " ")).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `Cookie` header a second after these `Set-Cookie` headers.
    fn jar(host: &str, tls: bool, set: &[&str]) -> String {
        let mut jar = CookieJar::new(host, tls, "/acp");
        let now = Instant::now();
        for one in set {
            let mut headers = HeaderMap::new();
            headers.insert(SET_COOKIE, HeaderValue::from_str(one).expect("a header"));
            jar.store(&headers, now);
        }
        let header = jar.header(None, now + Duration::from_secs(1));
        header.map_or_else(String::new, |value| {
            value.to_str().expect("ASCII").to_owned()
        })
    }

    #[test]
    fn valid_cookies_are_returned() {
        const PAST: &str = "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        const PAST_WITH_DASHES: &str = "a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT";
        const MAX_AGE_FIRST: &str = "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        let cases: [(&[&str], &str); 15] = [
            // The latest value is sent.
            (&["a=1; HttpOnly", "b=2", "a=3; SameSite=Lax"], "b=2; a=3"),
            (&[" a = x=y ;Path=/"], "a=x=y"),
            (&["=1", "nothing", "; a=1"], ""),
            // Paths separate cookies.
            (&["a=1; Path=/acp"], "a=1"),
            (&["a=1; Path=/acp/deeper", "b=1; Path=/ac"], ""),
            (&["a=1; Path=/acp", "a=2; path=/"], "a=1; a=2"),
            // Expired cookies are removed.
            (&["a=1", "a=; Max-Age=0"], ""),
            (&["a=1", PAST], ""),
            (&["a=1", PAST_WITH_DASHES], ""),
            (&["a=1; Max-Age=1"], ""),
            (&[MAX_AGE_FIRST], "a=1"),
            // Cookies of other servers are not stored.
            (&["a=1; Domain=example.com"], "a=1"),
            (&["a=1; Domain=.Example.com"], "a=1"),
            (&["a=1; Domain=com"], ""),
            (&["b=1; Domain=ample.com"], ""),
        ];
        for (set, sent) in cases {
            assert_eq!(jar("agents.example.com", true, set), sent, "{set:?}");
        }
        assert_eq!(jar("10.0.0.1", true, &["a=1; Domain=0.0.1"]), "");
        assert_eq!(jar("agents.example.com", false, &["a=1; Secure"]), "");
    }

    #[test]
    fn number_of_cookies_is_limited() {
        let set: Vec<String> = (0..MAX_COOKIES + 2).map(|n| format!("c{n}=1")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let header = jar("agents.example.com", true, &set);
        assert_eq!(header.split("; ").count(), MAX_COOKIES);
        assert!(header.starts_with("c2=1; "), "{header}");
    }
}
