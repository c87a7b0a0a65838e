//! What a tap is, and the taps of one conversation.
//!
//! Not here: any particular one (see `meter`, `journal`).

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
    /// A side said this.
    Heard(Side, &'a Frame),
    /// What was heard last is this message. Only shown when some tap wants it.
    Opened(&'a Envelope),
    /// This was handed to a side's link.
    Said(Side, &'a Frame),
    /// Something that is not simply a frame passed on.
    Note(&'a Note),
    /// All that the last thing heard led to is done: so many frames wait now for the client and
    /// for the agent, in the order in which they will be said.
    Settled([usize; 2]),
}

/// Something for those who count.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// A message was passed on.
    Passed(&'a Gist),
    /// A side was not heard for so long, because others were behind.
    Paused(Side, Duration),
    /// So many messages of a side were read at once, and having them ready for the other one took
    /// so long.
    Worked {
        /// Whose they are.
        from: Side,
        /// How many.
        messages: u64,
        /// How long all of them took.
        took: Duration,
    },
    /// So many bytes wait for the client and for the agent, until more can be done.
    Waits([usize; 2]),
    /// The conversation is over.
    Over(&'a Cause, Instant),
}

/// A watcher of one conversation.
pub trait Tap: Send {
    /// Sees one thing. Must return quickly.
    fn see(&mut self, sight: &Sight<'_>);

    /// Whether it counts: facts are gathered only for those who want them.
    fn wants_facts(&self) -> bool {
        false
    }

    /// Whether it wants to be shown envelopes ([`Sight::Opened`]).
    fn wants_envelopes(&self) -> bool {
        false
    }

    /// Whether it makes traces: trails are taken down only for those who want them.
    fn wants_trails(&self) -> bool {
        false
    }

    /// Learns a fact. Must return quickly.
    fn learn(&mut self, fact: &Fact<'_>) {
        let _ = fact;
    }

    /// All that can be done at the moment is done. What was gathered until now should not wait for
    /// the next thing to be seen.
    fn rest(&mut self) {}

    /// Ready unless it is so far behind that nothing more should be heard for a while; it then
    /// wakes the task.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}

/// The watchers of one conversation.
#[derive(Default)]
pub struct Taps {
    meter: Meter,
    marker: Option<Box<dyn Marker>>,
    others: Vec<Box<dyn Tap>>,
}

impl Taps {
    /// Adds a watcher.
    #[must_use]
    pub fn with(mut self, tap: impl Tap + 'static) -> Self {
        self.others.push(Box::new(tap));
        self
    }

    /// Has requests marked. That is for the core to do; a tap changes nothing.
    #[must_use]
    pub fn with_marker(mut self, marker: impl Marker + 'static) -> Self {
        self.marker = Some(Box::new(marker));
        self
    }

    /// Shows one thing to all.
    pub fn see(&mut self, sight: &Sight<'_>) {
        self.meter.see(sight);
        for tap in &mut self.others {
            tap.see(sight);
        }
    }

    /// Whether any of them counts.
    #[must_use]
    pub fn want_facts(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_facts())
    }

    /// Whether any of them wants to be shown envelopes.
    #[must_use]
    pub fn want_envelopes(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_envelopes())
    }

    /// Whether any of them makes traces.
    #[must_use]
    pub fn want_trails(&self) -> bool {
        self.others.iter().any(|tap| tap.wants_trails())
    }

    /// What marks requests, if any of them does.
    pub fn marker(&mut self) -> Option<Box<dyn Marker>> {
        self.marker.take()
    }

    /// Tells a fact to all.
    pub fn learn(&mut self, fact: &Fact<'_>) {
        for tap in &mut self.others {
            tap.learn(fact);
        }
    }

    /// Tells all that nothing will be seen for a while.
    pub fn rest(&mut self) {
        for tap in &mut self.others {
            tap.rest();
        }
    }

    /// Ready when all of them are able to see more.
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
