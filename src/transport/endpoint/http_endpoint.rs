//! URLs of HTTP and WebSocket endpoints.

use std::fmt;

use super::authority::{Bracketed, authority_parts};

/// Path of a URL without a path.
pub const DEFAULT_PATH: &str = "/acp";

/// The address of an endpoint that begins with an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpEndpoint {
    /// The protocol.
    pub protocol: HttpProtocol,
    /// Whether it uses TLS.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port; 80 or 443 if not given, 0 lets a listener choose.
    pub port: u16,
    /// Path, [`DEFAULT_PATH`] if not given; the root for Agent Connect, whose own paths follow.
    pub path: String,
}

/// How messages are carried over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProtocol {
    /// In a WebSocket: `ws`, `wss`.
    WebSocket,
    /// As ACP's Streamable HTTP: `http`, `https`.
    StreamableHttp,
    /// As elephant.ai's server does: `elephant+http`, `elephant+https`.
    Elephant,
    /// As REST, by AGNTCY's Agent Connect Protocol: `agent-connect+http`, `agent-connect+https`.
    AgentConnect,
}

impl HttpProtocol {
    /// The protocols with their schemes, without and with TLS.
    const SCHEMES: [(Self, &'static str, &'static str); 4] = [
        (Self::WebSocket, "ws", "wss"),
        (Self::StreamableHttp, "http", "https"),
        (Self::Elephant, "elephant+http", "elephant+https"),
        (
            Self::AgentConnect,
            "agent-connect+http",
            "agent-connect+https",
        ),
    ];

    /// The protocol of a scheme in lower case, and whether it uses TLS.
    pub(super) fn from_scheme(scheme: &str) -> Option<(Self, bool)> {
        Self::SCHEMES.iter().find_map(|(protocol, clear, tls)| {
            let secured = scheme == *tls;
            (secured || scheme == *clear).then_some((*protocol, secured))
        })
    }
}

impl HttpEndpoint {
    /// Its scheme, without `:`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        let (_, clear, tls) = HttpProtocol::SCHEMES[self.protocol as usize];
        if self.tls { tls } else { clear }
    }

    /// The port that is omitted from URLs.
    #[must_use]
    pub const fn default_port(&self) -> u16 {
        if self.tls { 443 } else { 80 }
    }

    /// Host and port as the `Host` header has them (RFC 9110, 7.2).
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.default_port() {
            Bracketed(&self.host).to_string()
        } else {
            self.host_and_port()
        }
    }

    /// Host and port, also if it is the usual one.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", Bracketed(&self.host), self.port)
    }
}

impl fmt::Display for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority(), self.path)
    }
}

/// Parses the text after the scheme and its colon; `form` is the expected form, for an error.
pub(super) fn parse(
    protocol: HttpProtocol,
    tls: bool,
    rest: &str,
    form: &str,
) -> Result<HttpEndpoint, String> {
    let rest = rest.strip_prefix("//").ok_or(form)?;
    if rest.contains('?') {
        return Err(format!("a query (\"?\") is not taken; {form}"));
    }
    if rest.contains('#') {
        return Err(format!("a fragment (\"#\") is not taken; {form}"));
    }
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None if protocol == HttpProtocol::AgentConnect => (rest, "/"),
        None => (rest, DEFAULT_PATH),
    };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the path holds a character that has to be percent-encoded".to_owned());
    }
    let (host, port) = authority_parts(authority, form)?;
    let mut endpoint = HttpEndpoint {
        protocol,
        tls,
        host,
        port: 0,
        path: path.to_owned(),
    };
    endpoint.port = port.unwrap_or_else(|| endpoint.default_port());
    Ok(endpoint)
}
