//! Starting an agent, and holding it.
//!
//! The words go to the operating system as they are: no shell.
//! Dropping a [`Process`] kills its whole tree. Not here: how trees are found and ended (see
//! `household`), and what the bytes in the pipes mean.

use std::ffi::OsString;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};

use tokio::process::{ChildStdin, ChildStdout, Command};

use super::stderr::Stderr;
use super::{Launch, household, program};
use crate::transport::{Ear, Exit, Hold, OpenError, Peer, PeerKind, StopStep};
use crate::wire::Limits;

/// An agent that was started.
#[derive(Debug)]
pub struct Child {
    /// Who it is.
    pub peer: Peer,
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// The process itself.
    pub hold: Process,
}

/// A running agent. Dropped, it and all its descendants are killed, and it is reaped.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    ticket: u64,
    /// There until it is dropped.
    child: Option<tokio::process::Child>,
    exit: Option<Exit>,
    stderr: Stderr,
}

/// Starts the program `argv[0]`, looked up on `PATH`, with the words `argv`, as `launch` says. To be
/// called on a runtime with I/O enabled.
///
/// # Errors
/// As [`find_program`](super::find_program), and `System` when the operating system has no
/// process or descriptor left.
pub fn spawn(argv: &[OsString], launch: &Launch, limits: &Limits) -> Result<Child, OpenError> {
    program::find_program(argv, launch)?;
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    launch.apply(&mut command);

    let birth = household::expect_birth();
    let mut child = command
        .spawn()
        .map_err(|source| program::refused(argv, &source))?;
    let pid = child
        .id()
        .expect("a child that was not waited for has its number");
    let ticket = birth.of(pid);

    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let stderr = stderr.expect("stderr was asked for");
    let stderr = match Stderr::read(stderr, pid, limits.stderr_kept) {
        Ok(stderr) => stderr,
        Err(source) => {
            household::bury(ticket, child);
            return Err(program::refused(argv, &source));
        }
    };
    let name = Path::new(&argv[0]).file_name().unwrap_or(&argv[0]);
    Ok(Child {
        peer: Peer {
            name: format!("process {pid} ({})", program::printable(name)),
            half_close: true,
            kind: PeerKind::Child,
            principal: None,
            wish: None,
        },
        stdin: stdin.expect("stdin was asked for"),
        stdout: stdout.expect("stdout was asked for"),
        hold: Process {
            pid,
            ticket,
            child: Some(child),
            exit: None,
            stderr,
        },
    })
}

impl Process {
    /// Its number, also that of its process group.
    pub fn id(&self) -> u32 {
        self.pid
    }
}

impl Hold for Process {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        if let Some(exit) = self.exit {
            return Poll::Ready(exit);
        }
        let child = self.child.as_mut().expect("held until dropped");
        // The waker stays with the child's descriptor, not with this future.
        let exit = match ready!(pin!(child.wait()).poll(cx)) {
            Ok(status) => how(status),
            Err(error) => {
                // Somebody else reaped it, for example because we were started with SIGCHLD ignored.
                tracing::warn!(pid = self.pid, %error, "the exit code of the agent is lost");
                Exit::Code(-1)
            }
        };
        household::reaped(self.ticket);
        self.exit = Some(exit);
        Poll::Ready(exit)
    }

    fn signal(&mut self, step: StopStep) {
        household::order(self.ticket, step);
    }

    fn hear_stderr(&mut self, ear: Ear) {
        self.stderr.hear(ear);
    }

    fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            household::bury(self.ticket, child);
        }
    }
}

fn how(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
