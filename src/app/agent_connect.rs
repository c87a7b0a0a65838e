//! Options of `serve` about Agent Connect.
//!
//! Not here: what they do (see `transport::agent_connect`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::listeners::read_host;
use crate::agent_connect::wish::Permissions;
use crate::transport::{AgentConnect, Endpoint, Manner, Web};

/// How Agent Connect is served.
#[derive(Debug, Args)]
pub(super) struct AgentConnectArgs {
    /// Keep the threads and runs of Agent Connect in this file, an SQLite database, so that they
    /// outlive this program
    #[arg(long, value_name = "FILE", env = "ACP_RELAY_STORE")]
    store: Option<PathBuf>,
    /// What an agent is answered that asks for permission where no client of Agent Connect can be
    /// asked
    #[arg(long, value_enum, default_value_t)]
    unasked: Unasked,
    /// Call webhooks of Agent Connect at this host, with a port or at any, although it is in our own
    /// network or its address begins with http://; may be given several times
    #[arg(long, value_name = "HOST", value_parser = read_host)]
    allow_callback: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Unasked {
    /// It is refused
    #[default]
    Reject,
    /// It is granted, once
    Allow,
}

impl AgentConnectArgs {
    /// What the listeners are told, when any of them heeds it.
    pub(super) fn settle(&self, listen: &[Endpoint]) -> Result<AgentConnect, String> {
        let heeds = |at: &&Endpoint| {
            matches!(
                at,
                Endpoint::Web(Web {
                    manner: Manner::AgentConnect,
                    ..
                })
            )
        };
        let count = listen.iter().filter(heeds).count();
        let given = self.store.is_some()
            || self.unasked != Unasked::default()
            || !self.allow_callback.is_empty();
        if given && count == 0 {
            return Err(
                "--store, --unasked and --allow-callback are for Agent Connect listeners \
                 (agent-connect+http://), and there is none"
                    .to_owned(),
            );
        }
        if self.store.is_some() && count > 1 {
            return Err("one Agent Connect listener at a time can use a --store".to_owned());
        }
        Ok(AgentConnect {
            store: self.store.clone(),
            unasked: match self.unasked {
                Unasked::Reject => Permissions::Reject,
                Unasked::Allow => Permissions::Allow,
            },
            callbacks: self.allow_callback.clone(),
            ..AgentConnect::default()
        })
    }
}
