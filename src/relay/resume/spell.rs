//! Messages that a berth makes, or spells otherwise.
//!
//! Not here: when (see `berth`).

use crate::wire::{Envelope, Frame, Id, IdBuf, member_place};

/// The answer to a client's request for a session, out of what is kept here.
pub(super) fn answer(id: Id<'_>, result: &Frame) -> Frame {
    Frame::new(
        [
            br#"{"jsonrpc":"2.0","id":"#,
            id.json(),
            br#","result":"#,
            result.as_bytes(),
            b"}",
        ]
        .concat(),
    )
}

/// A notification that is about a request, which names it as the agent knows it; others as they
/// are. `ours` knows the agent's id for the client's.
pub(super) fn with_our_id<'a>(
    frame: Frame,
    at: &Envelope,
    ours: impl Fn(&IdBuf) -> Option<&'a IdBuf>,
) -> Frame {
    if at.method(&frame) != "$/cancel_request" {
        return frame;
    }
    let body = at.body(&frame).unwrap_or_default();
    let Some(place) = member_place(body, "requestId") else {
        return frame;
    };
    let id = Id::of_json(&body[place.clone()]).to_owned();
    let Some(ours) = ours(&id) else {
        return frame;
    };
    Frame::new(
        [
            br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":"#,
            &body[..place.start],
            ours.as_id().json(),
            &body[place.end..],
            b"}",
        ]
        .concat(),
    )
}
