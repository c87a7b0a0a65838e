//! The agents of this process, and the one thread that ends them.
//!
//! Ending a tree takes walks through `/proc`, which no runtime thread should make and which serve
//! many endings at once; reaping and the children of dead agents concern the whole process. So
//! there is one list and one thread for all of it. Orders never wait for the thread.
//!
//! A program that called [`answer_for_orphans`] also inherits what its agents leave behind. An
//! orphan that bears the mark of an agent is killed when that agent is gone. One that bears none
//! cannot have come from an agent younger than itself: it is killed when no living agent is old
//! enough to be its parent. But if anybody besides agents may leave us orphans, whoever is
//! unmarked is theirs, and lives.
//!
//! Not here: finding and signalling processes (see `family`), how they are marked (see `mark`),
//! our own death (see `keeper`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

use super::family::{self, Census, Kin};
use super::keeper::Keeper;
use super::mark::{Mark, Worn};
use crate::transport::StopStep;

/// Shortest time between two looks for orphans while agents live.
const SWEEP: Duration = Duration::from_secs(1);
/// First and longest pause before looking again whether what was killed is gone.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));

struct House {
    state: Mutex<State>,
    /// Rung whenever there is something to do, or nothing left to do.
    bell: Condvar,
}

#[derive(Default)]
struct State {
    /// By ticket, for process numbers come round again.
    agents: BTreeMap<u64, Agent>,
    /// Children that are being started: not listed yet, but not orphans either.
    expected: usize,
    /// Counts starts, begun and finished.
    births: u64,
    adopts: bool,
    /// Ourselves, once marks are to be made.
    me: Option<Kin>,
    /// Whether there may be orphans that no agent left.
    others: bool,
    keeper: Keeper,
    /// Whether a task tells us of SIGCHLD.
    watched: bool,
    /// Whether there may be orphans.
    stirred: bool,
    /// Whether the thread is looking for them just now.
    sweeping: bool,
    started: bool,
}

struct Agent {
    who: Kin,
    /// Its number, and so its group's, may belong to somebody else by now.
    reaped: bool,
    order: Option<StopStep>,
    /// It was dropped, and is to be gone: killed, and reaped by us.
    leaving: Option<Child>,
}

/// A start that has begun.
#[derive(Debug)]
pub(super) struct Birth {
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
        let has_children = |census: Census| census.children(me).any(|child| child.alive);
        let others = me == 1 || Census::take().is_ok_and(has_children);
        let mut state = house().lock();
        state.adopts = true;
        state.me = Kin::of(me);
        state.others = others;
        state.keeper.set_program(program, others);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
    Ok(())
}

/// Waits until all that was dropped is gone; `false` when that takes longer than `patience`.
/// Blocks: for the end of `main`, after the runtime.
pub fn settle(patience: Duration) -> bool {
    let house = house();
    let (state, timeout) = house
        .bell
        .wait_timeout_while(house.lock(), patience, |state| {
            state.leaving().next().is_some() || state.sweeping || (state.adopts && state.stirred)
        })
        .unwrap_or_else(PoisonError::into_inner);
    drop(state);
    !timeout.timed_out()
}

/// To be called before a child is started; dropped, when it could not be.
pub(super) fn expect_birth() -> Birth {
    let house = house();
    let mut state = house.lock();
    state.expected += 1;
    state.births += 1;
    let ticket = state.births;
    if !state.started {
        state.started = std::thread::Builder::new()
            .name("household".to_owned())
            .spawn(|| house.keep())
            .inspect_err(|error| tracing::error!(%error, "no thread to end agents with"))
            .is_ok();
    }
    let mut watch_out = false;
    if state.adopts {
        state.staff_keeper();
        watch_out = !std::mem::replace(&mut state.watched, true);
    }
    let mark = state.me.map(|me| Mark::new(me, ticket));
    drop(state);
    let birth = Birth {
        ticket,
        _mark: mark.and_then(Mark::wear),
    };
    if watch_out {
        // A runtime that is ending drops the task at once, and that takes the lock.
        tokio::spawn(watch(Watch(())));
    }
    birth
}

/// Orders a whole tree to stop.
pub(super) fn order(ticket: u64, step: StopStep) {
    let house = house();
    let mut state = house.lock();
    let Some(agent) = state.agents.get_mut(&ticket) else {
        return;
    };
    // A kill is not taken back.
    if agent.order != Some(StopStep::Kill) {
        agent.order = Some(step);
    }
    house.bell.notify_all();
}

/// Its exit code was collected.
pub(super) fn reaped(ticket: u64) {
    if let Some(agent) = house().lock().agents.get_mut(&ticket) {
        agent.reaped = true;
    }
}

