//! Takes secrets out of our own words: the log, errors and reports.
//!
//! Agents print keys when they fail, people type them into endpoints, and logs are passed around as
//! recordings are. So the same rules about shapes hold for both, under a key of this process. Not
//! here: the rules (see `recording::redact`). Messages that are forwarded do not pass here.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::record::random;
use crate::recording::redact::{Mode, Redactor};

/// Lines that a private key may have: 16 384 bits of RSA have some 200.
const KEY: u32 = 256;

/// What stands for a line of one.
const KEPT_OUT: &[u8] = "‹redacted›".as_bytes();

/// Without random numbers somebody could guess a secret and compare its mark, but not read it.
static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(Mode::Default, Vec::new(), random().unwrap_or_default()));

/// A text of ours without the secrets that were quoted in it.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    REDACTOR.remark(text)
}

/// Lines on their way out, one after the other.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// A private key has begun that an agent prints line by line, and so many may follow.
    key: u32,
}

impl Lines {
    /// The next line, with its line break, if it has one.
    pub(super) fn clean(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        let ends = line.pop_if(|byte| *byte == b'\n').is_some();
        let has = |word: &[u8]| memchr::memmem::find(&line, word).is_some();
        let (begins, over) = (has(b"-----BEGIN") && has(b"PRIVATE"), has(b"-----END"));
        let inside = self.key > 0 && !begins;
        self.key = match (begins, over) {
            (_, true) => 0,
            (true, false) => KEY,
            (false, false) => self.key.saturating_sub(1),
        };
        let mut clean = if inside {
            let words = line.split(|byte| *byte == b' ');
            let words = words.map(|word| if is_base64(word) { KEPT_OUT } else { word });
            words.collect::<Vec<_>>().join(&b' ')
        } else {
            REDACTOR.text(&line).unwrap_or(line)
        };
        clean.extend(ends.then_some(b'\n'));
        clean
    }
}

/// Whether it may be a line of a key, and is no level of the log.
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
