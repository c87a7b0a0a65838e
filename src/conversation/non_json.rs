//! Keeps what an agent prints on its stdout before its first message.
//!
//! A program that is not the expected agent, or no longer is, prints the reason there: "kimi-cli is
//! no longer maintained". If it then ends, the text is quoted in the error for the client.

use std::fmt;

use jsonrpc::{FrameError, FrameFault, IdBuf, printable};

/// How many of the last bytes are kept.
const MAX_BYTES: usize = 2 << 10;

/// How much of a line the log shows, in characters.
const MAX_CHARS: usize = 80;

/// Redacts the secrets in a text.
pub type LogRedaction = fn(&str) -> String;

/// The end of the output.
pub(super) struct NonJsonOutput {
    text: String,
    /// The agent has sent a message: it speaks ACP.
    ended: bool,
    pub(super) redact: LogRedaction,
}

impl Default for NonJsonOutput {
    fn default() -> Self {
        Self {
            text: String::new(),
            ended: false,
            redact: str::to_owned,
        }
    }
}

impl NonJsonOutput {
    /// Adds a line that is not a message.
    pub(super) fn add(&mut self, line: &[u8]) {
        let line = line[..line.len().min(MAX_BYTES)].trim_ascii();
        if self.ended || line.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&printable(line));
        if self.text.len() > MAX_BYTES {
            let mut from = self.text.len() - MAX_BYTES;
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
        let text = (self.redact)(&printable(line[..line.len().min(MAX_BYTES)].trim_ascii()));
        match text.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{} …", &text[..end]).into(),
            None => text.into(),
        }
    }

    /// A message was received: earlier output explains nothing any more.
    pub(super) fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            self.text = String::new();
        }
    }

    /// All that is kept, for the client.
    pub(super) fn tail(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| (self.redact)(&self.text))
    }
}

impl fmt::Debug for NonJsonOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonJsonOutput").finish_non_exhaustive()
    }
}

/// Whether a line that the agent printed was never meant as a message: `Ready.`, `[INFO] starting`.
pub(super) fn is_stray(error: &FrameError) -> bool {
    let nothing_known = error.role.is_none() && error.id == IdBuf::default();
    !error.json_like || (matches!(error.fault, FrameFault::Malformed { .. }) && nothing_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_kept_until_the_first_message() {
        let mut output = NonJsonOutput::default();
        assert_eq!(output.tail(), None);
        output.add(b"  \r");
        assert_eq!(output.tail(), None);
        output.add(b"\x1b[1mone \xff\r");
        let one = output.tail().expect("it is kept");
        assert!(!one.contains('\x1b') && one.contains("one"), "{one}");
        for _ in 0..1000 {
            output.add("\u{20ac}uro".as_bytes());
        }
        let all = output.tail().expect("it is kept");
        assert!(
            all.len() <= MAX_BYTES && all.len() > MAX_BYTES - 8,
            "{}",
            all.len()
        );
        assert!(all.ends_with("\n\u{20ac}uro"), "{all}");
        output.redact = |text| text.replace("uro", "");
        assert!(!output.tail().expect("it is kept").contains("uro"));
        output.end();
        output.add(b"more");
        assert_eq!(output.tail(), None);
    }
}
