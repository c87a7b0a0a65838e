//! `--on-disconnect`, also a key of the configuration file.

use clap::ValueEnum;

/// What to do with an agent whose client's connection broke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnDisconnect {
    /// Stop it
    #[default]
    Terminate,
    /// Keep it for a while; a client that sends session/load or session/resume for one of its
    /// sessions is connected to it again
    Detach,
}
