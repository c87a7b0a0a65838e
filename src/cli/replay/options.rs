//! Options for playing a client: those of a command line, and of a folder of tests, which are in its
//! `acp-relay.test.toml`.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::cli::bounded::{self, MAX_BYTES};
use crate::cli::target::{self, AgentArgument};
use crate::cli::variant::variant_of;
use crate::cli::{console, exit};
use jsonrpc::{Side, parse_duration};
use recording::redact::PointerPattern;
use replay::CompareLevel;

/// Options for playing a client, of a command line or of a folder of tests.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Play {
    /// The agent's endpoint or name, instead of a command
    #[arg(long, value_name = "AGENT", conflicts_with = "command")]
    #[arg(value_parser = target::read)]
    #[serde(deserialize_with = "agent")]
    pub(super) agent: Option<AgentArgument>,
    /// The directory to work in, instead of the recorded one; if that does not exist, it is this one
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// What is compared [default: exact]
    #[arg(long, value_name = "LEVEL", value_parser = variant_of::<CompareLevel>())]
    pub(super) compare: Option<CompareLevel>,
    /// Ignore differences at this place in messages; `*` is any one step. May be repeated
    #[arg(long, value_name = "POINTER")]
    #[serde(deserialize_with = "places")]
    pub(super) ignore: Vec<PointerPattern>,
    /// Ignore notifications that contain this text, as spelled in JSON. May be repeated
    #[arg(long, value_name = "TEXT")]
    pub(super) ignore_message: Vec<String>,
    /// How long to wait for updates after a turn, from the last message on [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[serde(deserialize_with = "time")]
    pub(super) settle: Option<Duration>,
    /// How long to wait for an answer, from the last message on [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    #[serde(deserialize_with = "time")]
    pub(super) response_timeout: Option<Duration>,
    /// Which messages to play where a dialect was translated: those the agent received, or those
    /// the client sent [default: agent]
    #[arg(long, value_name = "EDGE", value_parser = variant_of::<Side>())]
    pub(super) edge: Option<Side>,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    #[serde(deserialize_with = "words")]
    pub(super) command: Vec<OsString>,
}

/// Reads a value from its text, as the command line does.
fn text<'de, T, E: Display, D: Deserializer<'de>>(
    from: D,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    text(from, parse_duration).map(Some)
}

fn agent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<AgentArgument>, D::Error> {
    text(from, target::read).map(Some)
}

fn places<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PointerPattern>, D::Error> {
    let places = Vec::<String>::deserialize(from)?;
    let places = places
        .iter()
        .map(|place| place.parse().map_err(D::Error::custom));
    places.collect()
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Reads the file, which need not exist. Prints an error and returns the exit code.
pub(super) fn read(path: &Path) -> Result<Play, ExitCode> {
    let fail = |what: &str| exit::fail(exit::CONFIG, &format!("{}: {what}", path.display()));
    let text = match bounded::read_file(path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Play::default()),
        Err(error) => return Err(fail(&console::explain(&error))),
    };
    let read: Result<Play, toml::de::Error> = toml::from_str(&text);
    let file = read.map_err(|error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() + 1;
        let what = error.message().lines().collect::<Vec<_>>().join(" ");
        fail(&format!("line {line}: {what}"))
    })?;
    match file.agent.is_some() && !file.command.is_empty() {
        true => Err(fail("`agent` and `command` are both the agent; remove one")),
        false => Ok(file),
    }
}

/// The options of a command line over those of `file`, which is in `folder`.
pub(super) fn merge(options: &Play, file: Play, folder: &Path) -> Play {
    let mut all = options.clone();
    all.ignore.extend(file.ignore);
    all.ignore_message.extend(file.ignore_message);
    all.compare = all.compare.or(file.compare);
    all.cwd = all.cwd.or_else(|| Some(folder.join(file.cwd?)));
    all.settle = all.settle.or(file.settle);
    all.response_timeout = all.response_timeout.or(file.response_timeout);
    all.edge = all.edge.or(file.edge);
    if !options.has_agent() {
        (all.agent, all.command) = (file.agent, file.command);
    }
    all
}
