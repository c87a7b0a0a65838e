//! Reports authenticated and rejected clients to an observer.
//!
//! Nothing that a peer has chosen is reported.

use std::fmt;

use crate::jsonrpc::reply::{self, Reason};

/// Receives the results of authentication and admission. Must return quickly.
pub trait AuthEvents: Send + Sync + fmt::Debug {
    /// A client was authenticated or refused: each client on a byte stream, each request over HTTP.
    fn authenticated(&self, credential: CredentialKind, admitted: bool);

    /// A client of a listener of this scheme was rejected before a conversation began.
    fn rejected(&self, scheme: &str, why: RejectReason);
}

/// What a client was authenticated by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// No credential.
    Nothing,
    /// Its user, as the operating system reports it.
    User,
    /// A token.
    Token,
    /// A certificate.
    Certificate,
}

/// Why a client is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// It is not authenticated.
    Auth,
    /// It is a web page of another site.
    Origin,
    /// It names a host that is not the listener's.
    Host,
    /// It did not open TLS as required.
    Tls,
    /// There are too many of its kind, or it sends too much.
    Limit,
    /// It took too long.
    Timeout,
    /// The relay is shutting down.
    Draining,
    /// What it asks for is not allowed for it.
    Policy,
    /// What it names does not exist, or is not its own.
    Unknown,
    /// It does not speak the protocol.
    Handshake,
    /// Its agent cannot be reached.
    NoAgent,
}

impl RejectReason {
    /// The reason behind an error that a client gets.
    #[must_use]
    pub const fn of(reason: &Reason) -> Self {
        match reason.code {
            reply::OVERLOADED => Self::Limit,
            reply::DRAINING => Self::Draining,
            reply::TIMEOUT => Self::Timeout,
            _ => Self::Policy,
        }
    }
}
