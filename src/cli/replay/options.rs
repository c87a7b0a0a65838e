//! Options for playing a client: those of a command line, and of a folder of tests, which are in its
//! `acp-relay.test.toml`.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio::runtime::Builder;

use crate::cli::bounded::{self, MAX_BYTES};
use crate::cli::target::{self, AgentArgument};
use crate::cli::variant::variant_of;
use crate::cli::{console, endpoints, exit, recordings, runtime};
use jsonrpc::{Side, parse_duration};
use recording::NotRecording;
use recording::redact::PointerPattern;
use replay::{
    CompareLevel, IgnoreRules, PlayOutcome, PlayRules, PlayTarget, Script, ScriptError,
    ScriptFault, Timeouts, play,
};
use transport::Endpoint;

/// The defaults of `--settle` and `--response-timeout`.
const SETTLE: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

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
    #[serde(deserialize_with = "list")]
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
    #[serde(deserialize_with = "list")]
    pub(super) command: Vec<OsString>,
}

impl Play {
    /// Whether an agent is named.
    pub(super) const fn has_agent(&self) -> bool {
        self.agent.is_some() || !self.command.is_empty()
    }

    /// Loads the conversation to play. Prints an error and returns the exit code.
    pub(super) fn script(&self, file: &Path) -> Result<Script, ExitCode> {
        let opened = self.open(&recordings::locate(file)?);
        opened.map_err(|error| {
            let what = format!("{}: {}", error.path.display(), explain(&error.reason));
            exit::fail(exit::NO_INPUT, &what)
        })
    }

    /// Loads the conversation in a file.
    pub(super) fn open(&self, file: &Path) -> Result<Script, ScriptError> {
        Script::open(file, self.edge.unwrap_or(Side::Agent))
    }

    /// The agent. Prints an error and returns the exit code.
    pub(super) fn agent(&self, subcommand: &str) -> Result<PlayTarget, ExitCode> {
        let usage = |fault: String| exit::fail(exit::USAGE, &fault);
        let otherwise = format!("{subcommand} --agent ENDPOINT");
        if !self.has_agent() {
            endpoints::agent(None, Vec::new(), &otherwise).map_err(usage)?;
        }
        let target = target::find(self.agent.clone(), self.command.clone(), &otherwise)?;
        let mut setup = endpoints::setup();
        if let Some(part) = &target.part {
            part.set_up(&mut setup).map_err(usage)?;
        }
        Ok(PlayTarget {
            endpoint: target.endpoint,
            setup,
        })
    }

    /// Plays `script` to `agent`; calls `on_turn` with a line about each turn as it ends.
    pub(super) fn run(
        &self,
        script: &Arc<Script>,
        agent: &PlayTarget,
        on_turn: &mut dyn FnMut(&str),
    ) -> Result<PlayOutcome, ExitCode> {
        let runtime = runtime::build(Builder::new_current_thread())?;
        let missing_folder = script.directory().filter(|folder| {
            let is_local = matches!(agent.endpoint, Endpoint::Exec(_));
            is_local && self.cwd.is_none() && !Path::new(folder).is_dir()
        });
        let here = missing_folder.map(|_| Path::new("."));
        let directory = self.cwd.as_deref().or(here).map(|cwd| {
            std::path::absolute(cwd).map_err(|error| {
                exit::fail(exit::USAGE, &format!("--cwd {}: {error}", cwd.display()))
            })
        });
        let rules = PlayRules {
            timeouts: Timeouts {
                settle: self.settle.unwrap_or(SETTLE),
                response: self.response_timeout.unwrap_or(RESPONSE_TIMEOUT),
            },
            directory: directory.transpose()?,
            missing_folder: missing_folder.map(str::to_owned),
            ignore: IgnoreRules {
                level: self.compare.unwrap_or_default(),
                places: self.ignore.clone(),
                messages: self.ignore_message.clone(),
            },
        };
        let played = runtime.block_on(play(script, agent, rules, on_turn));
        played.map_err(|error| exit::open_failed(&error))
    }
}

/// What is wrong with a file, as text for the user.
pub(super) fn explain(fault: &ScriptFault) -> String {
    match fault {
        ScriptFault::NotRecording(NotRecording::Unreadable(source)) => console::explain(source),
        fault => fault.to_string(),
    }
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

fn list<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = |text: &String| text.parse().map_err(D::Error::custom);
    texts.iter().map(read).collect()
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
