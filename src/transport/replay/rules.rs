//! How a recording is played: which requests match, how fast, what happens to a request that was
//! not recorded, and the faults to inject.
//!
//! Faults are a text with one a line: `after EVENT FAULT`, with the number of an event of the
//! recording (see `inspect show`; in a capture, of the line).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use jsonrpc::parse_duration;

/// How the agent is played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayRules {
    /// When a live request matches a recorded one.
    pub matching: MatchRule,
    /// How fast.
    pub speed: Speed,
    /// The longest pause, whatever was recorded.
    pub max_idle: Option<Duration>,
    /// What happens to a request that was not recorded.
    pub unmatched: Unmatched,
    /// The faults to inject.
    pub faults: Vec<InjectedFault>,
}

/// When a live request matches a recorded one. The method is always the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum MatchRule {
    /// The params are equal, except for session ids, the working directory, `_meta`, and the
    /// client's description of itself in `initialize`
    #[default]
    Strict,
    /// The params have the same members of the same types
    Shape,
    /// Any params: the next request of that method
    Order,
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// As fast as the peer takes it.
    #[default]
    Max,
    /// So many thousandths of the recorded speed.
    Thousandths(u32),
}

/// What happens to a request that was not recorded, or is repeated more often than recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Unmatched {
    /// It is answered with an error
    #[default]
    Error,
    /// The most similar recorded request of that method answers it, even if it was played before
    Nearest,
    /// A live agent answers it
    Forward,
}

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

/// The syntax of a fault, for errors.
const SYNTAX: &str =
    "expected `after EVENT` and one of: drop, delay 2s, error -32603 TEXT, close, garbage [TEXT]";

impl ReplayRules {
    /// How long to wait for a recorded pause of `gap`.
    #[must_use]
    pub fn pause(&self, gap: Duration) -> Duration {
        let pause = match self.speed {
            Speed::Max => Duration::ZERO,
            Speed::Thousandths(speed) => gap.saturating_mul(1000) / speed.max(1),
        };
        self.max_idle.map_or(pause, |max| pause.min(max))
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let thousandths = text
            .parse()
            .map_or(0.0, |times: f64| (times * 1000.0).round());
        if !(1.0..=1e9).contains(&thousandths) {
            return Err(format!(
                "{text:?} is no speed; expected 1 (as recorded), 10 (ten times as fast), or max"
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within the range"
        )]
        Ok(Self::Thousandths(thousandths as u32))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Thousandths(speed) => write!(f, "{}", f64::from(*speed) / 1000.0),
        }
    }
}

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
                let fault = line.parse();
                fault.map_err(|why: String| format!("line {}: {why}", at + 1))
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
        let kind = match name {
            "drop" if rest.is_empty() => FaultKind::Drop,
            "close" if rest.is_empty() => FaultKind::Close,
            "delay" => FaultKind::Delay(parse_duration(rest)?),
            "garbage" if rest.is_empty() => FaultKind::Garbage("{\"garbage\":".to_owned()),
            "garbage" => FaultKind::Garbage(rest.to_owned()),
            "error" => {
                let (code, message) = split(rest);
                let message = if message.is_empty() {
                    "scheduled by --fault"
                } else {
                    message
                };
                FaultKind::Error {
                    code: code.parse().map_err(|_| wrong())?,
                    message: message.to_owned(),
                }
            }
            _ => return Err(wrong()),
        };
        let after = after.ok_or_else(wrong)?;
        Ok(Self { after, kind })
    }
}

fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}
