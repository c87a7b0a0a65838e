//! From where a conversation is looked at.
//!
//! A relay hears each message at one edge and says it at the other. Whoever looks at both sees
//! everything twice; a view is the conversation once. Not here: what is in the messages.

use super::event::{Event, Message, Passed, What};
use crate::wire::Side;

/// From where a conversation is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// What both sides said, each in its own words, before anything was translated.
    #[default]
    Heard,
    /// What crossed one edge: what that side said, and what it was told.
    At(Side),
}

/// Tells which messages belong to a view.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    view: View,
    /// Ranges of heard frames that were handed over to the side of the view as they were.
    passed: Vec<(u64, u64)>,
}

impl Scene {
    /// The view of a recording with these events. [`View::Heard`] needs none of them.
    pub fn new<'a>(view: View, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut scene = Self::heard();
        scene.view = view;
        for event in events {
            scene.see(event);
        }
        scene
    }

    /// What both sides said.
    #[must_use]
    pub const fn heard() -> Self {
        Self {
            view: View::Heard,
            passed: Vec::new(),
        }
    }

    /// A view whose events are to be shown to it first, one by one, all of them.
    #[must_use]
    pub const fn of(view: View) -> Self {
        Self {
            view,
            passed: Vec::new(),
        }
    }

    /// Takes an event in. That frames were handed over is recorded after them.
    pub fn see(&mut self, event: &Event) {
        if let What::Passed(Passed {
            to, first, last, ..
        }) = event.what
            && self.view == View::At(to)
        {
            self.passed.push((first, last));
        }
    }

    /// Whether the message that event `n` is belongs to the view.
    #[must_use]
    pub fn shows(&self, n: u64, message: &Message) -> bool {
        match self.view {
            View::Heard => message.is_heard(),
            View::At(side) if message.hop == side => true,
            View::At(side) => {
                let at = self.passed.partition_point(|(_, last)| *last < n);
                let within = self.passed.get(at).is_some_and(|(first, _)| *first <= n);
                message.is_heard() && message.to == side && within
            }
        }
    }
}
