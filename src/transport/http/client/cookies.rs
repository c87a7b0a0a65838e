//! The cookies of one link: what its server sets is returned to it until the link ends.
//!
//! ACP's remote transport needs them for load balancers with session affinity. The subset of RFC
//! 6265 that one endpoint of one server can use for itself: name, value, secure, and expires and
//! max-age where they end a cookie. Cookies are not kept beyond the link and not shared between
//! servers.

use std::time::SystemTime;

use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};

/// Most cookies that are kept. Beyond it: the oldest is removed.
const MAX_COOKIES: usize = 64;
/// Longest cookie that is kept, in bytes (RFC 6265, 6.1). Beyond it: not kept.
const MAX_LENGTH: usize = 4096;

/// The cookies of one server.
#[derive(Debug)]
pub(super) struct CookieJar {
    /// Whether it is reached over TLS.
    tls: bool,
    /// Names and values.
    cookies: Vec<(String, String)>,
}

impl CookieJar {
    pub(super) const fn new(tls: bool) -> Self {
        Self {
            tls,
            cookies: Vec::new(),
        }
    }

    /// Stores the cookies that a response sets, and removes those that it ends.
    pub(super) fn store(&mut self, headers: &HeaderMap) {
        for value in headers.get_all(SET_COOKIE) {
            let text = value.to_str().ok().filter(|text| text.len() <= MAX_LENGTH);
            if let Some((name, value)) = text.and_then(|text| self.read(text)) {
                self.cookies.retain(|(old, _)| *old != name);
                self.cookies.extend(value.map(|value| (name, value)));
                if self.cookies.len() > MAX_COOKIES {
                    self.cookies.remove(0);
                }
            }
        }
    }

    /// The value of a request's `Cookie` header, after `given`, which the user has configured.
    pub(super) fn header(&self, given: Option<&HeaderValue>) -> Option<HeaderValue> {
        let given = given.map(|value| value.as_bytes().to_vec());
        let own = self.cookies.iter();
        let own = own.map(|(name, value)| format!("{name}={value}").into_bytes());
        let all: Vec<_> = given.into_iter().chain(own).collect();
        let mut value = HeaderValue::from_bytes(&all.join(&b"; "[..])).ok()?;
        value.set_sensitive(true);
        Some(value).filter(|value| !value.is_empty())
    }

    /// The name and the value of one `Set-Cookie`; no value when it has expired (RFC 6265, 5.2 and
    /// 5.3).
    fn read(&self, text: &str) -> Option<(String, Option<String>)> {
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (mut max_age, mut has_passed) = (None, false);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "secure" if !self.tls => return None,
                "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
                "expires" => {
                    let date = httpdate::parse_http_date(&value.replace('-', " "));
                    has_passed = date.is_ok_and(|date| date <= SystemTime::now());
                }
                _ => {}
            }
        }
        let has_expired = max_age.map_or(has_passed, |seconds| seconds <= 0);
        let (name, value) = (name.trim(), value.trim());
        let value = (!has_expired).then(|| value.to_owned());
        (!name.is_empty()).then(|| (name.to_owned(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `Cookie` header after these `Set-Cookie` headers.
    fn jar(tls: bool, set: &[&str]) -> String {
        let mut jar = CookieJar::new(tls);
        for one in set {
            let value = HeaderValue::from_str(one).expect("a header");
            jar.store(&HeaderMap::from_iter([(SET_COOKIE, value)]));
        }
        let header = jar.header(None);
        let text = header.map(|value| value.to_str().expect("ASCII").to_owned());
        text.unwrap_or_default()
    }

    #[test]
    fn valid_cookies_are_returned() {
        const PAST: &str = "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        const PAST_WITH_DASHES: &str = "a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT";
        const MAX_AGE_FIRST: &str = "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        let cases: [(&[&str], &str); 8] = [
            // The latest value is sent.
            (&["a=1; HttpOnly", "b=2", "a=3; SameSite=Lax"], "b=2; a=3"),
            (&[" a = x=y ;Path=/"], "a=x=y"),
            (&["=1", "nothing", "; a=1"], ""),
            // Expired cookies are removed.
            (&["a=1", "a=; Max-Age=0"], ""),
            (&["a=1", PAST], ""),
            (&["a=1", PAST_WITH_DASHES], ""),
            (&["a=1; Max-Age=1"], "a=1"),
            (&[MAX_AGE_FIRST, "b=1; Secure"], "a=1; b=1"),
        ];
        for (set, sent) in cases {
            assert_eq!(jar(true, set), sent, "{set:?}");
        }
        assert_eq!(jar(false, &["a=1; Secure"]), "");
    }
}