/// Kills a whole tree and reaps the child.
pub(super) fn bury(ticket: u64, child: Child) {
    let house = house();
    let mut state = house.lock();
    // Without a thread, dropping the child kills it, which is all we can do.
    if state.started
        && let Some(agent) = state.agents.get_mut(&ticket)
    {
        agent.order = Some(StopStep::Kill);
        agent.leaving = Some(child);
    }
    house.bell.notify_all();
}

impl Birth {
    /// The child is there; what it is listed under.
    pub(super) fn of(self, pid: u32) -> u64 {
        let mut state = house().lock();
        let ticket = self.ticket;
        state.births += 1;
        // Not known where there is no `/proc`; then there is its group.
        let who = Kin::of(pid).unwrap_or(Kin { pid, start: 0 });
        state.agents.insert(
            ticket,
            Agent {
                who,
                reaped: false,
                order: None,
                leaving: None,
            },
        );
        state.keeper.announce(who);
        drop(state);
        ticket
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        let mut state = house().lock();
        state.expected -= 1;
        state.births += 1;
    }
}

fn house() -> &'static House {
    // Children, the adoption of orphans and SIGCHLD belong to the process, and so does this.
    static HOUSE: OnceLock<House> = OnceLock::new();
    HOUSE.get_or_init(|| House {
        state: Mutex::default(),
        bell: Condvar::new(),
    })
}

impl State {
    fn leaving(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.leaving.is_some())
    }

    /// The numbers of those children that are not orphans.
    fn listed(&self) -> BTreeSet<u32> {
        let running = self.agents.values().filter(|agent| !agent.reaped);
        (running.map(|agent| agent.who.pid))
            .chain(self.keeper.id())
            .collect()
    }

    /// Whether the agent that left this orphan is gone.
    fn is_over(&self, orphan: Kin, mark: Option<Mark>) -> bool {
        let mut living = self.agents.iter().filter(|(_, a)| a.leaving.is_none());
        match (self.me, mark) {
            (Some(me), Some(mark)) if mark.is_from(me) => {
                !living.any(|(&ticket, _)| Mark::new(me, ticket) == mark)
            }
            _ if self.others => false,
            _ => living.all(|(_, agent)| orphan.start < agent.who.start),
        }
    }

    /// Sees to it that there is a keeper and that it knows every agent.
    fn staff_keeper(&mut self) {
        let known = self.agents.values().map(|agent| agent.who);
        self.keeper.staff(known);
    }
}

impl House {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread. Sleeps unless there is an order, a leaving agent, or something stirred.
    fn keep(&self) {
        let mut next_sweep = Instant::now();
        let mut next_look = Instant::now();
        let mut pause = RETRY.0;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let ordered = state.agents.values().any(|agent| agent.order.is_some());
            let leaving = state.leaving().next().is_some();
            if ordered || (leaving && now >= next_look) {
                if ordered {
                    pause = RETRY.0;
                }
                drop(state);
                let gone = self.carry_out();
                state = self.lock();
                next_look = Instant::now() + pause;
                pause = (pause * 2).min(RETRY.1);
                if gone {
                    next_sweep = now;
                }
                self.bell.notify_all();
            } else if state.adopts && state.stirred && now >= next_sweep {
                state.stirred = false;
                state.sweeping = true;
                drop(state);
                let again = self.sweep();
                state = self.lock();
                state.sweeping = false;
                state.stirred |= again;
                let idle = again && state.agents.is_empty();
                next_sweep = Instant::now() + if idle { RETRY.0 * 5 } else { SWEEP };
                self.bell.notify_all();
            } else {
                let until = [
                    leaving.then_some(next_look),
                    (state.adopts && state.stirred).then_some(next_sweep),
                ];
                state = match until.into_iter().flatten().min() {
                    Some(until) => {
                        let wait = until.saturating_duration_since(now);
                        let woken = self.bell.wait_timeout(state, wait);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => {
                        let woken = self.bell.wait(state);
                        woken.unwrap_or_else(PoisonError::into_inner)
                    }
                };
            }
        }
    }

