//! Reports authenticated and rejected clients to an observer.
//!
//! Nothing that a peer has chosen is reported.

use std::fmt;

use jsonrpc::names;
use jsonrpc::reply::{self, Reason};

/// Receives the results of authentication and admission. Must return quickly.
pub trait AuthEvents: Send + Sync + fmt::Debug {
    /// A client was authenticated or refused: each client on a byte stream, each request over HTTP.
    fn authenticated(&self, credential: CredentialKind, admitted: bool);

    /// A client of a listener of this scheme was rejected before a conversation began.
    fn rejected(&self, scheme: &str, why: RejectReason);
}

names! {
    /// What a client was authenticated by.
    CredentialKind {
        /// No credential.
        Nothing = "none",
        /// Its user, as the operating system reports it.
        User = "peercred",
        /// A token.
        Token = "token",
        /// A certificate.
        Certificate = "mtls",
    }
}

names! {
    /// Why a client is rejected.
    RejectReason {
        /// It is not authenticated.
        Auth = "auth",
        /// It is a web page of another site.
        Origin = "origin",
        /// It names a host that is not the listener's.
        Host = "host",
        /// It did not open TLS as required.
        Tls = "tls",
        /// There are too many of its kind, or it sends too much.
        Limit = "limit",
        /// It took too long.
        Timeout = "timeout",
        /// The relay is shutting down.
        Draining = "draining",
        /// What it asks for is not allowed for it.
        Policy = "policy",
        /// What it names does not exist, or is not its own.
        Unknown = "unknown",
        /// It does not speak the protocol.
        Handshake = "handshake",
        /// Its agent cannot be reached.
        NoAgent = "no_agent",
    }
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
