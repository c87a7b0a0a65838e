//! `--on-disconnect`, also a key of the configuration file.

use clap::{Args, ValueEnum};

/// `--on-disconnect`.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct DisconnectArgs {
    /// What to do with an agent whose client's WebSocket, HTTP connection or Unix socket breaks
    #[arg(id = "on-disconnect", long = "on-disconnect", value_name = "WHAT")]
    #[arg(value_enum, default_value_t)]
    pub(in crate::cli) action: OnDisconnect,
}

/// What to do with an agent whose client's connection broke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnDisconnect {
    /// Stop it
    #[default]
    Terminate,
    /// Keep it for a while; a client that sends session/load or session/resume for one of its
    /// sessions is connected to it again
    Detach,
    /// The same, unless the client's process was killed
    #[value(hide = true)]
    DetachUnlessKilled,
}
