//! What comes of translating one message.
//!
//! Not here: the translating (see `translate`).

use super::program::Fired;
use crate::wire::Frame;

/// What comes of one message.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What goes on to the other side.
    pub pass: Pass,
    /// What goes back to the side the message came from, in order.
    pub back: Vec<Frame>,
    /// The rules that changed something, in order.
    pub fired: Vec<Fired>,
    /// What a person should be able to learn about it.
    pub notes: Vec<Note>,
}

/// What goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pass {
    /// The frame with the bytes it came with.
    #[default]
    Same,
    /// These frames, in order; maybe none.
    Frames(Vec<Frame>),
}

/// Something worth counting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub what: Happened,
    /// The rule, as `dialect/rule`, when one was at work.
    pub rule: Option<String>,
    /// A clause for a person.
    pub detail: String,
}

/// What happened, a counter each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happened {
    /// No case of a rule fitted; the message went on as it was.
    Unmatched,
    /// A rule could not place a value; the message went on as it was, or was refused.
    Untranslatable,
    /// Something was left out.
    Dropped,
    /// The bridge answered by itself.
    Answered,
    /// An answer to a request of the bridge's own was taken in.
    Swallowed,
    /// A message waits for another one.
    Held,
    /// A permission was repaired or failed closed.
    Permission,
}

impl Happened {
    /// The counter's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unmatched => "unmatched",
            Self::Untranslatable => "untranslatable",
            Self::Dropped => "dropped",
            Self::Answered => "answered",
            Self::Swallowed => "swallowed",
            Self::Held => "held",
            Self::Permission => "permission",
        }
    }
}

impl Outcome {
    pub(super) fn note(&mut self, what: Happened, rule: Option<String>, detail: impl Into<String>) {
        self.notes.push(Note {
            what,
            rule,
            detail: detail.into(),
        });
    }

    /// The frames that go on, `frame` being the one that came.
    #[must_use]
    pub fn frames(&self, frame: &Frame) -> Vec<Frame> {
        match &self.pass {
            Pass::Same => vec![frame.clone()],
            Pass::Frames(frames) => frames.clone(),
        }
    }
}
