//! Combines the command line with the configuration file into listeners and agents.

use std::process::ExitCode;
use std::sync::Arc;

use super::roster::{Agent, Roster, Station, only};
use super::seats::Seats;
use crate::cli::agents::Program;
use crate::cli::cli::{OnDisconnect, Serve};
use crate::cli::common::{FramingChoice, Ground};
use crate::cli::config::{AgentPart, Config, ListenerPart, Source};
use crate::cli::door::{Door, DoorArgs, Sign};
use crate::cli::record::Studio;
use crate::cli::traces::Traces;
use crate::cli::{cli, endpoints, exit, listeners, remote};
use crate::dialect::Unknown;
use crate::jsonrpc::Limits;
use crate::observe::recorder::Sweeper;
use crate::proxy::{Harbour, Stop};
use crate::transport::{AgentConnect, Endpoint, Front, OpenError, Setup, Tls, Workers};

/// The default listener.
const LISTEN: &str = "ws://127.0.0.1:0";

/// The listeners to open, and the rest of the plan.
pub(super) struct Plan {
    pub(super) listeners: Vec<(ListenerPart, Station)>,
    pub(super) in_force: InForce,
}

/// The part of a plan that the next one takes over from.
pub(super) struct InForce {
    entrance: Entrance,
    pub(super) door: Arc<Door>,
    pub(super) roster: Roster,
    workers: Workers,
    ground: Ground,
    /// Deletes old recordings.
    sweeper: Option<Sweeper>,
}

/// Everything that admission depends on.
#[derive(PartialEq)]
struct Entrance {
    args: DoorArgs,
    listen: Vec<Endpoint>,
    limits: Limits,
}

impl InForce {
    /// The state of one listener.
    fn station(
        &self,
        args: &Serve,
        file: &Config,
        part: &ListenerPart,
        agent_connect: &AgentConnect,
    ) -> Result<Station, Unknown> {
        let framing = args.common.client_framing(part.framing);
        let fixed = framing.and_then(FramingChoice::fixed);
        let roster = self.roster.of(part);
        let spoken = self.ground.tongues.of_client(part.dialect.as_ref())?;
        let setup = Setup {
            tls: part.tls.clone(),
            front: Front {
                agents: roster.named.keys().cloned().collect(),
                default_agent: roster.default.as_ref().and_then(|agent| agent.name.clone()),
                names_only: roster.default.is_none(),
                ..part.front.clone()
            },
            gate: self.door.gate(),
            local_key: Sign::key(),
            workers: self.workers.clone(),
            agent_connect: AgentConnect {
                agents: roster.offers(file, args.agent_connect.unasked),
                beside: part.agent_connect.clone(),
                ..agent_connect.clone()
            },
            framing: fixed.or_else(|| spoken.client_framing()),
            ..self.ground.client.clone()
        };
        Ok(Station {
            setup,
            dialect: part.dialect.clone(),
            door: Arc::clone(&self.door),
            roster,
        })
    }

    /// The worker threads for clients.
    pub(super) fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// The recorder factory, if any agent is recorded.
    pub(super) fn studio(&self) -> Option<&Studio> {
        self.roster
            .all()
            .find_map(|agent| agent.ground.studio.as_deref())
    }

    /// Deletes old recordings by this plan, from now on.
    pub(super) fn sweep(&mut self) {
        self.sweeper = self.ground.sweep();
    }
}

