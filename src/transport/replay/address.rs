//! The address of a recording, with how it is played: `replay:PATH?match=order&speed=2`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{InjectedFault, ReplayRules, Unmatched};
use jsonrpc::{Choice, Side, parse_duration};

/// A recording to be played; `E` is the type of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayAddress<E> {
    /// The recording, or a capture.
    pub path: PathBuf,
    /// How it is played, without the faults.
    pub rules: ReplayRules,
    /// The file with the faults.
    pub fault: Option<PathBuf>,
    /// The side whose form of the messages is played, where a dialect was translated.
    pub edge: Side,
    /// The live agent that answers requests that were not recorded.
    pub forward: Option<Box<E>>,
}

/// The options that may follow the path.
const OPTIONS: &str = "match=strict|shape|order, speed=1|10|max, max-idle=2s, \
                        unmatched=error|nearest, fault=FILE, edge=client|agent, forward=ENDPOINT";

impl<E> ReplayAddress<E> {
    /// A recording, played with the default options.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            rules: ReplayRules::default(),
            fault: None,
            edge: Side::Client,
            forward: None,
        }
    }

    /// The rules, with the faults of the file.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid.
    pub fn rules(&self) -> Result<ReplayRules, String> {
        let mut rules = self.rules.clone();
        if let Some(path) = &self.fault {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| error.to_string());
            let read = text.and_then(|text| InjectedFault::parse_all(&text));
            rules.faults = read.map_err(|fault| format!("{}: {fault}", path.display()))?;
        }
        Ok(rules)
    }
}

impl<E: FromStr<Err: fmt::Display>> ReplayAddress<E> {
    /// Parses the text after `replay:`.
    ///
    /// # Errors
    /// When it is not a path with options; the error has what was expected.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let (path, mut options) = match rest.split_once('?') {
            Some((path, settings)) => (path, settings),
            None => (rest, ""),
        };
        if path.is_empty() {
            return Err("it names no recording; expected replay:FILE".to_owned());
        }
        if rest.contains('\0') {
            return Err("a path cannot hold a NUL character".to_owned());
        }
        let mut address = Self::new(path);
        while !options.is_empty() {
            let option = if options.starts_with("forward=") {
                // The other endpoint may have options of its own, so it takes the rest.
                std::mem::take(&mut options)
            } else {
                let (option, rest) = options.split_once('&').unwrap_or((options, ""));
                options = rest;
                option
            };
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            address.set(name, value)?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "match" => self.rules.matching = Choice::from_name(value)?,
            "speed" => self.rules.speed = value.parse()?,
            "max-idle" => self.rules.max_idle = Some(parse_duration(value)?),
            "unmatched" if value != "forward" => self.rules.unmatched = Choice::from_name(value)?,
            "unmatched" => {
                return Err("the agent to forward to is named by forward=ENDPOINT".to_owned());
            }
            "fault" => self.fault = Some(PathBuf::from(value)),
            "edge" => self.edge = value.parse()?,
            "forward" => {
                let read = value.parse::<E>().map_err(|error| error.to_string());
                self.forward = Some(Box::new(read?));
                self.rules.unmatched = Unmatched::Forward;
            }
            _ => return Err(format!("{name:?} is not an option; expected {OPTIONS}")),
        }
        Ok(())
    }
}

impl<E: fmt::Display> fmt::Display for ReplayAddress<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rules, default) = (&self.rules, ReplayRules::default());
        let matching = (rules.matching != default.matching).then_some(rules.matching);
        let nearest = Some(rules.unmatched).filter(|word| *word == Unmatched::Nearest);
        let speed = (rules.speed != default.speed).then_some(rules.speed);
        let max_idle = rules.max_idle.as_ref().map(Duration::as_millis);
        let fault = self.fault.as_ref().map(|path| path.display());
        let edge = Some(self.edge).filter(|edge| *edge == Side::Agent);
        let options = [
            matching.map(|word| format!("match={word}")),
            speed.map(|speed| format!("speed={speed}")),
            max_idle.map(|millis| format!("max-idle={millis}ms")),
            nearest.map(|word| format!("unmatched={word}")),
            fault.map(|path| format!("fault={path}")),
            edge.map(|edge| format!("edge={edge}")),
            self.forward
                .as_ref()
                .map(|agent| format!("forward={agent}")),
        ];
        write!(f, "replay:{}", self.path.display())?;
        for (at, option) in options.into_iter().flatten().enumerate() {
            write!(f, "{}{option}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}
