//! What `serve` and `connect` share: their common options, and the context that both run in.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::config::{AgentPart, Source};
use super::dialect::Tables;
use super::dialect_options::{DialectArgs, Dialects};
use super::framing::FramingChoice;
use super::link_options::LinkArgs;
use super::record::{RecordArgs, RecorderFactory};
use super::remote::{RemoteArgs, check_suits};
use super::traces::{Traces, TracesArgs};
use super::{endpoints, exit, limits};
use jsonrpc::Limits;
use observe::recorder::Pruner;
use proxy::StopSignals;
use transport::{Endpoint, Restarts, Setup};

/// Options of all subcommands that forward messages. A group of options of which none is given, not
/// even with its default value, is `None`.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    /// The framing of clients on byte streams: auto (by their first bytes), ndjson (one message per
    /// line) or content-length (headers, as in language servers) [default: auto]
    #[arg(long, value_enum, value_name = "FRAMING")]
    #[arg(hide_possible_values = true, help_heading = "Framing and limits")]
    pub(super) client_framing: Option<FramingChoice>,
    /// The framing of the agent on byte streams: the same values [default: auto]
    #[arg(long, value_enum, value_name = "FRAMING")]
    #[arg(hide_possible_values = true, help_heading = "Framing and limits")]
    pub(super) agent_framing: Option<FramingChoice>,
    #[command(flatten)]
    pub(super) dialects: DialectArgs,
    #[command(flatten)]
    record: Option<RecordArgs>,
    /// Set a limit; the names are in `acp-relay --help`
    #[arg(help_heading = "Framing and limits")]
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = limits::parse)]
    pub(super) limits: Vec<limits::Setting>,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    pub(super) remote: Option<RemoteArgs>,
    #[command(flatten)]
    traces: Option<TracesArgs>,
}

/// What conversations need before the first link is opened.
#[derive(Clone)]
pub(super) struct RelayContext {
    /// Cancelled by signals.
    pub(super) stop: StopSignals,
    /// The effective limits.
    pub(super) limits: Arc<Limits>,
    /// The dialects of the two sides.
    pub(super) dialects: Dialects,
    /// The agent's name in the names of recordings.
    pub(super) label: String,
    /// Records conversations, if they are recorded.
    pub(super) recorders: Option<Arc<RecorderFactory>>,
    /// Sends their traces, if there are any.
    pub(super) traces: Option<Traces>,
    /// When a further link to an agent may take the place of one.
    pub(super) restarts: Restarts,
    /// How links to agents are opened.
    pub(super) agent: Setup,
    /// How links to clients are opened.
    pub(super) client: Setup,
}

impl RelayContext {
    /// Whether a conversation that cannot be recorded must end.
    pub(super) fn is_strict(&self) -> bool {
        let recorders = self.recorders.as_ref();
        recorders.is_some_and(|recorders| recorders.is_strict())
    }

    /// Starts to delete old recordings, see `RecorderFactory::sweep`.
    pub(super) fn sweep(&self) -> Option<Pruner> {
        self.recorders.as_ref()?.sweep()
    }

    /// The context of one agent of `serve`.
    ///
    /// # Errors
    /// What is wrong with its configuration, as text for the user.
    pub(super) fn of_agent(&self, part: &AgentPart) -> Result<Self, String> {
        let mut setup = match part.name {
            // The options of remote agents are for that of the command line.
            None => self.agent.clone(),
            Some(_) => Setup {
                links: self.agent.links.clone(),
                draining: self.stop.requested.clone(),
                ..endpoints::setup()
            },
        };
        setup.limits = limits::apply(&self.limits, &part.limits);
        part.set_up(&mut setup)?;
        let label = match part.source() {
            Source::Program(program) => endpoints::label(&Endpoint::Exec(program.argv)),
            Source::Endpoint(endpoint, _) => endpoints::label(endpoint),
        };
        part.permission.apply(&mut setup);
        let folder = setup.launch.dir.as_deref();
        let dialects = self.dialects.over(None, part.dialect.as_ref(), folder);
        let dialects = dialects.map_err(|unknown| unknown.to_string())?;
        let framing = part.framing.and_then(FramingChoice::fixed);
        setup.framing = framing.or_else(|| dialects.agent_framing());
        Ok(Self {
            limits: Arc::clone(&setup.limits),
            agent: setup,
            label: part.name.clone().unwrap_or(label),
            dialects,
            recorders: self.recorders.clone().filter(|_| part.record),
            ..self.clone()
        })
    }
}

impl Common {
    /// Disables translation on each side whose dialect is not given.
    pub(super) fn or_canonical(mut self) -> Self {
        self.dialects.or_canonical();
        self
    }

    /// Uses these mapping tables, unless the command line has some.
    pub(super) fn or_tables(mut self, tables: Tables) -> Self {
        self.dialects.or_tables(tables);
        self
    }

    /// Starts tracing if it is configured: once per process. Errors are printed, and the exit
    /// code is returned.
    pub(super) fn start_traces(&self) -> Result<Option<Traces>, ExitCode> {
        match Traces::start(&self.traces.clone().unwrap_or_default()) {
            // The OTEL_* variables may be meant for other programs.
            Err(fault) if self.traces.is_none() => {
                tracing::warn!("no traces are sent: {fault}");
                Ok(None)
            }
            started => started.map_err(|fault| exit::fail(exit::USAGE, &fault)),
        }
    }

    /// Builds the context. Errors are printed, and the exit code is returned.
    pub(super) fn context_with(
        &self,
        stop: StopSignals,
        traces: Option<Traces>,
    ) -> Result<RelayContext, ExitCode> {
        let limits = limits::apply(&Limits::default(), &self.limits);
        let dialects = Dialects::new(self.dialects.clone())?;
        let recorders = self.record.clone().map(RecordArgs::open).transpose()?;
        let links = self.link.links();
        let setup = |choice: Option<FramingChoice>, spoken| Setup {
            limits: Arc::clone(&limits),
            links: links.clone(),
            framing: choice.and_then(FramingChoice::fixed).or(spoken),
            draining: stop.requested.clone(),
            ..endpoints::setup()
        };
        let mut agent = setup(self.agent_framing, dialects.agent_framing());
        let remote = self.remote.clone().unwrap_or_default().apply(&mut agent);
        remote.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
        Ok(RelayContext {
            client: setup(self.client_framing, dialects.client_framing()),
            agent,
            restarts: self.link.restarts(),
            label: String::new(),
            stop,
            limits,
            dialects,
            recorders: recorders.map(Arc::new),
            traces,
        })
    }

    /// The folder of recordings, as it is given.
    pub(super) fn record_folder(&self) -> Option<&Path> {
        self.record.as_ref()?.folder.as_deref()
    }

    /// Rejects options that do not apply to this agent.
    pub(super) fn check_agent(&self, agent: &Endpoint) -> Result<(), String> {
        if self.agent_framing.is_some() {
            check_suits("agent-framing", agent)?;
        }
        let remote = self.remote.as_ref();
        remote.map_or(Ok(()), |remote| remote.check(agent))
    }
}
