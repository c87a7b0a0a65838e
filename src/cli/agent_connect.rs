//! Options about Agent Connect.
//!
//! Not here: what they do (see `transport::agent_connect`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::config::ListenerPart;
use super::listeners::read_host;
use crate::agent_connect::run_request::Permissions;
use crate::transport::{AgentConnect, Endpoint, Manner, Web};

/// How Agent Connect is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(super) struct AgentConnectArgs {
    /// Keep the threads and runs of Agent Connect in this file, an SQLite database, so that they
    /// outlive this program
    #[arg(long, value_name = "FILE", env = "ACP_RELAY_STORE")]
    pub(super) store: Option<PathBuf>,
    /// What an agent is answered that asks for permission where no client of Agent Connect can be
    /// asked [default: reject]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) unasked: Option<Unasked>,
    /// Call webhooks of Agent Connect at this host, with a port or at any, although it is in our own
    /// network or its address begins with http://; may be given several times
    #[arg(long, value_name = "HOST", value_parser = read_host)]
    pub(super) allow_callback: Vec<String>,
}

/// What an agent is answered for those who cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Unasked {
    /// It is refused
    #[default]
    Reject,
    /// It is granted, once
    Allow,
}

impl AgentConnectArgs {
    /// These, and what `file` says besides.
    pub(super) fn over(&self, file: &Self) -> Self {
        let callbacks = [self, file].map(|args| &args.allow_callback);
        let callbacks = callbacks.into_iter().find(|hosts| !hosts.is_empty());
        Self {
            store: self.store.clone().or_else(|| file.store.clone()),
            unasked: self.unasked.or(file.unasked),
            allow_callback: callbacks.cloned().unwrap_or_default(),
        }
    }

    /// What the listeners are told, when any of them heeds it.
    pub(super) fn settle(&self, listeners: &[ListenerPart]) -> Result<AgentConnect, String> {
        let count = listeners.iter().filter(|part| heeds(part)).count();
        if *self != Self::default() && count == 0 {
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
            unasked: self.unasked.unwrap_or_default().rule(),
            callbacks: self.allow_callback.clone(),
            ..AgentConnect::default()
        })
    }
}

impl Unasked {
    /// What is done then.
    pub(super) const fn rule(self) -> Permissions {
        match self {
            Self::Reject => Permissions::Reject,
            Self::Allow => Permissions::Allow,
        }
    }
}

/// Whether a listener serves Agent Connect.
pub(super) const fn heeds(part: &ListenerPart) -> bool {
    is_own(&part.endpoint) || part.agent_connect.is_some()
}

/// Whether an endpoint is one of Agent Connect's own.
pub(super) const fn is_own(at: &Endpoint) -> bool {
    matches!(
        at,
        Endpoint::Web(Web {
            manner: Manner::AgentConnect,
            ..
        })
    )
}

/// Reads the path below which Agent Connect is served beside ACP.
pub(super) fn read_path(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['?', '#']);
    match text.starts_with('/') && plain {
        true => Ok(text.to_owned()),
        false => Err("expected a path, such as \"/\" or \"/agent-connect\"".to_owned()),
    }
}
