//! A small process that ends the agents when the relay was killed.
//!
//! No code runs in a process that gets SIGKILL, so another one has to be there. It is started
//! before the first agent, has a session of its own, and reads from a pipe which agents come and
//! go; no other process holds the writing end. When the pipe ends, however the relay ended, it
//! terminates the remaining processes of the agents, and kills those that do not exit.
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

use super::family::{self, Census, Kin};
use super::mark::Mark;

/// The first argument that makes the executable of the relay run as the watchdog.
pub const WORD: &str = "__watchdog";

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Time after SIGKILL in which the system is to end what was killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between checks whether they are gone.
const PACE: Duration = Duration::from_millis(20);
/// Pause before the first scan of the tree after an agent came, and the longest. They double.
const LOOK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));
/// Scanning takes no more than one part in so many of the time, because a scan costs in proportion
/// to all processes of the machine, and each new agent triggers one.
const SHARE: u32 = 50;
/// The last line of a relay that has left nothing behind.
const RELEASE: &str = "=\n";

/// The relay's side: starts the watchdog and reports agents to it.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    program: Option<PathBuf>,
    /// Whether the relay has children that do not come from agents.
    others: bool,
    post: Option<Post>,
}

#[derive(Debug)]
struct Post {
    child: std::process::Child,
    pipe: ChildStdin,
}

/// What the watchdog knows.
struct Watch {
    relay: Kin,
    /// Whether unmarked processes below the relay are to be left alone.
    others: bool,
    agents: BTreeMap<u32, Kin>,
    /// All processes that were below the relay at the last scan.
    seen: BTreeSet<Kin>,
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
    let mut watch = Watch {
        relay: Kin { pid, start },
        others: others != 0,
        agents: BTreeMap::new(),
        seen: BTreeSet::new(),
    };
    if watch.until_the_relay_is_gone()? {
        end(watch.left()?)?;
    }
    Ok(())
}

impl Keeper {
    /// Sets the program to run, without which there is no watchdog, and whether the relay has
    /// `others` below it that are to be left alone.
    pub(super) fn set_program(&mut self, program: &Path, others: bool) {
        self.program = Some(program.to_owned());
        self.others = others;
    }

    /// Its process id.
    pub(super) fn id(&self) -> Option<u32> {
        self.post.as_ref().map(|post| post.child.id())
    }

    /// Whether there should be one and is none; reaps one that exited.
    pub(super) fn is_gone(&mut self) -> bool {
        let dead = |post: &mut Post| !matches!(post.child.try_wait(), Ok(None));
        if self.post.as_mut().is_some_and(dead) {
            self.post = None;
        }
        self.program.is_some() && self.post.is_none()
    }

    /// Starts one, if there is none, and reports `agents` to it.
    pub(super) fn staff(&mut self, agents: impl Iterator<Item = Kin>) {
        if !self.is_gone() {
            return;
        }
        let Some(program) = &self.program else {
            return;
        };
        match Post::start(program, self.others) {
            Ok(post) => {
                self.post = Some(post);
                for agent in agents {
                    self.announce(agent);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no watchdog: agents outlive the relay if it is killed");
            }
        }
    }

    /// Reports a new agent.
    pub(super) fn announce(&mut self, agent: Kin) {
        self.say('+', agent);
    }

    /// Reports that an agent is gone.
    pub(super) fn dismiss(&mut self, agent: Kin) {
        self.say('-', agent);
    }

    /// Ends it without a search: there is nothing to be found.
    pub(super) fn release(&mut self) {
        if let Some(mut post) = self.post.take() {
            // Without the line it searches and finds nothing.
            let _ = post.pipe.write_all(RELEASE.as_bytes());
        }
    }

    fn say(&mut self, what: char, Kin { pid, start }: Kin) {
        let Some(post) = &mut self.post else {
            return;
        };
        // Shorter than PIPE_BUF, so written whole or not at all.
        let line = format!("{what}{pid} {start}\n");
        if let Err(error) = post.pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the watchdog does not read its pipe; it will be replaced");
            // It must not take the end of the pipe for the relay's death.
            let _ = post.child.kill();
            let _ = post.child.wait();
            self.post = None;
        }
    }
}

