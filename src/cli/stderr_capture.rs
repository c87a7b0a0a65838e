//! Collects an agent's stderr into whole lines for the recording.
//!
//! A pipe is read in pieces that end anywhere, and half a secret cannot be recognised. So text
//! without a line break waits for one, and a multi-line private key waits for its end.

use parking_lot::Mutex;

use memchr::memmem::rfind;

use observe::recorder::RecorderHandle;

/// Most bytes that wait. More are recorded as they are: no useful line is longer.
const MAX_WAITING: usize = 16 << 10;

/// The stderr of one agent, on its way into its recording.
#[derive(Debug)]
pub(super) struct StderrCapture {
    remarks: RecorderHandle,
    waiting: Mutex<Vec<u8>>,
}

impl StderrCapture {
    pub(super) const fn new(remarks: RecorderHandle) -> Self {
        let waiting = Mutex::new(Vec::new());
        Self { remarks, waiting }
    }

    /// Adds what the agent has written.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.extend_from_slice(bytes);
        let whole = if waiting.len() > MAX_WAITING {
            waiting.len()
        } else {
            complete_len(&waiting)
        };
        if whole > 0 {
            self.remarks.stderr(&waiting[..whole]);
            waiting.drain(..whole);
        }
    }

    /// Records the rest: the agent writes no more, or not in time.
    pub(super) fn end(&self) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_empty() {
            self.remarks.stderr(&waiting);
            waiting.clear();
        }
    }
}

/// The length of the whole lines of a text, without a private key that has not ended.
fn complete_len(text: &[u8]) -> usize {
    let lines = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    match rfind(&text[..lines], b"-----BEGIN") {
        Some(key) if rfind(&text[key..lines], b"-----END").is_none() => {
            memchr::memrchr(b'\n', &text[..key]).map_or(0, |at| at + 1)
        }
        _ => lines,
    }
}
