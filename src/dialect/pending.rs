//! A request that passes through a translation and is not answered yet.
//!
//! An answer names no method, so the request is remembered, with its method in both columns.

use std::borrow::Cow;

use super::memory::{self, ENTRY};
use super::methods::{MethodName, method_name};
use super::permission::OfferedOptions;
use super::text;
use jsonrpc::IdBuf;

/// Maximum number of requests in flight that one side's translation follows.
pub(super) const MAX_OPEN: usize = 1 << 16;

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

impl PendingRequest {
    /// A request of which only the method is known.
    pub(super) fn of(dialect: &str, canonical: &str) -> Self {
        Self {
            dialect: method_name(dialect),
            canonical: method_name(canonical),
            ..Self::default()
        }
    }

    /// The memory that it takes, in bytes.
    pub(super) fn weight(&self) -> usize {
        let slots = self.slots.iter().map(|(_, value)| ENTRY + value.len());
        let offered = self.offered.iter().flat_map(|offered| &offered.0);
        let offered = offered.map(|offer| ENTRY + offer.id.capacity() + offer.kind.capacity());
        let call = match &self.purpose {
            Purpose::ToolNumber(call) => call.capacity(),
            _ => 0,
        };
        let texts = memory::text(self.session.as_ref()) + call;
        let params = self.params.as_ref().map_or(0, Vec::capacity);
        ENTRY + size_of::<Self>() + texts + params + slots.chain(offered).sum::<usize>()
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

/// Whether an id, given as JSON, is a number of 32 bits.
pub(super) fn is_int32(id: &[u8]) -> bool {
    std::str::from_utf8(id).is_ok_and(|text| text.parse::<i32>().is_ok())
}
