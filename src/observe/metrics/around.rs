//! Figures that the metrics have from others: those of runtimes and of the log from the program,
//! those of clients that may come back from the relay.
//!
//! They are asked for at each scrape, so they cost nothing while nobody scrapes. Not here: the answers
//! (see `cli::admin`, `relay`).

use std::fmt;
use std::time::Duration;

/// What the program knows of itself.
pub trait Surroundings: Send + Sync + fmt::Debug {
    /// Its runtimes, each under a word of its own.
    fn runtimes(&self) -> Vec<Pulse>;
    /// Lines that are missing in its log: because there were too many, and because nobody read them
    /// in time.
    fn lost_lines(&self) -> [u64; 2];
}

/// How a runtime is, or several of one kind together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    /// Which.
    pub name: &'static str,
    /// Threads that run its tasks.
    pub workers: usize,
    /// Tasks that have begun and not ended.
    pub tasks: usize,
    /// Tasks that wait to be taken up.
    pub queued: usize,
    /// For how long its threads have worked.
    pub busy: Duration,
}

/// Where conversations wait for clients that may come back.
pub trait Moorings: Send + Sync + fmt::Debug {
    /// How it stands there.
    fn moored(&self) -> Moored;
}

/// Conversations whose clients may come back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moored {
    /// Those whose client is away.
    pub away: usize,
    /// Bytes that are kept for clients, whether they are away or not.
    pub kept: usize,
    /// How many may be.
    pub room: usize,
}

/// Why lines are missing in the log, as [`Surroundings::lost_lines`] has it.
pub(super) const LOST: [&str; 2] = ["flood", "unread"];
