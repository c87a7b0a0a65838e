//! Messages that a berth makes, or spells otherwise.
//!
//! Not here: when (see `berth`).

use serde_json::value::RawValue;

use super::peek;
use crate::wire::{Envelope, Frame, Id, IdBuf};

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
    let mut members = peek::body(&frame, at);
    let ours = members.get("requestId").and_then(|id| {
        let text = id.get().as_bytes();
        let id = match text.first() {
            Some(b'"') => IdBuf::String(text.into()),
            _ => IdBuf::Number(text.into()),
        };
        RawValue::from_string(ours(&id)?.as_id().to_string()).ok()
    });
    let Some(ours) = ours else {
        return frame;
    };
    members.insert("requestId".into(), &ours);
    match serde_json::to_string(&members) {
        Ok(params) => Frame::from(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{params}}}"
        )),
        Err(_) => frame,
    }
}
