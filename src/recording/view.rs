//! Points of view on a conversation.
//!
//! The relay receives each message from one side and sends it to the other, so a recording has most
//! messages twice; a view has each once. A translated message is recorded when it was written,
//! possibly after later received ones; its place in the conversation is that of its source.

use std::collections::{BTreeMap, HashMap};

use super::event::{EventKind, Message, Passed, RecordedEvent};
use jsonrpc::Side;

/// A point of view on a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// What both sides sent, each in its own dialect, before translation.
    #[default]
    Received,
    /// What one side sent and what it was sent.
    At(Side),
}

/// Decides which messages belong to a view.
#[derive(Clone, Debug, Default)]
pub struct ViewFilter {
    /// The point of view.
    pub view: View,
    /// Ranges of received frames that were forwarded unchanged to the side of the view.
    passed: Vec<(u64, u64)>,
    /// What was sent to the side of the view, by the number of its source.
    sent: HashMap<u64, Vec<u64>>,
    /// What was sent to either side counts for the order.
    both: bool,
    /// The recording is not finished: the frames received last may have been forwarded.
    open: bool,
}

/// Puts the events of a view into the order of the conversation.
#[derive(Debug)]
pub struct Reorder<'a> {
    filter: &'a ViewFilter,
    /// By place and number; `None` for an event that was not read yet.
    waiting: BTreeMap<(u64, u64), Option<RecordedEvent>>,
}

impl ViewFilter {
    /// The view of a recording with these events. [`View::Received`] needs none of them.
    pub fn new<'a>(view: View, events: impl IntoIterator<Item = &'a RecordedEvent>) -> Self {
        let mut filter = Self::new_empty(view);
        for event in events {
            filter.add(event);
        }
        filter
    }

    /// A view without events; all events are to be passed to [`ViewFilter::add`] first.
    #[must_use]
    pub fn new_empty(view: View) -> Self {
        Self {
            view,
            ..Self::default()
        }
    }

    /// Both sides, for the order only; all events are to be passed to [`ViewFilter::add`] first.
    #[must_use]
    pub fn both() -> Self {
        Self {
            both: true,
            ..Self::default()
        }
    }

    /// The recording has no end (yet). Frames received after the last frames that were recorded as
    /// forwarded, and not sent translated, are assumed to be forwarded.
    pub const fn set_open(&mut self) {
        self.open = true;
    }

    /// Adds an event. That frames were forwarded is recorded after them.
    pub fn add(&mut self, event: &RecordedEvent) {
        match &event.kind {
            EventKind::Passed(Passed {
                to, first, last, ..
            }) if self.view == View::At(*to) => self.passed.push((*first, *last)),
            EventKind::Message(message)
                if !message.is_received() && (self.both || self.view == View::At(message.to)) =>
            {
                if let Some(of) = message.source {
                    self.sent.entry(of).or_default().push(event.n);
                }
            }
            _ => {}
        }
    }

    /// Returns the events of the view in order, as they are pushed one by one.
    #[must_use]
    pub const fn in_order(&self) -> Reorder<'_> {
        Reorder {
            filter: self,
            waiting: BTreeMap::new(),
        }
    }

    /// Whether the message of event `n` belongs to the view.
    #[must_use]
    pub fn shows(&self, n: u64, message: &Message) -> bool {
        match self.view {
            View::Received => message.is_received(),
            View::At(side) if message.edge == side => true,
            View::At(side) => {
                let at = self.passed.partition_point(|(_, last)| *last < n);
                let within = match self.passed.get(at) {
                    Some((first, _)) => *first <= n,
                    None => self.open && message.kind.is_some() && !self.sent.contains_key(&n),
                };
                message.is_received() && message.to == side && within
            }
        }
    }
}

impl Reorder<'_> {
    /// Adds the next event and shows those that are ready.
    pub fn push(&mut self, event: RecordedEvent, mut show: impl FnMut(&RecordedEvent)) {
        let n = event.n;
        let sent = self.filter.sent.get(&n);
        let place = match &event.kind {
            EventKind::Message(message) => message.source.filter(|of| {
                let known = self.filter.sent.get(of);
                known.is_some_and(|known| known.contains(&n))
            }),
            _ => None,
        };
        if self.waiting.is_empty() && sent.is_none() {
            return show(&event);
        }
        self.waiting.insert((place.unwrap_or(n), n), Some(event));
        for later in sent.into_iter().flatten() {
            self.waiting.entry((n, *later)).or_default();
        }
        while let Some(first) = self.waiting.first_entry() {
            if first.get().is_none() {
                return;
            }
            if let Some(event) = first.remove() {
                show(&event);
            }
        }
    }

    /// Shows the events that wait for one that has not come.
    pub fn end(self, mut show: impl FnMut(&RecordedEvent)) {
        self.waiting
            .into_values()
            .flatten()
            .for_each(|event| show(&event));
    }
}
