//! Captures the stderr of an agent.
//!
//! A task reads it, so that the agent never waits for the relay; the last part is kept to explain a
//! failure, and each line goes to the log. All of it is another program's text: it is escaped
//! before a terminal sees it, bounded in length, in rate and in memory, and never reaches stdout.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::net::unix::pipe::Receiver;
use tokio::task::AbortHandle;

use crate::jsonrpc::printable as escaped;
use crate::transport::StderrCallback;

/// Longest line that is logged, in bytes; the rest of it is counted.
const MAX_LINE: usize = 8 << 10;
/// Most lines logged in a [`WINDOW`]; the rest is counted.
const MAX_LINES: u32 = 100;
/// The time over which [`MAX_LINES`] are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// Longest tail, in bytes as escaped.
const MAX_TAIL: usize = 4 << 10;
/// Most that is read at once, in bytes.
const READ_SIZE: usize = 8 << 10;
/// Most that is read to complete a tail, in bytes; a pipe holds 64 KiB unless its owner asked for
/// more.
const MAX_LATE: usize = 1 << 20;

/// The reader of one agent's stderr. Ends with the pipe, or when it is dropped: processes the agent
/// left behind may hold the pipe open for ever.
#[derive(Debug)]
pub(super) struct Stderr {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    pipe: Receiver,
    /// Read and stored under one lock, so that the task and [`Stderr::tail`] keep the order.
    captured: Mutex<Captured>,
}

struct Captured {
    ring: Ring,
    lines: Lines,
    receiver: Option<StderrCallback>,
}

/// The last bytes of a stream.
#[derive(Debug)]
struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
}

/// Cuts lines for the log.
#[derive(Debug)]
struct Lines {
    line: Vec<u8>,
    /// Bytes of this line beyond [`MAX_LINE`].
    excess: usize,
    rate: Rate,
}

/// A window of time and what may still be logged in it.
#[derive(Debug)]
struct Rate {
    pid: u32,
    since: Instant,
    logged: u32,
    suppressed: u64,
}

impl Stderr {
    /// Starts reading.
    ///
    /// # Errors
    /// When the pipe cannot be given to the runtime.
    pub(super) fn read(pipe: OwnedFd, pid: u32, limit: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            pipe: Receiver::from_owned_fd(pipe)?,
            captured: Mutex::new(Captured {
                ring: Ring::new(limit),
                lines: Lines::new(pid),
                receiver: None,
            }),
        });
        let task = tokio::spawn(pump(Arc::clone(&shared))).abort_handle();
        Ok(Self { shared, task })
    }

    /// Passes what was kept so far, and all that follows, to `receiver`.
    pub(super) fn forward(&self, receiver: StderrCallback) {
        let mut captured = self.shared.lock();
        let (old, new) = captured.ring.bytes.as_slices();
        receiver(&[old, new].concat());
        captured.receiver = Some(receiver);
    }

    /// The last lines: at most 4 KiB, escaped. Complete when the agent has exited, because what is
    /// still in the pipe is read first.
    pub(super) fn tail(&self) -> String {
        let mut captured = self.shared.lock();
        let mut buffer = [0; READ_SIZE];
        let mut late = 0;
        // Reads the descriptor directly: tokio knows only what epoll has reported so far.
        while late < MAX_LATE
            && let Ok(length @ 1..) = rustix::io::read(&self.shared.pipe, &mut buffer)
        {
            captured.push(&buffer[..length], Instant::now());
            late += length;
        }
        captured.ring.tail()
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads until the pipe ends.
async fn pump(shared: Arc<Shared>) {
    while shared.pipe.readable().await.is_ok() && shared.read_some() {
        // A flood is read at the runtime's pace: `readable` never yields while there is more.
        tokio::task::coop::consume_budget().await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock()
    }

    /// Reads what is there; whether there may be more.
    fn read_some(&self) -> bool {
        // Most agents write nothing most of the time, so no buffer is kept.
        let mut buffer = [0; READ_SIZE];
        let mut captured = self.lock();
        match self.pipe.try_read(&mut buffer) {
            Ok(0) => {
                captured.lines.finish(Instant::now());
                false
            }
            Ok(length) => {
                captured.push(&buffer[..length], Instant::now());
                true
            }
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ),
        }
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl Captured {
    fn push(&mut self, bytes: &[u8], now: Instant) {
        self.ring.push(bytes);
        self.lines.push(bytes, now);
        if let Some(receiver) = &self.receiver {
            receiver(bytes);
        }
    }
}

impl Ring {
    fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(self.limit);
        self.bytes.drain(..excess);
        self.bytes.extend(bytes);
    }

    /// As many of the last lines as fit in [`MAX_TAIL`]; of a longer last line, its end.
    fn tail(&self) -> String {
        let skip = self.bytes.len().saturating_sub(MAX_TAIL);
        let last: Vec<u8> = self.bytes.iter().skip(skip).copied().collect();
        let last = last.trim_ascii_end();
        let mut lines: Vec<String> = Vec::new();
        let mut remaining = MAX_TAIL;
        for (back, line) in last.rsplit(|&byte| byte == b'\n').enumerate() {
            let line = escaped(line.strip_suffix(b"\r").unwrap_or(line));
            let need = line.len() + usize::from(back > 0);
            if need > remaining {
                if back == 0 {
                    let cut = (line.len() - remaining..=line.len())
                        .find(|&at| line.is_char_boundary(at))
                        .unwrap_or(line.len());
                    lines.push(line[cut..].to_owned());
                }
                break;
            }
            remaining -= need;
            lines.push(line);
        }
        lines.reverse();
        // A first line whose beginning was cut off is kept: half a line explains more than none.
        lines.join("\n")
    }
}

impl Lines {
    fn new(pid: u32) -> Self {
        Self {
            line: Vec::new(),
            excess: 0,
            rate: Rate::new(pid),
        }
    }

    fn push(&mut self, bytes: &[u8], now: Instant) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let fits = text.len().min(MAX_LINE - self.line.len());
            self.line.extend_from_slice(&text[..fits]);
            self.excess += text.len() - fits;
            if text.len() < part.len() {
                self.finish(now);
            }
        }
    }

    /// Logs the line, if it is not empty and the rate allows.
    fn finish(&mut self, now: Instant) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() && self.rate.allows(now) {
            let text = escaped(line);
            let more = match self.excess {
                0 => String::new(),
                more => format!(" ({more} bytes more)"),
            };
            tracing::info!(target: "agent", pid = self.rate.pid, "{text}{more}");
        }
        self.line.clear();
        self.excess = 0;
    }
}

