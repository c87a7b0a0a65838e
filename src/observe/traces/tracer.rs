//! The observer that makes spans of a conversation.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::outlet::Outlet;
use super::span::Maker;
use super::story::{About, Story};
use crate::conversation::{Gist, Marker};
use crate::observe::metrics::Closing;
use crate::observe::{Fact, Sight, Tap};

/// Makes spans of one conversation. Dropping it ends them.
#[derive(Debug)]
pub struct Tracer(Arc<Mutex<Story>>);

/// Gives the span of a request as the trace context of requests that have none.
#[derive(Debug)]
pub struct Marks(Arc<Mutex<Story>>);

impl Tracer {
    /// A tracer for a conversation that begins now.
    #[must_use]
    pub fn begin(outlet: Outlet, maker: Arc<Maker>, about: About, now: Instant) -> Self {
        let story = Story::begin(outlet, maker, about, now);
        Self(Arc::new(Mutex::new(story)))
    }

    /// The marker of requests with spans of this tracer.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks(Arc::clone(&self.0))
    }

    /// The trace id of the connection.
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
