//! Why we end our stream to a peer.
//!
//! The core decides it and each transport says it in its own way: a WebSocket with a close code,
//! a byte stream with its end alone. Not here: those codes.

/// Why a stream is ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// All is said.
    Done,
    /// The other side failed.
    PeerFailed,
    /// The relay is going away.
    Shutdown,
    /// What is said has to be recorded and cannot be.
    Unrecorded,
    /// The same client has come back over another link.
    Replaced,
    /// The peer is no longer let in.
    Unauthorized,
    /// The peer broke the protocol of its transport, or a limit.
    Violation,
}
