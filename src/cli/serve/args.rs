//! The command line of `acp-relay serve`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::on_disconnect::DisconnectArgs;
use crate::cli::admin::AdminArgs;
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::common::Common;
use crate::cli::listeners::ListenerArgs;
use crate::cli::{agents, endpoints};
use jsonrpc::parse_duration;
use transport::Endpoint;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Serve {
    /// The configuration file: agents by name, listeners, and the options that are also flags;
    /// flags override it. `acp-relay config example` prints one
    ///
    /// Without it, and when the command line names neither a listener nor an agent, the user's file
    /// is read ($XDG_CONFIG_HOME/acp-relay/acp-relay.toml), or else the system's
    /// (/etc/acp-relay/acp-relay.toml). SIGHUP reloads it.
    #[arg(long, value_name = "FILE", env = "ACP_RELAY_CONFIG")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Where clients connect; may be given several times [default: ws://127.0.0.1:0]
    #[arg(long, value_name = "ENDPOINT", env = "ACP_RELAY_LISTEN")]
    pub(in crate::cli) listen: Vec<Endpoint>,
    /// The agent's endpoint, instead of a command
    #[arg(long, value_name = "ENDPOINT", conflicts_with_all = ["command", "profile"])]
    #[arg(value_parser = endpoints::read_agent)]
    pub(in crate::cli) agent: Option<Endpoint>,
    /// A well-known agent, instead of its command; `acp-relay agents list` has them
    #[arg(long, value_name = "PROFILE", conflicts_with = "command")]
    #[arg(value_parser = agents::read_profile)]
    pub(in crate::cli) profile: Option<&'static agents::Profile>,
    #[command(flatten)]
    pub(in crate::cli) listeners: Option<ListenerArgs>,
    #[command(flatten)]
    pub(in crate::cli) on_disconnect: DisconnectArgs,
    #[command(flatten)]
    pub(in crate::cli) admin: AdminArgs,
    #[command(flatten)]
    pub(in crate::cli) agent_connect: Option<AgentConnectArgs>,
    #[command(flatten)]
    pub(in crate::cli) admission: AdmissionArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(in crate::cli) cluster: crate::cli::cluster::ClusterArgs,
    /// Serve only this agent of the configuration file
    #[arg(long, value_name = "AGENT", hide = true)]
    pub(in crate::cli) only_agent: Option<String>,
    /// As `over-ssh` starts it: clients of Unix sockets may open links, and it stops when no client
    /// was connected, and no conversation kept for one, for this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide = true)]
    pub(in crate::cli) exit_when_idle: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(in crate::cli) command: Vec<OsString>,
}
