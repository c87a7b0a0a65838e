//! The requests that pass through a translation and are not answered yet.
//!
//! An answer names no method, so the request is remembered, with its method in both columns.
//! Bounded. The peer knows a request whose id was replaced only by the new id.

use std::collections::HashMap;

use super::message::Message;
use super::name::Name;
use super::outcome::{Happened, Outcome, Pass};
use super::permission::Offered;
use super::pointer::Place;
use super::translate::Translator;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Limits, Shape, scan};

/// Cancels a request, which it names in its params.
const CANCEL_REQUEST: &str = "$/cancel_request";

/// Maximum number of requests in flight that one side's translation follows.
const OPEN: usize = 1 << 16;

/// A request in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Its method in the dialect.
    pub(super) dialect: Name,
    /// Its method in canonical.
    pub(super) canonical: Name,
    /// The session it was for.
    pub(super) session: Option<String>,
    /// Slots that are valid until it is answered.
    pub(super) slots: Vec<(usize, Box<[u8]>)>,
    /// The options of a permission request, in canonical.
    pub(super) offered: Option<Offered>,
    /// The id the sender uses for it, when that differs.
    pub(super) asker_id: Option<IdBuf>,
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
pub(super) struct Requests {
    open: HashMap<IdBuf, Asked>,
}

impl Asked {
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
        self.purpose == Purpose::Forward && self.asker_id.is_none()
    }
}

impl Requests {
    pub(super) fn ask(&mut self, id: IdBuf, asked: Asked) {
        if self.open.len() < OPEN {
            self.open.insert(id, asked);
        }
    }

    pub(super) fn answer(&mut self, id: &IdBuf) -> Option<Asked> {
        if let Some(asked) = self.open.remove(id) {
            return Some(asked);
        }
        // A number may come back in another spelling; it is accepted only if it is unambiguous.
        if !matches!(id, IdBuf::Number(_)) {
            return None;
        }
        let mut twins = self
            .open
            .keys()
            .filter(|open| open.as_id().same_double(&id.as_id()));
        let (Some(twin), None) = (twins.next().cloned(), twins.next()) else {
            return None;
        };
        self.open.remove(&twin)
    }

    pub(super) fn has(&self, id: &IdBuf) -> bool {
        self.open.contains_key(id)
    }

    /// Slots belong to one table.
    pub(super) fn forget_slots(&mut self) {
        for asked in self.open.values_mut() {
            asked.slots.clear();
        }
    }

    /// The id that replaced `id`, while the request is open.
    pub(super) fn replaced(&self, id: Id<'_>) -> Option<&IdBuf> {
        let known = |asked: &Asked| {
            let own = asked.asker_id.as_ref();
            own.is_some_and(|own| own.as_id() == id)
        };
        let mut open = self.open.iter();
        open.find_map(|(own, asked)| known(asked).then_some(own))
    }
}

impl Translator {
    /// Replaces the id in a notification that names a request by the one the peer knows. If there
    /// is none and the peer could not read the id, the notification is dropped.
    pub(super) fn renumber_cancel(&mut self, frame: &Frame, at: &Envelope, out: &mut Outcome) {
        if at.method(frame) != CANCEL_REQUEST {
            return;
        }
        let place = Place::parse("/requestId").expect("a pointer of ours parses");
        let far = self.peer.other();
        let mut frames = Vec::new();
        for frame in out.frames(frame) {
            let Shape::One(at) = scan(&frame, &Limits::default()) else {
                continue;
            };
            let mut message = Message::take(&frame, &at, CANCEL_REQUEST.into());
            let named = message
                .body
                .look(&place)
                .map(|look| look.json().into_owned());
            let named = named.unwrap_or_default();
            let own = match self.requests(far).replaced(Id::of_json(&named)) {
                Some(own) => own.as_id().json().to_vec(),
                None if fits(&named) => named,
                None => {
                    out.note(
                        Happened::Dropped,
                        None,
                        "it cancels a request that is not open",
                    );
                    continue;
                }
            };
            // The params of a notification that names a request are an object.
            let _ = message.body.put(place.names(), Node::made(own));
            frames.push(message.frame(true));
        }
        out.pass = Pass::Frames(frames);
    }
}

/// Whether an id, given as JSON, is a number of 32 bits.
pub(super) fn fits(id: &[u8]) -> bool {
    std::str::from_utf8(id).is_ok_and(|text| text.parse::<i32>().is_ok())
}
