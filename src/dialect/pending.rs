//! The requests that pass through a translation and are not answered yet.
//!
//! An answer names no method, so the request is remembered, with its method in both columns.
//! Bounded. The peer knows a request whose id was replaced only by the new id.

use std::borrow::Cow;
use std::collections::HashMap;

use super::methods::{MethodName, method_name};
use super::permission::OfferedOptions;
use super::text;
use crate::jsonrpc::{Id, IdBuf};

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
    pub(super) slots: Vec<(Cow<'static, str>, Box<[u8]>)>,
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
            dialect: method_name(dialect),
            canonical: method_name(canonical),
            ..Self::default()
        }
    }

    /// The value of a slot that is valid until it is answered.
    pub(super) fn slot(&self, name: &str) -> Option<&[u8]> {
        let mut slots = self.slots.iter().rev();
        slots.find_map(|(slot, value)| (slot == name).then_some(&**value))
    }

    /// A param that is remembered of it.
    pub(super) fn param(&self, name: &str) -> Option<&[u8]> {
        text::member(self.params.as_deref()?, name)
    }

    /// The text of a param that is remembered of it.
    pub(super) fn text_param(&self, name: &str) -> Option<String> {
        self.param(name).and_then(text::string).map(Cow::into_owned)
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

/// Whether an id, given as JSON, is a number of 32 bits.
pub(super) fn is_int32(id: &[u8]) -> bool {
    std::str::from_utf8(id).is_ok_and(|text| text.parse::<i32>().is_ok())
}
