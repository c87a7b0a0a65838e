//! Options of Agent Connect, and what they set up for its listeners and agents. Only this file uses
//! the crate `agent_connect`; without the feature `agent-connect`, `no_agent_connect` is in its place.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::listeners::read_host;
use super::variant::one_of;
use agent_connect::api::interrupt::Permissions;
use agent_connect::{AgentConnectConfig, ServedAgent};
use transport::{AddedTransport, Setup};

/// How its endpoints are opened.
pub(super) const TRANSPORT: Option<AddedTransport> = Some(agent_connect::TRANSPORT);

/// Options of Agent Connect listeners.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct AgentConnectArgs {
    /// Keep the threads and runs of Agent Connect in this file, an SQLite database, so that they
    /// survive a restart
    #[arg(long, id = "agent-connect.store", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_STORE")]
    store: Option<PathBuf>,
    /// What to answer when an agent asks for permission and no Agent Connect client can be asked
    #[arg(long, id = "agent-connect.default-permission")]
    #[arg(value_name = "WHAT", value_parser = default_permission(), default_value_t)]
    default_permission: Permissions,
    /// Call webhooks of Agent Connect at this host (with one port or any), even in a private
    /// network or over http://; may be given several times
    #[arg(long, id = "agent-connect.allow-callback", value_name = "HOST", value_parser = read_host)]
    allow_callback: Vec<String>,
}

/// The option of an ACP listener.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(super) struct ServedPath {
    /// Serve AGNTCY's Agent Connect below this path of the same port, for all agents of the
    /// listener; for Agent Connect alone, listen at agent-connect+http://
    #[arg(long, id = "listeners.agent-connect", value_name = "PATH", value_parser = read_path)]
    agent_connect: Option<String>,
}

/// The option of an agent of the configuration file.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct AgentPermission {
    /// What to answer when it asks for permission and no client can be asked, because a client of
    /// Agent Connect is gone; for an agent behind Agent Connect: because the editor does not answer
    #[arg(long, id = "agents.default-permission", value_name = "WHAT")]
    #[arg(value_parser = default_permission())]
    default_permission: Option<Permissions>,
}

/// The option of `connect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Args)]
pub(super) struct ConnectPermission {
    /// What to answer a permission request of an agent behind Agent Connect when the client does
    /// not answer [default: reject]
    #[arg(long, value_parser = default_permission(), value_name = "WHAT")]
    default_permission: Option<Permissions>,
}

impl AgentConnectArgs {
    /// The options of the Agent Connect listeners, of which there are `count`, by those that were
    /// given.
    ///
    /// # Errors
    /// An option is given that no listener uses, or more than one listener would use the store.
    pub(super) fn resolve(given: Option<&Self>, count: usize) -> Result<Self, String> {
        let fault = match given {
            Some(_) if count == 0 => {
                "--store, --default-permission and --allow-callback are for Agent Connect listeners \
                 (agent-connect+http://), and there is none"
            }
            Some(args) if args.store.is_some() && count > 1 => {
                "one Agent Connect listener at a time can use a --store"
            }
            _ => return Ok(given.cloned().unwrap_or_default()),
        };
        Err(fault.to_owned())
    }

    /// Has a listener serve these agents, each with its name and its description.
    pub(super) fn serve(
        &self,
        agents: impl Iterator<Item = (Option<String>, Option<String>, AgentPermission)>,
        path: &ServedPath,
        setup: &mut Setup,
    ) {
        let agents = agents.map(|(name, description, permission)| ServedAgent {
            name,
            description,
            default_permission: permission.default_permission,
        });
        let config = AgentConnectConfig {
            agents: agents.collect(),
            path: path.agent_connect.clone(),
            store: self.store.clone(),
            default_permission: self.default_permission,
            callbacks: self.allow_callback.clone(),
        };
        config.apply(setup);
    }
}

impl AgentPermission {
    /// Has the agent's permission requests answered so when no client can be asked.
    pub(super) fn apply(self, setup: &mut Setup) {
        let config = AgentConnectConfig {
            default_permission: self.default_permission.unwrap_or_default(),
            ..AgentConnectConfig::default()
        };
        config.apply(setup);
    }
}

impl ConnectPermission {
    /// Has the agent's permission requests answered so when the client does not answer.
    pub(super) fn apply(self, setup: &mut Setup) {
        let default_permission = self.default_permission;
        AgentPermission { default_permission }.apply(setup);
    }
}

/// Reads the answer to permission requests for which no client can be asked.
fn default_permission() -> impl TypedValueParser<Value = Permissions> {
    one_of(&[Permissions::Allow, Permissions::Reject])
}

/// Reads the path below which Agent Connect is served beside ACP.
fn read_path(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['?', '#']);
    match text.starts_with('/') && plain {
        true => Ok(text.to_owned()),
        false => Err("expected a path, such as \"/\" or \"/agent-connect\"".to_owned()),
    }
}
