//! The result of translating one message.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::message::Message;
use super::methods::MethodName;
use super::program::{FiredRule, Layer};
use super::table::Rule;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Frame, names};

/// The result for one message.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// What is forwarded to the other side.
    pub forward: Forward,
    /// What is sent back to the side the message came from, in order.
    pub replies: Vec<Frame>,
    /// The rules that changed something, in order: the message, or what is made from it.
    pub fired: SmallVec<[FiredRule; 1]>,
    /// The method of the message, or of the request it answers, as the first of those rules saw it;
    /// empty when there is none.
    pub method: MethodName,
    /// Events that are reported.
    pub notes: Vec<DialectNote>,
}

/// What is forwarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// The frame with its original bytes.
    #[default]
    Unchanged,
    /// These frames, in order; maybe none.
    Frames(Vec<Frame>),
}

/// An event that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectNote {
    /// What happened.
    pub what: DialectEvent,
    /// The rule, as `dialect/rule`, if one was involved.
    pub rule: Option<String>,
    /// A clause for the log.
    pub detail: String,
}

names! {
    /// The kind of event; there is a counter for each.
    #[derive(Hash)]
    DialectEvent {
        /// No case of a rule applied; the message was forwarded unchanged.
        Unmatched = "unmatched",
        /// A rule could not place a value; the message was forwarded unchanged, or refused.
        Untranslatable = "untranslatable",
        /// A part or the whole message was dropped.
        Dropped = "dropped",
        /// The bridge answered the message itself.
        Answered = "answered",
        /// Something that the other protocol version lacks was made up or stood in for.
        Emulated = "emulated",
        /// An answer to a request of the bridge was consumed.
        Swallowed = "swallowed",
        /// A message waits for another one.
        Held = "held",
        /// What was known of sessions was forgotten, for the limit `translation-bytes`.
        Forgotten = "forgotten",
        /// A permission answer was corrected or failed closed.
        Permission = "permission",
        /// A `rest` applied to members that no row names.
        UnknownMember = "unknown_member",
        /// The method is not in the protocol, and no rule changed the message.
        UnknownMethod = "unknown_method",
    }
}

impl fmt::Display for DialectEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Translation {
    /// Adds a note of what a rule, if one is named, did or found.
    pub fn note(&mut self, what: DialectEvent, rule: Option<String>, detail: impl Into<String>) {
        self.notes.push(DialectNote {
            what,
            rule,
            detail: detail.into(),
        });
    }

    /// Notes that a rule has changed something about a message of that method.
    pub(super) fn fire(&mut self, layer: &Layer, rule: &Rule, method: &MethodName) {
        let known = |fired: &FiredRule| fired.dialect == layer.name && fired.rule == rule.id;
        if self.fired.iter().any(known) {
            return;
        }
        if self.fired.is_empty() {
            self.method = method.clone();
        }
        self.fired.push(FiredRule {
            dialect: Arc::clone(&layer.name),
            rule: Arc::clone(&rule.id),
        });
    }

    /// Answers a request that a rule, named `table/rule`, does not let pass: error −32058.
    pub(super) fn refuse(&mut self, rule: &str, message: &Message<'_>, why: &str, remedy: &str) {
        let method: &str = &message.method;
        let what = format!(
            "the rule {rule} cannot translate {method}: {why}; it was not passed on: {remedy}"
        );
        let mut reason = Reason::new(reply::UNTRANSLATABLE, what);
        reason.rule = Some(rule.into());
        self.replies.push(reply::error(message.id.as_id(), &reason));
    }

    /// The frames to forward; `frame` is the one that was received.
    #[must_use]
    pub fn frames(&self, frame: &Frame) -> Vec<Frame> {
        match &self.forward {
            Forward::Unchanged => vec![frame.clone()],
            Forward::Frames(frames) => frames.clone(),
        }
    }
}
