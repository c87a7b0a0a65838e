//! The trait of observers, and the observers of one conversation.

use std::fmt;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{Counts, Meter};
use crate::conversation::{Cause, Gist, Marker, Note};
use crate::jsonrpc::{Envelope, Frame, Side};

/// Something that happened in a conversation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Sight<'a> {
    /// A frame was received from a side.
    Heard(Side, &'a Frame),
    /// The envelope of the frame received last. Only sent if an observer wants it.
    Opened(&'a Envelope),
    /// A frame was handed to the link of a side.
    Said(Side, &'a Frame),
    /// Something else than a frame that was forwarded.
    Note(&'a Note),
    /// Everything that the last received frame causes is done: so many frames wait now for the
    /// client and for the agent, in the order in which they will be sent.
    Settled([usize; 2]),
}

/// A fact for statistics.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// A message was forwarded.
    Passed(&'a Gist),
    /// A side was not read for so long, because others were behind.
    Paused(Side, Duration),
    /// Messages of a side were read at once, and queued for the other one in this time.
    Worked {
        /// The side they came from.
        from: Side,
        /// The number of messages.
        messages: u64,
        /// The time that all of them took.
        took: Duration,
    },
    /// So many bytes wait for the client and for the agent, until more can be done.
    Waits([usize; 2]),
    /// The conversation has ended.
    Over(&'a Cause, Instant),
}

/// An observer of one conversation.
pub trait Tap: Send {
    /// Handles an event. Must return quickly.
    fn see(&mut self, sight: &Sight<'_>);

    /// Whether it wants statistics: they are collected only for observers that do.
    fn wants_facts(&self) -> bool {
        false
    }

    /// Whether it wants envelopes ([`Event::Parsed`]).
    fn wants_envelopes(&self) -> bool {
        false
    }

    /// Whether it makes traces: trace contexts are read only for observers that do.
    fn wants_trails(&self) -> bool {
        false
    }

    /// Handles a fact for statistics. Must return quickly.
    fn learn(&mut self, fact: &Fact<'_>) {
        let _ = fact;
    }

    /// Called when no more can be done at the moment. What was collected should not wait for the
    /// next event.
    fn rest(&mut self) {}

    /// Ready unless it is so far behind that nothing more should be received for a while; it then
    /// wakes the task.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}

/// The observers of one conversation.
#[derive(Default)]
pub struct Taps {
    meter: Meter,
    marker: Option<Box<dyn Marker>>,
    others: Vec<Box<dyn Tap>>,
}

impl Taps {
    /// Adds an observer.
    #[must_use]
    pub fn with(mut self, tap: impl Tap + 'static) -> Self {
        self.others.push(Box::new(tap));
        self
    }

    /// Sets the marker of requests. It is used by the conversation; an observer changes nothing.
    #[must_use]
    pub fn with_marker(mut self, marker: impl Marker + 'static) -> Self {
        self.marker = Some(Box::new(marker));
        self
    }

    /// Sends one event to all.
    pub fn see(&mut self, sight: &Sight<'_>) {
        self.meter.see(sight);
        for tap in &mut self.others {
            tap.see(sight);
        }
    }

    /// Whether any of them wants statistics.
    #[must_use]
    pub fn want_facts(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_facts())
    }

    /// Whether any of them wants envelopes.
    #[must_use]
    pub fn want_envelopes(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_envelopes())
    }

    /// Whether any of them makes traces.
    #[must_use]
    pub fn want_trails(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_trails())
    }

    /// The marker of requests, if one was set.
    pub fn marker(&mut self) -> Option<Box<dyn Marker>> {
        self.marker.take()
    }

    /// Sends a fact to all.
    pub fn learn(&mut self, fact: &Fact<'_>) {
        for tap in &mut self.others {
            tap.learn(fact);
        }
    }

    /// Calls `flush` of all.
    pub fn rest(&mut self) {
        for tap in &mut self.others {
            tap.rest();
        }
    }

    /// Ready when all of them are.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = |tap: &mut Box<dyn Tap>| tap.poll_room(cx).is_ready();
        if self.others.iter_mut().all(ready) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// What has been counted so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.meter.counts()
    }
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps")
            .field("meter", &self.meter)
            .finish_non_exhaustive()
    }
}
