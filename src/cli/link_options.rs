//! `--no-link` and `--agent-restart`, also keys of the configuration file.

use std::sync::Arc;

use clap::{Args, ValueEnum};

use transport::{Links, Restarts};

/// The options of what a conversation outlives.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LinkArgs {
    /// End a conversation with another relay when their connection breaks, in place of connecting
    /// again
    #[arg(long, id = "no-link", help_heading = "Framing and limits")]
    no_link: bool,
    /// Start an agent that has died again, with its sessions, when the client asks for something
    /// [default: on-demand]
    #[arg(long, id = "agent-restart", value_name = "WHEN", value_enum)]
    #[arg(help_heading = "Framing and limits")]
    agent_restart: Option<AgentRestart>,
}

/// When an agent that has died is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum AgentRestart {
    /// When its client asks for something, if it can load its sessions
    #[default]
    OnDemand,
    /// Not at all: the conversation ends
    Never,
}

impl LinkArgs {
    /// The resumable links of a relay, unless there are to be none.
    pub(super) fn links(&self) -> Option<Arc<Links>> {
        (!self.no_link).then(Arc::default)
    }

    /// When a further link to an agent may take the place of one.
    pub(super) fn restarts(&self) -> Restarts {
        match self.agent_restart.unwrap_or_default() {
            AgentRestart::OnDemand => Restarts::Always,
            AgentRestart::Never => Restarts::Handshake,
        }
    }
}
