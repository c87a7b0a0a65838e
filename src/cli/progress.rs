//! How far a subcommand is, on the terminal that stderr is, when its work takes more than a second.
//!
//! There is one line, because there is one terminal. It is written over itself, and erased before
//! anything else is printed and at the end. Reads draw it, so no thread is needed.

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use recording::on_read;

/// Work that takes less is not shown.
const DELAY: Duration = Duration::from_secs(1);

/// Time between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

const ERASE: &str = "\r\x1b[K";

/// The work that is shown.
static WORK: Mutex<Option<Work>> = Mutex::new(None);

struct Work {
    /// The bytes to be read; 0 if unknown.
    total: u64,
    done: u64,
    begun: Instant,
    drawn: Option<Instant>,
    /// Whether the line is on the terminal.
    is_visible: bool,
}

/// Shows the progress while it exists.
#[derive(Debug)]
pub(super) struct Progress(());

/// A reader whose bytes count.
pub(super) struct Counted<R>(pub(super) R);

impl Progress {
    /// Begins work on `total` bytes, or on an unknown number if that is 0. What is read of
    /// recordings from now on counts.
    pub(super) fn start(total: u64) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stderr().is_terminal() && !is_dumb {
            on_read(advance);
            *WORK.lock() = Some(Work {
                total,
                done: 0,
                begun: Instant::now(),
                drawn: None,
                is_visible: false,
            });
        }
        Self(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        erase();
        *WORK.lock() = None;
    }
}

/// Counts bytes as done.
pub(super) fn advance(bytes: u64) {
    let mut work = WORK.lock();
    let Some(work) = &mut *work else {
        return;
    };
    work.done += bytes;
    let elapsed = work.begun.elapsed();
    let is_due = work.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL);
    if elapsed > DELAY && is_due {
        let line = line(work.done, work.total, elapsed);
        // An error cannot be reported.
        let _ = io::stderr().write_all(format!("{ERASE}{line}").as_bytes());
        (work.drawn, work.is_visible) = (Some(Instant::now()), true);
    }
}

/// Erases the line, because something else is printed.
pub(super) fn erase() {
    if let Some(work) = &mut *WORK.lock()
        && std::mem::take(&mut work.is_visible)
    {
        let _ = io::stderr().write_all(ERASE.as_bytes());
    }
}

fn line(done: u64, total: u64, elapsed: Duration) -> String {
    if total == 0 {
        return format!("{:.1} MiB read", done as f64 / f64::from(1 << 20));
    }
    // A file may have grown.
    let share = (done as f64 / total as f64).min(1.0);
    let percent = (share * 100.0).floor();
    let left = elapsed.as_secs_f64() * (1.0 / share - 1.0);
    match left.ceil() {
        _ if percent < 1.0 => "0 %".to_owned(),
        seconds if seconds < 100.0 => format!("{percent} %, {seconds} s left"),
        seconds => format!("{percent} %, {} min left", (seconds / 60.0).ceil()),
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(into)?;
        advance(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_share_and_the_time_that_is_left() {
        let after = |seconds, done, total| line(done, total, Duration::from_secs(seconds));
        assert_eq!(after(2, 25, 100), "25 %, 6 s left");
        assert_eq!(after(10, 1, 100), "1 %, 17 min left");
        assert_eq!(after(10, 120, 100), "100 %, 0 s left");
        assert_eq!(after(10, 0, 100), "0 %");
        assert_eq!(after(2, 5 << 19, 0), "2.5 MiB read");
    }
}