/// Makes a plan. `before` is the active one, whose agents may be waiting for clients. Errors are
/// printed, and the exit code is returned.
pub(super) fn plan(
    args: &Serve,
    file: &Config,
    (stop, traces): (&Stop, Option<&Traces>),
    before: Option<&InForce>,
) -> Result<Plan, ExitCode> {
    let usage = |fault: String| cli::fail(exit::USAGE, &fault);
    let ground = args.common.lay_over(file, stop.clone(), traces.cloned())?;
    let parts = listener_parts(args, file).map_err(usage)?;
    if args.common.client_framing(None).is_some()
        && !parts.iter().any(|part| part.endpoint.is_byte_stream())
    {
        let fault = "--client-framing is for listeners on byte streams (tcp://, unix:), and there \
                     is none";
        return Err(usage(fault.to_owned()));
    }
    let listen: Vec<Endpoint> = parts.iter().map(|part| part.endpoint.clone()).collect();
    let agent_connect = args.agent_connect.over(&file.agent_connect);
    let agent_connect = agent_connect.settle(&parts).map_err(usage)?;
    let entrance = Entrance {
        args: args.door.over(&file.auth),
        listen,
        limits: (*ground.limits).clone(),
    };
    let door = match before.filter(|plan| plan.entrance == entrance) {
        // It counts the connected clients.
        Some(same) => Arc::clone(&same.door),
        None => {
            let before = before.map(|plan| &*plan.door);
            let door = Door::open(&entrance.args, &entrance.listen, &ground.limits, before);
            Arc::new(door.map_err(|error| failed(&error))?)
        }
    };
    let roster = match on_command_line(args, file, &ground)? {
        Some(agent) => Roster {
            default: Some(Arc::new(agent)),
            ..Roster::default()
        },
        None => roster(args, file, &ground, before.map(|plan| &plan.roster))?,
    };
    let workers = before.map_or_else(Workers::new, |plan| plan.workers.clone());
    let in_force = InForce {
        entrance,
        door,
        roster,
        workers,
        ground,
        sweeper: None,
    };
    let stations = parts.into_iter().map(|part| {
        let station = in_force.station(args, file, &part, &agent_connect);
        let station = station.map_err(|unknown| usage(format!("{}: {unknown}", part.endpoint)))?;
        Ok((part, station))
    });
    Ok(Plan {
        listeners: stations.collect::<Result<_, ExitCode>>()?,
        in_force,
    })
}

