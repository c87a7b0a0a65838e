//! What `serve` and `connect` have in common: their options, and the ground both stand on.
//!
//! Not here: the options of one of them (see `cli`).

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::record::{RecordArgs, Studio};
use super::remote::RemoteArgs;
use super::tongues::{Tongues, TonguesArgs};
use super::{cli, exit, limits, shutdown};
use crate::relay::Stop;
use crate::transport::Setup;
use crate::wire::Limits;
use crate::wire::framing::Framing;

/// What all subcommands that carry messages understand.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The framing of clients on byte streams: auto (as their first bytes show), ndjson (one
    /// message a line) or content-length (headers, as language servers have them)
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    #[arg(help_heading = "Framing and limits")]
    client_framing: FramingChoice,
    /// The framing of the agent on byte streams: the same words
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    #[arg(help_heading = "Framing and limits")]
    agent_framing: FramingChoice,
    #[command(flatten)]
    tongues: TonguesArgs,
    #[command(flatten)]
    record: RecordArgs,
    /// Set a limit; the names are in `acp-relay --help`
    #[arg(help_heading = "Framing and limits")]
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = limits::parse)]
    limits: Vec<limits::Setting>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// How a byte stream is cut into messages.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FramingChoice {
    /// As the peer's first bytes show; one message a line until then
    #[default]
    Auto,
    /// One message a line
    Ndjson,
    /// Content-Length headers
    ContentLength,
}

/// What is there before the first link is opened.
pub(super) struct Ground {
    /// Told by signals from now on.
    pub(super) stop: Stop,
    /// The bounds in force.
    pub(super) limits: Arc<Limits>,
    /// What the two sides speak.
    pub(super) tongues: Tongues,
    /// Where conversations are recorded, if they are.
    pub(super) studio: Option<Studio>,
    /// How links to agents are opened.
    pub(super) agent: Setup,
    /// How links to clients are opened.
    pub(super) client: Setup,
}

impl Common {
    /// Nothing is translated unless that is asked for.
    pub(super) fn or_canonical(mut self) -> Self {
        self.tongues.or_canonical();
        self
    }

    /// Lays the ground. Where that fails it is said why, and the exit code returned.
    pub(super) fn lay(self) -> Result<Ground, ExitCode> {
        let stop = Stop::default();
        shutdown::watch(stop.clone()).map_err(|error| {
            let what = format!("cannot listen for signals: {error}");
            cli::fail(exit::SYSTEM, &what)
        })?;
        let mut limits = Limits::default();
        for setting in &self.limits {
            setting.apply(&mut limits);
        }
        let limits = Arc::new(limits);
        let tongues = Tongues::new(self.tongues)?;
        let studio = self.record.open()?;
        let setup = |choice: FramingChoice, spoken| Setup {
            limits: Arc::clone(&limits),
            framing: choice.fixed().or(spoken),
            ..Setup::default()
        };
        let mut agent = setup(self.agent_framing, tongues.agent_framing());
        let remote = self.remote.apply(&mut agent);
        remote.map_err(|fault| cli::fail(exit::USAGE, &fault))?;
        Ok(Ground {
            client: setup(self.client_framing, tongues.client_framing()),
            agent,
            stop,
            limits,
            tongues,
            studio,
        })
    }
}

impl FramingChoice {
    const fn fixed(self) -> Option<Framing> {
        match self {
            Self::Auto => None,
            Self::Ndjson => Some(Framing::Ndjson),
            Self::ContentLength => Some(Framing::ContentLength),
        }
    }
}
