//! Combines the command line with the configuration file into listeners and agents.

use std::process::ExitCode;
use std::sync::Arc;

use super::agent_pool::{Agent, AgentPool, ListenerState, only};
use super::{OnDisconnect, Serve};
use crate::agent_connect::AgentConnectConfig;
use crate::cli::admission::{AdmissionArgs, AdmissionControl, local_key};
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::agents::Program;
use crate::cli::common::RelayContext;
use crate::cli::config::{AgentPart, Config, ListenerPart, Source};
use crate::cli::framing::FramingChoice;
use crate::cli::listeners;
use crate::cli::record::RecorderFactory;
use crate::cli::traces::Traces;
use crate::cli::{endpoints, exit, remote};
use crate::dialect::DialectError;
use crate::jsonrpc::Limits;
use crate::observe::recorder::Pruner;
use crate::proxy::{ConversationStore, StopSignals};
use crate::transport::{Endpoint, HttpOptions, Setup, Workers};

/// The default listener.
const LISTEN: &str = "ws://127.0.0.1:0";

/// The listeners to open, and the rest of the plan.
pub(super) struct Plan {
    pub(super) listeners: Vec<(ListenerPart, ListenerState)>,
    pub(super) active: ActivePlan,
}

/// The part of a plan that the next one takes over from.
pub(super) struct ActivePlan {
    inputs: AdmissionInputs,
    pub(super) admission: Arc<AdmissionControl>,
    pub(super) agents: AgentPool,
    workers: Workers,
    context: RelayContext,
    /// Deletes old recordings.
    sweeper: Option<Pruner>,
}

/// Everything that admission depends on.
#[derive(PartialEq)]
struct AdmissionInputs {
    args: AdmissionArgs,
    listen: Vec<Endpoint>,
    limits: Limits,
}

impl ActivePlan {
    /// The state of one listener.
    fn listener_state(
        &self,
        args: &Serve,
        file: &Config,
        part: &ListenerPart,
        agent_connect: &AgentConnectConfig,
    ) -> Result<ListenerState, DialectError> {
        let framing = args.common.client_framing.or(part.framing);
        let fixed = framing.and_then(FramingChoice::fixed);
        let agents = self.agents.for_listener(part);
        let dialects = self
            .context
            .dialects
            .over(part.dialect.as_ref(), None, None)?;
        let mut setup = Setup {
            tls: part.options.tls(),
            http: HttpOptions {
                agents: agents.named.keys().cloned().collect(),
                default_agent: agents.default.as_ref().and_then(|agent| agent.name.clone()),
                names_only: agents.default.is_none(),
                ..part.options.http()
            },
            gate: self.admission.gate(),
            local_key: local_key(),
            workers: self.workers.clone(),
            framing: fixed.or_else(|| dialects.client_framing()),
            ..self.context.client.clone()
        };
        let agent_connect = AgentConnectConfig {
            agents: agents.offers(file, args.overrides.default_permission),
            path: part.agent_connect.clone(),
            ..agent_connect.clone()
        };
        agent_connect.apply(&mut setup);
        Ok(ListenerState {
            setup,
            dialect: part.dialect.clone(),
            admission: Arc::clone(&self.admission),
            agents,
        })
    }

    /// The worker threads for clients.
    pub(super) fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// The recorder factory, if any agent is recorded.
    pub(super) fn recorders(&self) -> Option<&RecorderFactory> {
        self.agents
            .all()
            .find_map(|agent| agent.context.recorders.as_deref())
    }

    /// Deletes old recordings by this plan, from now on.
    pub(super) fn sweep(&mut self) {
        self.sweeper = self.context.sweep();
    }
}

/// Makes a plan. `before` is the active one, whose agents may be waiting for clients. Errors are
/// printed, and the exit code is returned.
pub(super) fn plan(
    args: &Serve,
    file: &Config,
    (stop, traces): (&StopSignals, Option<&Traces>),
    before: Option<&ActivePlan>,
) -> Result<Plan, ExitCode> {
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let context = args
        .common
        .context_over(file, stop.clone(), traces.cloned())?;
    let parts = listener_parts(args, file).map_err(usage)?;
    let listen: Vec<Endpoint> = parts.iter().map(|part| part.endpoint.clone()).collect();
    if args.common.client_framing.is_some() {
        listeners::check_suits_one("client-framing", &listen).map_err(usage)?;
    }
    let agent_connect = AgentConnectArgs::resolve(
        args.agent_connect.as_ref(),
        ListenerPart::agent_connect_count(&parts),
    )
    .map_err(usage)?;
    let inputs = AdmissionInputs {
        args: args.admission.clone(),
        listen,
        limits: (*context.limits).clone(),
    };
    let admission = match before.filter(|plan| plan.inputs == inputs) {
        // It counts the connected clients.
        Some(same) => Arc::clone(&same.admission),
        None => {
            let before = before.map(|plan| &*plan.admission);
            let admission =
                AdmissionControl::open(&inputs.args, &inputs.listen, &context.limits, before);
            Arc::new(admission.map_err(|error| exit::open_failed(&error))?)
        }
    };
    let agents = match command_line_agent(args, &context)? {
        Some(agent) => AgentPool {
            default: Some(Arc::new(agent)),
            ..AgentPool::default()
        },
        None => agent_pool(args, file, &context, before.map(|plan| &plan.agents))?,
    };
    let workers = before.map_or_else(Workers::new, |plan| plan.workers.clone());
    let active = ActivePlan {
        inputs,
        admission,
        agents,
        workers,
        context,
        sweeper: None,
    };
    let states = parts.into_iter().map(|part| {
        let state = active.listener_state(args, file, &part, &agent_connect);
        let state = state.map_err(|unknown| usage(format!("{}: {unknown}", part.endpoint)))?;
        Ok((part, state))
    });
    Ok(Plan {
        listeners: states.collect::<Result<_, ExitCode>>()?,
        active,
    })
}