impl Post {
    fn start(program: &Path, others: bool) -> io::Result<Self> {
        let me = Kin::of(std::process::id()).ok_or_else(|| io::Error::other("no /proc"))?;
        let numbers =
            [me.pid.into(), me.start, others.into()].map(|number: u64| number.to_string());
        let mut child = Command::new(program)
            .arg0(OsString::from("acp-relay"))
            .arg(WORD)
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

impl Watch {
    /// Reads the pipe to its end and scans the tree meanwhile; whether processes may be left.
    fn until_the_relay_is_gone(&mut self) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        let mut pause = LOOK.0;
        let mut next_look = Instant::now() + pause;
        let mut rests_until = next_look;
        loop {
            let left = next_look.saturating_duration_since(Instant::now());
            // With no agent there is nothing to scan, and nothing to wake up for.
            let timeout = (!self.agents.is_empty())
                .then(|| Timespec::try_from(left))
                .transpose()
                .map_err(io::Error::other)?;
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) => {
                    let begun = Instant::now();
                    self.look()?;
                    let now = Instant::now();
                    pause = (pause * 2).min(LOOK.1);
                    rests_until = now + ((now - begun) * SHARE).min(LOOK.1);
                    next_look = (now + pause).max(rests_until);
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
                if self.hear(&String::from_utf8_lossy(&line)) {
                    pause = LOOK.0;
                    next_look = (Instant::now() + pause).max(rests_until);
                }
            }
        }
    }

    /// Handles one line; whether it reported a new agent.
    fn hear(&mut self, line: &str) -> bool {
        let Some((what, rest)) = line.split_at_checked(1) else {
            return false;
        };
        let mut numbers = rest.split_whitespace();
        let (Some(Ok(pid)), Some(Ok(start))) = (
            numbers.next().map(str::parse),
            numbers.next().map(str::parse),
        ) else {
            return false;
        };
        match what {
            "+" => self.agents.insert(pid, Kin { pid, start }).is_none(),
            "-" => {
                self.agents.remove(&pid);
                false
            }
            _ => false,
        }
    }

    fn look(&mut self) -> io::Result<()> {
        let census = Census::within(Some(self.relay.pid))?;
        // Below a relay that has just died no process is found any more.
        if census.get(self.relay.pid).is_some_and(|entry| entry.alive) {
            self.seen = self.below_the_relay(&census);
        }
        Ok(())
    }

    /// All processes below the relay, without its own process group, in which others may be.
    fn below_the_relay(&self, census: &Census) -> BTreeSet<Kin> {
        if (census.get(self.relay.pid)).is_none_or(|entry| entry.who != self.relay) {
            return BTreeSet::new();
        }
        let me = std::process::id();
        let children = census.children(self.relay.pid).map(|entry| entry.who);
        census.below(children.filter(|child| child.pid != me && self.may_be_an_agents(*child)))
    }

    /// Whether a child of the relay is an agent, or may have been left by one.
    fn may_be_an_agents(&self, child: Kin) -> bool {
        !self.others || self.agents.get(&child.pid) == Some(&child) || self.is_marked(child)
    }

    fn is_marked(&self, kin: Kin) -> bool {
        Mark::on(kin.pid).is_some_and(|mark| mark.is_from(self.relay))
    }

    /// The processes to be ended.
    fn left(&self) -> io::Result<BTreeSet<Kin>> {
        let census = Census::take()?;
        // The relay's files are closed before its children get another parent.
        let below = self.below_the_relay(&census);
        let me = std::process::id();
        let marked = census
            .all()
            .filter(|kin| kin.pid != me && self.is_marked(*kin));
        Ok(census.below(
            (self.agents.values())
                .chain(&self.seen)
                .chain(&below)
                .copied()
                .chain(marked),
        ))
    }
}

/// Ends `remaining` and all below, and waits until they are gone.
fn end(mut left: BTreeSet<Kin>) -> io::Result<()> {
    for kin in &left {
        // It does not matter if it is gone already.
        let _ = kin.signal(Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < GRACE && !left.is_empty() {
        std::thread::sleep(PACE);
        left = Census::take()?.below(left);
    }
    let told = Instant::now();
    while told.elapsed() < PATIENCE && !left.is_empty() {
        let roots: Vec<Kin> = left.iter().copied().collect();
        left.extend(family::fell(&roots, None)?);
        std::thread::sleep(PACE);
        left = Census::take()?.below(left);
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
    fn agents_come_and_go() {
        let mut watch = Watch {
            relay: Kin { pid: 1, start: 0 },
            others: false,
            agents: BTreeMap::new(),
            seen: BTreeSet::new(),
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
                (watch.hear(line), watch.agents.len()),
                (new, known),
                "{line}"
            );
        }
        assert_eq!(watch.agents[&8], Kin { pid: 8, start: 200 });
    }
}
