//! Makes listeners and agents of the effective configuration.

use std::process::ExitCode;
use std::sync::Arc;

use super::OnDisconnect;
use super::agent_pool::{Agent, AgentPool, ListenerState};
use super::part::Role;
use crate::cli::admission::{AdmissionControl, local_key};
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::common::RelayContext;
use crate::cli::config::{AgentPart, Effective, ListenerPart, Source};
use crate::cli::framing::FramingChoice;
use crate::cli::record::RecorderFactory;
use crate::cli::serve::Serve;
use crate::cli::traces::Traces;
use crate::cli::{endpoints, exit, listeners, login, remote};
use dialect::DialectError;
use proxy::{ConversationStore, StopSignals};
use transport::{Endpoint, HttpOptions, Setup, Workers};

/// The listeners to open.
pub(super) type Listeners = Vec<(Endpoint, ListenerState)>;

/// The part of a plan that the next one takes over from.
pub(super) struct ActivePlan {
    pub(super) admission: Arc<AdmissionControl>,
    pub(super) agents: AgentPool,
    /// The threads for clients.
    pub(super) workers: Workers,
    pub(super) context: RelayContext,
}

impl ActivePlan {
    /// The recorder factory, if any agent is recorded.
    pub(super) fn recorders(&self) -> Option<&RecorderFactory> {
        let mut agents = self.agents.all.iter();
        agents.find_map(|agent| agent.context.recorders.as_deref())
    }

    /// The state of one listener.
    fn listener_state(
        &self,
        part: &ListenerPart,
        agent_connect: &AgentConnectArgs,
    ) -> Result<ListenerState, DialectError> {
        let agents = self.agents.for_listener(part);
        let dialects = self
            .context
            .dialects
            .over(part.dialect.as_ref(), None, None)?;
        let framing = part.framing.and_then(FramingChoice::fixed);
        let mut setup = Setup {
            tls: part.options.tls(),
            http: HttpOptions {
                agents: agents.names().cloned().collect(),
                default_agent: agents
                    .default
                    .as_ref()
                    .and_then(|agent| agent.part.name.clone()),
                names_only: agents.default.is_none(),
                ..part.options.http()
            },
            gate: self.admission.gate(),
            local_key: local_key(),
            workers: self.workers.clone(),
            framing: framing.or_else(|| dialects.client_framing()),
            ..self.context.client.clone()
        };
        let served = agents.all.iter().map(|agent| {
            let own = &agent.part;
            (own.name.clone(), own.description.clone(), own.permission)
        });
        agent_connect.serve(served, &part.agent_connect, &mut setup);
        Ok(ListenerState {
            setup,
            dialect: part.dialect.clone(),
            admission: Arc::clone(&self.admission),
            agents,
        })
    }
}

/// Makes a plan. `before` is the active one, whose agents may be waiting for clients. Errors are
/// printed, and the exit code is returned.
pub(super) fn plan(
    effective: &Effective,
    (stop, traces, role): (&StopSignals, Option<&Traces>, &Role),
    before: Option<&ActivePlan>,
) -> Result<(Listeners, ActivePlan), ExitCode> {
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let Effective { args, config, .. } = effective;
    let mut context = args.common.context_with(stop.clone(), traces.cloned())?;
    // Their clients come back after a reload too.
    let kept = before.and_then(|plan| plan.context.client.links.clone());
    if context.client.links.is_some() && kept.is_some() {
        context.agent.links.clone_from(&kept);
        context.client.links = kept;
    }
    role.set_up(&mut context, before.map(|plan| &plan.context));
    context.client.detects_links = args.exit_when_idle.is_some();
    let parts = &config.listeners;
    let listen: Vec<Endpoint> = parts.iter().map(|part| part.endpoint.clone()).collect();
    if args.common.client_framing.is_some() {
        listeners::check_suits_one("client-framing", &listen).map_err(usage)?;
    }
    let count = ListenerPart::agent_connect_count(parts);
    let agent_connect = AgentConnectArgs::resolve(args.agent_connect.as_ref(), count);
    let agent_connect = agent_connect.map_err(usage)?;
    let admission = AdmissionControl::open(
        &args.admission,
        listen,
        &context.limits,
        before.map(|plan| &plan.admission),
    );
    let active = ActivePlan {
        admission: admission.map_err(|error| exit::open_failed(&error))?,
        agents: agents(effective, &context, role, before.map(|plan| &plan.agents))?,
        workers: before.map_or_else(Workers::new, |plan| plan.workers.clone()),
        context,
    };
    let states = parts.iter().map(|part| {
        let state = active.listener_state(part, &agent_connect);
        let state = state.map_err(|unknown| usage(format!("{}: {unknown}", part.endpoint)))?;
        Ok((part.endpoint.clone(), state))
    });
    let mut states = states.collect::<Result<Listeners, ExitCode>>()?;
    states.extend(role.listener(ListenerState {
        agents: active.agents.clone(),
        dialect: None,
        setup: Setup {
            gate: active.admission.gate(),
            workers: active.workers.clone(),
            ..active.context.client.clone()
        },
        admission: Arc::clone(&active.admission),
    }));
    Ok((states, active))
}

