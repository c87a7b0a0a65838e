//! What an agent prints on its stdout before its first message.
//!
//! A program that is not the agent it was taken for, or not any more, says so there: "kimi-cli is no
//! longer maintained". If it ends then, this is all that tells why. Not here: what is said to whom
//! (see `last_word`).

use std::fmt;

use crate::wire::printable;

/// How much is kept, in bytes: the last.
const MOST: usize = 2 << 10;

/// Takes the secrets out of a text.
pub type Discretion = fn(&str) -> String;

/// The end of it.
pub(super) struct Babble {
    text: String,
    /// The agent has said a message: it speaks ACP.
    over: bool,
    pub(super) discretion: Discretion,
}

impl Default for Babble {
    fn default() -> Self {
        Self {
            text: String::new(),
            over: false,
            discretion: str::to_owned,
        }
    }
}

impl Babble {
    /// A line that is no message.
    pub(super) fn add(&mut self, line: &[u8]) {
        let line = line[..line.len().min(MOST)].trim_ascii();
        if self.over || line.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&printable(line));
        if self.text.len() > MOST {
            let from = self.text.ceil_char_boundary(self.text.len() - MOST);
            self.text.drain(..from);
        }
    }

    /// A message has come: what was printed until then explains nothing any more.
    pub(super) fn end(&mut self) {
        if !self.over {
            self.over = true;
            self.text = String::new();
        }
    }

    /// All that is kept, for the client.
    pub(super) fn tail(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| (self.discretion)(&self.text))
    }
}

impl fmt::Debug for Babble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Babble").finish_non_exhaustive()
    }
}
