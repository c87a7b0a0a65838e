//! The agent that a command line names: where it listens, its command, or a name, which is that of
//! an agent in the configuration file, of one that was joined, or of a well-known one.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::agents::{check_name, profile_names, read_profile};
use super::config::{self, AgentPart, CheckLevel, Config, ConfigFile, Source};
use super::dialect::Tables;
use super::state::StateError;
use super::{console, endpoints, exit, joined, record};
use jsonrpc::nearest;
use transport::Endpoint;

/// What a command line has where an agent is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentArgument {
    Endpoint(Endpoint),
    Name(String),
}

/// An agent to connect to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) endpoint: Endpoint,
    /// How to install it, if known.
    pub(super) install: Option<String>,
    /// Its configuration, if it was given by name.
    pub(super) part: Option<AgentPart>,
    /// The mapping tables of the file that configures it.
    pub(super) tables: Tables,
}

/// Why a name is that of no agent.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error(
        "no agent is called `{0}`, neither in the configuration file nor among the well-known \
         ones; {1} If it is the agent's command, it goes after `--`: -- {0}"
    )]
    Name(String, String),
    #[error("{0}")]
    Joined(StateError),
    #[error("{0}")]
    Profile(String),
}

/// Parses an agent's endpoint or name.
pub(super) fn read(text: &str) -> Result<AgentArgument, String> {
    if joined::is_join_line(text) {
        return Err(
            "it contains a token, which every user of this machine can see in an argument; run \
             `acp-relay connect --join`, and paste the line there"
                .to_owned(),
        );
    }
    if check_name(text).is_ok() {
        return Ok(AgentArgument::Name(text.to_owned()));
    }
    endpoints::read_agent(text).map(AgentArgument::Endpoint)
}

/// Finds the agent. Without one, it is the default agent of the configuration file, if a program
/// has started this one: a person at a terminal is told what to name. `usage` is the usage for
/// that. Errors are printed, and the exit code is returned.
pub(super) fn find(
    agent: Option<AgentArgument>,
    command: Vec<OsString>,
    usage: &str,
) -> Result<Target, ExitCode> {
    let endpoint = match agent {
        Some(AgentArgument::Name(name)) => return named(&name),
        Some(AgentArgument::Endpoint(endpoint)) => Some(endpoint),
        None => None,
    };
    if endpoint.is_none()
        && command.is_empty()
        && !console::input_is_terminal()
        && let Some(target) = default_agent()?
    {
        return Ok(target);
    }
    let endpoint = endpoints::agent(endpoint, command, usage);
    Ok(Target {
        endpoint: endpoint.map_err(|fault| exit::fail(exit::USAGE, &fault))?,
        install: None,
        part: None,
        tables: Tables::default(),
    })
}

/// The agent of this name. Errors are printed, and the exit code is returned.
fn named(name: &str) -> Result<Target, ExitCode> {
    let file = user_file()?.unwrap_or_default();
    known(&file, name).map_err(|fault| match fault {
        Unknown::Joined(fault) => fault.fail(),
        fault => exit::fail(exit::USAGE, &fault),
    })
}

/// Whether there is an agent of this name; the configuration file is assumed to be valid.
///
/// # Errors
/// There is none, or its files cannot be used.
pub(super) fn check(name: &str) -> Result<(), String> {
    let file = ConfigFile::find().and_then(|place| {
        let text = std::fs::read_to_string(&place.0).ok()?;
        config::read(&place, &text, CheckLevel::Values).ok()
    });
    let found = known(&file.unwrap_or_default(), name);
    found.map(drop).map_err(|fault| fault.to_string())
}

/// Rejects a value of `--record` that is an agent, on a command line without another one. The error
/// is printed, and the exit code is returned.
pub(super) fn check_record(folder: Option<&Path>) -> Result<(), ExitCode> {
    let Some(folder) = folder else {
        return Ok(());
    };
    record::check_folder(folder)?;
    match folder.to_str() {
        Some(name) if check(name).is_ok() => Err(record::report_agent(name, "an agent's name")),
        _ => Ok(()),
    }
}

/// The agent of this name, with that configuration file.
fn known(file: &Config, name: &str) -> Result<Target, Unknown> {
    if let Some(target) = configured(file, name) {
        return Ok(target);
    }
    if let Some(part) = joined::read(name).map_err(Unknown::Joined)? {
        return Ok(Target::of(part, Tables::default()));
    }
    if profile_names().any(|known| known == name) {
        // Of an imported agent, the command may be unknown.
        let profile = read_profile(name).map_err(Unknown::Profile)?;
        let keys = [("agents.profile", profile.name.as_str())];
        let part = AgentPart::with(&profile.name, &keys).map_err(Unknown::Profile)?;
        return Ok(Target::of(part, Tables::default()));
    }
    let own = file.agents.iter().filter_map(|part| part.name.as_deref());
    let near = match nearest(name, own).or_else(|| nearest(name, profile_names())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`acp-relay agents list` lists the well-known ones.".to_owned(),
    };
    Err(Unknown::Name(name.to_owned(), near))
}

/// The default agent of the configuration file, or its only one.
fn default_agent() -> Result<Option<Target>, ExitCode> {
    let Some(file) = user_file()? else {
        return Ok(None);
    };
    let only = match file.agents.as_slice() {
        [only] => only.name.as_deref(),
        _ => None,
    };
    let name = file.default_agent().or(only);
    Ok(name.and_then(|name| configured(&file, name)))
}

fn configured(file: &Config, name: &str) -> Option<Target> {
    let mut parts = file.agents.iter();
    let part = parts.find(|part| part.name.as_deref() == Some(name))?;
    Some(Target::of(part.clone(), file.tables()))
}

/// The configuration file of the user or of the system.
fn user_file() -> Result<Option<Config>, ExitCode> {
    ConfigFile::find().as_ref().map(config::load).transpose()
}

impl Target {
    fn of(part: AgentPart, tables: Tables) -> Self {
        let (endpoint, install) = match part.source() {
            Source::Program(program) => (Endpoint::Exec(program.argv), program.install),
            Source::Endpoint(endpoint, _) => (endpoint.clone(), None),
        };
        Self {
            endpoint,
            install,
            part: Some(part),
            tables,
        }
    }
}
