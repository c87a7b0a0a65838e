//! The address of a recording, with how it is played: `replay:PATH?match=order&speed=2`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::jsonrpc::{Side, parse_duration};
use crate::recording::replay::{InjectedFault, ReplayRules, Speed, Unmatched};

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
    pub(super) fn rules(&self) -> Result<ReplayRules, String> {
        let mut rules = self.rules.clone();
        if let Some(path) = &self.fault {
            let text = std::fs::read_to_string(path);
            let read = text
                .map_err(|error| error.to_string())
                .and_then(|text| InjectedFault::parse_all(&text));
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
    pub(in crate::transport) fn parse(rest: &str) -> Result<Self, String> {
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
            "match" => self.rules.matching = value.parse()?,
            "speed" => self.rules.speed = value.parse()?,
            "max-idle" => self.rules.max_idle = Some(parse_duration(value)?),
            "unmatched" if value != "forward" => self.rules.unmatched = value.parse()?,
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
        let default = ReplayRules::default();
        let rules = &self.rules;
        let mut options = Vec::new();
        if rules.matching != default.matching {
            options.push(format!("match={}", rules.matching));
        }
        if rules.speed != Speed::default() {
            options.push(format!("speed={}", rules.speed));
        }
        if let Some(max) = rules.max_idle {
            options.push(format!("max-idle={}ms", Duration::as_millis(&max)));
        }
        if rules.unmatched == Unmatched::Nearest {
            options.push("unmatched=nearest".to_owned());
        }
        if let Some(path) = &self.fault {
            options.push(format!("fault={}", path.display()));
        }
        if self.edge == Side::Agent {
            options.push("edge=agent".to_owned());
        }
        if let Some(forward) = &self.forward {
            options.push(format!("forward={forward}"));
        }
        write!(f, "replay:{}", self.path.display())?;
        if !options.is_empty() {
            write!(f, "?{}", options.join("&"))?;
        }
        Ok(())
    }
}
