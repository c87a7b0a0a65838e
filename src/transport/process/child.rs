//! Starts an agent and holds its process.
//!
//! The arguments go to the operating system as they are: no shell. Dropping a [`Process`] kills its
//! whole tree (see `watchdog`).

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::control::{self, REPORT, Report};
use super::stderr::Stderr;
use super::{Launch, children, program};
use crate::jsonrpc::Limits;
use crate::transport::{Exit, LinkGuard, OpenError, Peer, PeerKind, StderrCallback, StopStep};

/// An agent that was started.
#[derive(Debug)]
pub struct Child {
    /// Its description as a peer.
    pub peer: Peer,
    /// The pipe to its stdin.
    pub stdin: Sender,
    /// The pipe from its stdout.
    pub stdout: Receiver,
    /// The process itself.
    pub hold: Process,
}

/// A running agent. Dropping it kills and reaps the process and all its descendants.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    watchdog: Watchdog,
    /// How it exited, once that is known.
    exited: Option<Exit>,
    stderr: Stderr,
}

/// The relay's end of the socket to a watchdog. Dropping it ends the agent.
#[derive(Debug)]
struct Watchdog {
    control: UnixStream,
    /// `None` once it is dropped.
    process: Option<std::process::Child>,
}

/// Starts the program `argv[0]`, looked up on `PATH`, with the arguments `argv`, as `launch`
/// specifies. To be called on a runtime with I/O enabled.
///
/// # Errors
/// As [`find_program`](super::find_program), and `System` when the operating system has no process
/// or no pipe left.
pub async fn spawn(
    argv: &[OsString],
    launch: &Launch,
    limits: &Limits,
) -> Result<Child, OpenError> {
    program::check_allowed(argv)?;
    program::find_program(argv, launch)?;
    let failed = |source: io::Error| program::start_error(argv, &source);
    start(argv, launch, limits).await.map_err(failed)
}

async fn start(argv: &[OsString], launch: &Launch, limits: &Limits) -> io::Result<Child> {
    let (control, remote_control) = StdUnixStream::pair()?;
    let (agent_stdin, stdin) = io::pipe()?;
    let (stdout, agent_stdout) = io::pipe()?;
    let (stderr, agent_stderr) = io::pipe()?;
    let pipes = [
        agent_stdin.as_fd(),
        agent_stdout.as_fd(),
        agent_stderr.as_fd(),
    ];
    control::send_pipes(&control, &pipes)?;
    drop((agent_stdin, agent_stdout, agent_stderr));
    control.set_nonblocking(true)?;
    let control = UnixStream::from_std(control)?;
    let process = children::start(argv, launch, remote_control.into())?;
    let mut watchdog = Watchdog {
        control,
        process: Some(process),
    };

    let mut report = [0; REPORT];
    watchdog.control.read_exact(&mut report).await?;
    let pid = match Report::decode(report) {
        Some(Report::Started(pid)) => pid.unsigned_abs(),
        Some(Report::Failed(errno)) => return Err(io::Error::from_raw_os_error(errno)),
        Some(Report::Exited(_)) | None => return Err(io::ErrorKind::InvalidData.into()),
    };
    let name = Path::new(&argv[0]).file_name().unwrap_or(&argv[0]);
    Ok(Child {
        peer: Peer {
            kind: PeerKind::Child,
            ..Peer::remote(
                format!("process {pid} ({})", program::printable(name)),
                true,
            )
        },
        stdin: Sender::from_owned_fd(stdin.into())?,
        stdout: Receiver::from_owned_fd(stdout.into())?,
        hold: Process {
            pid,
            watchdog,
            exited: None,
            stderr: Stderr::read(stderr.into(), pid, limits.stderr_bytes)?,
        },
    })
}

impl Process {
    /// Its process id, also that of its process group.
    pub fn id(&self) -> u32 {
        self.pid
    }
}

impl LinkGuard for Process {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        if let Some(exit) = self.exited {
            return Poll::Ready(exit);
        }
        let mut report = [0; REPORT];
        let mut buffer = ReadBuf::new(&mut report);
        // A report is written at once, so it is read at once.
        let _ = ready!(Pin::new(&mut self.watchdog.control).poll_read(cx, &mut buffer));
        let exit = match Report::decode(report) {
            Some(Report::Exited(exit)) => exit,
            // The watchdog was killed. Where this process adopts no orphans (see `children`),
            // nothing else ends the agent.
            _ => {
                let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
                let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
                Exit::Code(-1)
            }
        };
        self.exited = Some(exit);
        Poll::Ready(exit)
    }

    fn signal(&mut self, step: StopStep) {
        self.watchdog.order(step);
    }

    fn capture_stderr(&mut self, receiver: StderrCallback) {
        self.stderr.forward(receiver);
    }

    fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }
}

impl Watchdog {
    fn order(&self, step: StopStep) {
        // It may have ended. The socket has room for some thousand orders.
        let _ = rustix::io::write(&self.control, &[control::order(step)]);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.order(StopStep::Kill);
        if let Some(process) = self.process.take() {
            children::leave(process);
        }
    }
}
