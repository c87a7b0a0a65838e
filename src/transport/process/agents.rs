//! The agents of this process, for those who start them, signal them and wait for their end.
//!
//! Nothing here waits for the thread that does the work, but [`settle`] and [`farewell`], which are
//! for the end of a program. Not here: that thread (see `reaper`), and the list that it works off
//! (see `roll`).

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

/// A start that has begun.
#[derive(Debug)]
pub(super) struct Starting {
    ticket: u64,
    _mark: Option<Worn>,
}

/// Makes this process answer for every process below it: the orphans of agents become our
/// children (Linux), which are killed with their agent and reaped, and when this process is
/// killed, a small helper process ends all of its agents. `program` is what the helper runs: our
/// own executable, whose `main` calls [`keeper::run`](super::keeper::run) when its first argument
/// is [`keeper::WORD`](super::keeper::WORD).
///
/// For a program that starts children in no other way than through this room: any other child
/// would be taken for an orphan. Children that it has already now (a shell script may have started
/// something and then replaced itself by us) and all that descends from them are left alone, and
/// so is what comes to the first process of a container from elsewhere in it. Call it once,
/// before the first agent.
///
/// # Errors
/// When the operating system does not let us adopt.
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

/// Has all agents refused from now on, because nobody could answer for what they start. What starts
/// no agent needs no answer.
pub fn bar(why: &io::Error) {
    reaper().lock().barred = Some(why.to_string());
}

/// Waits until all that was dropped is gone; `false` when that takes longer than `patience`.
/// Blocks: for the end of `main`, after the runtime.
pub fn settle(patience: Duration) -> bool {
    reaper().settled(patience).is_some()
}

/// The same when no agent will be started any more: if nothing is left of those there were, the
/// keeper need not look for it.
pub fn farewell(patience: Duration) -> bool {
    let Some(mut roll) = reaper().settled(patience) else {
        return false;
    };
    // Of those who hide below others' children only the keeper knows, which has looked. And what
    // cannot be seen to be over is left to it.
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

/// To be called before a child is started. To be dropped when it could not be started.
///
/// # Errors
/// When there can be no thread to reap it.
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
    // A kill is not taken back.
    if agent.order != Some(StopStep::Kill) {
        agent.order = Some(step);
    }
    drop(roll);
    reaper.bell.notify_one();
}

/// Has a whole tree killed, which nobody holds any more.
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
    /// Lists the child, and returns what it is listed under and where its exit will be told.
    pub(super) fn list(self, child: Child) -> (u64, Arc<Fate>) {
        let reaper = reaper();
        let mut roll = reaper.lock();
        let (ticket, pid) = (self.ticket, child.id());
        roll.births += 1;
        // Not known where there is no `/proc`; then there is its group.
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
        // It may have exited before it was listed.
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
