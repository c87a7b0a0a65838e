//! The content of a configuration file.
//!
//! Missing options are `None`, so that flags and the environment can override the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::cli::admin;
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::{AgentConnectArgs, DefaultPermission, is_own};
use crate::cli::agents::Program;
use crate::cli::framing::FramingChoice;
use crate::cli::limits::Setting;
use crate::cli::record::RecordPart;
use crate::cli::remote::RemoteArgs;
use crate::cli::serve::OnDisconnect;
use crate::cli::telemetry::LogArgs;
use crate::cli::traces::TracesPart;
use crate::conversation::DialectChoice;
use crate::transport::{Endpoint, HttpOptions, Tls};

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Config {
    /// The agent of clients that name none.
    pub(in crate::cli) default_agent: Option<String>,
    /// By name.
    pub(in crate::cli) agents: BTreeMap<String, AgentPart>,
    pub(in crate::cli) listeners: Vec<ListenerPart>,
    pub(in crate::cli) record: RecordPart,
    pub(in crate::cli) limits: Vec<Setting>,
    pub(in crate::cli) log: LogArgs,
    /// The address of the admin listener.
    pub(in crate::cli) admin: Option<admin::AdminAddress>,
    pub(in crate::cli) agent_connect: AgentConnectArgs,
    /// The default for agents that do not set it.
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    pub(in crate::cli) traces: TracesPart,
    /// Options of admission.
    pub(in crate::cli) auth: AdmissionArgs,
    /// The user's mapping tables, and folders of them.
    pub(in crate::cli) tables: Vec<PathBuf>,
    pub(in crate::cli) table_folders: Vec<PathBuf>,
}

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct AgentPart {
    pub(in crate::cli) description: Option<String>,
    pub(in crate::cli) source: Source,
    pub(in crate::cli) dialect: Option<DialectChoice>,
    pub(in crate::cli) framing: Option<FramingChoice>,
    /// Whether its conversations are recorded, if recording is on.
    pub(in crate::cli) record: bool,
    pub(in crate::cli) limits: Vec<Setting>,
    /// What to do when its client's connection breaks.
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    /// The answer to its permission requests when no client can be asked.
    pub(in crate::cli) default_permission: Option<DefaultPermission>,
}

impl AgentPart {
    /// Whether it is reached by Agent Connect.
    pub(in crate::cli) const fn is_agent_connect(&self) -> bool {
        matches!(&self.source, Source::Endpoint(at, _) if is_own(at))
    }
}

/// How an agent is reached.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Source {
    /// It is started as a process.
    Program(Program),
    /// It listens at an endpoint.
    Endpoint(Endpoint, RemoteArgs),
}

/// One listener.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct ListenerPart {
    pub(in crate::cli) endpoint: Endpoint,
    pub(in crate::cli) front: HttpOptions,
    pub(in crate::cli) tls: Tls,
    pub(in crate::cli) framing: Option<FramingChoice>,
    pub(in crate::cli) dialect: Option<DialectChoice>,
    /// The agents that its clients may name; all if `None`.
    pub(in crate::cli) agents: Option<Vec<String>>,
    /// The path below which Agent Connect is served beside ACP.
    pub(in crate::cli) agent_connect: Option<String>,
    /// The agent of clients that name none, instead of the file's default.
    pub(in crate::cli) default_agent: Option<String>,
}

impl ListenerPart {
    /// Whether it serves Agent Connect, alone or beside ACP.
    pub(in crate::cli) const fn serves_agent_connect(&self) -> bool {
        is_own(&self.endpoint) || self.agent_connect.is_some()
    }

    /// How many of `parts` serve Agent Connect.
    pub(in crate::cli) fn agent_connect_count(parts: &[Self]) -> usize {
        parts
            .iter()
            .filter(|part| part.serves_agent_connect())
            .count()
    }
}
