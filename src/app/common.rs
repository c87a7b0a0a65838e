//! What `serve` and `connect` have in common: their options, and the ground both stand on.
//!
//! Not here: the options of one of them (see `cli`).

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::config::{AgentPart, Config, Source};
use super::record::{RecordArgs, Studio};
use super::remote::RemoteArgs;
use super::tongues::{Tongues, TonguesArgs};
use super::{cli, exit, limits, shutdown};
use crate::relay::Stop;
use crate::transport::Setup;
use crate::wire::Limits;
use crate::wire::framing::Framing;

/// What all subcommands that carry messages understand.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    /// The framing of clients on byte streams: auto (as their first bytes show), ndjson (one
    /// message a line) or content-length (headers, as language servers have them) [default: auto]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        help_heading = "Framing and limits"
    )]
    client_framing: Option<FramingChoice>,
    /// The framing of the agent on byte streams: the same words [default: auto]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        help_heading = "Framing and limits"
    )]
    agent_framing: Option<FramingChoice>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FramingChoice {
    /// As the peer's first bytes show; one message a line until then
    Auto,
    /// One message a line
    Ndjson,
    /// Content-Length headers
    ContentLength,
}

/// What is there before the first link is opened.
#[derive(Clone)]
pub(super) struct Ground {
    /// Told by signals from now on.
    pub(super) stop: Stop,
    /// The bounds in force.
    pub(super) limits: Arc<Limits>,
    /// What the two sides speak.
    pub(super) tongues: Tongues,
    /// Where conversations are recorded, if they are.
    pub(super) studio: Option<Arc<Studio>>,
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
    pub(super) fn lay(&self) -> Result<Ground, ExitCode> {
        let stop = Stop::default();
        shutdown::watch(stop.clone()).map_err(|error| shutdown::failed(&error))?;
        self.lay_over(&Config::default(), stop)
    }

    /// Lays the ground over a configuration file. As above.
    pub(super) fn lay_over(&self, file: &Config, stop: Stop) -> Result<Ground, ExitCode> {
        let limits = Arc::new(self.limits_over(&[&file.limits]));
        let tongues = Tongues::new(self.tongues.over(&file.tables, &file.table_folders))?;
        let studio = self.record.over(&file.record).open()?.map(Arc::new);
        let setup = |choice: Option<FramingChoice>, spoken| Setup {
            limits: Arc::clone(&limits),
            framing: choice.and_then(FramingChoice::fixed).or(spoken),
            draining: stop.asked.clone(),
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

    /// The ground of one agent of the file.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub(super) fn ground_of(
        &self,
        ground: &Ground,
        file: &Config,
        part: &AgentPart,
    ) -> Result<Ground, String> {
        let mut setup = Setup {
            limits: Arc::new(self.limits_over(&[&file.limits, &part.limits])),
            ..Setup::default()
        };
        match &part.source {
            Source::Program(program) => setup.launch = program.launch.clone(),
            Source::Endpoint(_, remote) => remote.set_up(&mut setup)?,
        }
        let tongues = ground
            .tongues
            .of_agent(part.dialect.as_ref(), setup.launch.dir.as_deref());
        let tongues = tongues.map_err(|unknown| unknown.to_string())?;
        let framing = self.agent_framing.or(part.framing);
        setup.framing = framing
            .and_then(FramingChoice::fixed)
            .or_else(|| tongues.agent_framing());
        Ok(Ground {
            limits: Arc::clone(&setup.limits),
            agent: setup,
            tongues,
            studio: ground.studio.clone().filter(|_| part.record),
            ..ground.clone()
        })
    }

    /// The framing of clients that were not told of on the command line.
    pub(super) fn client_framing(&self, choice: Option<FramingChoice>) -> Option<FramingChoice> {
        self.client_framing.or(choice)
    }

    /// Whether there are options about an agent on the command line.
    pub(super) fn names_remote(&self) -> bool {
        self.remote != RemoteArgs::default()
    }

    fn limits_over(&self, under: &[&[limits::Setting]]) -> Limits {
        let mut limits = Limits::default();
        for setting in under.iter().copied().flatten().chain(&self.limits) {
            setting.apply(&mut limits);
        }
        limits
    }
}

impl FramingChoice {
    pub(super) const fn fixed(self) -> Option<Framing> {
        match self {
            Self::Auto => None,
            Self::Ndjson => Some(Framing::Ndjson),
            Self::ContentLength => Some(Framing::ContentLength),
        }
    }
}
