//! The command line of `acp-relay try`.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::report::{Observations, Report, Watcher};
use super::screen::Screen;
use super::session::{Permission, Session, introduction};
use crate::cli::common::Common;
use crate::cli::connect::Prepared;
use crate::cli::conversation::{connect_agent, run_conversation};
use crate::cli::login::LoginArgs;
use crate::cli::policy::PolicyArgs;
use crate::cli::rpc_client::{Closed, Failure, RpcClient};
use crate::cli::ssh_install::SshInstallArgs;
use crate::cli::{console, exit, framing, runtime, shutdown, stderr, target};
use jsonrpc::framing::Framing;
use observe::Observers;
use proxy::{End, StopSignals};
use transport::{Link, Peer, PeerKind, Restarts, Setup, stream};

/// Examples of `try`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay try goose \"What is in this folder?\"
      A well-known agent, or one of your configuration file.
  acp-relay try wss://agents.example/agents/goose/acp --bearer-file alice.token
      Whether a remote relay lets you in, and what its agent can do.
  acp-relay try \"Say hello\" -- my-agent --acp
      An agent by its command; the prompt comes before `--`.

Exit codes: 0 the turn ended (end_turn), or there was no prompt; 1 an error, or the turn reached a
limit; 2 the agent refused; 3 cancelled; 69 the agent is not reachable; 77 the agent or its relay
does not let you in; others as `acp-relay --help` lists them.";

/// Bytes that wait between the client and the relay.
const PIPE: usize = 64 << 10;
/// Spans of 15 s in which an agent may write nothing before it answers `initialize`.
const MAX_SILENT_SPANS: usize = 8;

/// Arguments of `try`.
#[derive(Debug, Args)]
#[command(override_usage = "acp-relay try [OPTIONS] <AGENT> [PROMPT]\n       \
                            acp-relay try [OPTIONS] [PROMPT] -- <COMMAND>...")]
pub(in crate::cli) struct Try {
    /// The agent, by its endpoint or its name, as `connect` takes it
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// What to ask it; `-` reads it from stdin. Without a prompt, the agent is only introduced, and
    /// at a terminal you are asked for prompts
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// The session's working directory, as a path on the agent's machine [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Log in by this method of the agent before the session is opened, by its id
    #[arg(long, value_name = "METHOD")]
    authenticate: Option<String>,
    /// How to answer the agent's permission requests [default: ask at a terminal, otherwise reject]
    #[arg(long, value_enum, value_name = "HOW")]
    permission: Option<Permission>,
    /// Print one JSON object per line, for a program: an `event` and its members
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ssh: SshInstallArgs,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    common: Common,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    command: Vec<OsString>,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: Try) -> ExitCode {
    runtime::drive(Builder::new_current_thread(), async {
        Box::pin(try_agent(args)).await.unwrap_or_else(|code| code)
    })
}

/// Runs the client and the relay's conversation. Errors are printed, and the exit code is returned.
async fn try_agent(args: Try) -> Result<ExitCode, ExitCode> {
    let usage = |fault: &str| exit::fail(exit::USAGE, &fault);
    let (agent, prompt) = match (args.command.is_empty(), args.agent, args.prompt) {
        (false, _, Some(_)) => {
            return Err(usage(
                "give the agent by its command or by AGENT, not by both",
            ));
        }
        (false, prompt, None) => (None, prompt),
        (true, agent, prompt) => (agent, prompt),
    };
    let agent = agent.as_deref().map(target::read).transpose();
    let agent = agent.map_err(|fault| usage(&fault))?;
    if agent.is_none() && args.command.is_empty() {
        target::check_record(args.common.record_folder())?;
    }
    let target = target::find(agent, args.command, "try AGENT")?;
    let at_terminal = console::input_is_terminal() && console::size().is_some() && !args.json;
    let prompt = match prompt.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let read = console::input().read_to_string(&mut text);
            read.map_err(|fault| exit::fail(exit::NO_INPUT, &format!("stdin: {fault}")))?;
            Some(text)
        }
        _ => prompt,
    };
    let permission = args.permission.unwrap_or(match at_terminal {
        true => Permission::Ask,
        false => Permission::Reject,
    });
    let cwd = args.cwd.or_else(|| std::env::current_dir().ok());
    let cwd = cwd.unwrap_or_default();
    // The first signal cancels a turn; the second one, or one between turns, stops the relay.
    let asked = StopSignals::default();
    shutdown::watch(asked.clone(), None)?;
    let stop = StopSignals {
        requested: asked.forced.clone(),
        ..StopSignals::default()
    };
    let mut prepared = Prepared::new(target, args.common, stop).await?;
    prepared.context.restarts = Restarts::Handshake;
    prepared.context.agent.ssh_install = args.ssh.install(!args.json);
    let silence = Arc::new(Notify::new());
    prepared.context.agent.silence = Some(Arc::clone(&silence));
    let prepared = Arc::new(prepared);
    let reached = asked.requested.run_until_cancelled(prepared.reach()).await;
    let link = match reached {
        None => {
            return Err(exit::fail(
                exit::STOPPED,
                &"stopped before the agent was reached",
            ));
        }
        Some(Err(why)) => {
            let code = match why.code() {
                exit::NO_HOST => exit::UNAVAILABLE,
                code => code,
            };
            return Err(exit::fail(code, &why));
        }
        Some(Ok(mut link)) => {
            prepared.log_in(args.login, false, &mut link);
            link
        }
    };
    let context = &prepared.context;
    let _sweeper = context.sweep();
    let mut conversation = Conversation::start(link, &prepared);
    let mut screen = Screen::new(args.json);
    let mut session = Session::new(&mut screen, &asked.requested, permission, args.authenticate);
    let tried_headers = Cell::new(false);
    let about = session.call(&mut conversation.client, "initialize", introduction());
    let answered = tokio::select! {
        about = about => about.map(|about| (about, None)),
        second = try_headers(&prepared, &silence, &tried_headers) => second,
    };
    let hint = match &answered {
        Err(_) if tried_headers.get() => format!(". {}", framing::HINT),
        _ => String::new(),
    };
    let outcome = match answered {
        Ok((about, second)) => {
            // The first process ends here, if there is a second one.
            conversation = second.unwrap_or(conversation);
            let seen = {
                let seen = conversation.observations.lock();
                (seen.dialect.clone(), seen.framing)
            };
            let client = conversation.client;
            let run = session.run(client, &about, seen, &cwd, prompt, at_terminal);
            run.await
        }
        Err(failure) => {
            drop(conversation.client);
            Err(failure)
        }
    };
    let end = conversation.relay.await;
    let end = end.map_err(|fault| exit::fail(exit::SYSTEM, &fault))?;
    if let Some(traces) = &context.traces {
        traces.finish();
    }
    screen.report(&Report {
        counts: &end.counts,
        seen: &conversation.observations.lock(),
    });
    let of_end = exit::of_end(&end, &context.stop, context.is_strict(), None);
    let code = match outcome {
        // The relay knows why.
        Err(failure) if failure.is::<Closed>() || end.refused.is_some() => {
            screen.fail(&format!("{failure}{hint}"));
            match of_end == ExitCode::SUCCESS {
                true => ExitCode::from(exit::VIOLATIONS),
                false => of_end,
            }
        }
        Err(failure) => {
            screen.fail(&format!("{failure}{hint}"));
            ExitCode::from(exit::VIOLATIONS)
        }
        Ok(outcome) => ExitCode::from(outcome.code()),
    };
    Ok(screen.done(code))
}

