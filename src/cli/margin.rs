//! What an agent writes on stderr, as it goes into a recording: whole lines.
//!
//! A pipe is read in pieces that end anywhere, and half a key cannot be recognised. So text without
//! a line break waits for one, and a key on several lines waits for its end. Not here: reading the
//! pipe (see `transport::process`), finding keys (see `recording::redact`).

use parking_lot::Mutex;

use memchr::memmem::rfind;

use crate::observe::recorder::Remarks;

/// Bytes that wait. More are recorded as they are: no line of any use is longer.
const WAITING: usize = 16 << 10;

/// The lines of one agent, on their way into its recording.
#[derive(Debug)]
pub(super) struct Margin {
    remarks: Remarks,
    waiting: Mutex<Vec<u8>>,
}

impl Margin {
    pub(super) const fn new(remarks: Remarks) -> Self {
        let waiting = Mutex::new(Vec::new());
        Self { remarks, waiting }
    }

    /// The agent has written this.
    pub(super) fn hear(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.extend_from_slice(bytes);
        let whole = if waiting.len() > WAITING {
            waiting.len()
        } else {
            whole(&waiting)
        };
        if whole > 0 {
            self.remarks.stderr(&waiting[..whole]);
            waiting.drain(..whole);
        }
    }

    /// It will write no more, or not in time.
    pub(super) fn end(&self) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_empty() {
            self.remarks.stderr(&waiting);
            waiting.clear();
        }
    }
}

/// How much of a text is in whole lines, and no key that has not ended.
fn whole(text: &[u8]) -> usize {
    let lines = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    match rfind(&text[..lines], b"-----BEGIN") {
        Some(key) if rfind(&text[key..lines], b"-----END").is_none() => {
            memchr::memrchr(b'\n', &text[..key]).map_or(0, |at| at + 1)
        }
        _ => lines,
    }
}
