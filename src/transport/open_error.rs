//! Errors of opening an endpoint, for a person: what happened, where, and what to do.
//!
//! Converts the operating system's errors to [`OpenError`]s, for all transports.

use std::fmt;
use std::io;

use hyper::StatusCode;

use super::Endpoint;

/// The message for a refused connection.
pub(super) const REFUSED: &str = "nothing listens there (connection refused)";
/// The remedy for a server that answers 401 or 403.
pub const CHECK_TOKEN: &str = "Check the token (--bearer-file; its host makes a new one: acp-relay token new), and what else \
     the server asks for";

/// Why an endpoint could not be opened: what happened, where, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
pub struct OpenError {
    /// The kind of failure, for the exit code.
    pub kind: OpenErrorKind,
    /// The endpoint, as given.
    pub endpoint: String,
    /// What happened, as a clause: `nothing listens there (connection refused)`.
    pub what: String,
    /// What to do about it, as a sentence, if known.
    pub remedy: Option<String>,
}

/// Kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// The endpoint cannot be used here (sysexits 64).
    Usage,
    /// A recording cannot be read (66).
    NoInput,
    /// The host's name does not resolve (68).
    NoHost,
    /// The peer, program or port is unavailable (69).
    Unavailable,
    /// An error of the operating system (71).
    System,
    /// A socket file cannot be created (73).
    CannotCreate,
    /// The peer does not speak the transport's protocol (76).
    Protocol,
    /// Not permitted (77).
    Forbidden,
    /// Those that could do it have no room (69).
    Overloaded,
    /// The program that would do it is missing on the other machine, or does not run there (69).
    Missing,
    /// The connection was lost before the link was open (69).
    Lost,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.endpoint, self.reason())
    }
}

impl OpenError {
    /// An error of `endpoint`; `what` is a clause.
    pub fn new(kind: OpenErrorKind, endpoint: impl fmt::Display, what: impl Into<String>) -> Self {
        Self {
            kind,
            endpoint: endpoint.to_string(),
            what: what.into(),
            remedy: None,
        }
    }

    /// What happened and what to do, without the address.
    pub fn reason(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}. {remedy}", self.what),
            None => self.what.clone(),
        }
    }

    /// Whether the machine there answers that nothing listens.
    pub(super) fn is_refused(&self) -> bool {
        self.what == REFUSED
    }

    /// Adds the remedy, as a sentence without its full stop.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// A transport was given an endpoint of another one.
    pub fn wrong_scheme(endpoint: &Endpoint) -> Self {
        let what = "this transport does not serve that scheme";
        Self::new(OpenErrorKind::Usage, endpoint, what)
    }
}

/// Whether a retry may succeed after this status: the server is busy or draining, or a proxy cannot
/// reach it.
pub(super) const fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// An accepted socket cannot be registered with the runtime.
pub(super) fn not_accepted(from: impl fmt::Display, source: &io::Error) -> OpenError {
    let what = format!("its socket cannot be used ({source})");
    OpenError::new(OpenErrorKind::System, from, what)
}

/// `endpoint` cannot be connected.
pub(super) fn not_connected(endpoint: &Endpoint, source: &io::Error) -> OpenError {
    use io::ErrorKind::{
        AddrNotAvailable, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable,
        NotFound, PermissionDenied, TimedOut,
    };
    let (kind, what, remedy) = match source.kind() {
        ConnectionRefused => (
            OpenErrorKind::Unavailable,
            REFUSED,
            "Start the peer first, or check the address",
        ),
        NotFound => (
            OpenErrorKind::Unavailable,
            "there is no such socket file",
            "Start the peer first, or check the path",
        ),
        TimedOut => (
            OpenErrorKind::Unavailable,
            "nothing answers there (timed out)",
            "Check the address, and that no firewall is in between",
        ),
        other => {
            let (kind, what) = match other {
                PermissionDenied => (OpenErrorKind::Forbidden, "connecting is not permitted"),
                ConnectionReset => return lost(endpoint, source),
                HostUnreachable | NetworkUnreachable | AddrNotAvailable => {
                    (OpenErrorKind::Unavailable, "it cannot be reached")
                }
                _ => (OpenErrorKind::System, "connecting failed"),
            };
            return OpenError::new(kind, endpoint, format!("{what} ({source})"));
        }
    };
    OpenError::new(kind, endpoint, what).with_remedy(remedy)
}

/// A host and port, or the file of a Unix socket, could not be bound.
pub(super) fn not_bound(endpoint: &Endpoint, source: &io::Error) -> OpenError {
    use OpenErrorKind::{CannotCreate, Forbidden, System, Unavailable};
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, NotADirectory, NotFound, PermissionDenied};
    let is_file = matches!(endpoint, Endpoint::Unix(_));
    let (kind, what, remedy) = match source.kind() {
        AddrInUse if is_file => (
            Unavailable,
            "the socket is in use",
            "Stop what listens there, or choose another path",
        ),
        NotFound | NotADirectory if is_file => (
            CannotCreate,
            "the directory of the socket file does not exist",
            "Create it first",
        ),
        PermissionDenied if is_file => (
            CannotCreate,
            "creating the socket file is not permitted",
            "Choose a directory that you may write to",
        ),
        AddrInUse => (
            Unavailable,
            "the port is in use",
            "Stop what listens there, or choose another port; 0 picks a free one",
        ),
        AddrNotAvailable => (
            Unavailable,
            "this machine has no such address",
            "Listen on 127.0.0.1, or on an address of this machine",
        ),
        PermissionDenied => (
            Forbidden,
            "listening on that port is not permitted",
            "Choose a port above 1023",
        ),
        _ => {
            let kind = if is_file { CannotCreate } else { System };
            return OpenError::new(kind, endpoint, format!("listening failed ({source})"));
        }
    };
    OpenError::new(kind, endpoint, what).with_remedy(remedy)
}

/// A host name does not resolve.
pub(super) fn not_resolved(endpoint: &Endpoint, host: &str, source: &io::Error) -> OpenError {
    let what = format!("the host {host:?} is not known ({source})");
    OpenError::new(OpenErrorKind::NoHost, endpoint, what).with_remedy("Check the name")
}

/// The TLS handshake with the server failed.
pub(super) fn not_encrypted(to: &Endpoint, fault: &io::Error) -> OpenError {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    if matches!(fault.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
        return lost(to, fault);
    }
    let text = fault.to_string();
    // `openssl req -x509` makes certificates that claim to be an authority.
    let remedy = if text.contains("CaUsedAsEndEntity") {
        "The server's certificate is one of a certificate authority; pin it with --pin-sha256, or make one with CA:FALSE"
    } else {
        "Check that the peer speaks TLS there; name its certificate with --tls-ca or --pin-sha256 if it is self-signed"
    };
    let what = format!("the TLS handshake failed ({text})");
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy(remedy)
}

/// The connection was lost while the link was opened.
pub(super) fn lost(endpoint: impl fmt::Display, why: impl fmt::Display) -> OpenError {
    let what = format!("the connection was lost before it was open ({why})");
    let remedy = "Check what runs there, and try again";
    OpenError::new(OpenErrorKind::Lost, endpoint, what).with_remedy(remedy)
}

/// The peer did not finish in time.
pub(super) fn timed_out(
    endpoint: impl fmt::Display,
    action: &str,
    within: std::time::Duration,
) -> OpenError {
    let what = format!("{action} was not done within {within:?}");
    OpenError::new(OpenErrorKind::Unavailable, endpoint, what)
}
