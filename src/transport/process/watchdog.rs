//! A small process that ends the agents when the relay was killed.
//!
//! No code runs in a process that gets SIGKILL, so another one has to be there. It is started
//! before the first agent, has a session of its own, and reads from a pipe to which the start and
//! the end of each agent is written; no other process holds the writing end. When the pipe ends,
//! however the relay ended, it terminates the remaining processes of the agents, and kills those
//! that do not exit.
//!
//! When it learns of the relay's death, the daemons of agents have other parents and cannot be
//! found from there. They are known by their marks; for those without a mark (see `mark`) it also
//! scans the whole tree below the relay now and then, and a process that was started and orphaned
//! since the last scan escapes. It stops no process before a scan: stopped processes get SIGHUP
//! when the relay vanishes. After an orderly end of the relay it is released (see `agents`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::mark::Mark;
use super::process_id::ProcessId;
use super::tree::{self, ProcessTree};

/// The first argument that makes the executable of the relay run as the watchdog.
pub const SUBCOMMAND: &str = "__watchdog";

/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// Time after SIGKILL in which the system is to end what was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between checks whether they are gone.
const POLL_PAUSE: Duration = Duration::from_millis(20);
/// Pause before the first scan of the tree after an agent came, and the longest. They double.
const SCAN_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));
/// The last line of a relay that has left nothing behind.
const RELEASE: &str = "=\n";

/// The relay's side: starts the watchdog and reports agents to it.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    program: Option<PathBuf>,
    /// Whether the relay has children that do not come from agents.
    others: bool,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: std::process::Child,
    pipe: ChildStdin,
}

/// The state of the watchdog.
struct State {
    relay: ProcessId,
    /// Whether unmarked processes below the relay are to be left alone.
    others: bool,
    agents: BTreeMap<u32, ProcessId>,
    /// All processes that were below the relay at the last scan.
    last_scan: BTreeSet<ProcessId>,
}

/// Runs the watchdog, until the relay is gone and no process of its agents is left. To be called by
/// `main` before all else when the first argument is [`SUBCOMMAND`].
///
/// # Errors
/// When the arguments are not those the relay gives, or the pipe cannot be read.
pub fn run() -> io::Result<()> {
    let mut numbers = std::env::args()
        .skip(2)
        .map_while(|word| word.parse::<u64>().ok());
    let (Some(pid), Some(start), Some(others)) = (numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(io::Error::other(
            "this is a part of acp-relay that only acp-relay starts",
        ));
    };
    // Signals to the relay's terminal or group, and its working directory, must not affect this
    // process.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    ignore_signals()?;

    let pid = u32::try_from(pid).map_err(io::Error::other)?;
    let mut state = State {
        relay: ProcessId { pid, start },
        others: others != 0,
        agents: BTreeMap::new(),
        last_scan: BTreeSet::new(),
    };
    if state.wait_for_relay_end()? {
        kill_all(state.remaining()?)?;
    }
    Ok(())
}

impl Watchdog {
    /// Sets the program to run, without which there is no watchdog, and whether the relay has
    /// `others` below it that are to be left alone.
    pub(super) fn set_program(&mut self, program: &Path, others: bool) {
        self.program = Some(program.to_owned());
        self.others = others;
    }

    /// Its process id.
    pub(super) fn id(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    /// Whether there should be one and is none; reaps one that exited.
    pub(super) fn is_missing(&mut self) -> bool {
        let exited = |running: &mut Running| !matches!(running.child.try_wait(), Ok(None));
        if self.running.as_mut().is_some_and(exited) {
            self.running = None;
        }
        self.program.is_some() && self.running.is_none()
    }

    /// Starts one, if there is none, and reports `agents` to it.
    pub(super) fn ensure(&mut self, agents: impl Iterator<Item = ProcessId>) {
        if !self.is_missing() {
            return;
        }
        let Some(program) = &self.program else {
            return;
        };
        match Running::start(program, self.others) {
            Ok(running) => {
                self.running = Some(running);
                for agent in agents {
                    self.add(agent);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no watchdog: agents outlive the relay if it is killed");
            }
        }
    }

    /// Reports a new agent.
    pub(super) fn add(&mut self, agent: ProcessId) {
        self.send('+', agent);
    }

    /// Reports that an agent is gone.
    pub(super) fn remove(&mut self, agent: ProcessId) {
        self.send('-', agent);
    }

    /// Ends it without a search: there is nothing to be found.
    pub(super) fn release(&mut self) {
        if let Some(mut running) = self.running.take() {
            // Without the line it searches and finds nothing.
            let _ = running.pipe.write_all(RELEASE.as_bytes());
        }
    }

    fn send(&mut self, prefix: char, ProcessId { pid, start }: ProcessId) {
        let Some(running) = &mut self.running else {
            return;
        };
        // Shorter than PIPE_BUF, so written whole or not at all.
        let line = format!("{prefix}{pid} {start}\n");
        if let Err(error) = running.pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the watchdog does not read its pipe; it will be replaced");
            // It must not take the end of the pipe for the relay's death.
            let _ = running.child.kill();
            let _ = running.child.wait();
            self.running = None;
        }
    }
}

impl Running {
    fn start(program: &Path, others: bool) -> io::Result<Self> {
        let own_id =
            ProcessId::of(std::process::id()).ok_or_else(|| io::Error::other("no /proc"))?;
        let numbers =
            [own_id.pid.into(), own_id.start, others.into()].map(|number: u64| number.to_string());
        let mut child = Command::new(program)
            .arg0(OsString::from("acp-relay"))
            .arg(SUBCOMMAND)
            .args(numbers)
            // It needs none of the relay's secrets.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = child.stdin.take().expect("stdin was asked for");
        // A watchdog that was stopped must not block the relay.
        if let Err(errno) = rustix::io::ioctl_fionbio(&pipe, true) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(errno.into());
        }
        Ok(Self { child, pipe })
    }
}