/// The listeners of the command line, or else those of the file.
pub(in crate::cli) fn listener_parts(
    args: &Serve,
    file: &Config,
) -> Result<Vec<ListenerPart>, String> {
    if args.listen.is_empty() && !file.listeners.is_empty() {
        if args.listeners.is_some() {
            return Err(
                "options of listeners apply to those of --listen, and the listeners are those \
                        of the configuration file"
                    .to_owned(),
            );
        }
        return Ok(file.listeners.clone());
    }
    let listen = match &args.listen[..] {
        [] => vec![LISTEN.parse().expect("the usual listener is an endpoint")],
        given => given.to_vec(),
    };
    for (index, endpoint) in listen.iter().enumerate() {
        endpoints::check_listener(endpoint)?;
        if let Some(what) = endpoints::conflict(listen[..index].iter(), endpoint) {
            return Err(format!("--listen {endpoint}: {what}"));
        }
    }
    let options = args.listeners.clone().unwrap_or_default();
    options.check(&listen)?;
    let part = |endpoint| ListenerPart::new(endpoint, options.clone());
    Ok(listen.into_iter().map(part).collect())
}

/// The agent of the command line, if there is one.
fn command_line_agent(args: &Serve, context: &RelayContext) -> Result<Option<Agent>, ExitCode> {
    let program = args.profile.map(|profile| profile.program());
    let (endpoint, program) = match (&args.agent, program) {
        (Some(endpoint), _) => (Some(endpoint.clone()), Program::default()),
        (None, Some(program)) => (Some(Endpoint::Exec(program.argv.clone())), program),
        (None, None) if args.command.is_empty() => return Ok(None),
        (None, None) => (None, Program::default()),
    };
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let endpoint = endpoints::agent(endpoint, args.command.clone(), "serve --agent ENDPOINT");
    let endpoint = endpoint.map_err(usage)?;
    args.common.check_agent(&endpoint).map_err(usage)?;
    let mut context = context.clone();
    context.agent.launch = program.launch;
    let source = (endpoint, program.install);
    new_agent(None, source, context, None, detaches(args, None)).map(Some)
}

/// The agents of the file. All errors are printed.
fn agent_pool(
    args: &Serve,
    file: &Config,
    context: &RelayContext,
    before: Option<&AgentPool>,
) -> Result<AgentPool, ExitCode> {
    if file.agents.is_empty() {
        // Has the remedy.
        let none = endpoints::agent(None, Vec::new(), "serve --agent ENDPOINT");
        let none = none.err().unwrap_or_default();
        let fault = format!("{none}. Or describe agents in a file: `acp-relay config example`");
        return Err(exit::fail(exit::USAGE, &fault));
    }
    if args.common.remote.is_some() {
        let fault = "options about remote agents apply to --agent; agents of the configuration \
                     file have their own, `acp-relay config example` shows them";
        return Err(exit::fail(exit::USAGE, &fault));
    }
    let mut named = std::collections::BTreeMap::new();
    let mut code = None;
    for (name, part) in &file.agents {
        let old = before.and_then(|agents| agents.named.get(name));
        let agent = args.common.agent_context(context, file, part);
        let agent = agent
            .map_err(|fault| exit::fail(exit::CONFIG, &format!("agents.{name}: {fault}")))
            .and_then(|context| {
                let source = match part.source() {
                    Source::Program(program) => (Endpoint::Exec(program.argv), program.install),
                    Source::Endpoint(endpoint, _) => (endpoint.clone(), None),
                };
                new_agent(Some(name), source, context, old, detaches(args, Some(part)))
            });
        match agent {
            Ok(agent) => drop(named.insert(name.clone(), Arc::new(agent))),
            Err(failed) => code = code.or(Some(failed)),
        }
    }
    if let Some(code) = code {
        return Err(code);
    }
    let default = file
        .default_agent
        .as_ref()
        .and_then(|name| named.get(name).cloned());
    Ok(AgentPool {
        default: default.or_else(|| only(&named)),
        named,
    })
}

/// An agent of the file, or that of the command line, which has no name. `source` is where it is and
/// how to install it, and `old` is its predecessor before a reload.
fn new_agent(
    name: Option<&String>,
    (endpoint, install): (Endpoint, Option<String>),
    context: RelayContext,
    old: Option<&Arc<Agent>>,
    detach: bool,
) -> Result<Agent, ExitCode> {
    let refuse = |code, fault: &dyn std::fmt::Display| match name {
        Some(name) => exit::fail(code, &format!("agents.{name}: {fault}")),
        None => exit::fail(code, fault),
    };
    remote::warn_in_clear(&endpoint, &context.agent);
    endpoints::check_agent_available(&endpoint, &context.agent, install.as_deref())
        .map_err(|error| refuse(exit::of_open_error(&error), &error))?;
    // Detached conversations are kept.
    let store = old.and_then(|old| old.detached.clone());
    let new = || Arc::new(ConversationStore::new(Arc::clone(&context.limits)));
    Ok(Agent {
        name: name.cloned(),
        endpoint,
        clients: old.map(|old| old.clients.clone()).unwrap_or_default(),
        detached: detach.then(|| store.unwrap_or_else(new)),
        context,
    })
}

/// Whether an agent waits for clients that reconnect.
fn detaches(args: &Serve, part: Option<&AgentPart>) -> bool {
    let of_agent = part.and_then(|part| part.on_disconnect);
    let choice = args.overrides.on_disconnect.or(of_agent);
    choice.unwrap_or(args.on_disconnect.action) == OnDisconnect::Detach
}
