//! `acp-relay replay agent`: a recording as the agent of the client on our stdio.
//!
//! It runs `connect` with a `transport::replay` endpoint made from the options.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::cli::common::Common;
use crate::cli::connect::Connect;
use crate::cli::login::LoginArgs;
use crate::cli::policy::PolicyArgs;
use crate::cli::ssh_install::SshInstallArgs;
use crate::cli::target::AgentArgument;
use crate::cli::variant::variant_of;
use crate::cli::{connect, endpoints, exit, processes, recordings};
use jsonrpc::{Side, parse_duration};
use transport::Endpoint;
use transport::replay::{MatchRule, ReplayAddress, Speed, Unmatched};

/// Shown below `--help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay replay agent talk.acpr
      As the agent's command in an editor: the recorded agent, at full speed.
  acp-relay replay agent talk.acpr --match order --unmatched nearest
      Every request gets some recorded answer.
  acp-relay replay agent talk.acpr --speed 1 --max-idle 2s
      At the pace of the recording, without its long pauses.
  acp-relay replay agent talk.acpr --fault faults.txt
      faults.txt:  after 12 delay 5s
                   after 20 error -32603 out of memory
      Faults to inject after events 12 and 20: drop, delay, error, close, or garbage, a line that
      is no message and reaches the client unchanged (not with --edge agent).
  acp-relay serve --listen ws://127.0.0.1:9000 --agent 'replay:talk.acpr?match=shape&speed=10'
      The same over a WebSocket, for any number of clients. The settings of the endpoint are
      match, speed, max-idle, unmatched, fault, edge and, as the last one, forward.

A request matches a recorded one if the method is the same and the params are equal (--match
strict), have the same members (shape), or in any case (order). Session ids, request ids and the
working directory are translated; `_meta` and the client's name and version are ignored.";

/// The arguments of `replay agent`.
#[derive(Debug, Args)]
pub(super) struct Agent {
    /// A recording (.acpr, .acpr.zst), or a capture of one JSON line per message
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// When a request matches a recorded one
    #[arg(long = "match", value_name = "HOW", value_parser = variant_of::<MatchRule>(), default_value_t)]
    matching: MatchRule,
    /// Playback speed: 1 is as recorded, 10 ten times as fast, max without pauses
    #[arg(long, value_name = "SPEED", default_value_t)]
    speed: Speed,
    /// The longest pause
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    max_idle: Option<Duration>,
    /// What to do with a request that was not recorded
    #[arg(long, value_name = "WHAT", value_parser = variant_of::<Unmatched>(), default_value_t)]
    unmatched: Unmatched,
    /// The live agent that answers requests that were not recorded
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints::read_agent)]
    forward: Option<Endpoint>,
    /// Faults to inject: lines of `after EVENT drop|delay TIME|error CODE TEXT|close|garbage`
    #[arg(long, value_name = "FILE")]
    fault: Option<PathBuf>,
    /// Which messages to play where a dialect was translated: those the client received, or those
    /// the agent sent
    #[arg(long, value_parser = variant_of::<Side>(), value_name = "EDGE", default_value = "client")]
    edge: Side,
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub(super) fn run(args: Agent) -> Result<ExitCode, ExitCode> {
    let unmatched = match (args.unmatched, &args.forward) {
        (Unmatched::Forward, None) => {
            let fault = "--unmatched forward needs a live agent: --forward ENDPOINT";
            return Err(exit::fail(exit::USAGE, &fault));
        }
        (Unmatched::Nearest, Some(_)) => {
            let fault = "--forward and --unmatched nearest exclude each other; give only one";
            return Err(exit::fail(exit::USAGE, &fault));
        }
        (_, Some(_)) => Unmatched::Forward,
        (unmatched, None) => unmatched,
    };
    let mut endpoint = ReplayAddress::new(recordings::locate(&args.file)?);
    endpoint.rules.matching = args.matching;
    endpoint.rules.speed = args.speed;
    endpoint.rules.max_idle = args.max_idle;
    endpoint.rules.unmatched = unmatched;
    endpoint.forward = args.forward.map(Box::new);
    endpoint.fault = args.fault;
    endpoint.edge = args.edge;
    let connect = Connect {
        admin: None,
        permission: Default::default(),
        policy: PolicyArgs::default(),
        ssh: SshInstallArgs::default(),
        login: LoginArgs::default(),
        agent: Some(AgentArgument::Endpoint(Endpoint::Replay(endpoint))),
        join: false,
        // A recording is played as it is, with its deviations from the schema.
        common: args.common.or_canonical(),
        command: Vec::new(),
    };
    processes::run_and_reap(|| connect::run(connect))
}
