//! The observers of one conversation.

use std::task::{Context, Poll};

use super::{Counts, Event, Observer};
use conversation::{Needs, TraceAssigner};

/// The observers of one conversation.
#[derive(Default)]
pub struct Observers {
    counts: Counts,
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
    #[inline]
    pub fn on_event(&mut self, event: &Event<'_>) {
        self.counts.on_event(event);
        for observer in &mut self.others {
            observer.on_event(event);
        }
    }

    /// Takes all of them; what has been counted stays, too.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let counts = self.counts.clone();
        std::mem::replace(
            self,
            Self {
                counts,
                ..Self::default()
            },
        )
    }

    /// What any of them needs.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let all = self.others.iter().map(|observer| observer.needs());
        all.fold(Needs::default(), Needs::or)
    }

    /// The marker of requests, if one was set.
    pub fn marker(&mut self) -> Option<Box<dyn TraceAssigner>> {
        self.marker.take()
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
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }
}

jsonrpc::opaque_debug!(Observers(counts));
