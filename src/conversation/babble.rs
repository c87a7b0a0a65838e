//! Keeps what an agent prints on its stdout before its first message.
//!
//! A program that is not the expected agent, or no longer is, prints the reason there: "kimi-cli is
//! no longer maintained". If it then ends, the text is quoted in the error for the client.

use std::fmt;

use crate::jsonrpc::printable;

/// How many of the last bytes are kept.
const MOST: usize = 2 << 10;

/// How much of a line the log shows, in characters.
const SHOWN: usize = 80;

/// Redacts the secrets in a text.
pub type Discretion = fn(&str) -> String;

/// The end of the output.
pub(super) struct Babble {
    text: String,
    /// The agent has sent a message: it speaks ACP.
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
    /// Adds a line that is not a message.
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
            let mut from = self.text.len() - MOST;
            while !self.text.is_char_boundary(from) {
                from += 1;
            }
            self.text.drain(..from);
        }
    }

    /// The beginning of a line, for the log. Secrets are redacted first: one that is cut in two may
    /// not be recognised any more. The space before the ellipsis keeps words whole for the log's
    /// own redaction.
    pub(super) fn excerpt(&self, line: &[u8]) -> Box<str> {
        let text = (self.discretion)(&printable(line[..line.len().min(MOST)].trim_ascii()));
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{} …", &text[..end]).into(),
            None => text.into(),
        }
    }

    /// A message was received: earlier output explains nothing any more.
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
        f.debug_struct("NonJsonOutput").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_nothing_once_a_message_came() {
        let mut babble = Babble::default();
        assert_eq!(babble.tail(), None);
        babble.add(b"  \r");
        assert_eq!(babble.tail(), None);
        babble.add(b"\x1b[1mone \xff\r");
        let one = babble.tail().expect("it is kept");
        assert!(!one.contains('\x1b') && one.contains("one"), "{one}");
        for _ in 0..1000 {
            babble.add("\u{20ac}uro".as_bytes());
        }
        let all = babble.tail().expect("it is kept");
        assert!(all.len() <= MOST && all.len() > MOST - 8, "{}", all.len());
        assert!(all.ends_with("\n\u{20ac}uro"), "{all}");
        babble.discretion = |text| text.replace("uro", "");
        assert!(!babble.tail().expect("it is kept").contains("uro"));
        babble.end();
        babble.add(b"more");
        assert_eq!(babble.tail(), None);
    }
}
