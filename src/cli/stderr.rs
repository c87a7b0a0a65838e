//! Writes to stderr, which may be closed or never read.
//!
//! A closed or full pipe must neither delay a conversation nor end the program. So a thread writes,
//! behind a bounded queue; lines that do not fit are dropped and counted, and errors are ignored.
//! The log also has a rate limit (see `rate_limit`), unless a detailed level was requested. Secrets
//! are redacted here.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::log_redaction::LineRedactor;
use super::progress;
use super::rate_limit::LineLimit;
use panics::SharedMutex;

/// Most lines in the queue. More are dropped and counted.
const LINES: usize = 1024;

/// Most bytes in the queue. More are dropped, as above.
const BYTES: usize = 256 << 10;

/// The log: this many lines at once, and then 20 a second, some hundred megabytes a day.
const BURST: u32 = 1000;
const INTERVAL: Duration = Duration::from_millis(50);

/// Time that the last lines may take to be read.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Time between two looks at the queue meanwhile.
const FLUSH_POLL: Duration = Duration::from_millis(1);

/// The stderr of the process, once something was printed.
static STDERR: OnceLock<Stderr> = OnceLock::new();

/// The rate limit of the log; `None` if it is not limited.
static LOG_LIMIT: SharedMutex<Option<LineLimit>> =
    SharedMutex::new(Some(LineLimit::new(INTERVAL, BURST)));

/// Lines never written: over the rate limit, and over the queue's limit.
static MISSING: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

struct Stderr {
    /// The thread's queue; `None` if the thread could not be started.
    queue: Option<SyncSender<Vec<u8>>>,
    /// Lines and bytes that are not written yet.
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Dropped lines that have not been reported yet.
    lost: AtomicU64,
}

/// The writer of the log; one call is one line.
#[derive(Debug)]
pub(super) struct Log;

/// Prints one line.
pub(super) fn print(line: &str) {
    Stderr::get().push(format!("{line}\n").into_bytes());
}

/// Removes the rate limit of the log.
pub(super) fn lift_rate_limit() {
    *LOG_LIMIT.lock() = None;
}

/// How many lines were never written: over the rate limit, and because stderr was not read in time.
pub(super) fn dropped_lines() -> [u64; 2] {
    MISSING.each_ref().map(|count| count.load(Relaxed))
}

/// Waits until everything is written, for `FLUSH_TIMEOUT` at most: at the end of the program, and
/// before stdout goes on with what belongs below it.
pub(super) fn flush() {
    let end = Instant::now() + FLUSH_TIMEOUT;
    let waits = |stderr: &Stderr| stderr.lines.load(Relaxed) > 0;
    while STDERR.get().is_some_and(waits) && Instant::now() < end {
        thread::sleep(FLUSH_POLL);
    }
}

impl Stderr {
    fn get() -> &'static Self {
        STDERR.get_or_init(|| {
            let (queue, lines) = sync_channel(LINES);
            let thread = thread::Builder::new().name("stderr".to_owned());
            let started = thread.spawn(move || Self::get().write(&lines));
            Self {
                queue: started.is_ok().then_some(queue),
                lines: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                lost: AtomicU64::new(0),
            }
        })
    }

    fn push(&self, line: Vec<u8>) {
        let Some(queue) = &self.queue else {
            write_all(&LineRedactor::default().clean(line));
            return;
        };
        let length = line.len();
        self.lines.fetch_add(1, Relaxed);
        let fits = self.bytes.fetch_add(length, Relaxed) + length <= BYTES;
        if !fits || queue.try_send(line).is_err() {
            MISSING[1].fetch_add(1, Relaxed);
            self.lost.fetch_add(1, Relaxed);
            self.bytes.fetch_sub(length, Relaxed);
            self.lines.fetch_sub(1, Relaxed);
        }
    }

    /// The loop of the thread. Dropped lines are reported when the queue is empty.
    fn write(&self, lines: &Receiver<Vec<u8>>) {
        let mut redactor = LineRedactor::default();
        for line in lines {
            let length = line.len();
            write_all(&redactor.clean(line));
            self.bytes.fetch_sub(length, Relaxed);
            if self.lines.load(Relaxed) == 1 {
                let lost = self.lost.swap(0, Relaxed);
                let words = "more lines were lost, because stderr was not read in time";
                if lost > 0 {
                    write_all(format!("acp-relay: {lost} {words}\n").as_bytes());
                }
            }
            self.lines.fetch_sub(1, Relaxed);
        }
    }
}

/// Writes all bytes; an error cannot be reported and ends it.
fn write_all(mut bytes: &[u8]) {
    progress::erase();
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
        let acquired = match &mut *LOG_LIMIT.lock() {
            Some(limit) => limit.acquire(Instant::now()),
            None => Some(0),
        };
        match acquired {
            None => {
                MISSING[0].fetch_add(1, Relaxed);
            }
            Some(left_out) => {
                if left_out > 0 {
                    print(&format!(
                        "acp-relay: {left_out} lines of the log were left out, because there were too many"
                    ));
                }
                Stderr::get().push(line.to_vec());
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
