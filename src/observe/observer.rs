//! The trait of observers, and the observers of one conversation.

use std::fmt;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{Counts, MessageCounter};
use crate::conversation::{Cause, MessageSummary, Note, TraceAssigner};
use crate::jsonrpc::{Envelope, Frame, Side};

/// Something that happened in a conversation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A frame was received from a side.
    Received(Side, &'a Frame),
    /// The envelope of the frame received last. Only sent if an observer needs it.
    Parsed(&'a Envelope),
    /// A frame was handed to the link of a side.
    Sent(Side, &'a Frame),
    /// Something else than a frame that was forwarded.
    Note(&'a Note),
    /// Everything that the last received frame causes is done: so many frames wait now for the
    /// client and for the agent, in the order in which they will be sent.
    Settled([usize; 2]),
}

/// A fact for statistics.
#[derive(Clone, Copy, Debug)]
pub enum Stat<'a> {
    /// A message was forwarded.
    Forwarded(&'a MessageSummary),
    /// A side was not read for so long, because others were behind.
    Paused(Side, Duration),
    /// Messages of a side were read at once, and queued for the other one in this time.
    Processed {
        /// The side they came from.
        from: Side,
        /// The number of messages.
        messages: u64,
        /// The time that all of them took.
        took: Duration,
    },
    /// So many bytes wait for the client and for the agent, until more can be done.
    Queued([usize; 2]),
    /// The conversation has ended.
    Ended(&'a Cause, Instant),
}

/// An observer of one conversation.
pub trait Observer: Send {
    /// Handles an event. Must return quickly.
    fn on_event(&mut self, event: &Event<'_>);

    /// Whether it needs statistics: they are collected only for observers that do.
    fn wants_stats(&self) -> bool {
        false
    }

    /// Whether it needs envelopes ([`Event::Parsed`]).
    fn wants_envelopes(&self) -> bool {
        false
    }

    /// Whether it makes traces: trace contexts are read only for observers that do.
    fn wants_traces(&self) -> bool {
        false
    }

    /// Handles a fact for statistics. Must return quickly.
    fn on_stat(&mut self, stat: &Stat<'_>) {
        let _ = stat;
    }

    /// Called when no more can be done at the moment. What was collected should not wait for the
    /// next event.
    fn flush(&mut self) {}

    /// Ready unless it is so far behind that nothing more should be received for a while; it then
    /// wakes the task.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}

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

    /// Whether any of them needs statistics.
    #[must_use]
    pub fn want_stats(&self) -> bool {
        self.others.iter().any(|observer| observer.wants_stats())
    }

    /// Whether any of them needs envelopes.
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
