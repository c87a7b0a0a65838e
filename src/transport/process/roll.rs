//! The agents there are: who they are, whether they have ended, and what is to become of them.
//!
//! Not here: the thread that does it (see `reaper`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::Arc;

use super::family::{self, Kin};
use super::fate::{Fate, how};
use super::keeper::Keeper;
use super::mark::Mark;
use crate::transport::{Exit, StopStep};

/// All agents, and what concerns all of them.
#[derive(Default)]
pub(super) struct Roll {
    /// By ticket, for process numbers come round again.
    pub(super) agents: BTreeMap<u64, Agent>,
    /// Children that are being started: not listed yet, but not orphans either.
    pub(super) expected: usize,
    /// Counts starts, begun and finished.
    pub(super) births: u64,
    /// Whether orphans become our children.
    pub(super) adopts: bool,
    /// Why no agent may be started, if none may.
    pub(super) barred: Option<String>,
    /// Ourselves, once marks are to be made.
    pub(super) me: Option<Kin>,
    /// Whether there may be orphans that no agent left.
    pub(super) others: bool,
    pub(super) keeper: Keeper,
    /// Whether an agent may have exited.
    pub(super) died: bool,
    /// Whether there may be orphans.
    pub(super) stirred: bool,
    /// Whether the thread is looking for them just now.
    pub(super) sweeping: bool,
    /// Whether the thread runs.
    pub(super) started: bool,
}

/// One of them.
pub(super) struct Agent {
    pub(super) who: Kin,
    pub(super) child: Child,
    pub(super) fate: Arc<Fate>,
    /// Its number, and so its group's, may belong to somebody else by now.
    pub(super) reaped: bool,
    pub(super) order: Option<StopStep>,
    /// Nobody has it any more, and it is to be gone.
    pub(super) leaving: bool,
}

impl Roll {
    /// Those who are to be gone.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.leaving)
    }

    /// Below whom all is that an agent ever started: ourselves, if no orphan passes us by.
    pub(super) fn top(&self) -> Option<u32> {
        self.adopts.then(std::process::id)
    }

    /// Whether we have no child but the keeper.
    pub(super) fn is_alone(&self) -> bool {
        let strangers = family::children(std::process::id(), &self.listed());
        strangers.is_ok_and(|all| {
            let mut others = all
                .iter()
                .filter(|child| self.keeper.id() != Some(child.who.pid));
            !others.any(|child| child.alive)
        })
    }

    /// The numbers of those children that are not orphans.
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

    /// Collects the exits of agents, and tells those who wait for them.
    pub(super) fn reap(&mut self) {
        self.died = false;
        for agent in self.agents.values_mut().filter(|agent| !agent.reaped) {
            let exit = match agent.child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => how(status),
                Err(error) => {
                    // Somebody else reaped it.
                    let pid = agent.who.pid;
                    tracing::warn!(pid, %error, "the exit code of the agent is lost");
                    Exit::Code(-1)
                }
            };
            agent.reaped = true;
            agent.fate.is(exit);
        }
    }

    /// Sees to it that there is a keeper and that it knows every agent.
    pub(super) fn staff_keeper(&mut self) {
        let known = self.agents.values().map(|agent| agent.who);
        self.keeper.staff(known);
    }
}
