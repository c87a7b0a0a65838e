//! How a recording is played: which requests match, how fast, and what happens to a request that
//! was not recorded. See `fault` for injected faults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::InjectedFault;

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
pub enum MatchRule {
    /// The params are equal, except for session ids, the working directory, `_meta`, and the
    /// client's description of itself in `initialize`.
    #[default]
    Strict,
    /// The params have the same members of the same types.
    Shape,
    /// Any params: the next request of that method.
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
pub enum Unmatched {
    /// It is answered with an error.
    #[default]
    Error,
    /// The most similar recorded request of that method answers it, even if it was played before.
    Nearest,
    /// A live agent answers it.
    Forward,
}

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

impl MatchRule {
    /// Each value with its word.
    pub const NAMES: [(&str, Self); 3] = [
        ("strict", Self::Strict),
        ("shape", Self::Shape),
        ("order", Self::Order),
    ];
}

impl Unmatched {
    /// Each value with its word.
    pub const NAMES: [(&str, Self); 3] = [
        ("error", Self::Error),
        ("nearest", Self::Nearest),
        ("forward", Self::Forward),
    ];
}

impl FromStr for MatchRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(&Self::NAMES, text)
    }
}

impl FromStr for Unmatched {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(&Self::NAMES, text)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let times = text.parse::<f64>().ok().filter(|times| *times > 0.0);
        let thousandths = times.map(|times| (times * 1000.0).round());
        match thousandths {
            Some(speed) if (1.0..=1e9).contains(&speed) =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is within the range"
                )]
                Ok(Self::Thousandths(speed as u32))
            }
            _ => Err(format!(
                "{text:?} is no speed; expected 1 (as recorded), 10 (ten times as fast), or max"
            )),
        }
    }
}

impl fmt::Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&Self::NAMES, self))
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&Self::NAMES, self))
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

fn one_of<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, one)| *one).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("{text:?} is not known; expected {}", names.join(", "))
    })
}

fn name<T: PartialEq>(names: &[(&'static str, T)], of: &T) -> &'static str {
    let found = names.iter().find(|(_, one)| one == of);
    found.map_or("", |(name, _)| name)
}
