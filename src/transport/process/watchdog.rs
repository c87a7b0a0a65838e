//! The process between the relay and an agent, which ends all that the agent started.
//!
//! It starts the agent and adopts every process below it that loses its parent, so all of them stay
//! below it, however they daemonize, and it is done when it has no child any more. It kills them
//! when the relay asks for that, when its socket to the relay ends, however the relay ended: no
//! code runs in a process that gets SIGKILL, and when a time that the relay has granted is over.
//! Meanwhile it sleeps, but for the children to reap.
//!
//! It is in the session of the relay, as the agent is, and in a process group of its own.
//!
//! Its stdin is a socket. The relay sends the agent's ends of its pipes, and then a byte for each
//! signal to send: its number, and one for each time that it grants (see `lease`). The watchdog
//! sends the agent's process id, or the negated error of the operating system, and later the status with which the agent exited, as wait(2) has it.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use super::{lease, tree};

/// The first argument that makes the executable of the relay run as a watchdog. The others are the
/// command line of the agent.
pub const SUBCOMMAND: &str = "__watchdog";

/// Time between SIGTERM and SIGKILL when the relay is gone.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// First and longest pause before killing again what is left. They double.
const PAUSE: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));

/// Runs the watchdog, until no process of its agent is left. To be called by `main` before all else
/// when the first argument is [`SUBCOMMAND`].
///
/// # Errors
/// When it was not started by the relay.
pub fn run() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch(std::env::args_os().skip(2)))
}

/// Sends the agent's ends of its pipes to its watchdog.
pub(super) fn send_pipes(socket: impl AsFd, pipes: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(pipes));
    sendmsg(
        socket,
        &[IoSlice::new(b"!")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Waits for what [`send_pipes`] sends.
fn receive_pipes(socket: impl AsFd) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut bytes, &mut control, RecvFlags::empty())?;
    let mut pipes = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            pipes.extend(received);
        }
    }
    for pipe in &pipes {
        fcntl_setfd(pipe, FdFlags::CLOEXEC)?;
    }
    let wrong = |_| io::Error::other("this is a part of acp-relay that only acp-relay starts");
    pipes.try_into().map_err(wrong)
}

/// While the result is kept, these signals do not end this process.
pub(crate) fn ignore_signals() -> impl Sized {
    [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ]
    .map(signal)
}

async fn watch(mut argv: impl Iterator<Item = OsString>) -> io::Result<()> {
    // Only the socket ends it. A handler is not inherited by the agent, as ignoring would be.
    let _ignored = ignore_signals();
    let mut exits = signal(SignalKind::child())?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;

    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [stdin, stdout, stderr] = receive_pipes(&socket)?;
    let started = Command::new(argv.next().unwrap_or_default())
        .args(argv)
        .process_group(0)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn();
    let report = match &started {
        Ok(agent) => agent.id().cast_signed(),
        Err(error) => -error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
    };
    // The relay may be killed by now; then the socket has ended, too.
    let _ = rustix::io::write(&socket, &report.to_ne_bytes());
    let Ok(agent) = started else {
        return Ok(());
    };
    let _ = rustix::process::chdir("/");
    socket.set_nonblocking(true)?;
    let mut control = UnixStream::from_std(socket)?;
    let mut watched = Watched {
        agent: Pid::from_child(&agent),
        reaped: false,
    };

    let mut relay_lives = true;
    let mut granted: Option<Instant> = None;
    let mut kill_at: Option<Instant> = None;
    let mut pause = PAUSE.0;
    while watched.reap(&control) {
        let now = Instant::now();
        if kill_at.is_none() && (!relay_lives || granted.is_some_and(|until| until <= now)) {
            watched.signal(Signal::TERM);
            kill_at = Some(now + TERM_GRACE);
        }
        let wait = match kill_at.map(|at| at.saturating_duration_since(now)) {
            None => granted.map_or(Duration::MAX, |until| until - now),
            Some(Duration::ZERO) => {
                watched.signal(Signal::KILL);
                let wait = pause;
                pause = (pause * 2).min(PAUSE.1);
                wait
            }
            Some(grace) => grace,
        };
        tokio::select! {
            _ = exits.recv() => {}
            () = sleep(wait) => {}
            order = control.read_u8(), if relay_lives => match order {
                Err(_) => relay_lives = false,
                Ok(order) => match lease::granted(order) {
                    Some(time) => granted = Some(Instant::now() + time),
                    None if i32::from(order) == Signal::KILL.as_raw() => {
                        kill_at = Some(Instant::now());
                    }
                    None => watched.signal(Signal::TERM),
                },
            },
        }
    }
    Ok(())
}

/// All processes below this one.
struct Watched {
    /// The agent, also its process group.
    agent: Pid,
    /// Whether its exit was collected: its number may belong to another process by then.
    reaped: bool,
}

impl Watched {
    /// Reaps all that have exited, and reports the agent's exit; whether a child is left.
    fn reap(&mut self, control: &UnixStream) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent && !self.reaped => {
                    self.reaped = true;
                    // The relay may be gone.
                    let _ = rustix::io::write(control, &status.as_raw().to_ne_bytes());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Signals all of them, once each: many treat a second SIGTERM as a request to hurry.
    fn signal(&self, signal: Signal) {
        let below = tree::below(std::process::id());
        let group = self.agent.as_raw_pid().unsigned_abs();
        if !self.reaped || below.iter().any(|entry| entry.group == group) {
            // With one call, so that no member sees another vanish first.
            let _ = rustix::process::kill_process_group(self.agent, signal);
        }
        for entry in below.iter().filter(|entry| entry.group != group) {
            entry.signal(signal);
        }
    }
}