impl Rate {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            since: Instant::now(),
            logged: 0,
            suppressed: 0,
        }
    }

    fn allows(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            self.report();
            self.since = now;
            self.logged = 0;
        }
        if self.logged < MAX_LINES {
            self.logged += 1;
            return true;
        }
        self.suppressed += 1;
        false
    }

    fn report(&mut self) {
        if self.suppressed > 0 {
            let (pid, lines) = (self.pid, self.suppressed);
            tracing::info!(target: "agent", pid, "{lines} more lines on stderr were not logged");
            self.suppressed = 0;
        }
    }
}

impl Drop for Rate {
    fn drop(&mut self) {
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tail_has_the_last_lines() {
        let mut ring = Ring::new(64 << 10);
        ring.push(b"one\ntwo\r\nthree\n\n");
        assert_eq!(ring.tail(), "one\ntwo\nthree");
        for line in 0..10_000 {
            ring.push(format!("line {line}\n").as_bytes());
        }
        let tail = ring.tail();
        assert!(tail.ends_with("line 9998\nline 9999"));
        assert!(tail.len() <= MAX_TAIL && tail.len() > MAX_TAIL - 16);
    }

    #[test]
    fn long_output_keeps_only_its_end() {
        let limit = 64 << 10;
        let mut captured = Captured {
            ring: Ring::new(limit),
            lines: Lines::new(1),
            receiver: None,
        };
        let now = Instant::now();
        for _ in 0..1024 {
            captured.push(&[b'x'; 8 << 10], now);
        }
        assert_eq!(captured.ring.bytes.len(), limit);
        assert!(captured.ring.bytes.capacity() <= 2 * limit);
        assert_eq!(captured.lines.line.len(), MAX_LINE);
        assert_eq!(captured.lines.excess, (8 << 20) - MAX_LINE);
        assert_eq!(captured.ring.tail(), "x".repeat(MAX_TAIL));
    }

    #[test]
    fn rate_is_limited_and_dropped_lines_are_counted() {
        let mut rate = Rate::new(1);
        let start = rate.since;
        let allowed = (0..1000).filter(|_| rate.allows(start)).count();
        assert_eq!((allowed, rate.suppressed), (100, 900));
        assert!(rate.allows(start + WINDOW));
        assert_eq!(rate.suppressed, 0);
    }

    proptest! {
        #[test]
        fn tail_is_bounded_and_printable(
            parts in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..3000), 0..8),
            limit in 0_usize..9000,
        ) {
            let mut ring = Ring::new(limit);
            let mut all: Vec<u8> = Vec::new();
            for part in &parts {
                ring.push(part);
                all.extend(part);
            }
            let bytes: Vec<u8> = ring.bytes.iter().copied().collect();
            prop_assert_eq!(&bytes[..], &all[all.len().saturating_sub(limit)..]);
            let tail = ring.tail();
            prop_assert!(tail.len() <= MAX_TAIL);
            prop_assert!(!tail.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
