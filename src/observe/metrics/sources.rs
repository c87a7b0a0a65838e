//! Values that are read from other parts of the program at each scrape.

use std::fmt;
use std::time::Duration;

/// The program: its runtimes and its log.
pub trait GaugeSource: Send + Sync + fmt::Debug {
    /// The runtimes, each with a name of its own.
    fn runtimes(&self) -> Vec<RuntimeStats>;
    /// Lines that are missing in the log: by its rate limit, and because stderr was not read in
    /// time.
    fn lost_lines(&self) -> [u64; 2];
    /// The values of the metrics of work with other machines, each with its name and label.
    fn cluster(&self) -> Vec<(&'static str, Option<&'static str>, u64)> {
        Vec::new()
    }
}

/// The state of a runtime, or of several with one name.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeStats {
    /// Its name, a label value.
    pub name: &'static str,
    /// Worker threads.
    pub workers: usize,
    /// Tasks that are alive.
    pub tasks: usize,
    /// Tasks in the global queue.
    pub queued: usize,
    /// Busy time of all workers.
    pub busy: Duration,
}

/// Label values of [`GaugeSource::lost_lines`].
pub(super) const LOST: &[&str] = &["flood", "unread"];
