//! The tap that has spans made of a conversation.
//!
//! Not here: which spans those are (see `story`).

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::outlet::Outlet;
use super::span::Maker;
use super::story::{About, Story};
use crate::conversation::{Gist, Marker};
use crate::observe::metrics::Closing;
use crate::observe::{Fact, Sight, Tap};

/// Makes spans of one conversation. Dropped, it ends them.
#[derive(Debug)]
pub struct Tracer(Arc<Mutex<Story>>);

/// Gives requests that say nothing of a trace the span that was made of them.
#[derive(Debug)]
pub struct Marks(Arc<Mutex<Story>>);

impl Tracer {
    /// One for a conversation that begins now.
    #[must_use]
    pub fn begin(outlet: Outlet, maker: Arc<Maker>, about: About, now: Instant) -> Self {
        let story = Story::begin(outlet, maker, about, now);
        Self(Arc::new(Mutex::new(story)))
    }

    /// What marks requests with spans of this tracer.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks(Arc::clone(&self.0))
    }

    /// The trace of the connection, as it is spelled.
    #[must_use]
    pub fn trace(&self) -> String {
        self.0.lock().trace()
    }
}

impl Marker for Marks {
    fn mark(&mut self, gist: &Gist) -> Option<String> {
        self.0.lock().mark(gist)
    }
}

impl Tap for Tracer {
    fn see(&mut self, sight: &Sight<'_>) {
        if let Sight::Note(note) = sight {
            self.0.lock().note(note);
        }
    }

    fn wants_facts(&self) -> bool {
        true
    }

    fn wants_trails(&self) -> bool {
        true
    }

    fn learn(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::Passed(gist) => self.0.lock().passed(gist),
            Fact::Over(cause, now) => self.0.lock().closed(Closing::of(cause).name(), *now),
            Fact::Paused(..) | Fact::Worked { .. } | Fact::Waits(_) => {}
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}
