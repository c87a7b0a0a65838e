//! The options of a folder of tests: `acp-relay.test.toml`.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::play::Play;
use crate::cli::target::{self, AgentArgument};
use crate::cli::{console, exit};
use crate::jsonrpc::parse_duration;
use crate::recording::redact::PointerPattern;
use crate::recording::replay::CompareLevel;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct TestFile {
    compare: Option<CompareLevel>,
    #[serde(deserialize_with = "places")]
    ignore: Vec<PointerPattern>,
    ignore_message: Vec<String>,
    command: Vec<String>,
    #[serde(deserialize_with = "agent")]
    agent: Option<AgentArgument>,
    cwd: Option<PathBuf>,
    #[serde(deserialize_with = "time")]
    settle: Option<Duration>,
    #[serde(deserialize_with = "time")]
    response_timeout: Option<Duration>,
}

/// Reads a value from its text.
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

/// Reads the file, which need not exist. Prints an error and returns the exit code.
pub(super) fn read(path: &Path) -> Result<TestFile, ExitCode> {
    let fail = |what: &str| exit::fail(exit::CONFIG, &format!("{}: {what}", path.display()));
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TestFile::default()),
        Ok(about) if about.is_file() && about.len() <= MAX_BYTES => {}
        Ok(_) => return Err(fail("it is no file, or too long")),
        Err(error) => return Err(fail(&console::explain(&error))),
    }
    let text = std::fs::read_to_string(path).map_err(|error| fail(&console::explain(&error)))?;
    let read: Result<TestFile, toml::de::Error> = toml::from_str(&text);
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

impl TestFile {
    /// The options of the command line over those of this file, which is in `folder`.
    pub(super) fn under(self, options: &Play, folder: &Path) -> Play {
        let mut all = options.clone();
        all.ignore.extend(self.ignore);
        all.ignore_message.extend(self.ignore_message);
        all.compare = all.compare.or(self.compare);
        all.cwd = all.cwd.or_else(|| Some(folder.join(self.cwd?)));
        all.settle = all.settle.or(self.settle);
        all.response_timeout = all.response_timeout.or(self.response_timeout);
        if all.agent.is_none() && all.command.is_empty() {
            all.agent = self.agent;
            all.command = self.command.into_iter().map(OsString::from).collect();
        }
        all
    }
}