/// A conversation of this client with an agent that was started.
struct Conversation {
    client: RpcClient<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    relay: AbortOnDropHandle<End>,
    observations: Arc<Mutex<Observations>>,
}

impl Conversation {
    fn start(link: Link, prepared: &Arc<Prepared>) -> Self {
        let policy = prepared.policy(PolicyArgs::default(), &link);
        let (ours, relays) = duplex(PIPE);
        let observations = Arc::new(Mutex::new(Observations::default()));
        let observers = Observers::default().with(Watcher::new(Arc::clone(&observations)));
        let client = client_link(relays, prepared);
        let prepared = Arc::clone(prepared);
        let relay = tokio::spawn(async move {
            run_conversation(client, link, policy, &prepared.context, None, observers).await
        });
        let (from, to) = split(ours);
        // The client's end of the pipe is dropped with it, which ends the conversation.
        Self {
            client: RpcClient::new(from, to),
            relay: AbortOnDropHandle::new(relay),
            observations,
        }
    }
}

/// Starts an agent that writes nothing a second time, beside the first process, which may only be
/// slow, and sends it Content-Length headers: they are what some agents wait for. Ready with the
/// answer of the second process, or when the first one has been silent for too long.
async fn try_headers(
    prepared: &Arc<Prepared>,
    silence: &Notify,
    tried: &Cell<bool>,
) -> Result<(Value, Option<Conversation>), Failure> {
    silence.notified().await;
    tried.set(true);
    stderr::print(
        "acp-relay: the agent has written nothing for 15 s; it is started a second time, with \
         Content-Length headers",
    );
    let answered = async {
        let (to, context) = (&prepared.target.endpoint, &prepared.context);
        let setup = Setup {
            framing: Some(Framing::ContentLength),
            ..context.agent.clone()
        };
        let link = connect_agent(to, &setup, context.restarts, &context.stop)
            .await
            .ok()?;
        let mut second = Conversation::start(link, prepared);
        let (client, mut no_methods) = (&mut second.client, ());
        let request = client.request("initialize", introduction(), &mut no_methods, None);
        let about = request.await.ok()?;
        second.observations.lock().framing = Some("content-length");
        Some((about, Some(second)))
    };
    let unanswered = async {
        for _ in 1..MAX_SILENT_SPANS {
            silence.notified().await;
        }
    };
    tokio::select! {
        Some(answered) = answered => Ok(answered),
        () = unanswered => Err("initialize: no answer, and the agent has written nothing for two minutes".into()),
    }
}

/// The relay's end of the pipe to the client, as a link. The client speaks canonical ACP.
fn client_link(pipe: DuplexStream, prepared: &Prepared) -> Link {
    let (from, to) = split(pipe);
    let max = prepared.context.limits.frame_from_child;
    let (rx, tx) = stream::halves(from, to, max, &prepared.context.client);
    let peer = Peer {
        kind: PeerKind::Internal,
        ..Peer::remote("acp-relay try".to_owned(), true)
    };
    Link::new(peer, rx, tx, ())
}
