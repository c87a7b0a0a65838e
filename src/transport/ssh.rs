//! `ssh://`: an agent on another machine, over the stdin and stdout of an ssh process.
//!
//! The program `ssh` connects with the user's own configuration, keys and known hosts, and starts
//! `acp-relay over-ssh` there. That prints a line once it is connected to the relay of its machine;
//! what a shell profile has printed before is dropped. From then on both streams carry messages: of a
//! resumable link, if that was asked for and the line is [`LINK_READY`] or [`GREETED`].
//!
//! `command` makes the command lines, `failure` the errors; `copy` brings the program to a machine that
//! has none, where `version` keeps and removes the copies. `join` is the other end.
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

mod command;
mod copy;
mod failure;
mod join;
pub mod version;

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::process::{self, Child, Process};
use super::resumable::{self, Carrier, Contact, ContactSource, carrier_limits};
use super::{
    Endpoint, Exit, FrameStream, Link, LinkError, LinkGuard, OpenError, OpenErrorKind, Peer, Setup,
    SshEndpoint, forward, stream,
};
use command::{Asked, GREETED, LINK_READY, MAX_BANNER, OPEN_TIMEOUT, launch};
use failure::{advice, failed, missing, not_started};
use jsonrpc::framing::{Decoded, Framing};

pub use command::{READY, VARIABLES};
pub use join::join;

/// How the line of a version begins that this one does not speak.
const OTHER_VERSION: &[u8] = b"acp-relay over-ssh ";

/// The ssh process, which both halves of the link and its guard use.
#[derive(Clone)]
struct Shared(Arc<Mutex<Process>>);

/// What the agent sends. An end is that of the ssh process, which knows whether it was intended.
struct SshStream<R> {
    rx: R,
    process: Shared,
}

/// What the other machine has answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// It carries messages.
    Plain,
    /// It carries a link.
    Link,
    /// The same, and the link was greeted.
    Greeted,
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
    let asked = match &setup.links {
        Some(_) => Asked::NewLink(resumable::first_greeting(&setup.limits)),
        None => Asked::NoLink,
    };
    let (link, ready) = match dial(to, at, setup, &asked).await {
        Err(error)
            if error.kind == OpenErrorKind::Missing && setup.ssh_install.may(at, &error.what) =>
        {
            copy::install(to, at, setup).await?;
            dial(to, at, setup, &asked).await?
        }
        opened => opened?,
    };
    let Some(links) = setup.links.as_ref().filter(|_| ready != Ready::Plain) else {
        return Ok(link);
    };
    let contact = Contact::of(to, setup);
    let (to, at, own) = (to.clone(), at.clone(), setup.clone());
    let again: resumable::Dial = Arc::new(move |_| {
        let (to, at, setup) = (to.clone(), at.clone(), own.clone());
        Box::pin(async move {
            let (link, ready) = dial(&to, &at, &setup, &Asked::Link).await?;
            Ok((ready != Ready::Plain).then(|| link.into()))
        })
    });
    let contact: ContactSource = Box::new(move || contact.clone());
    let contact = setup.serves_parent.then_some(contact);
    let link = Carrier {
        link,
        is_greeted: ready == Ready::Greeted,
    };
    resumable::connect(link, again, contact, links, &setup.limits).await
}

/// Opens a connection for a link of an earlier process, without a question to the user.
pub(crate) async fn connect_carrier(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (link, ready) = dial(to, at, setup, &Asked::LinkQuietly).await?;
    let refused = || OpenError::new(OpenErrorKind::Protocol, to, "it keeps no links");
    (ready != Ready::Plain).then_some(link).ok_or_else(refused)
}

/// Starts ssh; the result also says what the other machine has answered.
async fn dial(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
    asked: &Asked,
) -> Result<(Link, Ready), OpenError> {
    let command = command::start(at, asked);
    let child = process::spawn(&command, &launch(setup), &setup.limits).await;
    let Child {
        stdin,
        mut stdout,
        mut hold,
        ..
    } = child.map_err(|error| not_started(to, error))?;
    let opened = timeout(OPEN_TIMEOUT, open(to, at, &mut stdout, &mut hold));
    let ready = opened.await.unwrap_or_else(|_| {
        let what = format!(
            "ssh has not connected within {OPEN_TIMEOUT:?}; {}",
            advice(at)
        );
        Err(OpenError::new(OpenErrorKind::Unavailable, to, what))
    })?;
    let (limits, framing) = match ready {
        Ready::Plain => (Arc::clone(&setup.limits), setup.framing),
        _ => (carrier_limits(&setup.limits), Some(Framing::ContentLength)),
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
    Ok((Link::new(peer, rx, tx, process), ready))
}

/// Waits for the line that says what the connection carries. Reads byte by byte, because the bytes
/// after it are messages.
async fn open(
    to: &Endpoint,
    at: &SshEndpoint,
    stdout: &mut Receiver,
    process: &mut Process,
) -> Result<Ready, OpenError> {
    let mut line = Vec::new();
    for _ in 0..MAX_BANNER {
        match stdout.read_u8().await {
            Ok(b'\n') => match line.trim_ascii_end() {
                line if line == READY.as_bytes() => return Ok(Ready::Plain),
                line if line == LINK_READY.as_bytes() => return Ok(Ready::Link),
                line if line == GREETED.as_bytes() => return Ok(Ready::Greeted),
                line if line.starts_with(OTHER_VERSION) => {
                    let what = format!(
                        "the acp-relay on {} speaks no version that this one speaks",
                        at.host
                    );
                    return Err(missing(to, what));
                }
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