/// All agents. All errors are printed.
fn agents(
    effective: &Effective,
    context: &RelayContext,
    role: &Role,
    before: Option<&AgentPool>,
) -> Result<AgentPool, ExitCode> {
    let Effective { args, config, .. } = effective;
    let elsewhere = role.agents().transpose();
    let elsewhere = elsewhere.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
    if elsewhere.is_some() && !config.agents.is_empty() {
        let fault = "a gateway has no agents of its own; run `acp-relay serve` for them";
        return Err(exit::fail(exit::USAGE, &fault));
    }
    if config.agents.is_empty() && elsewhere.is_none() {
        // Has the remedy.
        let none = endpoints::agent(None, Vec::new(), "serve --agent ENDPOINT");
        let none = none.err().unwrap_or_default();
        let fault = format!("{none}. Or describe agents in a file: `acp-relay config example`");
        return Err(exit::fail(exit::USAGE, &fault));
    }
    let (mut all, mut code) = (Vec::new(), None);
    for part in elsewhere.as_ref().unwrap_or(&config.agents) {
        // Detached conversations are kept, and clients stay counted.
        let old = before.and_then(|pool| pool.all.iter().find(|old| old.part.name == part.name));
        match agent(args, context, part, old) {
            Ok(mut agent) => {
                role.set_up_agent(&mut agent.context.agent);
                all.push(Arc::new(agent));
            }
            Err((failed, fault)) => {
                let name = part.name.as_ref().map(|name| format!("agents.{name}: "));
                let fault = format!("{}{fault}", name.unwrap_or_default());
                let failed = exit::fail(failed, &fault);
                code = code.or(Some(failed));
            }
        }
    }
    match code {
        Some(code) => Err(code),
        None => Ok(AgentPool::new(all, config.default_agent())),
    }
}

/// An agent; `old` is its predecessor before a reload. An error is an exit code and its reason.
fn agent(
    args: &Serve,
    context: &RelayContext,
    part: &AgentPart,
    old: Option<&Arc<Agent>>,
) -> Result<Agent, (u8, String)> {
    let fault = match part.name {
        Some(_) => exit::CONFIG,
        None => exit::USAGE,
    };
    let (endpoint, install) = match part.source() {
        Source::Program(program) => (Endpoint::Exec(program.argv), program.install),
        Source::Endpoint(endpoint, _) => (endpoint.clone(), None),
    };
    if part.name.is_none() {
        let suits = endpoints::check_agent(&endpoint);
        let suits = suits.and_then(|()| args.common.check_agent(&endpoint));
        suits.map_err(|what| (fault, what))?;
    }
    let mut context = context.of_agent(part).map_err(|what| (fault, what))?;
    if !part.env.iter().any(|(name, _)| name == "BROWSER") {
        context.agent.launch.browser = login::agent_browser();
    }
    remote::warn_in_clear(&endpoint, &context.agent);
    let available = endpoints::check_agent_available(&endpoint, &context.agent, install.as_deref());
    available.map_err(|error| (exit::of_open_error(&error), error.to_string()))?;
    let on_disconnect = part.on_disconnect.unwrap_or(args.on_disconnect.action);
    let detached = (on_disconnect != OnDisconnect::Terminate).then(|| {
        let store = old.and_then(|old| old.detached.clone());
        store.unwrap_or_else(|| {
            let store = ConversationStore::new(Arc::clone(&context.limits));
            Arc::new(match on_disconnect {
                OnDisconnect::DetachUnlessKilled => store.ending_killed(),
                _ => store,
            })
        })
    });
    Ok(Agent {
        part: part.clone(),
        endpoint,
        clients: old.map(|old| old.clients.clone()).unwrap_or_default(),
        detached,
        context,
    })
}
