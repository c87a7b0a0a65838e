//! `ssh://`: an agent on another machine, over the stdin and stdout of an ssh process.
//!
//! The program `ssh` connects with the user's own configuration, keys and known hosts, and starts
//! `acp-relay over-ssh` there. That prints a line once it is connected to the relay of its machine;
//! what a shell profile has printed before is dropped. From then on both streams carry messages: of a
//! resumable link, if that was asked for and the line is [`LINK_READY`].
//!
//! # Why
//!
//! **A line says that the conversation begins.** Without it, the exit of ssh would be the exit of an
//! agent, and a failed login the end of a conversation. With it, every reason why there is no agent
//! is known before the first message is sent.
//!
//! **`ControlMaster=no`.** An ssh process that opens a shared connection stays for others that use
//! it, but no process of an agent outlives its conversation. A shared connection that exists is used.
//!
//! **`SSH_ASKPASS_REQUIRE=force`**, unless it is set: in a process group of its own, ssh would be
//! stopped for ever when it asks a question at the editor's terminal. A graphical prompt works.

use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::process::{self, Child, Process};
use super::published::IS_PUBLISHED;
use super::resumable::{self, Contact, ContactSource, carrier_limits};
use super::{
    Endpoint, Exit, FrameStream, Launch, Link, LinkError, LinkGuard, OpenError, OpenErrorKind,
    Peer, Setup, SshEndpoint, forward, stream,
};
use jsonrpc::framing::{Decoded, Framing};

/// The line by which the other machine says that the messages begin.
pub const READY: &str = "acp-relay over-ssh 1";
/// The same, if they are those of a resumable link.
pub const LINK_READY: &str = "acp-relay over-ssh 2";
/// The variable there that asks for a link.
pub const LINK_VARIABLE: &str = "ACP_RELAY_OVER_SSH_LINK";

/// Time for logging in and starting the relay there, a prompt included.
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);
/// Most bytes that are printed there before [`READY`].
const MAX_BANNER: usize = 64 << 10;
/// The command line there, but for what follows. Every login shell takes it for the same words.
const COMMAND: &str = "exec sh -c 'PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:\
                       /opt/homebrew/bin; export PATH";
const INSTALL: &str = match IS_PUBLISHED {
    true => "`uv tool install acp-relay`, `npm i -g acp-relay` or `cargo install acp-relay`",
    false => "a package made by `.release/build`, or `cargo install --locked --path .` in a clone",
};
/// A dead network is noticed also while much is being sent, which ssh alone can tell.
const ALIVE: [&str; 4] = [
    "-o",
    "ServerAliveInterval=10",
    "-o",
    "ServerAliveCountMax=2",
];
/// What ssh prints when a connection is lost.
const LOST: [&str; 4] = [
    "Connection reset by",
    "kex_exchange_identification",
    "closed by remote host",
    "Broken pipe",
];
const ASKPASS: &str = "SSH_ASKPASS_REQUIRE";

/// The ssh process, which both halves of the link and its guard use.
#[derive(Clone)]
struct Shared(Arc<Mutex<Process>>);

/// What the agent sends. An end is that of the ssh process, which knows whether it was intended.
struct SshStream<R> {
    rx: R,
    process: Shared,
}

/// Checks that `ssh` can be started.
pub(super) fn check(to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
    let found = process::find_program(&["ssh".into()], &launch(setup));
    found.map(drop).map_err(|error| not_started(to, error))
}

/// Connects to the agent; by a resumable link if the other machine has one.
pub(crate) async fn connect(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let setup = &Setup {
        limits: setup.limits.of_own_user(),
        ..setup.clone()
    };
    let (link, is_resumable) = dial(to, at, setup, false).await?;
    let Some(links) = setup.links.as_ref().filter(|_| is_resumable) else {
        return Ok(link);
    };
    let contact = Contact::of(to, setup);
    let (to, at, own) = (to.clone(), at.clone(), setup.clone());
    let again: resumable::Dial = Arc::new(move || {
        let (to, at, setup) = (to.clone(), at.clone(), own.clone());
        Box::pin(async move {
            let (link, is_resumable) = dial(&to, &at, &setup, false).await?;
            Ok(is_resumable.then_some(link))
        })
    });
    let contact: ContactSource = Box::new(move || contact.clone());
    let contact = setup.serves_parent.then_some(contact);
    resumable::connect(link, again, contact, links, &setup.limits).await
}

