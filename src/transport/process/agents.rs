//! The interface to the agents of this process: starting them, signalling them, waiting for their
//! end.
//!
//! Only [`settle`] and [`shut_down`] wait for the thread that does the work (see `reaper`); they
//! are for the end of a program. The agents are listed in `child_table`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use tokio::sync::oneshot;

use super::child_table::Agent;
use super::mark::{Mark, MarkGuard};
use super::process_id::ProcessId;
use super::reaper::reaper;
use super::tree;
use crate::transport::{Exit, StopStep};

/// A child that is being started.
#[derive(Debug)]
pub(super) struct Start {
    ticket: u64,
    _mark: Option<MarkGuard>,
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
pub fn adopt_orphans(program: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let own_pid = std::process::id();
        let find_children = || tree::children(own_pid, &BTreeSet::new());
        let others =
            own_pid == 1 || find_children().is_ok_and(|found| found.iter().any(|c| c.alive));
        let mut table = reaper().lock();
        table.adopts = true;
        table.own_id = ProcessId::of(own_pid);
        table.others = others;
        table.watchdog.set_program(program, others);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
    Ok(())
}

/// Makes every later start of an agent fail, because its processes could not be found and ended.
/// The rest of the program keeps running.
pub fn forbid_agents(why: &io::Error) {
    reaper().lock().forbidden = Some(why.to_string());
}

/// Waits until all dropped agents are gone; `false` when that takes longer than `timeout`. Blocks:
/// for the end of `main`, after the runtime.
pub fn settle(timeout: Duration) -> bool {
    reaper().wait_settled(timeout).is_some()
}

/// The same when no agent will be started any more: if nothing is left of the agents, the watchdog
/// is released.
pub fn shut_down(timeout: Duration) -> bool {
    let Some(mut table) = reaper().wait_settled(timeout) else {
        return false;
    };
    // Only the watchdog, which scans, finds processes that hide below children of other
    // programs. It also handles what cannot be proved to be finished.
    let finished = table.agents.is_empty() && table.starting == 0 && !table.others;
    if finished && table.has_no_other_child() {
        table.watchdog.release();
    }
    true
}

/// Why no agent may be started, if none may.
pub(super) fn forbidden() -> Option<String> {
    reaper().lock().forbidden.clone()
}

/// Call it before a child is started, and drop the result when the start failed.
///
/// # Errors
/// When the thread that reaps children cannot be started.
pub(super) fn starting() -> io::Result<Start> {
    let reaper = reaper();
    let mut table = reaper.lock();
    if !table.started {
        reaper.start()?;
        table.started = true;
    }
    table.starting += 1;
    table.starts += 1;
    let ticket = table.starts;
    if table.adopts {
        table.ensure_watchdog();
    }
    let mark = table.own_id.map(|me| Mark::new(me, ticket));
    drop(table);
    Ok(Start {
        ticket,
        _mark: mark.and_then(Mark::apply),
    })
}

/// Has a whole tree signalled.
pub(super) fn signal(ticket: u64, step: StopStep) {
    let reaper = reaper();
    let mut table = reaper.lock();
    let Some(agent) = table.agents.get_mut(&ticket) else {
        return;
    };
    // A kill is not revoked.
    if agent.order != Some(StopStep::Kill) {
        agent.order = Some(step);
    }
    drop(table);
    reaper.wake.notify_one();
}

/// Has a whole tree killed whose handle was dropped.
pub(super) fn kill(ticket: u64) {
    let reaper = reaper();
    let mut table = reaper.lock();
    if let Some(agent) = table.agents.get_mut(&ticket) {
        agent.order = Some(StopStep::Kill);
        agent.leaving = true;
    }
    drop(table);
    reaper.wake.notify_one();
}

impl Start {
    /// Registers the child; returns its ticket, and what its exit will come on.
    pub(super) fn register(self, child: Child) -> (u64, oneshot::Receiver<Exit>) {
        let reaper = reaper();
        let mut table = reaper.lock();
        let (ticket, pid) = (self.ticket, child.id());
        table.starts += 1;
        // Unknown where there is no `/proc`; then the process group has to do.
        let id = ProcessId::of(pid).unwrap_or(ProcessId { pid, start: 0 });
        let (holder, exit) = oneshot::channel();
        table.agents.insert(
            ticket,
            Agent {
                id,
                child,
                exit: Some(holder),
                order: None,
                leaving: false,
            },
        );
        table.watchdog.add(id);
        // It may have exited before it was registered.
        table.child_exited = true;
        drop(table);
        reaper.wake.notify_one();
        (ticket, exit)
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let mut table = reaper().lock();
        table.starting -= 1;
        table.starts += 1;
    }
}
