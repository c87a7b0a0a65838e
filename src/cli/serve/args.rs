//! The command line of `acp-relay serve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::OnDisconnect;
use crate::cli::admin::AdminAddress;
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::common::Common;
use crate::cli::{agents, endpoints, listeners};
use crate::transport::Endpoint;

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
    /// Allow web pages of this origin, such as `https://editor.example`; may be given several times
    #[arg(long, value_name = "ORIGIN", value_parser = listeners::read_origin)]
    pub(in crate::cli) allow_origin: Vec<String>,
    /// Accept this host name besides the listener's own (with one port or any); may be given
    /// several times
    #[arg(long, value_name = "NAME", value_parser = listeners::read_host)]
    pub(in crate::cli) allow_host: Vec<String>,
    /// A cookie set on each new connection, so that a load balancer returns to this relay
    #[arg(long, value_name = "NAME=VALUE", value_parser = listeners::read_cookie)]
    pub(in crate::cli) affinity_cookie: Option<String>,
    /// Do not serve elephant.ai's routes, PATH/rpc and PATH/sse, beside the official ones
    #[arg(long)]
    pub(in crate::cli) no_elephant: bool,
    /// What to do with an agent whose client's WebSocket or HTTP connection breaks [default:
    /// terminate]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(in crate::cli) on_disconnect: Option<OnDisconnect>,
    /// Certificate chain for https:// and wss:// listeners, PEM
    #[arg(long, value_name = "FILE", env = "ACP_RELAY_TLS_CERT")]
    pub(in crate::cli) tls_cert: Option<PathBuf>,
    /// Private key for https:// and wss:// listeners, PEM
    #[arg(long, value_name = "FILE", env = "ACP_RELAY_TLS_KEY")]
    pub(in crate::cli) tls_key: Option<PathBuf>,
    /// Serve monitoring here: /metrics, /healthz, /readyz, /startupz, /status; 127.0.0.1:PORT or
    /// unix:PATH
    #[arg(long, value_name = "ADDRESS", env = "ACP_RELAY_ADMIN")]
    pub(in crate::cli) admin: Option<AdminAddress>,
    #[command(flatten)]
    pub(in crate::cli) agent_connect: AgentConnectArgs,
    #[command(flatten)]
    pub(in crate::cli) admission: AdmissionArgs,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(in crate::cli) command: Vec<OsString>,
}
