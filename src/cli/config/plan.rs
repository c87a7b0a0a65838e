//! What a configuration file says, once it is read.
//!
//! What it leaves out is `None`, so that flags and the environment can be laid over it. Not here:
//! reading it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::cli::admin;
use crate::cli::agent_connect::{AgentConnectArgs, Unasked, is_own};
use crate::cli::agents::Program;
use crate::cli::cli::OnDisconnect;
use crate::cli::common::FramingChoice;
use crate::cli::door::DoorArgs;
use crate::cli::limits::Setting;
use crate::cli::record::RecordPart;
use crate::cli::remote::RemoteArgs;
use crate::cli::telemetry::LogArgs;
use crate::cli::traces::TracesPart;
use crate::conversation::Choice;
use crate::transport::{Endpoint, Front, Tls};

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Config {
    /// The agent of those who name none.
    pub(in crate::cli) default_agent: Option<String>,
    /// By name.
    pub(in crate::cli) agents: BTreeMap<String, AgentPart>,
    pub(in crate::cli) listeners: Vec<ListenerPart>,
    pub(in crate::cli) record: RecordPart,
    pub(in crate::cli) limits: Vec<Setting>,
    pub(in crate::cli) log: LogArgs,
    /// Where monitoring is answered.
    pub(in crate::cli) admin: Option<admin::Place>,
    pub(in crate::cli) agent_connect: AgentConnectArgs,
    /// What becomes of agents of which nothing is said.
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    pub(in crate::cli) traces: TracesPart,
    /// Who may come in.
    pub(in crate::cli) auth: DoorArgs,
    /// The user's mapping tables, and folders of them.
    pub(in crate::cli) tables: Vec<PathBuf>,
    pub(in crate::cli) table_folders: Vec<PathBuf>,
}

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct AgentPart {
    pub(in crate::cli) description: Option<String>,
    pub(in crate::cli) source: Source,
    pub(in crate::cli) dialect: Option<Choice>,
    pub(in crate::cli) framing: Option<FramingChoice>,
    /// Whether its conversations are recorded where others are.
    pub(in crate::cli) record: bool,
    pub(in crate::cli) limits: Vec<Setting>,
    /// What becomes of it when its client's connection breaks.
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    /// What it is answered where nobody can be asked.
    pub(in crate::cli) unasked: Option<Unasked>,
}

impl AgentPart {
    /// Whether it is behind Agent Connect.
    pub(in crate::cli) const fn is_rest(&self) -> bool {
        matches!(&self.source, Source::Endpoint(at, _) if is_own(at))
    }
}

/// Where an agent comes from.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Source {
    /// It is started.
    Program(Program),
    /// It listens.
    Endpoint(Endpoint, RemoteArgs),
}

/// One listener.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct ListenerPart {
    pub(in crate::cli) endpoint: Endpoint,
    pub(in crate::cli) front: Front,
    pub(in crate::cli) tls: Tls,
    pub(in crate::cli) framing: Option<FramingChoice>,
    pub(in crate::cli) dialect: Option<Choice>,
    /// The agents that its clients may name; all when not given.
    pub(in crate::cli) agents: Option<Vec<String>>,
    /// The path below which Agent Connect is served beside ACP.
    pub(in crate::cli) agent_connect: Option<String>,
    /// The agent of those who name none, instead of the file's.
    pub(in crate::cli) default_agent: Option<String>,
}
