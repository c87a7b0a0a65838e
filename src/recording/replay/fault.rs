//! Faults to inject, and when.
//!
//! A schedule is a text with one fault a line: `after EVENT FAULT`, with the number of an event of
//! the recording (see `inspect show`; in a capture, of the line). `actor` injects them.

use std::str::FromStr;
use std::time::Duration;

use crate::jsonrpc::parse_duration;

/// A fault to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// It applies once this event was played; 0 is the beginning.
    pub after: u64,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// A kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// `drop`: the next message is not sent.
    Drop,
    /// `delay 2s`: the next message is delayed.
    Delay(Duration),
    /// `error -32603 TEXT`: the next answer is this error.
    Error {
        /// Its code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// `close`: the agent ends its stream.
    Close,
    /// `garbage TEXT`: the agent sends a line that is not a message.
    Garbage(String),
}

/// The syntax of a line, for errors.
const SYNTAX: &str =
    "expected `after EVENT` and one of: drop, delay 2s, error -32603 TEXT, close, garbage [TEXT]";

impl InjectedFault {
    /// Parses a schedule. Empty lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// When a line is invalid; the error names the line and the syntax.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().map(str::trim).enumerate();
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(at, line)| {
                let read: Result<Self, String> = line.parse();
                read.map_err(|fault| format!("line {}: {fault}", at + 1))
            })
            .collect()
    }
}

impl FromStr for InjectedFault {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("{line:?} is no fault; {SYNTAX}");
        let (word, rest) = split(line);
        let (event, rest) = split(rest);
        let (name, rest) = split(rest);
        let after = event.parse().ok().filter(|_| word == "after");
        let after = after.ok_or_else(wrong)?;
        let without_text = |kind| rest.is_empty().then_some(kind).ok_or_else(wrong);
        let kind = match name {
            "drop" => without_text(FaultKind::Drop)?,
            "close" => without_text(FaultKind::Close)?,
            "delay" => FaultKind::Delay(parse_duration(rest)?),
            "garbage" if rest.is_empty() => FaultKind::Garbage("{\"garbage\":".to_owned()),
            "garbage" => FaultKind::Garbage(rest.to_owned()),
            "error" => {
                let (code, message) = split(rest);
                FaultKind::Error {
                    code: code.parse().map_err(|_| wrong())?,
                    message: match message {
                        "" => "scheduled by --fault".to_owned(),
                        message => message.to_owned(),
                    },
                }
            }
            _ => return Err(wrong()),
        };
        Ok(Self { after, kind })
    }
}

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}
