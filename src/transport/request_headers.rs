//! The configured headers of requests to a server, including the token.
//!
//! Values are marked sensitive, so that no log shows them.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

/// The configured headers of every request to a remote agent's server.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders {
    /// Headers besides those that the protocol needs.
    pub headers: HeaderMap,
    /// Use HTTP/2 without TLS and without negotiation.
    pub http2: bool,
}

/// Headers that the transport sets itself.
const RESERVED: [&str; 14] = [
    "accept",
    "acp-connection-id",
    "acp-session-id",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl RequestHeaders {
    /// Adds a header as `NAME: VALUE`.
    ///
    /// # Errors
    /// When it is not a header, or one that the transport sets; the error does not repeat the
    /// value.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line
            .split_once(':')
            .ok_or("a header is NAME: VALUE, and there is no colon")?;
        let name = name.trim();
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} cannot be the name of a header"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("sec-websocket-") {
            return Err(format!("the header {name} is set by the transport itself"));
        }
        let value = secret(value.trim())
            .ok_or_else(|| format!("the value of {name} holds a character that no header may"))?;
        self.headers.append(parsed, value);
        Ok(())
    }

    /// Adds a bearer token (RFC 6750).
    ///
    /// # Errors
    /// When it is not a valid token; the error does not repeat it.
    pub fn set_bearer(&mut self, token: &str) -> Result<(), String> {
        let token = token.trim();
        if token.is_empty() {
            return Err("the bearer token is empty".to_owned());
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the bearer token holds a character that none may".to_owned());
        }
        if self.headers.contains_key(AUTHORIZATION) {
            return Err("there is a bearer token and an Authorization header".to_owned());
        }
        let value = secret(&format!("Bearer {token}")).ok_or("the bearer token fits no header")?;
        self.headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
