//! What a tap is, and the taps of one conversation.
//!
//! Not here: any particular one (see `meter`, `journal`).

use std::fmt;
use std::task::{Context, Poll};

use super::{Counts, Meter};
use crate::core::Note;
use crate::wire::{Frame, Side};

/// Something that happened in a conversation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Sight<'a> {
    /// A side said this.
    Heard(Side, &'a Frame),
    /// This was handed to a side's link.
    Said(Side, &'a Frame),
    /// Something that is not simply a frame passed on.
    Note(&'a Note),
    /// All that the last thing heard led to is done: so many frames wait now for the client and
    /// for the agent, in the order in which they will be said.
    Settled([usize; 2]),
}

/// A watcher of one conversation.
pub trait Tap: Send {
    /// Sees one thing. Must return quickly.
    fn see(&mut self, sight: &Sight<'_>);

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
    others: Vec<Box<dyn Tap>>,
}

impl Taps {
    /// Adds a watcher.
    #[must_use]
    pub fn with(mut self, tap: impl Tap + 'static) -> Self {
        self.others.push(Box::new(tap));
        self
    }

    /// Shows one thing to all.
    pub fn see(&mut self, sight: &Sight<'_>) {
        self.meter.see(sight);
        for tap in &mut self.others {
            tap.see(sight);
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
