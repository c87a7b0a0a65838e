//! Our stderr, which perhaps nobody reads.
//!
//! Whoever started us may have closed it or may let its pipe run full, and neither may hold up a
//! conversation or end the program. So a thread writes, behind a bounded queue; what does not fit
//! is lost and counted, and errors are nobody's. The log has a bound besides (see `stint`), unless
//! it was asked for in detail. It is there that secrets are taken out. Not here: what is worth
//! saying (see `telemetry`).

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::discretion::Lines;
use super::stint::Stint;

/// Lines that may wait. Beyond it: lost, and counted.
const LINES: usize = 1024;

/// Bytes that may wait. Beyond it: as above.
const BYTES: usize = 256 << 10;

/// The one stderr of the process.
static STDERR: Stderr = Stderr {
    queue: Mutex::new(Queue {
        lines: VecDeque::new(),
        bytes: 0,
        lost: 0,
        missing: [0; 2],
        stint: Some(Stint::new()),
        writer: Writer::Absent,
    }),
    bell: Condvar::new(),
};

struct Stderr {
    queue: Mutex<Queue>,
    /// Rung when there is something to write, and when all is written.
    bell: Condvar,
}

struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that did not fit since that was last said.
    lost: u64,
    /// Lines that are missing for good: too many, and not read in time.
    missing: [u64; 2],
    /// What the log may still say; none when it may say all.
    stint: Option<Stint>,
    writer: Writer,
}

/// The thread that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Absent,
    Idle,
    Busy,
}

/// Where the log writes; one call is one line.
#[derive(Debug)]
pub(super) struct Log;

/// Says one line.
pub(super) fn say(line: &str) {
    STDERR.push(format!("{line}\n").into_bytes());
}

/// Has the log say all there is, however much that is.
pub(super) fn say_all() {
    STDERR.lock().stint = None;
}

/// How many lines have not been written: because there were too many, and because nobody read them
/// in time.
pub(super) fn lost() -> [u64; 2] {
    STDERR.lock().missing
}

/// Waits until all is written, for `patience` at most: for the end of the program.
pub(super) fn settle(patience: Duration) {
    let busy = |queue: &mut Queue| {
        queue.writer == Writer::Busy || queue.writer == Writer::Idle && queue.has_some()
    };
    let mut queue = STDERR.lock();
    STDERR.bell.wait_while_for(&mut queue, busy, patience);
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
                put(&Lines::default().clean(line));
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
        self.bell.notify_all();
    }

    /// The thread.
    fn write(&self) {
        let mut lines = Lines::default();
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.next() {
                queue.writer = Writer::Busy;
                drop(queue);
                put(&lines.clean(line));
                queue = self.lock();
            } else {
                queue.writer = Writer::Idle;
                self.bell.notify_all();
                let waits = |queue: &mut Queue| !queue.has_some();
                self.bell.wait_while(&mut queue, waits);
            }
        }
    }
}

impl Queue {
    fn has_some(&self) -> bool {
        !self.lines.is_empty() || self.lost > 0
    }

    /// What is to be written next. What was lost came after all that waits.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.len();
            return Some(line);
        }
        let lost = std::mem::take(&mut self.lost);
        (lost > 0).then(|| {
            let words = "more lines were lost, because nobody read this in time";
            format!("acp-relay: {lost} {words}\n").into_bytes()
        })
    }
}

/// Writes all of it, or what can be written: there is nobody to tell about an error.
fn put(mut bytes: &[u8]) {
    let stderr = rustix::stdio::stderr();
    while !bytes.is_empty() {
        match rustix::io::write(stderr, bytes) {
            Ok(0) => return,
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another program that shares the file has made it non-blocking.
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
        let room = match &mut queue.stint {
            Some(stint) => stint.take(Instant::now()),
            None => Some(0),
        };
        queue.missing[0] += u64::from(room.is_none());
        drop(queue);
        if let Some(left_out) = room {
            if left_out > 0 {
                say(&format!(
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
