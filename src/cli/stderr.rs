//! Writes to stderr, which may be closed or never read.
//!
//! A closed or full pipe must neither delay a conversation nor end the program. So a thread writes,
//! behind a bounded queue; lines that do not fit are dropped and counted, and errors are ignored.
//! The log also has a rate limit (see `rate_limit`), unless a detailed level was requested. Secrets
//! are redacted here.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::log_redaction::LineRedactor;
use super::rate_limit::RateLimit;

/// Most lines in the queue. More are dropped and counted.
const LINES: usize = 1024;

/// Most bytes in the queue. More are dropped, as above.
const BYTES: usize = 256 << 10;

/// Lines of the log that may come at once.
const BURST: u32 = 1000;

/// Lines of the log a second in the long run: some hundred megabytes a day.
const RATE: u32 = 20;

/// The stderr of the process.
static STDERR: Stderr = Stderr {
    queue: Mutex::new(Queue {
        lines: VecDeque::new(),
        bytes: 0,
        lost: 0,
        missing: [0; 2],
        rate_limit: Some(RateLimit::new(BURST, RATE)),
        writer: Writer::Absent,
    }),
    changed: Condvar::new(),
};

struct Stderr {
    queue: Mutex<Queue>,
    /// Notified when there is something to write, and when everything is written.
    changed: Condvar,
}

struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Dropped lines that have not been reported yet.
    lost: u64,
    /// Lines never written: over the rate limit, and over the queue's limit.
    missing: [u64; 2],
    /// The rate limit of the log; `None` if it is not limited.
    rate_limit: Option<RateLimit>,
    writer: Writer,
}

/// The state of the thread that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Absent,
    Idle,
    Busy,
}

/// The writer of the log; one call is one line.
#[derive(Debug)]
pub(super) struct Log;

/// Prints one line.
pub(super) fn print(line: &str) {
    STDERR.push(format!("{line}\n").into_bytes());
}

/// Removes the rate limit of the log.
pub(super) fn lift_rate_limit() {
    STDERR.lock().rate_limit = None;
}

/// How many lines were never written: over the rate limit, and because stderr was not read in time.
pub(super) fn dropped_lines() -> [u64; 2] {
    STDERR.lock().missing
}

/// Waits until everything is written, for `timeout` at most; for the end of the program.
pub(super) fn flush(timeout: Duration) {
    let busy = |queue: &mut Queue| {
        queue.writer == Writer::Busy || queue.writer == Writer::Idle && queue.has_pending()
    };
    let mut queue = STDERR.lock();
    STDERR.changed.wait_while_for(&mut queue, busy, timeout);
}

impl Stderr {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn push(&'static self, line: Vec<u8>) {
        let mut queue = self.lock();
        if queue.writer == Writer::Absent {
            let thread = std::thread::Builder::new().name("stderr".to_owned());
            if thread.spawn(|| self.write()).is_err() {
                drop(queue);
                write_all(&LineRedactor::default().clean(line));
                return;
            }
            queue.writer = Writer::Idle;
        }
        if queue.lines.len() < LINES && queue.bytes + line.len() <= BYTES {
            queue.bytes += line.len();
            queue.lines.push_back(line);
        } else {
            queue.lost += 1;
            queue.missing[1] += 1;
        }
        self.changed.notify_all();
    }

    /// The loop of the thread.
    fn write(&self) {
        let mut lines = LineRedactor::default();
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.next() {
                queue.writer = Writer::Busy;
                drop(queue);
                write_all(&lines.clean(line));
                queue = self.lock();
            } else {
                queue.writer = Writer::Idle;
                self.changed.notify_all();
                let waits = |queue: &mut Queue| !queue.has_pending();
                self.changed.wait_while(&mut queue, waits);
            }
        }
    }
}

impl Queue {
    fn has_pending(&self) -> bool {
        !self.lines.is_empty() || self.lost > 0
    }

    /// The next line to write. The report of dropped lines comes after the queue.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.len();
            return Some(line);
        }
        let lost = std::mem::take(&mut self.lost);
        (lost > 0).then(|| {
            let words = "more lines were lost, because stderr was not read in time";
            format!("acp-relay: {lost} {words}\n").into_bytes()
        })
    }
}

/// Writes all bytes; an error cannot be reported and ends it.
fn write_all(mut bytes: &[u8]) {
    let stderr = rustix::stdio::stderr();
    while !bytes.is_empty() {
        match rustix::io::write(stderr, bytes) {
            Ok(0) => return,
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another program that shares the file made it non-blocking.
            Err(Errno::AGAIN) => {
                let mut waiting = [PollFd::from_borrowed_fd(stderr, PollFlags::OUT)];
                if rustix::event::poll(&mut waiting, None).is_err_and(|fault| fault != Errno::INTR)
                {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = STDERR.lock();
        let acquired = match &mut queue.rate_limit {
            Some(limit) => limit.acquire(Instant::now()),
            None => Some(0),
        };
        queue.missing[0] += u64::from(acquired.is_none());
        drop(queue);
        if let Some(left_out) = acquired {
            if left_out > 0 {
                print(&format!(
                    "acp-relay: {left_out} lines of the log were left out, because there were too many"
                ));
            }
            STDERR.push(line.to_vec());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
