//! Errors for messages that could not be read whole.
//!
//! Only the first bytes are examined, so that the cost does not depend on what the peer sends.

use crate::scan::json_like;
use crate::{FrameError, FrameFault, IdBuf, Limits, scan_head};

/// Bytes of a message that are examined at most.
const HEAD: usize = 64 << 10;

/// How many first bytes of an over-long message have to be received before it is discarded. It
/// depends only on the limit, so that the result does not depend on how the network split the
/// message.
#[must_use]
pub fn head_len(max: usize) -> usize {
    max.min(HEAD)
}

/// The error for a message longer than `max`; `head` begins with its first bytes.
#[must_use]
pub fn too_long(head: &[u8], max: usize, limits: &Limits) -> Box<FrameError> {
    let head = &head[..head.len().min(head_len(max))];
    of(head, FrameFault::TooLong { limit: max }, max, limits)
}

/// The error for a message whose stream ended after `part`.
pub(super) fn cut_short(part: &[u8], limits: &Limits) -> Box<FrameError> {
    let expected = "the rest of the message";
    let head = &part[..part.len().min(HEAD)];
    of(head, FrameFault::Malformed { expected }, part.len(), limits)
}

/// A header block after which the stream cannot be followed.
pub(super) fn bad_header(why: &'static str) -> Box<FrameError> {
    Box::new(FrameError {
        fault: FrameFault::BadHeader { why },
        at: 0,
        id: IdBuf::default(),
        role: None,
        json_like: false,
    })
}

fn of(head: &[u8], fault: FrameFault, at: usize, limits: &Limits) -> Box<FrameError> {
    let (id, role) = scan_head(head, limits);
    Box::new(FrameError {
        fault,
        at,
        id,
        role,
        json_like: json_like(head),
    })
}
