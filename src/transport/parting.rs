//! Close codes: why a server ends a link, in a number and a few words, as WebSockets have it
//! (RFC 6455, 7.4). Over HTTP the same is said in a comment of the streams of events.
//!
//! Not here: how a transport says it.

use std::io;

use super::failure;
use super::link::LinkError;
use crate::jsonrpc::{Farewell, printable};

/// The close code for whoever is not let in any more. It is of our own choice.
const UNAUTHORIZED: u16 = 4401;

/// How a farewell is said.
pub(super) const fn code(why: Farewell) -> (u16, &'static str) {
    match why {
        Farewell::Done => (1000, ""),
        Farewell::PeerFailed => (1011, "the other side failed"),
        Farewell::Unrecorded => (1011, "the conversation cannot be recorded"),
        // 4000 to 4999 are free for applications (7.4.2).
        Farewell::Replaced => (4409, "the client came back over another connection"),
        Farewell::Unauthorized => (UNAUTHORIZED, "what let you in is no longer good"),
        Farewell::Shutdown => (1001, "the relay is going away"),
        Farewell::Violation => (1008, "protocol violation"),
    }
}

/// What is wrong, when a server's code says that something is: one that is neither that of an
/// orderly end nor of a server that is stopped (7.4.1).
pub(super) fn complaint(code: u16, why: &[u8]) -> Option<LinkError> {
    if matches!(code, 1000 | 1001) {
        return None;
    }
    let colon = if why.is_empty() { "" } else { ": " };
    let said = format!("its server closed with {code}{colon}{}", printable(why));
    Some(if code == UNAUTHORIZED {
        LinkError::Forbidden(format!("{said}. {}", failure::CHECK_TOKEN))
    } else {
        let source = io::Error::other(said);
        let context = "reading from the peer";
        LinkError::Io { context, source }
    })
}
