//! The content of a configuration file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::keys::{Key, Keys};
use super::option::Variable;
use crate::cli::agent_connect::{AgentPermission, ServedPath};
use crate::cli::agents::{self, Profile, Program};
use crate::cli::dialect::Tables;
use crate::cli::dialect_options;
use crate::cli::endpoints;
use crate::cli::framing::FramingChoice;
use crate::cli::limits::Setting;
use crate::cli::link_options::LinkArgs;
use crate::cli::listeners::ListenerArgs;
use crate::cli::remote::RemoteArgs;
use crate::cli::serve::OnDisconnect;
use auth::Agents;
use conversation::DialectChoice;
use transport::{Endpoint, Launch, Setup};

/// A whole file, or what it comes to under a command line.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Config {
    /// In the order of their names; that of a command line has none.
    pub(in crate::cli) agents: Vec<AgentPart>,
    pub(in crate::cli) listeners: Vec<ListenerPart>,
    /// The names accepted in certificates; all names if `None`.
    pub(super) certificates: Option<BTreeMap<String, Keys>>,
    /// The keys that are not those of one agent or one listener.
    pub(in crate::cli) keys: Keys,
}

/// One agent.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct AgentPart {
    #[arg(skip)]
    pub(in crate::cli) name: Option<String>,
    /// What it is, for clients of Agent Connect
    #[arg(long, id = "agents.description", value_name = "TEXT")]
    pub(in crate::cli) description: Option<String>,
    /// The program and its arguments, a string each; there is no shell
    #[arg(long, id = "agents.command", value_name = "WORD")]
    pub(in crate::cli) command: Vec<OsString>,
    /// A well-known agent, instead of its command; `acp-relay agents list` has them
    #[arg(long, id = "agents.profile", value_name = "PROFILE")]
    #[arg(conflicts_with = "agents.command", value_parser = agents::read_profile)]
    pub(in crate::cli) profile: Option<&'static Profile>,
    /// The agent's endpoint, instead of a command
    #[arg(long, id = "agents.endpoint", value_name = "ENDPOINT")]
    #[arg(conflicts_with_all = ["agents.command", "agents.profile"])]
    #[arg(value_parser = endpoints::read_agent)]
    pub(in crate::cli) endpoint: Option<Endpoint>,
    /// Arguments after those of the profile
    #[arg(long, id = "agents.args", value_name = "ARG")]
    pub(in crate::cli) args: Vec<OsString>,
    /// Its working directory; the default is that of the relay
    #[arg(long, id = "agents.cwd", value_name = "DIR")]
    pub(in crate::cli) cwd: Option<PathBuf>,
    /// Whether it gets the relay's environment, without the relay's own secrets; false passes on
    /// only PATH, HOME, LANG, LC_*, TERM, TMPDIR, USER and SHELL
    #[arg(long, id = "agents.inherit-env", value_name = "BOOL")]
    #[arg(action = ArgAction::Set, default_value_t = true)]
    pub(in crate::cli) inherit_env: bool,
    /// Whether clients may only open sessions in folders that exist on this machine; false for an
    /// agent without a disk
    #[arg(long, id = "agents.check-folder", value_name = "BOOL")]
    #[arg(action = ArgAction::Set, default_value_t = true)]
    pub(in crate::cli) check_folder: bool,
    #[command(flatten)]
    pub(in crate::cli) remote: RemoteArgs,
    /// Its dialect: auto, canonical, or a dialect's name [default: auto]
    #[arg(long, id = "agents.dialect", value_name = "DIALECT")]
    #[arg(value_parser = dialect_options::choice)]
    pub(in crate::cli) dialect: Option<DialectChoice>,
    /// Its framing on byte streams [default: auto]
    #[arg(long, id = "agents.framing", value_name = "FRAMING", value_enum)]
    pub(in crate::cli) framing: Option<FramingChoice>,
    /// Whether its conversations are recorded, if recording is on
    #[arg(long, id = "agents.record", value_name = "BOOL")]
    #[arg(action = ArgAction::Set, default_value_t = true)]
    pub(in crate::cli) record: bool,
    /// What to do with it when its client's connection breaks, instead of the file's
    /// `on-disconnect`
    #[arg(long, id = "agents.on-disconnect", value_name = "WHAT", value_enum)]
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    #[command(flatten)]
    pub(in crate::cli) permission: AgentPermission,
    /// Variables for it
    #[arg(long, id = "agents.env", value_name = "NAME=VALUE", value_parser = read_variable)]
    pub(in crate::cli) env: Vec<Variable>,
    #[arg(skip)]
    pub(in crate::cli) limits: Vec<Setting>,
    #[arg(skip)]
    pub(super) keys: Keys,
}

