//! Errors for messages that could not be read whole.
//!
//! Only the first bytes are examined, so that the cost does not depend on what the peer sends.

use crate::jsonrpc::scan::json_like;
use crate::jsonrpc::{Fault, Flaw, IdBuf, Limits, scan_head};

/// Bytes of a message that are examined at most.
const KEPT: usize = 64 << 10;

/// How many first bytes of an over-long message have to be received before it is discarded. It
/// depends only on the limit, so that the result does not depend on how the network split the
/// message.
#[must_use]
pub fn wanted(max: usize) -> usize {
    max.min(KEPT)
}

/// The error for a message longer than `max`; `head` begins with its first bytes.
#[must_use]
pub fn too_long(head: &[u8], max: usize, limits: &Limits) -> Box<Flaw> {
    let head = &head[..head.len().min(wanted(max))];
    of(head, Fault::TooLong { limit: max }, max, limits)
}

/// The error for a message whose stream ended after `part`.
pub(super) fn cut_short(part: &[u8], limits: &Limits) -> Box<Flaw> {
    let expected = "the rest of the message";
    let head = &part[..part.len().min(KEPT)];
    of(head, Fault::Malformed { expected }, part.len(), limits)
}

/// A header block after which the stream cannot be followed.
pub(super) fn bad_header(why: &'static str) -> Box<Flaw> {
    Box::new(Flaw {
        fault: Fault::BadHeader { why },
        at: 0,
        id: IdBuf::Absent,
        role: None,
        json_like: false,
    })
}

fn of(head: &[u8], fault: Fault, at: usize, limits: &Limits) -> Box<Flaw> {
    let (id, role) = scan_head(head, limits);
    Box::new(Flaw {
        fault,
        at,
        id,
        role,
        json_like: json_like(head),
    })
}
