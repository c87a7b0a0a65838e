//! The interface to the agents of this process: starting them, signalling them, waiting for their
//! end.
//!
//! Only [`settle`] and [`shut_down`] wait for the thread that does the work (see `reaper`); they
//! are for the end of a program. The agents are listed in `child_table`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use super::family::{self, Kin};
use super::fate::Fate;
use super::mark::{Mark, Worn};
use super::reaper::reaper;
use super::roll::Agent;
use crate::transport::StopStep;

/// A child that is being started.
#[derive(Debug)]
pub(super) struct Starting {
    ticket: u64,
    _mark: Option<Worn>,
}

/// Makes this process responsible for every process below it: the orphans of agents become its
/// children (Linux), which are killed with their agent and reaped, and when this process is killed,
/// a small helper process ends all of its agents. `program` is what the helper runs: the executable
/// of this process, whose `main` calls [`watchdog::run`](super::watchdog::run) when its first
/// argument is [`watchdog::SUBCOMMAND`](super::watchdog::SUBCOMMAND).
///
/// For a program that starts children only through this module: any other child would be taken for
/// an orphan. Children that exist already (a shell script may have started something and then
/// replaced itself by this program) and all their descendants are left alone, and so are processes
/// that the first process of a container inherits from elsewhere in it. Call it once, before the
/// first agent.
///
/// # Errors
/// When the operating system does not allow it.
pub fn answer_for_orphans(program: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let me = std::process::id();
        let children = || family::children(me, &BTreeSet::new());
        let others = me == 1 || children().is_ok_and(|found| found.iter().any(|c| c.alive));
        let mut roll = reaper().lock();
        roll.adopts = true;
        roll.me = Kin::of(me);
        roll.others = others;
        roll.keeper.set_program(program, others);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
    Ok(())
}

/// Makes every later start of an agent fail, because its processes could not be found and ended.
/// The rest of the program keeps running.
pub fn bar(why: &io::Error) {
    reaper().lock().barred = Some(why.to_string());
}

/// Waits until all dropped agents are gone; `false` when that takes longer than `timeout`. Blocks:
/// for the end of `main`, after the runtime.
pub fn settle(patience: Duration) -> bool {
    reaper().settled(patience).is_some()
}

/// The same when no agent will be started any more: if nothing is left of the agents, the watchdog
/// is released.
pub fn farewell(patience: Duration) -> bool {
    let Some(mut roll) = reaper().settled(patience) else {
        return false;
    };
    // Only the watchdog, which has looked, knows of processes that hide below children of other
    // programs. It also handles what cannot be proved to be finished.
    let over = roll.agents.is_empty() && roll.expected == 0 && !roll.others;
    if over && roll.is_alone() {
        roll.keeper.release();
    }
    true
}

/// Why no agent may be started, if none may.
pub(super) fn barred() -> Option<String> {
    reaper().lock().barred.clone()
}

/// Call it before a child is started, and drop the result when the start failed.
///
/// # Errors
/// When the thread that reaps children cannot be started.
pub(super) fn starting() -> io::Result<Starting> {
    let reaper = reaper();
    let mut roll = reaper.lock();
    if !roll.started {
        reaper.start()?;
        roll.started = true;
    }
    roll.expected += 1;
    roll.births += 1;
    let ticket = roll.births;
    if roll.adopts {
        roll.staff_keeper();
    }
    let mark = roll.me.map(|me| Mark::new(me, ticket));
    drop(roll);
    Ok(Starting {
        ticket,
        _mark: mark.and_then(Mark::wear),
    })
}

/// Has a whole tree signalled.
pub(super) fn signal(ticket: u64, step: StopStep) {
    let reaper = reaper();
    let mut roll = reaper.lock();
    let Some(agent) = roll.agents.get_mut(&ticket) else {
        return;
    };
    // A kill is not revoked.
    if agent.order != Some(StopStep::Kill) {
        agent.order = Some(step);
    }
    drop(roll);
    reaper.bell.notify_one();
}

/// Has a whole tree killed whose handle was dropped.
pub(super) fn kill(ticket: u64) {
    let reaper = reaper();
    let mut roll = reaper.lock();
    if let Some(agent) = roll.agents.get_mut(&ticket) {
        agent.order = Some(StopStep::Kill);
        agent.leaving = true;
    }
    drop(roll);
    reaper.bell.notify_one();
}

impl Starting {
    /// Registers the child; returns its ticket and the place where its exit will be stored.
    pub(super) fn list(self, child: Child) -> (u64, Arc<Fate>) {
        let reaper = reaper();
        let mut roll = reaper.lock();
        let (ticket, pid) = (self.ticket, child.id());
        roll.births += 1;
        // Unknown where there is no `/proc`; then the process group has to do.
        let who = Kin::of(pid).unwrap_or(Kin { pid, start: 0 });
        let fate = Arc::<Fate>::default();
        roll.agents.insert(
            ticket,
            Agent {
                who,
                child,
                fate: Arc::clone(&fate),
                reaped: false,
                order: None,
                leaving: false,
            },
        );
        roll.keeper.announce(who);
        // It may have exited before it was registered.
        roll.died = true;
        drop(roll);
        reaper.bell.notify_one();
        (ticket, fate)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let mut roll = reaper().lock();
        roll.expected -= 1;
        roll.births += 1;
    }
}
