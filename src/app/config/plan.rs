//! What a configuration file says, once it is read.
//!
//! What it leaves out is `None`, so that flags and the environment can be laid over it. Not here:
//! reading it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::app::admin;
use crate::app::agent_connect::{AgentConnectArgs, Unasked, is_own};
use crate::app::agents::Program;
use crate::app::cli::OnDisconnect;
use crate::app::common::FramingChoice;
use crate::app::door::DoorArgs;
use crate::app::limits::Setting;
use crate::app::record::RecordPart;
use crate::app::remote::RemoteArgs;
use crate::app::telemetry::LogArgs;
use crate::app::traces::TracesPart;
use crate::core::Choice;
use crate::transport::{Endpoint, Front, Tls};

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::app) struct Config {
    /// The agent of those who name none.
    pub(in crate::app) default_agent: Option<String>,
    /// By name.
    pub(in crate::app) agents: BTreeMap<String, AgentPart>,
    pub(in crate::app) listeners: Vec<ListenerPart>,
    pub(in crate::app) record: RecordPart,
    pub(in crate::app) limits: Vec<Setting>,
    pub(in crate::app) log: LogArgs,
    /// Where monitoring is answered.
    pub(in crate::app) admin: Option<admin::Place>,
    pub(in crate::app) agent_connect: AgentConnectArgs,
    /// What becomes of agents of which nothing is said.
    pub(in crate::app) on_disconnect: Option<OnDisconnect>,
    pub(in crate::app) traces: TracesPart,
    /// Who may come in.
    pub(in crate::app) auth: DoorArgs,
    /// The user's mapping tables, and folders of them.
    pub(in crate::app) tables: Vec<PathBuf>,
    pub(in crate::app) table_folders: Vec<PathBuf>,
}

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::app) struct AgentPart {
    pub(in crate::app) description: Option<String>,
    pub(in crate::app) source: Source,
    pub(in crate::app) dialect: Option<Choice>,
    pub(in crate::app) framing: Option<FramingChoice>,
    /// Whether its conversations are recorded where others are.
    pub(in crate::app) record: bool,
    pub(in crate::app) limits: Vec<Setting>,
    /// What becomes of it when its client's connection breaks.
    pub(in crate::app) on_disconnect: Option<OnDisconnect>,
    /// What it is answered where nobody can be asked.
    pub(in crate::app) unasked: Option<Unasked>,
}

impl AgentPart {
    /// Whether it is behind Agent Connect.
    pub(in crate::app) const fn is_rest(&self) -> bool {
        matches!(&self.source, Source::Endpoint(at, _) if is_own(at))
    }
}

/// Where an agent comes from.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::app) enum Source {
    /// It is started.
    Program(Program),
    /// It listens.
    Endpoint(Endpoint, RemoteArgs),
}

/// One listener.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::app) struct ListenerPart {
    pub(in crate::app) endpoint: Endpoint,
    pub(in crate::app) front: Front,
    pub(in crate::app) tls: Tls,
    pub(in crate::app) framing: Option<FramingChoice>,
    pub(in crate::app) dialect: Option<Choice>,
    /// The agents that its clients may name; all when not given.
    pub(in crate::app) agents: Option<Vec<String>>,
    /// The path below which Agent Connect is served beside ACP.
    pub(in crate::app) agent_connect: Option<String>,
    /// The agent of those who name none, instead of the file's.
    pub(in crate::app) default_agent: Option<String>,
}
