//! The table of agents: their processes, exits and pending signals. `reaper` works on it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use tokio::sync::oneshot;

use super::mark::Mark;
use super::process_id::ProcessId;
use super::tree;
use super::watchdog::Watchdog;
use crate::transport::{Exit, StopStep};

/// All agents, and the state that concerns all of them.
#[derive(Default)]
pub(super) struct ChildTable {
    /// By ticket, because process numbers are reused.
    pub(super) agents: BTreeMap<u64, Agent>,
    /// Children that are being started: not listed yet, but not orphans either.
    pub(super) starting: usize,
    /// Counts starts, begun and finished.
    pub(super) starts: u64,
    /// Whether orphans become children of this process.
    pub(super) adopts: bool,
    /// Why no agent may be started, if none may.
    pub(super) forbidden: Option<String>,
    /// This process, once marks are made.
    pub(super) own_id: Option<ProcessId>,
    /// Whether there may be orphans that no agent left.
    pub(super) others: bool,
    pub(super) watchdog: Watchdog,
    /// Whether an agent may have exited.
    pub(super) child_exited: bool,
    /// Whether there may be orphans.
    pub(super) maybe_orphans: bool,
    /// Whether the thread is searching for them just now.
    pub(super) sweeping: bool,
    /// Whether the thread runs.
    pub(super) started: bool,
}

/// One agent.
pub(super) struct Agent {
    pub(super) id: ProcessId,
    pub(super) child: Child,
    /// Takes its exit; `None` once it is reaped: its number, and so its group's, may belong to
    /// another process by then.
    pub(super) exit: Option<oneshot::Sender<Exit>>,
    pub(super) order: Option<StopStep>,
    /// Its handle was dropped, and it is to be killed.
    pub(super) leaving: bool,
}

impl ChildTable {
    /// The agents that are to be killed.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.leaving)
    }

    /// The process below which all processes of agents are: this one, if it adopts all orphans.
    pub(super) fn root(&self) -> Option<u32> {
        self.adopts.then(std::process::id)
    }

    /// Whether this process has no child but the watchdog.
    pub(super) fn has_no_other_child(&self) -> bool {
        let children = tree::children(std::process::id(), &self.listed());
        children.is_ok_and(|all| {
            let mut others = all
                .iter()
                .filter(|child| self.watchdog.id() != Some(child.id.pid));
            !others.any(|child| child.alive)
        })
    }

    /// The process numbers of children that are not orphans.
    pub(super) fn listed(&self) -> BTreeSet<u32> {
        let running = self.agents.values().filter(|agent| !agent.is_reaped());
        (running.map(|agent| agent.id.pid))
            .chain(self.watchdog.id())
            .collect()
    }

    /// Whether the agent that left this orphan has ended.
    pub(super) fn is_abandoned(&self, orphan: ProcessId, mark: Option<Mark>) -> bool {
        let mut living = self.agents.iter().filter(|(_, a)| !a.leaving);
        match (self.own_id, mark) {
            (Some(own_id), Some(mark)) if mark.is_from(own_id) => {
                !living.any(|(&ticket, _)| Mark::new(own_id, ticket) == mark)
            }
            _ if self.others => false,
            _ => living.all(|(_, agent)| orphan.start < agent.id.start),
        }
    }

    /// Collects the exits of agents and wakes their holders.
    pub(super) fn reap(&mut self) {
        self.child_exited = false;
        for agent in self.agents.values_mut().filter(|agent| !agent.is_reaped()) {
            let exit = match agent.child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => to_exit(status),
                Err(error) => {
                    // It was reaped elsewhere.
                    let pid = agent.id.pid;
                    tracing::warn!(pid, %error, "the exit code of the agent is lost");
                    Exit::Code(-1)
                }
            };
            // Its holder may have been dropped.
            let _ = agent.exit.take().map(|holder| holder.send(exit));
        }
    }

    /// Makes sure that there is a watchdog and that every agent was reported to it.
    pub(super) fn ensure_watchdog(&mut self) {
        let known = self.agents.values().map(|agent| agent.id);
        self.watchdog.ensure(known);
    }
}

impl Agent {
    /// Whether its exit was collected.
    pub(super) const fn is_reaped(&self) -> bool {
        self.exit.is_none()
    }
}

/// Converts the status that the operating system reports.
fn to_exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