/// Opens a connection for a link of an earlier process, without a question to the user.
pub(crate) async fn connect_carrier(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (link, is_resumable) = dial(to, at, setup, true).await?;
    let refused = || OpenError::new(OpenErrorKind::Protocol, to, "it keeps no links");
    is_resumable.then_some(link).ok_or_else(refused)
}

/// Starts ssh, which asks the user nothing if `is_batch`; the result also says whether the other machine
/// speaks the protocol of links.
async fn dial(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
    is_batch: bool,
) -> Result<(Link, bool), OpenError> {
    let command = command(at, setup.links.is_some(), is_batch);
    let child = process::spawn(&command, &launch(setup), &setup.limits).await;
    let Child {
        stdin,
        mut stdout,
        mut hold,
        ..
    } = child.map_err(|error| not_started(to, error))?;
    let opened = timeout(OPEN_TIMEOUT, open(to, at, &mut stdout, &mut hold));
    let is_resumable = opened.await.unwrap_or_else(|_| {
        let what = format!(
            "ssh has not connected within {OPEN_TIMEOUT:?}; {}",
            advice(at)
        );
        Err(OpenError::new(OpenErrorKind::Unavailable, to, what))
    })?;
    let (limits, framing) = match is_resumable {
        true => (carrier_limits(&setup.limits), Some(Framing::ContentLength)),
        false => (Arc::clone(&setup.limits), setup.framing),
    };
    let setup = Setup {
        limits,
        framing,
        ..setup.clone()
    };
    let (rx, tx) = stream::halves(stdout, stdin, setup.limits.frame_from_network, &setup);
    let process = Shared(Arc::new(Mutex::new(hold)));
    let rx = SshStream {
        rx,
        process: process.clone(),
    };
    let peer = Peer::remote(to.to_string(), false);
    Ok((Link::new(peer, rx, tx, process), is_resumable))
}

