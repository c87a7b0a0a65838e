//! The requests that pass through a translation and are not answered yet.
//!
//! An answer names no method, so the request is remembered, with its method in both columns.
//! Bounded. The peer knows a request whose id was replaced only by the new id.

use std::collections::HashMap;

use super::message::Message;
use super::method_name::MethodName;
use super::permission::OfferedOptions;
use super::pointer::JsonPointer;
use super::translation::{DialectEvent, Forward, Translation};
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Limits, Scanned, scan};

/// Cancels a request, which it names in its params.
const CANCEL_REQUEST: &str = "$/cancel_request";

/// Maximum number of requests in flight that one side's translation follows.
const MAX_OPEN: usize = 1 << 16;

/// A request in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingRequest {
    /// Its method in the dialect.
    pub(super) dialect: MethodName,
    /// Its method in canonical.
    pub(super) canonical: MethodName,
    /// The session it was for.
    pub(super) session: Option<String>,
    /// Slots that are valid until it is answered.
    pub(super) slots: Vec<(usize, Box<[u8]>)>,
    /// The options of a permission request, in canonical.
    pub(super) offered: Option<OfferedOptions>,
    /// The id the sender uses for it, when that differs.
    pub(super) sender_id: Option<IdBuf>,
    /// What is done with its answer.
    pub(super) purpose: Purpose,
    /// The canonical params of `session/set_config_option` and `session/set_mode`.
    pub(super) params: Option<Vec<u8>>,
}

/// What is done with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is forwarded to the sender of the request.
    #[default]
    Forward,
    /// The bridge sent the request; the answer is dropped.
    Swallow,
    /// The bridge asked for the number of this tool call.
    ToolNumber(String),
    /// The bridge asked for a session.
    Session,
}

/// The requests of one side.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    open: HashMap<IdBuf, PendingRequest>,
}

impl PendingRequest {
    /// A request of which only the method is known.
    pub(super) fn of(dialect: &str, canonical: &str) -> Self {
        Self {
            dialect: dialect.into(),
            canonical: canonical.into(),
            ..Self::default()
        }
    }

    /// Whether its answer is only subject to the rules.
    pub(super) fn is_plain(&self) -> bool {
        self.purpose == Purpose::Forward && self.sender_id.is_none()
    }
}

impl PendingRequests {
    pub(super) fn insert(&mut self, id: IdBuf, pending: PendingRequest) {
        if self.open.len() < MAX_OPEN {
            self.open.insert(id, pending);
        }
    }

    pub(super) fn remove(&mut self, id: &IdBuf) -> Option<PendingRequest> {
        if let Some(pending) = self.open.remove(id) {
            return Some(pending);
        }
        // A number may come back in another spelling; it is accepted only if it is unambiguous.
        if !matches!(id, IdBuf::Number(_)) {
            return None;
        }
        let mut candidates = self
            .open
            .keys()
            .filter(|open| open.as_id().same_double(&id.as_id()));
        let (Some(candidate), None) = (candidates.next().cloned(), candidates.next()) else {
            return None;
        };
        self.open.remove(&candidate)
    }

    pub(super) fn contains(&self, id: &IdBuf) -> bool {
        self.open.contains_key(id)
    }

    /// Slots belong to one table.
    pub(super) fn forget_slots(&mut self) {
        for pending in self.open.values_mut() {
            pending.slots.clear();
        }
    }

    /// The id that replaced `id`, while the request is open.
    pub(super) fn replaced_id(&self, id: Id<'_>) -> Option<&IdBuf> {
        let known = |pending: &PendingRequest| {
            let own = pending.sender_id.as_ref();
            own.is_some_and(|own| own.as_id() == id)
        };
        let mut open = self.open.iter();
        open.find_map(|(own, pending)| known(pending).then_some(own))
    }
}

impl Translator {
    /// Replaces the id in a notification that names a request by the one the peer knows. If there
    /// is none and the peer could not read the id, the notification is dropped.
    pub(super) fn renumber_cancel(&mut self, frame: &Frame, at: &Envelope, out: &mut Translation) {
        if at.method(frame) != CANCEL_REQUEST {
            return;
        }
        let place = JsonPointer::parse("/requestId").expect("a pointer of ours parses");
        let far = self.peer.other();
        let mut frames = Vec::new();
        for frame in out.frames(frame) {
            let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
                continue;
            };
            let mut message = Message::parse(&frame, &at, CANCEL_REQUEST.into());
            let named = message
                .body
                .get(&place)
                .map(|look| look.json().into_owned());
            let named = named.unwrap_or_default();
            let own = match self.requests(far).replaced_id(Id::of_json(&named)) {
                Some(own) => own.as_id().json().to_vec(),
                None if is_int32(&named) => named,
                None => {
                    out.note(
                        DialectEvent::Dropped,
                        None,
                        "it cancels a request that is not open",
                    );
                    continue;
                }
            };
            // The params of a notification that names a request are an object.
            let _ = message.body.put(place.names(), Node::owned(own));
            frames.push(message.frame(true));
        }
        out.forward = Forward::Frames(frames);
    }
}

/// Whether an id, given as JSON, is a number of 32 bits.
pub(super) fn is_int32(id: &[u8]) -> bool {
    std::str::from_utf8(id).is_ok_and(|text| text.parse::<i32>().is_ok())
}
