//! Captures the stderr of an agent.
//!
//! A task reads it, so that the agent never waits for the relay; the last part is kept to explain a
//! failure, and each line goes to the log, which bounds their rate. All of it is another program's
//! text: it is escaped before a terminal sees it, bounded in length and in memory, and never reaches
//! stdout.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::Pid;
use tokio::net::unix::pipe::Receiver;
use tokio_util::task::AbortOnDropHandle;

use crate::jsonrpc::printable;
use crate::transport::StderrCallback;

/// Longest line that is logged, in bytes; the rest of it is counted.
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
    shared: Arc<Shared>,
    _reader: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    pipe: Receiver,
    /// Read and stored under one lock, so that the task and [`Stderr::tail`] keep the order.
    captured: Mutex<Captured>,
}

struct Captured {
    pid: i32,
    /// The last bytes.
    kept: VecDeque<u8>,
    limit: usize,
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
    /// Bytes of that line beyond [`MAX_LINE`].
    excess: usize,
    receiver: Option<StderrCallback>,
}

impl Stderr {
    /// Starts reading.
    ///
    /// # Errors
    /// When the pipe cannot be given to the runtime.
    pub(super) fn read(pipe: OwnedFd, pid: Pid, limit: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            pipe: Receiver::from_owned_fd(pipe)?,
            captured: Mutex::new(Captured::new(pid, limit)),
        });
        let reader = tokio::spawn(pump(Arc::clone(&shared)));
        let _reader = AbortOnDropHandle::new(reader);
        Ok(Self { shared, _reader })
    }

    /// Passes what was kept so far, and all that follows, to `receiver`.
    pub(super) fn forward(&self, receiver: StderrCallback) {
        let mut captured = self.shared.captured.lock();
        receiver(captured.kept.make_contiguous());
        captured.receiver = Some(receiver);
    }

    /// The last lines: at most 4 KiB, escaped. Complete when the agent has exited, because what is
    /// still in the pipe is read first.
    pub(super) fn tail(&self) -> String {
        let mut captured = self.shared.captured.lock();
        let mut buffer = [0; READ_SIZE];
        let mut late = 0;
        // Reads the descriptor directly: tokio knows only what epoll has reported so far.
        while late < MAX_LATE
            && let Ok(length @ 1..) = rustix::io::read(&self.shared.pipe, &mut buffer)
        {
            captured.push(&buffer[..length]);
            late += length;
        }
        captured.tail()
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
    /// Reads what is there; whether there may be more.
    fn read_some(&self) -> bool {
        // Most agents write nothing most of the time, so no buffer is kept.
        let mut buffer = [0; READ_SIZE];
        let mut captured = self.captured.lock();
        match self.pipe.try_read(&mut buffer) {
            Ok(0) => {
                captured.log_line();
                false
            }
            Ok(length) => {
                captured.push(&buffer[..length]);
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
        write!(f, "Captured({})", self.kept.len())
    }
}

impl Captured {
    fn new(pid: Pid, limit: usize) -> Self {
        Self {
            pid: pid.as_raw_pid(),
            kept: VecDeque::new(),
            limit,
            line: Vec::new(),
            excess: 0,
            receiver: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.kept.len() + last.len()).saturating_sub(self.limit);
        self.kept.drain(..excess);
        self.kept.extend(last);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let fits = text.len().min(MAX_LINE - self.line.len());
            self.line.extend_from_slice(&text[..fits]);
            self.excess += text.len() - fits;
            if text.len() < part.len() {
                self.log_line();
            }
        }
        if let Some(receiver) = &self.receiver {
            receiver(bytes);
        }
    }

    /// Logs the line that has ended, if it is not empty.
    fn log_line(&mut self) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() && tracing::enabled!(target: "agent", tracing::Level::INFO) {
            let more = match self.excess {
                0 => String::new(),
                more => format!(" ({more} bytes more)"),
            };
            tracing::info!(target: "agent", pid = self.pid, "{}{more}", printable(line));
        }
        self.line.clear();
        self.excess = 0;
    }

    /// As many of the last lines as fit in [`MAX_TAIL`]; of a longer last line, its end.
    fn tail(&self) -> String {
        let skip = self.kept.len().saturating_sub(MAX_TAIL);
        let last: Vec<u8> = self.kept.iter().skip(skip).copied().collect();
        let lines = last.trim_ascii_end().split(|&byte| byte == b'\n');
        let lines = lines.map(|line| printable(line.strip_suffix(b"\r").unwrap_or(line)));
        // A first line whose beginning was cut off is kept: half a line explains more than none.
        let text = lines.collect::<Vec<_>>().join("\n");
        let Some(excess) = text.len().checked_sub(MAX_TAIL + 1) else {
            return text;
        };
        let fits = (excess + 1..).find(|&at| text.is_char_boundary(at));
        let end = &text[fits.unwrap_or(text.len())..];
        end.split_once('\n')
            .map_or(end, |(_, whole)| whole)
            .to_owned()
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
            prop_assert!(captured.line.len() <= MAX_LINE);
            let tail = captured.tail();
            prop_assert!(tail.len() <= MAX_TAIL);
            prop_assert!(!tail.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
