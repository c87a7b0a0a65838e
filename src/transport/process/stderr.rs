//! Captures the stderr of an agent.
//!
//! A task reads it, so that the agent never waits for the relay; the last part is kept to explain a
//! failure, and each line goes to the log, which bounds their rate. All of it is another program's
//! text: it is escaped before a terminal sees it, bounded in length and in memory, and never reaches
//! stdout.

use std::collections::VecDeque;
use std::fmt;
use std::io::{
    self,
    ErrorKind::{Interrupted, WouldBlock},
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::StderrCallback;
use jsonrpc::printable;
use panics::{self, Place};

/// Bytes of a line after which it is logged as two.
const MAX_LINE: usize = 8 << 10;
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
    pipe: Arc<Receiver>,
    /// Locked while the pipe is read, so that the task and [`Stderr::tail`] keep the order.
    captured: Arc<Mutex<Captured>>,
    _reader: AbortOnDropHandle<()>,
}

struct Captured {
    pid: i32,
    /// When the last bytes came.
    last: Option<Instant>,
    /// The last bytes.
    kept: VecDeque<u8>,
    limit: usize,
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
    receiver: Option<StderrCallback>,
}

impl Stderr {
    /// Starts reading.
    ///
    /// # Errors
    /// When the pipe cannot be given to the runtime.
    pub(super) fn read(pipe: OwnedFd, pid: Pid, limit: usize) -> io::Result<Self> {
        let pipe = Arc::new(Receiver::from_owned_fd(pipe)?);
        let captured = Arc::new(Mutex::new(Captured::new(pid, limit)));
        let pumped = Box::pin(pump(Arc::clone(&pipe), Arc::clone(&captured)));
        let pumped = panics::confine(Place::Conversation, pumped);
        let reader = tokio::spawn(async move {
            if pumped.await.is_none() {
                // Unread, it would wait for ever.
                let _ = kill_process_group(pid, Signal::KILL);
            }
        });
        Ok(Self {
            pipe,
            captured,
            _reader: AbortOnDropHandle::new(reader),
        })
    }

    /// Passes what was kept so far, and all that follows, to `receiver`.
    pub(super) fn forward(&self, receiver: StderrCallback) {
        let mut captured = self.captured.lock();
        receiver(captured.kept.make_contiguous());
        captured.receiver = Some(receiver);
    }

    /// Tells when it wrote last.
    pub(super) fn last_write(&self) -> impl Fn() -> Option<Instant> + Send + use<> {
        let captured = Arc::clone(&self.captured);
        move || captured.lock().last
    }

    /// The last lines: at most 4 KiB, escaped. Complete when the agent has exited, because what is
    /// still in the pipe is read first.
    pub(super) fn tail(&self) -> String {
        let mut captured = self.captured.lock();
        let mut buffer = [0; READ_SIZE];
        let mut late = 0;
        // Reads the descriptor directly: tokio knows only what epoll has reported so far.
        while late < MAX_LATE
            && let Ok(length @ 1..) = rustix::io::read(&*self.pipe, &mut buffer)
        {
            captured.push(&buffer[..length]);
            late += length;
        }
        captured.tail()
    }
}

/// Reads until the pipe ends.
async fn pump(pipe: Arc<Receiver>, captured: Arc<Mutex<Captured>>) {
    while pipe.readable().await.is_ok() {
        match read_some(&pipe, &captured) {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
        // A flood is read at the runtime's pace: `readable` never yields while there is more.
        tokio::task::coop::consume_budget().await;
    }
}

/// Captures what the pipe has, if anything; whether more may come.
fn read_some(pipe: &Receiver, captured: &Mutex<Captured>) -> io::Result<bool> {
    // Not in the task, which would keep it: most agents write nothing most of the time.
    let mut buffer = [0; READ_SIZE];
    let mut captured = captured.lock();
    match pipe.try_read(&mut buffer) {
        Ok(0) => captured.log_line(),
        Ok(length) => {
            captured.push(&buffer[..length]);
            return Ok(true);
        }
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => return Ok(true),
        Err(error) => return Err(error),
    }
    Ok(false)
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Captured({})", self.kept.len())
    }
}

impl Captured {
    fn new(pid: Pid, limit: usize) -> Self {
        Self {
            pid: pid.as_raw_pid(),
            last: None,
            kept: VecDeque::new(),
            limit,
            line: Vec::new(),
            receiver: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.last = Some(Instant::now());
        self.kept.extend(bytes);
        let excess = self.kept.len().saturating_sub(self.limit);
        self.kept.drain(..excess);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() >= MAX_LINE {
                self.log_line();
            }
        }
        if let Some(receiver) = &self.receiver {
            receiver(bytes);
        }
    }

    /// Logs what there is of the line, if it is not empty.
    fn log_line(&mut self) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() && tracing::enabled!(target: "agent", tracing::Level::INFO) {
            tracing::info!(target: "agent", pid = self.pid, "{}", printable(line));
        }
        self.line.clear();
    }

    /// As many of the last lines as fit in [`MAX_TAIL`]; of a longer last line, its end.
    fn tail(&self) -> String {
        let skip = self.kept.len().saturating_sub(MAX_TAIL);
        let last: Vec<u8> = self.kept.iter().skip(skip).copied().collect();
        let lines = last.trim_ascii_end().split(|&byte| byte == b'\n');
        let lines: Vec<_> = lines.map(|line| printable(line.trim_ascii_end())).collect();
        // A first line whose beginning was cut off is kept: half a line explains more than none.
        let text = lines.join("\n");
        let excess = text.len().saturating_sub(MAX_TAIL);
        let fits = (excess..).find(|&at| text.is_char_boundary(at));
        let end = &text[fits.unwrap_or(excess)..];
        let whole = end.split_once('\n').filter(|_| excess > 0);
        whole.map_or(end, |(_, whole)| whole).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(limit: usize) -> Captured {
        Captured::new(Pid::INIT, limit)
    }

    #[test]
    fn tail_has_the_last_lines() {
        let mut captured = captured(64 << 10);
        captured.push(b"one\ntwo\r\nthree\n\n");
        assert_eq!(captured.tail(), "one\ntwo\nthree");
        for line in 0..10_000 {
            captured.push(format!("line {line}\n").as_bytes());
        }
        let tail = captured.tail();
        assert!(tail.ends_with("line 9998\nline 9999"));
        assert!(tail.len() <= MAX_TAIL && tail.len() > MAX_TAIL - 16);
    }

    proptest! {
        #[test]
        fn tail_is_bounded_and_printable(
            parts in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..3000), 0..8),
            limit in 0_usize..9000,
        ) {
            let mut captured = captured(limit);
            parts.iter().for_each(|part| captured.push(part));
            let all = parts.concat();
            prop_assert_eq!(captured.kept.make_contiguous(), &all[all.len().saturating_sub(limit)..]);
            prop_assert!(captured.line.len() < MAX_LINE);
            let tail = captured.tail();
            prop_assert!(tail.len() <= MAX_TAIL);
            prop_assert!(!tail.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
