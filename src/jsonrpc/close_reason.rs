//! Why the relay ends its stream to a peer.
//!
//! The conversation decides it, and each transport expresses it in its own way: a WebSocket with a
//! close code, a byte stream only by its end.

/// Why the relay ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Everything was sent.
    Done,
    /// The other side failed.
    PeerFailed,
    /// The relay is going away.
    Shutdown,
    /// The conversation has to be recorded and cannot be.
    Unrecorded,
    /// The same client has reconnected over another link.
    Replaced,
    /// A session of the client belongs to another machine now, or to none.
    SessionLost,
    /// The peer is no longer admitted.
    Unauthorized,
    /// The peer broke the protocol of its transport, or a limit.
    Violation,
}
