//! The observers of one conversation.

use std::fmt;
use std::task::{Context, Poll};

use super::{Counts, Event, MessageCounter, Observer, Stat};
use crate::conversation::TraceAssigner;

/// The observers of one conversation.
#[derive(Default)]
pub struct Observers {
    counter: MessageCounter,
    marker: Option<Box<dyn TraceAssigner>>,
    others: Vec<Box<dyn Observer>>,
}

impl Observers {
    /// Adds an observer.
    #[must_use]
    pub fn with(mut self, observer: impl Observer + 'static) -> Self {
        self.others.push(Box::new(observer));
        self
    }

    /// Sets the marker of requests. It is used by the conversation; an observer changes nothing.
    #[must_use]
    pub fn with_marker(mut self, marker: impl TraceAssigner + 'static) -> Self {
        self.marker = Some(Box::new(marker));
        self
    }

    /// Sends one event to all.
    pub fn on_event(&mut self, event: &Event<'_>) {
        self.counter.on_event(event);
        for observer in &mut self.others {
            observer.on_event(event);
        }
    }

    /// Whether any of them wants statistics.
    #[must_use]
    pub fn want_stats(&self) -> bool {
        self.others.iter().any(|observer| observer.wants_stats())
    }

    /// Whether any of them wants envelopes.
    #[must_use]
    pub fn want_envelopes(&self) -> bool {
        self.others
            .iter()
            .any(|observer| observer.wants_envelopes())
    }

    /// Whether any of them makes traces.
    #[must_use]
    pub fn want_traces(&self) -> bool {
        self.others.iter().any(|observer| observer.wants_traces())
    }

    /// The marker of requests, if one was set.
    pub fn marker(&mut self) -> Option<Box<dyn TraceAssigner>> {
        self.marker.take()
    }

    /// Sends a fact to all.
    pub fn on_stat(&mut self, stat: &Stat<'_>) {
        for observer in &mut self.others {
            observer.on_stat(stat);
        }
    }

    /// Calls `flush` of all.
    pub fn flush(&mut self) {
        for observer in &mut self.others {
            observer.flush();
        }
    }

    /// Ready when all of them are.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = |observer: &mut Box<dyn Observer>| observer.poll_ready(cx).is_ready();
        if self.others.iter_mut().all(ready) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// What has been counted so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.counter.counts()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps")
            .field("meter", &self.counter)
            .finish_non_exhaustive()
    }
}
