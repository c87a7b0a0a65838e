//! The cookies of one link: what its server sets is returned to it until the link ends.
//!
//! ACP's remote transport needs them for load balancers with session affinity. The subset of RFC
//! 6265 that one endpoint of one server can use for itself: name, value, secure, expires and
//! max-age. Cookies are not kept beyond the link and not shared between servers.

use std::time::{Duration, Instant, SystemTime};

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
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: String,
    value: String,
    expires: Option<Instant>,
}

impl CookieJar {
    pub(super) const fn new(tls: bool) -> Self {
        Self {
            tls,
            cookies: Vec::new(),
        }
    }

    /// Stores the cookies that a response sets.
    pub(super) fn store(&mut self, headers: &HeaderMap, now: Instant) {
        for value in headers.get_all(SET_COOKIE) {
            let text = value.to_str().ok().filter(|text| text.len() <= MAX_LENGTH);
            if let Some((cookie, is_valid)) = text.and_then(|text| self.read(text, now)) {
                self.cookies.retain(|old| old.name != cookie.name);
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
        let given = given.map(|value| value.as_bytes().to_vec());
        let valid = self.cookies.iter();
        let valid = valid.filter(|cookie| cookie.expires.is_none_or(|at| now < at));
        let own = valid.map(|cookie| format!("{}={}", cookie.name, cookie.value).into_bytes());
        let text = given
            .into_iter()
            .chain(own)
            .collect::<Vec<_>>()
            .join(&b"; "[..]);
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
            expires: None,
        };
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
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
    fn jar(tls: bool, set: &[&str]) -> String {
        let mut jar = CookieJar::new(tls);
        let now = Instant::now();
        for one in set {
            let value = HeaderValue::from_str(one).expect("a header");
            jar.store(&HeaderMap::from_iter([(SET_COOKIE, value)]), now);
        }
        let header = jar.header(None, now + Duration::from_secs(1));
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
            (&["a=1; Max-Age=1"], ""),
            (&[MAX_AGE_FIRST, "b=1; Secure"], "a=1; b=1"),
        ];
        for (set, sent) in cases {
            assert_eq!(jar(true, set), sent, "{set:?}");
        }
        assert_eq!(jar(false, &["a=1; Secure"]), "");
    }
}
