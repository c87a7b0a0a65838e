//! From where a conversation is looked at.
//!
//! A relay hears each message at one edge and says it at the other. Whoever looks at both sees
//! everything twice; a view is the conversation once. What was said in other words is recorded when
//! it was written, perhaps behind what was heard after it; its place in the conversation is that of
//! the message it was made of. Not here: what is in the messages.

use std::collections::{BTreeMap, HashMap};

use super::event::{Event, Message, Passed, What};
use crate::jsonrpc::Side;

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
    /// What was said to the side of the view, by the number of what led to it.
    said: HashMap<u64, Vec<u64>>,
    /// What was said to either side counts for the order.
    both: bool,
    /// The recording is not over: what was heard last may have been handed over.
    open: bool,
}

/// Has the events of a scene come in the order of the conversation.
#[derive(Debug)]
pub struct InOrder<'a> {
    scene: &'a Scene,
    /// By place and number; nothing for what is still to come.
    waiting: BTreeMap<(u64, u64), Option<Event>>,
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
    pub fn heard() -> Self {
        Self::of(View::Heard)
    }

    /// A view whose events are to be shown to it first, one by one, all of them.
    #[must_use]
    pub fn of(view: View) -> Self {
        Self {
            view,
            ..Self::default()
        }
    }

    /// What crossed both edges, for its order alone. Its events are to be shown to it first, too.
    #[must_use]
    pub fn both() -> Self {
        Self {
            both: true,
            ..Self::default()
        }
    }

    /// The recording has no end (yet). What was heard after the last frames that were recorded as
    /// handed over, and not said in other words, is taken to be handed over.
    pub const fn leave_open(&mut self) {
        self.open = true;
    }

    /// Takes an event in. That frames were handed over is recorded after them.
    pub fn see(&mut self, event: &Event) {
        match &event.what {
            What::Passed(Passed {
                to, first, last, ..
            }) if self.view == View::At(*to) => self.passed.push((*first, *last)),
            What::Message(message)
                if !message.is_heard() && (self.both || self.view == View::At(message.to)) =>
            {
                if let Some(of) = message.of {
                    self.said.entry(of).or_default().push(event.n);
                }
            }
            _ => {}
        }
    }

    /// Shows the events of the scene in order, as they are given one by one.
    #[must_use]
    pub const fn in_order(&self) -> InOrder<'_> {
        InOrder {
            scene: self,
            waiting: BTreeMap::new(),
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
                let within = match self.passed.get(at) {
                    Some((first, _)) => *first <= n,
                    None => self.open && message.kind.is_some() && !self.said.contains_key(&n),
                };
                message.is_heard() && message.to == side && within
            }
        }
    }
}

impl InOrder<'_> {
    /// Takes the next event in; shows those whose turn it is.
    pub fn take(&mut self, event: Event, mut see: impl FnMut(&Event)) {
        let n = event.n;
        let said = self.scene.said.get(&n);
        let place = match &event.what {
            What::Message(message) => message.of.filter(|of| {
                let known = self.scene.said.get(of);
                known.is_some_and(|known| known.contains(&n))
            }),
            _ => None,
        };
        if self.waiting.is_empty() && said.is_none() {
            return see(&event);
        }
        self.waiting.insert((place.unwrap_or(n), n), Some(event));
        for later in said.into_iter().flatten() {
            self.waiting.entry((n, *later)).or_default();
        }
        while let Some(first) = self.waiting.first_entry() {
            if first.get().is_none() {
                return;
            }
            if let Some(event) = first.remove() {
                see(&event);
            }
        }
    }

    /// Shows what waits for something that has not come.
    pub fn end(self, mut see: impl FnMut(&Event)) {
        self.waiting
            .into_values()
            .flatten()
            .for_each(|event| see(&event));
    }
}