impl State {
    /// Reads the pipe to its end and scans the tree meanwhile; whether processes may be left.
    fn wait_for_relay_end(&mut self) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        let mut pause = SCAN_PAUSE.0;
        let mut next_scan = Instant::now() + pause;
        loop {
            let left = next_scan.saturating_duration_since(Instant::now());
            // With no agent there is nothing to scan, and nothing to wake up for.
            let timeout = (!self.agents.is_empty())
                .then(|| Timespec::try_from(left))
                .transpose()
                .map_err(io::Error::other)?;
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) => {
                    self.scan()?;
                    pause = (pause * 2).min(SCAN_PAUSE.1);
                    next_scan = Instant::now() + pause;
                    continue;
                }
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            match rustix::io::read(stdin.as_fd(), &mut buffer) {
                Ok(0) => return Ok(true),
                Ok(length) => text.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if line == RELEASE.as_bytes() {
                    return Ok(false);
                }
                if self.receive(&String::from_utf8_lossy(&line)) {
                    pause = SCAN_PAUSE.0;
                    next_scan = Instant::now() + pause;
                }
            }
        }
    }

    /// Handles one line; whether it reported a new agent.
    fn receive(&mut self, line: &str) -> bool {
        let Some((sign, rest)) = line.split_at_checked(1) else {
            return false;
        };
        let mut numbers = rest.split_whitespace();
        let (Some(Ok(pid)), Some(Ok(start))) = (
            numbers.next().map(str::parse),
            numbers.next().map(str::parse),
        ) else {
            return false;
        };
        match sign {
            "+" => self.agents.insert(pid, ProcessId { pid, start }).is_none(),
            "-" => {
                self.agents.remove(&pid);
                false
            }
            _ => false,
        }
    }

    fn scan(&mut self) -> io::Result<()> {
        let tree = ProcessTree::scan_below(Some(self.relay.pid))?;
        // Below a relay that has just died no process is found any more.
        if tree.get(self.relay.pid).is_some_and(|entry| entry.alive) {
            self.last_scan = self.below_relay(&tree);
        }
        Ok(())
    }

    /// All processes below the relay, without its own process group, in which others may be.
    fn below_relay(&self, tree: &ProcessTree) -> BTreeSet<ProcessId> {
        if (tree.get(self.relay.pid)).is_none_or(|entry| entry.id != self.relay) {
            return BTreeSet::new();
        }
        let me = std::process::id();
        let children = tree.children(self.relay.pid).map(|entry| entry.id);
        tree.below(children.filter(|child| child.pid != me && self.may_be_from_agent(*child)))
    }

    /// Whether a child of the relay is an agent, or may have been left by one.
    fn may_be_from_agent(&self, child: ProcessId) -> bool {
        !self.others || self.agents.get(&child.pid) == Some(&child) || self.is_marked(child)
    }

    fn is_marked(&self, id: ProcessId) -> bool {
        Mark::of(id.pid).is_some_and(|mark| mark.is_from(self.relay))
    }

    /// The processes to be ended.
    fn remaining(&self) -> io::Result<BTreeSet<ProcessId>> {
        let tree = ProcessTree::scan()?;
        // The relay's files are closed before its children get another parent.
        let below = self.below_relay(&tree);
        let me = std::process::id();
        let marked = tree.all().filter(|id| id.pid != me && self.is_marked(*id));
        Ok(tree.below(
            (self.agents.values())
                .chain(&self.last_scan)
                .chain(&below)
                .copied()
                .chain(marked),
        ))
    }
}

/// Ends `remaining` and all below, and waits until they are gone.
fn kill_all(mut remaining: BTreeSet<ProcessId>) -> io::Result<()> {
    for id in &remaining {
        // It does not matter if it is gone already.
        let _ = id.signal(Signal::TERM);
    }
    let start = Instant::now();
    while start.elapsed() < TERM_GRACE && !remaining.is_empty() {
        std::thread::sleep(POLL_PAUSE);
        remaining = ProcessTree::scan()?.below(remaining);
    }
    let killed = Instant::now();
    while killed.elapsed() < KILL_TIMEOUT && !remaining.is_empty() {
        let roots: Vec<ProcessId> = remaining.iter().copied().collect();
        remaining.extend(tree::kill_tree(&roots, None)?);
        std::thread::sleep(POLL_PAUSE);
        remaining = ProcessTree::scan()?.below(remaining);
    }
    Ok(())
}

/// Ignores the signals that end a relay: the watchdog ends when the pipe does.
fn ignore_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _inside = runtime.enter();
    // Tokio's handlers stay when the runtime has gone, and then do nothing.
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ] {
        drop(signal(kind)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_table_follows_agents() {
        let mut state = State {
            relay: ProcessId { pid: 1, start: 0 },
            others: false,
            agents: BTreeMap::new(),
            last_scan: BTreeSet::new(),
        };
        for (line, new, known) in [
            ("+7 100\n", true, 1),
            ("+7 100\n", false, 1),
            ("+8 200\n", true, 2),
            ("-7 100\n", false, 1),
            ("", false, 1),
            ("+\n", false, 1),
            ("é\n", false, 1),
            ("+x y\n", false, 1),
            ("-9 1\n", false, 1),
        ] {
            assert_eq!(
                (state.receive(line), state.agents.len()),
                (new, known),
                "{line}"
            );
        }
        assert_eq!(state.agents[&8], ProcessId { pid: 8, start: 200 });
    }
}