/// The arguments of ssh.
fn command(at: &SshEndpoint, offers_link: bool, is_batch: bool) -> Vec<OsString> {
    let mut argv: Vec<String> = ["ssh", "-T", "-o", "ControlMaster=no"]
        .map(Into::into)
        .into();
    argv.extend(ALIVE.map(Into::into));
    if is_batch {
        argv.extend(["-o", "BatchMode=yes"].map(Into::into));
    }
    if let Some(port) = at.port {
        argv.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &at.user {
        argv.extend(["-l".to_owned(), user.clone()]);
    }
    let name = at.agent.iter().map(|name| format!(" {name}"));
    let link = match offers_link {
        true => format!(" {LINK_VARIABLE}=1; export {LINK_VARIABLE};"),
        false => String::new(),
    };
    let name = name.collect::<String>();
    let command = format!("{COMMAND};{link} exec acp-relay over-ssh{name}'");
    argv.extend(["--".to_owned(), at.host.clone(), command]);
    argv.into_iter().map(OsString::from).collect()
}

/// Everything but the relay's secrets, so that ssh finds its agent for keys and its prompts.
fn launch(setup: &Setup) -> Launch {
    let mut launch = setup.launch.clone();
    if std::env::var_os(ASKPASS).is_none() {
        launch.env.push((ASKPASS.into(), "force".into()));
    }
    launch
}

/// Waits for [`READY`] or [`LINK_READY`]; returns whether it is the latter. Reads byte by byte,
/// because the bytes after it are messages.
async fn open(
    to: &Endpoint,
    at: &SshEndpoint,
    stdout: &mut Receiver,
    process: &mut Process,
) -> Result<bool, OpenError> {
    let mut line = Vec::new();
    for _ in 0..MAX_BANNER {
        match stdout.read_u8().await {
            Ok(b'\n') => match line.trim_ascii_end() {
                line if line == READY.as_bytes() => return Ok(false),
                line if line == LINK_READY.as_bytes() => return Ok(true),
                _ => line.clear(),
            },
            Ok(byte) => line.push(byte),
            Err(_) => {
                let exit = poll_fn(|cx| process.poll_exit(cx)).await;
                return Err(failed(to, at, exit, &process.stderr_tail()));
            }
        }
    }
    let what = format!(
        "the shell profile on {} prints more than {} KiB; make it silent for shells that are not \
         interactive",
        at.host,
        MAX_BANNER >> 10
    );
    Err(OpenError::new(OpenErrorKind::Protocol, to, what))
}

/// What to do when ssh does not log in.
fn advice(at: &SshEndpoint) -> String {
    let port = at.port.map(|port| format!("-p {port} "));
    let user = at.user.as_ref().map(|user| format!("{user}@"));
    let (port, user) = (port.unwrap_or_default(), user.unwrap_or_default());
    let host = &at.host;
    format!("make `ssh {port}{user}{host} true` work in a terminal, without a question")
}

fn not_started(to: &Endpoint, error: OpenError) -> OpenError {
    let what = match error.kind {
        OpenErrorKind::Unavailable => {
            "ssh is not installed on this machine; install the client of OpenSSH".to_owned()
        }
        _ => error.what,
    };
    OpenError {
        endpoint: to.to_string(),
        what,
        ..error
    }
}

/// Why ssh has ended before there was a connection. `stderr` is the end of its stderr, and of that
/// of the program there.
fn failed(to: &Endpoint, at: &SshEndpoint, exit: Exit, stderr: &str) -> OpenError {
    use OpenErrorKind::{CannotCreate, Forbidden, Lost, NoHost, Protocol, System, Unavailable};
    let host = &at.host;
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let last = lines.next_back().map_or("it says nothing", str::trim);
    let mut reports = stderr.lines().rev();
    let report = reports.find_map(|line| line.trim_end().strip_prefix("acp-relay: "));
    let (kind, what) = match (exit, report) {
        (Exit::Code(127), _) => (
            Unavailable,
            format!("acp-relay is not installed on {host}; install it there: {INSTALL}"),
        ),
        (Exit::Code(64), None) if stderr.contains("over-ssh") => (
            Unavailable,
            format!(
                "the acp-relay on {host} is too old for ssh://; install a newer one: {INSTALL}"
            ),
        ),
        (Exit::Code(255), None) => {
            let is = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
            let kind = if is(&["Could not resolve hostname"]) {
                NoHost
            } else if is(&["Permission denied", "verification failed"]) {
                Forbidden
            } else if is(&LOST) {
                Lost
            } else {
                Unavailable
            };
            (kind, format!("ssh failed: {last}; {}", advice(at)))
        }
        (Exit::Code(code), Some(report)) => {
            let kind = match code {
                71 => System,
                73 => CannotCreate,
                76 => Protocol,
                77 => Forbidden,
                _ => Unavailable,
            };
            (kind, format!("acp-relay on {host}: {report}"))
        }
        _ => (
            Unavailable,
            format!("ssh ended with {exit} and no acp-relay on {host}: {last}"),
        ),
    };
    OpenError::new(kind, to, what)
}

impl<R: FrameStream> FrameStream for SshStream<R> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let received = ready!(self.rx.poll_next(cx));
        if received.is_some() {
            return Poll::Ready(received);
        }
        let mut process = self.process.0.lock();
        let exit = ready!(process.poll_exit(cx));
        if exit == Exit::Code(0) {
            return Poll::Ready(None);
        }
        let tail = process.stderr_tail();
        let last = tail.lines().next_back().map(str::trim);
        let why = last.map_or_else(|| format!("ssh ended with {exit}"), str::to_owned);
        let source = io::Error::new(io::ErrorKind::ConnectionReset, why);
        let context = "the ssh connection";
        Poll::Ready(Some(Err(LinkError::Io { context, source })))
    }

    forward!(self => self.rx; poll_lost, ended_cleanly, has_progressed, tells_loss);
}

/// It does not report the exit, which is that of ssh and not of the agent.
impl LinkGuard for Shared {
    forward!(self => self.0.lock(); signal, capture_stderr);
    forward!(self => ();
        poll_exit, watch_presence, longest, away, unacknowledged, log_redaction, restart, restarts,
        is_relay, stderr_tail);
}