/// The listeners of the command line, or else those of the file.
pub(in crate::cli) fn listener_parts(
    args: &Serve,
    file: &Config,
) -> Result<Vec<ListenerPart>, String> {
    let tls = Tls {
        cert: args.tls_cert.clone(),
        key: args.tls_key.clone(),
        client_ca: args.door.tls_client_ca.clone(),
        ..Tls::default()
    };
    let front = Front {
        origins: args.allow_origin.clone(),
        hosts: args.allow_host.clone(),
        affinity_cookie: args.affinity_cookie.clone(),
        no_elephant: args.no_elephant,
        ..Front::default()
    };
    if args.listen.is_empty() && !file.listeners.is_empty() {
        if front != Front::default() || tls != Tls::default() {
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
        if let Some(what) = endpoints::clash(listen[..index].iter(), endpoint) {
            return Err(format!("--listen {endpoint}: {what}"));
        }
    }
    endpoints::check_certificate(&listen, &tls)?;
    listeners::check(&listen, &front)?;
    let part = |endpoint| ListenerPart {
        endpoint,
        front: front.clone(),
        tls: tls.clone(),
        framing: None,
        dialect: None,
        agents: None,
        agent_connect: None,
        default_agent: None,
    };
    Ok(listen.into_iter().map(part).collect())
}

/// The agent of the command line, if there is one.
fn on_command_line(
    args: &Serve,
    file: &Config,
    ground: &Ground,
) -> Result<Option<Agent>, ExitCode> {
    let program = args.profile.map(|profile| profile.program());
    let (endpoint, mut program) = match (&args.agent, program) {
        (Some(endpoint), _) => (Some(endpoint.clone()), Program::default()),
        (None, Some(program)) => (Some(Endpoint::Exec(program.argv.clone())), program),
        (None, None) if args.command.is_empty() => return Ok(None),
        (None, None) => (None, Program::default()),
    };
    let usage = |fault: String| cli::fail(exit::USAGE, &fault);
    let endpoint = endpoints::agent(endpoint, args.command.clone(), "serve --agent ENDPOINT");
    let endpoint = endpoint.map_err(usage)?;
    let mut ground = ground.clone();
    ground.agent.launch = std::mem::take(&mut program.launch);
    remote::check(&endpoint, &ground.agent).map_err(usage)?;
    args.common.check_agent(&endpoint).map_err(usage)?;
    let here = endpoints::check_agent_here(&endpoint, &ground.agent, program.install.as_deref());
    here.map_err(|error| failed(&error))?;
    let detach = detaches(args, file, None);
    Ok(Some(Agent {
        name: None,
        endpoint,
        seats: Seats::default(),
        harbour: detach.then(|| Arc::new(Harbour::new(Arc::clone(&ground.limits)))),
        ground,
    }))
}

/// The agents of the file. All errors are printed.
fn roster(
    args: &Serve,
    file: &Config,
    ground: &Ground,
    before: Option<&Roster>,
) -> Result<Roster, ExitCode> {
    if file.agents.is_empty() {
        // Has the remedy.
        let none = endpoints::agent(None, Vec::new(), "serve --agent ENDPOINT");
        let none = none.err().unwrap_or_default();
        let fault = format!("{none}. Or describe agents in a file: `acp-relay config example`");
        return Err(cli::fail(exit::USAGE, &fault));
    }
    if args.common.names_remote() {
        let fault = "options about remote agents apply to --agent; agents of the configuration \
                     file have their own, `acp-relay config example` shows them";
        return Err(cli::fail(exit::USAGE, &fault));
    }
    let mut named = std::collections::BTreeMap::new();
    let mut code = None;
    for (name, part) in &file.agents {
        let old = before.and_then(|roster| roster.named.get(name));
        let agent = args.common.ground_of(ground, file, part);
        let agent = agent
            .map_err(|fault| cli::fail(exit::CONFIG, &format!("agents.{name}: {fault}")))
            .and_then(|ground| of_file(name, part, ground, old, detaches(args, file, Some(part))));
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
    Ok(Roster {
        default: default.or_else(|| only(&named)),
        named,
    })
}

fn of_file(
    name: &str,
    part: &AgentPart,
    ground: Ground,
    old: Option<&Arc<Agent>>,
    detach: bool,
) -> Result<Agent, ExitCode> {
    let (endpoint, install) = match &part.source {
        Source::Program(program) => (
            Endpoint::Exec(program.argv.clone()),
            program.install.as_deref(),
        ),
        Source::Endpoint(endpoint, _) => (endpoint.clone(), None),
    };
    let refuse =
        |code, fault: &dyn std::fmt::Display| cli::fail(code, &format!("agents.{name}: {fault}"));
    remote::check(&endpoint, &ground.agent).map_err(|fault| refuse(exit::CONFIG, &fault))?;
    endpoints::check_agent_here(&endpoint, &ground.agent, install)
        .map_err(|error| refuse(exit::of_open_error(&error), &error))?;
    // Detached conversations are kept.
    let harbour = old.and_then(|old| old.harbour.clone());
    let new = || Arc::new(Harbour::new(Arc::clone(&ground.limits)));
    Ok(Agent {
        name: Some(name.to_owned()),
        endpoint,
        seats: old.map(|old| old.seats.clone()).unwrap_or_default(),
        harbour: detach.then(|| harbour.unwrap_or_else(new)),
        ground,
    })
}

/// Whether an agent waits for clients that reconnect.
fn detaches(args: &Serve, file: &Config, part: Option<&AgentPart>) -> bool {
    let of_agent = part.and_then(|part| part.on_disconnect);
    let said = args.on_disconnect.or(of_agent).or(file.on_disconnect);
    said == Some(OnDisconnect::Detach)
}

fn failed(error: &OpenError) -> ExitCode {
    cli::fail(exit::of_open_error(error), error)
}