    /// Signals whom we were ordered to, and lets go of who is gone; whether somebody is.
    fn carry_out(&self) -> bool {
        let mut terminate = Vec::new();
        let mut kill = Vec::new();
        for agent in self.lock().agents.values_mut() {
            match agent.order.take() {
                Some(StopStep::Terminate) => terminate.push((agent.who, agent.reaped)),
                Some(StopStep::Kill) => kill.push((agent.who, agent.reaped)),
                None if agent.leaving.is_some() => kill.push((agent.who, agent.reaped)),
                None => {}
            }
        }
        for &(who, reaped) in &terminate {
            ask(who, reaped);
        }
        if !kill.is_empty() {
            let roots: Vec<Kin> = kill.iter().map(|&(who, _)| who).collect();
            if let Err(error) = family::fell(&roots) {
                tracing::debug!(%error, "killing by process group only");
            }
            for &(who, reaped) in &kill {
                signal_group(who, reaped, Signal::KILL);
            }
        }
        self.let_go()
    }

    /// Forgets the leaving agents that are reaped and have left nothing; whether there were any.
    fn let_go(&self) -> bool {
        let mut state = self.lock();
        for agent in state.agents.values_mut() {
            if let Some(child) = &mut agent.leaving
                && !matches!(child.try_wait(), Ok(None))
            {
                agent.reaped = true;
            }
        }
        let gone = |agent: &&Agent| agent.reaped && agent.leaving.is_some();
        let dead: Vec<(u64, Kin)> = (state.agents.iter())
            .filter(|(_, agent)| gone(agent))
            .map(|(&ticket, agent)| (ticket, agent.who))
            .collect();
        drop(state);
        if dead.is_empty() {
            return false;
        }
        // Without `/proc` there is nothing more to find out.
        let census = Census::take().unwrap_or_default();
        let mut state = self.lock();
        let mut gone = false;
        for (ticket, who) in dead {
            if census.below([who]).is_empty() {
                state.agents.remove(&ticket);
                state.keeper.dismiss(who);
                gone = true;
            }
        }
        state.stirred |= gone;
        gone
    }

    /// Reaps and kills orphans; whether it is worth looking again soon.
    fn sweep(&self) -> bool {
        let state = self.lock();
        let births = state.births;
        let listed = state.listed();
        drop(state);
        let Ok(census) = Census::take() else {
            return false;
        };
        // Nobody but us reaps them, so their numbers stay theirs.
        let found: Vec<(Kin, bool, Option<Mark>)> = (census.children(std::process::id()))
            .filter(|child| !listed.contains(&child.who.pid))
            .map(|child| (child.who, child.alive, Mark::on(child.who.pid)))
            .collect();
        let mut state = self.lock();
        if state.expected > 0 || state.births != births {
            // A child that is not listed yet would look like an orphan.
            return true;
        }
        if state.keeper.is_gone() && !state.agents.is_empty() {
            state.staff_keeper();
        }
        let keeper = state.keeper.id();
        let mut orphans = Vec::new();
        for (who, alive, mark) in found {
            if keeper == Some(who.pid) {
                continue;
            }
            if alive {
                if state.is_over(who, mark) {
                    orphans.push(who);
                }
            } else if let Some(pid) = family::number(who.pid) {
                // Ours and a zombie, so it does not block and nobody else has the number.
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        drop(state);
        if orphans.is_empty() {
            return false;
        }
        match family::fell(&orphans) {
            Ok(felled) => {
                tracing::debug!(count = felled.len(), "killed what agents left behind");
                !felled.is_empty()
            }
            Err(_) => false,
        }
    }
}

/// Asks a tree to end. Each process is asked once: many take a second signal for impatience.
fn ask(who: Kin, reaped: bool) {
    let Ok(census) = Census::take() else {
        signal_group(who, reaped, Signal::TERM);
        return;
    };
    let tree = census.below([who]);
    if !reaped {
        // As one, so that no member sees another vanish first.
        signal_group(who, reaped, Signal::TERM);
    }
    for kin in tree {
        let in_group = census.get(kin.pid).is_some_and(|e| e.group == who.pid);
        if reaped || !in_group {
            // One that is gone is what we want.
            let _ = kin.signal(Signal::TERM);
        }
    }
}

/// Signals the group of a child that was not waited for, so that the number is still its own.
fn signal_group(who: Kin, reaped: bool, signal: Signal) {
    if let (Some(group), false) = (family::number(who.pid), reaped) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Marks the house unwatched when the runtime that watched ends.
struct Watch(());

impl Drop for Watch {
    fn drop(&mut self) {
        house().lock().watched = false;
    }
}

/// Tells the thread of each SIGCHLD.
async fn watch(_mark: Watch) {
    let Ok(mut signals) = signal(SignalKind::child()) else {
        tracing::warn!("the orphans of agents are only reaped when an agent ends");
        return;
    };
    while signals.recv().await.is_some() {
        let house = house();
        house.lock().stirred = true;
        house.bell.notify_all();
    }
}
