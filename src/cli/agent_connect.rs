//! Options of Agent Connect listeners and agents. `agent_connect` implements them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::listeners::read_host;
use super::variant::one_of;
use agent_connect::AgentConnectConfig;
use agent_connect::api::interrupt::Permissions;
use transport::Setup;

/// Options of Agent Connect listeners.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct AgentConnectArgs {
    /// Keep the threads and runs of Agent Connect in this file, an SQLite database, so that they
    /// survive a restart
    #[arg(long, id = "agent-connect.store", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_STORE")]
    pub(super) store: Option<PathBuf>,
    /// What to answer when an agent asks for permission and no Agent Connect client can be asked
    #[arg(long, id = "agent-connect.default-permission")]
    #[arg(value_name = "WHAT", value_parser = default_permission(), default_value_t)]
    pub(super) default_permission: Permissions,
    /// Call webhooks of Agent Connect at this host (with one port or any), even in a private
    /// network or over http://; may be given several times
    #[arg(long, id = "agent-connect.allow-callback", value_name = "HOST", value_parser = read_host)]
    pub(super) allow_callback: Vec<String>,
}

/// Reads the answer to permission requests for which no client can be asked.
pub(super) fn default_permission() -> impl TypedValueParser<Value = Permissions> {
    one_of(&[Permissions::Allow, Permissions::Reject])
}

impl AgentConnectArgs {
    /// The settings of the Agent Connect listeners, of which there are `count`, by the options that
    /// were given.
    ///
    /// # Errors
    /// An option is given that no listener uses, or more than one listener would use the store.
    pub(super) fn resolve(
        given: Option<&Self>,
        count: usize,
    ) -> Result<AgentConnectConfig, String> {
        let Some(args) = given else {
            return Ok(AgentConnectConfig::default());
        };
        if count == 0 {
            return Err(
                "--store, --default-permission and --allow-callback are for Agent Connect listeners \
                 (agent-connect+http://), and there is none"
                    .to_owned(),
            );
        }
        if args.store.is_some() && count > 1 {
            return Err("one Agent Connect listener at a time can use a --store".to_owned());
        }
        Ok(AgentConnectConfig {
            store: args.store.clone(),
            default_permission: args.default_permission,
            callbacks: args.allow_callback.clone(),
            ..AgentConnectConfig::default()
        })
    }
}

/// Has a remote agent's permission requests answered so when no client can be asked.
pub(super) fn apply_default_permission(default_permission: Permissions, setup: &mut Setup) {
    let config = AgentConnectConfig {
        default_permission,
        ..AgentConnectConfig::default()
    };
    config.apply(setup);
}

/// Reads the path below which Agent Connect is served beside ACP.
pub(super) fn read_path(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['?', '#']);
    match text.starts_with('/') && plain {
        true => Ok(text.to_owned()),
        false => Err("expected a path, such as \"/\" or \"/agent-connect\"".to_owned()),
    }
}
