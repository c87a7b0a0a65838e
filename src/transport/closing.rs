//! Close codes of WebSockets (RFC 6455, 7.4) for the reasons to close a link. Over HTTP the same is
//! sent in a comment of the event streams.

use std::io;

use super::link::LinkError;
use super::open_error;
use jsonrpc::{CloseReason, printable};

/// The close code for a client whose credentials are no longer valid; private to the relay.
const UNAUTHORIZED: u16 = 4401;

/// The close code for a client whose session its host has lost; private to the relay.
const SESSION_LOST: u16 = 4410;

/// The close code and text for a reason.
pub(super) const fn code(why: CloseReason) -> (u16, &'static str) {
    match why {
        CloseReason::Done => (1000, ""),
        CloseReason::PeerFailed => (1011, "the other side failed"),
        CloseReason::Unrecorded => (1011, "the conversation cannot be recorded"),
        // 4000 to 4999 are free for applications (7.4.2).
        CloseReason::Replaced => (4409, "the client reconnected over another connection"),
        CloseReason::SessionLost => (
            SESSION_LOST,
            "session_lost: this host could not renew its claim to the session; load it again",
        ),
        CloseReason::Unauthorized => (UNAUTHORIZED, "the credentials are no longer valid"),
        CloseReason::Shutdown => (1001, "the relay is shutting down"),
        CloseReason::Violation => (1008, "protocol violation"),
    }
}

/// The error in a server's close code; `None` for a normal end and for a server that is shutting
/// down (7.4.1).
pub(super) fn close_error(code: u16, why: &[u8]) -> Option<LinkError> {
    if matches!(code, 1000 | 1001) {
        return None;
    }
    let colon = if why.is_empty() { "" } else { ": " };
    let what = format!("its server closed with {code}{colon}{}", printable(why));
    Some(match code {
        UNAUTHORIZED => LinkError::Forbidden(format!("{what}. {}", open_error::CHECK_TOKEN)),
        SESSION_LOST => LinkError::SessionLost(what),
        _ => {
            let source = io::Error::other(what);
            let context = "reading from the peer";
            LinkError::Io { context, source }
        }
    })
}
