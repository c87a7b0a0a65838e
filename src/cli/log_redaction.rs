//! Redacts secrets in our own texts: the log, errors and reports.
//!
//! Agents print keys when they fail, people type them into endpoints, and logs are shared as
//! recordings are. So both use the pattern rules of `recording::redact`, here with a key of this
//! process. Forwarded messages do not pass through this module.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::random::random;
use recording::redact::{Mode, Redactor};

/// Most lines of a private key: 16,384 bits of RSA need about 200.
const MAX_KEY_LINES: u32 = 256;

/// Replaces a line of a private key.
const REDACTED: &[u8] = "‹redacted›".as_bytes();

/// Without random numbers a guessed secret could be compared with its hash, but not read from it.
static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(Mode::Default, Vec::new(), random().unwrap_or_default()));

/// A text of ours with the secrets in it redacted.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    REDACTOR.own_text(text)
}

/// Redacts a sequence of lines.
#[derive(Debug, Default)]
pub(super) struct LineRedactor {
    /// Lines that may still belong to a private key that is printed line by line.
    key_lines_left: u32,
}

impl LineRedactor {
    /// The next line redacted, with its line break if it has one.
    pub(super) fn clean(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        let ends = line.pop_if(|byte| *byte == b'\n').is_some();
        let has = |word: &[u8]| memchr::memmem::find(&line, word).is_some();
        let (begins, over) = (has(b"-----BEGIN") && has(b"PRIVATE"), has(b"-----END"));
        let inside = self.key_lines_left > 0 && !begins;
        self.key_lines_left = match (begins, over) {
            (_, true) => 0,
            (true, false) => MAX_KEY_LINES,
            (false, false) => self.key_lines_left.saturating_sub(1),
        };
        let mut clean = if inside {
            let words = line.split(|byte| *byte == b' ');
            let words = words.map(|word| if is_base64(word) { REDACTED } else { word });
            words.collect::<Vec<_>>().join(&b' ')
        } else {
            REDACTOR.text(&line).unwrap_or(line)
        };
        clean.extend(ends.then_some(b'\n'));
        clean
    }
}

/// Whether a word may be part of a key, and is not a log level.
fn is_base64(word: &[u8]) -> bool {
    let end = word
        .iter()
        .rposition(|byte| *byte != b'=')
        .map_or(0, |at| at + 1);
    let letters = &word[..end];
    let all = letters
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    let levels = [&b"ERROR"[..], b"WARN", b"INFO", b"DEBUG", b"TRACE"];
    all && letters.len() >= 4 && !levels.contains(&letters)
}