/// One listener.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct ListenerPart {
    /// Where clients connect
    #[arg(long, id = "listeners.endpoint", value_name = "ENDPOINT")]
    pub(in crate::cli) endpoint: Endpoint,
    #[command(flatten)]
    pub(in crate::cli) options: ListenerArgs,
    /// The agents that its clients may name; all by default
    #[arg(long, id = "listeners.agents", value_name = "AGENT")]
    pub(in crate::cli) agents: Option<Vec<String>>,
    /// The agent of clients that name none, instead of the file's `default-agent`
    #[arg(long, id = "listeners.default-agent", value_name = "AGENT")]
    pub(in crate::cli) default_agent: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) agent_connect: ServedPath,
    /// The clients' dialect: auto, canonical, or a dialect's name [default: auto]
    #[arg(long, id = "listeners.dialect", value_name = "DIALECT")]
    #[arg(value_parser = dialect_options::choice)]
    pub(in crate::cli) dialect: Option<DialectChoice>,
    /// The clients' framing on byte streams [default: auto]
    #[arg(long, id = "listeners.framing", value_name = "FRAMING", value_enum)]
    pub(in crate::cli) framing: Option<FramingChoice>,
    #[arg(skip)]
    pub(super) keys: Keys,
}

/// How an agent is reached.
#[derive(Debug)]
pub(in crate::cli) enum Source<'a> {
    /// It is started as a process.
    Program(Program),
    /// It listens at an endpoint.
    Endpoint(&'a Endpoint, &'a RemoteArgs),
}

impl Config {
    /// The agent of clients that name none.
    pub(in crate::cli) fn default_agent(&self) -> Option<&str> {
        self.keys.get("default-agent")?.values.first()?.to_str()
    }

    /// The mapping tables in use besides the built-in ones.
    pub(in crate::cli) fn tables(&self) -> Tables {
        self.keys.parse().unwrap_or_default()
    }

    /// Whether a relay of it has resumable links.
    pub(in crate::cli) fn has_links(&self) -> bool {
        let links: LinkArgs = self.keys.parse().unwrap_or_default();
        links.links().is_some()
    }

    /// Whether it sets what becomes of the agents of lost clients.
    pub(in crate::cli) fn has_on_disconnect(&self) -> bool {
        self.keys.get("on-disconnect").is_some()
    }

    /// Whether it has an admin listener.
    pub(in crate::cli) fn has_admin(&self) -> bool {
        self.keys.get("admin.listen").is_some()
    }

    /// The names accepted in certificates, and the agents of each; all names if `None`.
    pub(super) fn grants(&self) -> Option<BTreeMap<String, Agents>> {
        let grant = |(name, keys): (&String, &Keys)| {
            let agents = match keys.get("auth.certificates.agents") {
                None => Agents::All,
                Some(key) => {
                    let names = key.values.iter();
                    Agents::These(names.map(|name| name.to_string_lossy().into()).collect())
                }
            };
            (name.clone(), agents)
        };
        Some(self.certificates.as_ref()?.iter().map(grant).collect())
    }
}

impl AgentPart {
    pub(super) fn of(name: Option<String>, keys: Keys) -> Result<Self, String> {
        let mut part: Self = keys.parse()?;
        part.name = name;
        part.limits = keys.settings("agents.limits");
        part.keys = keys;
        Ok(part)
    }

    /// An agent outside of a file, by the keys of `[agents.NAME]`.
    ///
    /// # Errors
    /// A value is not valid, as text for the user.
    pub(in crate::cli) fn with(name: &str, keys: &[(&str, &str)]) -> Result<Self, String> {
        let keys = keys.iter().map(|(id, value)| Key {
            id: (*id).to_owned(),
            from: String::new(),
            values: vec![value.into()],
        });
        Self::of(Some(name.to_owned()), Keys(keys.collect()))
    }

    /// How it is reached.
    pub(in crate::cli) fn source(&self) -> Source<'_> {
        if let Some(endpoint) = &self.endpoint {
            return Source::Endpoint(endpoint, &self.remote);
        }
        let mut program = match self.profile {
            Some(profile) => profile.program(),
            None => Program {
                argv: self.command.clone(),
                ..Program::default()
            },
        };
        program.argv.extend(self.args.iter().cloned());
        let launch = Launch {
            dir: self.cwd.clone(),
            env: self.env.clone(),
            bare: !self.inherit_env,
            ..Launch::default()
        };
        program.launch = launch.with_defaults(program.launch);
        Source::Program(program)
    }

    /// Sets how its link is opened.
    ///
    /// # Errors
    /// A file of its options cannot be used, as text for the user.
    pub(in crate::cli) fn set_up(&self, setup: &mut Setup) -> Result<(), String> {
        match self.source() {
            Source::Program(program) => setup.launch = program.launch,
            Source::Endpoint(_, remote) if self.name.is_some() => remote.set_up(setup)?,
            Source::Endpoint(..) => {}
        }
        Ok(())
    }
}

impl ListenerPart {
    pub(super) fn of(keys: Keys) -> Result<Self, String> {
        let mut part: Self = keys.parse()?;
        if keys.get("listeners.agents").is_some() {
            // An empty list is none, not all.
            part.agents.get_or_insert_default();
        }
        part.keys = keys;
        Ok(part)
    }

    /// Whether it serves Agent Connect, alone or beside ACP.
    pub(in crate::cli) fn serves_agent_connect(&self) -> bool {
        self.endpoint.is_agent_connect() || self.agent_connect != ServedPath::default()
    }

    /// How many of `parts` serve Agent Connect.
    pub(in crate::cli) fn agent_connect_count(parts: &[Self]) -> usize {
        let served = parts.iter().filter(|part| part.serves_agent_connect());
        served.count()
    }
}

/// Parses `NAME=VALUE`, from a file that has both apart.
fn read_variable(text: &str) -> Result<Variable, &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.into(), value.into()))
}
