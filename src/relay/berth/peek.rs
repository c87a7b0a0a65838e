//! The few members of messages that a berth has to read.
//!
//! Not here: what is done with them.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::wire::{Envelope, Frame};

/// The members of an object, each as it is spelled.
pub(super) type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

/// The members of a message's `params` or `result`; none when that is no object.
pub(super) fn body<'a>(frame: &'a Frame, at: &Envelope) -> Members<'a> {
    at.body(frame).map(members).unwrap_or_default()
}

/// The members of an object; none when it is something else.
pub(super) fn members(text: &[u8]) -> Members<'_> {
    serde_json::from_slice(text).unwrap_or_default()
}

/// A member's text, unescaped.
pub(super) fn text(members: &Members<'_>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// The session that a message belongs to.
pub(super) fn session(frame: &Frame, at: &Envelope) -> Option<String> {
    text(&body(frame, at), "sessionId")
}
