//! The table of agents: their processes, exits and pending signals. `reaper` works on it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::Arc;

use super::family::{self, Kin};
use super::fate::{Fate, how};
use super::keeper::Keeper;
use super::mark::Mark;
use crate::transport::{Exit, StopStep};

/// All agents, and the state that concerns all of them.
#[derive(Default)]
pub(super) struct Roll {
    /// By ticket, because process numbers are reused.
    pub(super) agents: BTreeMap<u64, Agent>,
    /// Children that are being started: not listed yet, but not orphans either.
    pub(super) expected: usize,
    /// Counts starts, begun and finished.
    pub(super) births: u64,
    /// Whether orphans become children of this process.
    pub(super) adopts: bool,
    /// Why no agent may be started, if none may.
    pub(super) barred: Option<String>,
    /// This process, once marks are made.
    pub(super) me: Option<Kin>,
    /// Whether there may be orphans that no agent left.
    pub(super) others: bool,
    pub(super) keeper: Keeper,
    /// Whether an agent may have exited.
    pub(super) died: bool,
    /// Whether there may be orphans.
    pub(super) stirred: bool,
    /// Whether the thread is searching for them just now.
    pub(super) sweeping: bool,
    /// Whether the thread runs.
    pub(super) started: bool,
}

/// One agent.
pub(super) struct Agent {
    pub(super) who: Kin,
    pub(super) child: Child,
    pub(super) fate: Arc<Fate>,
    /// Its number, and so its group's, may belong to another process by now.
    pub(super) reaped: bool,
    pub(super) order: Option<StopStep>,
    /// Its handle was dropped, and it is to be killed.
    pub(super) leaving: bool,
}

impl Roll {
    /// The agents that are to be killed.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.leaving)
    }

    /// The process below which all processes of agents are: this one, if it adopts all orphans.
    pub(super) fn top(&self) -> Option<u32> {
        self.adopts.then(std::process::id)
    }

    /// Whether this process has no child but the watchdog.
    pub(super) fn is_alone(&self) -> bool {
        let strangers = family::children(std::process::id(), &self.listed());
        strangers.is_ok_and(|all| {
            let mut others = all
                .iter()
                .filter(|child| self.keeper.id() != Some(child.who.pid));
            !others.any(|child| child.alive)
        })
    }

    /// The process numbers of children that are not orphans.
    pub(super) fn listed(&self) -> BTreeSet<u32> {
        let running = self.agents.values().filter(|agent| !agent.reaped);
        (running.map(|agent| agent.who.pid))
            .chain(self.keeper.id())
            .collect()
    }

    /// Whether the agent that left this orphan is gone.
    pub(super) fn is_over(&self, orphan: Kin, mark: Option<Mark>) -> bool {
        let mut living = self.agents.iter().filter(|(_, a)| !a.leaving);
        match (self.me, mark) {
            (Some(me), Some(mark)) if mark.is_from(me) => {
                !living.any(|(&ticket, _)| Mark::new(me, ticket) == mark)
            }
            _ if self.others => false,
            _ => living.all(|(_, agent)| orphan.start < agent.who.start),
        }
    }

    /// Collects the exits of agents and wakes their holders.
    pub(super) fn reap(&mut self) {
        self.died = false;
        for agent in self.agents.values_mut().filter(|agent| !agent.reaped) {
            let exit = match agent.child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => how(status),
                Err(error) => {
                    // It was reaped elsewhere.
                    let pid = agent.who.pid;
                    tracing::warn!(pid, %error, "the exit code of the agent is lost");
                    Exit::Code(-1)
                }
            };
            agent.reaped = true;
            agent.fate.is(exit);
        }
    }

    /// Makes sure that there is a watchdog and that it knows every agent.
    pub(super) fn staff_keeper(&mut self) {
        let known = self.agents.values().map(|agent| agent.who);
        self.keeper.staff(known);
    }
}
