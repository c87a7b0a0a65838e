//! `exec:` and the command after `--`: starts an agent and holds its process.
//!
//! The arguments go to the operating system as they are: no shell. Dropping a [`Process`] kills its
//! whole tree (see `watchdog`). A process that the relay starts is always the agent, so this
//! transport only connects.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio_util::task::AbortOnDropHandle;

use super::browser::Listening;
use super::stderr::Stderr;
use super::{Launch, children, program, silence, watchdog};
use crate::{
    Exit, Link, LinkGuard, LoginEnd, OpenError, Peer, PeerKind, Setup, StderrCallback, StopStep,
    forward, stream,
};
use jsonrpc::Limits;

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
    pid: Pid,
    /// The socket to its watchdog.
    control: Arc<UnixStream>,
    /// How it exited, once that is known.
    exited: Option<Exit>,
    stderr: Stderr,
    /// Tells that it writes nothing, if its framing is not known.
    silence: Option<AbortOnDropHandle<()>>,
}

/// Starts the program and opens the link to it.
pub async fn connect(argv: &[OsString], setup: &Setup) -> Result<Link, OpenError> {
    let program = setup.launch.browser.as_deref();
    // Without it, the agent opens pages on this machine.
    let listening = program.and_then(|program| Listening::begin(program).ok());
    let mut launch = setup.launch.clone();
    launch.env.extend(
        listening
            .iter()
            .flat_map(|listening| listening.variables.clone()),
    );
    let mut child = spawn(argv, &launch, &setup.limits).await?;
    let browser = listening.map(|listening| listening.of(child.hold.pid));
    let max = setup.limits.frame_from_child;
    let (rx, tx) = stream::halves(child.stdout, child.stdin, max, setup);
    if setup.framing.is_none() {
        let (name, told) = (child.peer.name.clone(), setup.silence.clone());
        let watch = silence::watch(Arc::clone(&rx.opening), &child.hold.stderr, name, told);
        child.hold.silence = Some(watch);
    }
    let mut link = Link::new(child.peer, rx, tx, child.hold);
    link.login = browser.map(LoginEnd::Agent);
    Ok(link)
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
    watchdog::send_pipes(&control, &pipes)?;
    drop((agent_stdin, agent_stdout, agent_stderr));
    control.set_nonblocking(true)?;
    let mut control = UnixStream::from_std(control)?;
    children::start(argv, launch, remote_control.into())?;

    let mut report = [0; 4];
    control.read_exact(&mut report).await?;
    let pid = match i32::from_ne_bytes(report) {
        errno @ ..0 => return Err(io::Error::from_raw_os_error(-errno)),
        pid => Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
    };
    let control = Arc::new(control);
    if let Some(lease) = &launch.lease {
        lease.bind(&control);
    }
    let name = Path::new(&argv[0]).file_name().unwrap_or(&argv[0]);
    let name = format!("process {pid} ({})", program::printable(name));
    Ok(Child {
        peer: Peer {
            kind: PeerKind::Child,
            ..Peer::remote(name, true)
        },
        stdin: Sender::from_owned_fd(stdin.into())?,
        stdout: Receiver::from_owned_fd(stdout.into())?,
        hold: Process {
            pid,
            control,
            exited: None,
            stderr: Stderr::read(stderr.into(), pid, limits.stderr_bytes)?,
            silence: None,
        },
    })
}

impl Process {
    /// Its process id, also that of its process group.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }
}

impl LinkGuard for Process {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        if let Some(exit) = self.exited {
            return Poll::Ready(exit);
        }
        let mut report = [0; 4];
        // A report is written at once, so it is read at once.
        let read = loop {
            let _ = ready!(self.control.poll_read_ready(cx));
            match self.control.try_read(&mut report) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break read.unwrap_or(0),
            }
        };
        let exit = if read == 0 {
            // The watchdog was killed. Where this process adopts no orphans (see `children`),
            // nothing else ends the agent.
            let _ = kill_process_group(self.pid, Signal::KILL);
            Exit::Code(-1)
        } else {
            let status = ExitStatus::from_raw(i32::from_ne_bytes(report));
            let code = Exit::Code(status.code().unwrap_or(-1));
            status.signal().map_or(code, Exit::Signal)
        };
        self.exited = Some(exit);
        Poll::Ready(exit)
    }

    fn signal(&mut self, step: StopStep) {
        let signal = match step {
            StopStep::Terminate => Signal::TERM,
            StopStep::Kill => Signal::KILL,
        };
        // The watchdog may have ended. The socket has room for some thousand bytes.
        let _ = rustix::io::write(&self.control, &[signal.as_raw() as u8]);
    }

    fn capture_stderr(&mut self, receiver: StderrCallback) {
        self.stderr.forward(receiver);
    }

    fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }

    forward!(self => ();
        watch_presence, longest, away, unacknowledged, log_redaction, restart, restarts, is_relay);
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(StopStep::Kill);
    }
}
