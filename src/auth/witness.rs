//! Who hears of everybody that is judged or turned away: those who count.
//!
//! Nothing that a peer has chosen is told. Not here: the counting (see `observe::metrics`).

use std::fmt;

/// Hears how people fare at the door. Must return quickly.
pub trait Witness: Send + Sync + fmt::Debug {
    /// A claim was judged: each client on a byte stream, each request over HTTP.
    fn judged(&self, proof: Proof, admitted: bool);

    /// Somebody who came to a listener of this scheme was turned away before a conversation.
    fn turned_away(&self, scheme: &str, why: Turned);
}

/// What a claim stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// On nothing.
    Nothing,
    /// On what the operating system says of the socket.
    User,
    /// On a token.
    Token,
    /// On a certificate.
    Certificate,
}

/// Why somebody is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It has not shown who it is.
    Auth,
    /// It is a web page of another site.
    Origin,
    /// It asks for a name that is not the listener's.
    Host,
    /// There are too many of its kind, or it sends too much.
    Limit,
    /// It did not open TLS as it has to.
    Tls,
    /// It took too long.
    Timeout,
    /// What it asks for is not for it.
    Policy,
    /// What it names is not there, or is not its.
    Unknown,
    /// The relay ends.
    Draining,
    /// It does not speak the protocol.
    Handshake,
}
