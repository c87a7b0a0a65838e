//! Reads and replaces the id of a message.

use crate::jsonrpc::{Frame, Id, IdBuf, Limits, Scanned, scan};

/// The id of a frame, if it is a message.
pub(super) fn id_of(frame: &Frame) -> IdBuf {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => at.id(frame).to_owned(),
        _ => IdBuf::Absent,
    }
}

/// The frame with another id.
pub(super) fn with_id(frame: &Frame, id: Id<'_>) -> Frame {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => at.with_id(frame, id),
        _ => frame.clone(),
    }
}
