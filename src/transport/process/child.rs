//! Starts an agent and holds its process.
//!
//! The arguments go to the operating system as they are: no shell. Dropping a [`Process`] kills its
//! whole tree (see `reaper`).

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::task::{Context, Poll, ready};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use super::stderr::Stderr;
use super::{Launch, agents, program};
use crate::jsonrpc::Limits;
use crate::transport::{Exit, LinkGuard, OpenError, Peer, PeerKind, StderrCallback, StopStep};

/// An agent that was started.
#[derive(Debug)]
pub struct Child {
    /// Its description as a peer.
    pub peer: Peer,
    /// The pipe to its stdin.
    pub stdin: ChildStdin,
    /// The pipe from its stdout.
    pub stdout: ChildStdout,
    /// The process itself.
    pub hold: Process,
}

/// A running agent. Dropping it kills and reaps the process and all its descendants.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    ticket: u64,
    exit: oneshot::Receiver<Exit>,
    /// What came on `exit`.
    exited: Option<Exit>,
    stderr: Stderr,
}

/// Starts the program `argv[0]`, looked up on `PATH`, with the arguments `argv`, as `launch`
/// specifies. To be called on a runtime with I/O enabled.
///
/// # Errors
/// As [`find_program`](super::find_program), and `System` when the operating system has no process
/// or descriptor left.
pub fn spawn(argv: &[OsString], launch: &Launch, limits: &Limits) -> Result<Child, OpenError> {
    program::check_allowed(argv)?;
    program::find_program(argv, launch)?;
    let failed = |source: io::Error| program::start_error(argv, &source);
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    launch.apply(&mut command);

    let start = agents::starting().map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    let pid = child.id();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (ticket, exit) = start.register(child);

    let pipes = || {
        let stdin = ChildStdin::from_std(stdin.expect("stdin was asked for"))?;
        let stdout = ChildStdout::from_std(stdout.expect("stdout was asked for"))?;
        let stderr = ChildStderr::from_std(stderr.expect("stderr was asked for"))?;
        let stderr = Stderr::read(stderr, pid, limits.stderr_bytes)?;
        Ok((stdin, stdout, stderr))
    };
    let (stdin, stdout, stderr) = match pipes() {
        Ok(pipes) => pipes,
        Err(source) => {
            agents::kill(ticket);
            return Err(failed(source));
        }
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
        stdin,
        stdout,
        hold: Process {
            pid,
            ticket,
            exit,
            exited: None,
            stderr,
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
        let exit = ready!(Pin::new(&mut self.exit).poll(cx)).unwrap_or(Exit::Code(-1));
        self.exited = Some(exit);
        Poll::Ready(exit)
    }

    fn signal(&mut self, step: StopStep) {
        agents::signal(self.ticket, step);
    }

    fn capture_stderr(&mut self, receiver: StderrCallback) {
        self.stderr.forward(receiver);
    }

    fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        agents::kill(self.ticket);
    }
}
