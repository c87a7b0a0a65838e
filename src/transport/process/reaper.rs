//! The agents of this process, and the one thread that reaps and ends them.
//!
//! Ending a tree takes walks through `/proc`, which no runtime thread should make and which serve
//! many endings at once; reaping and the children of dead agents concern the whole process. So
//! there is one list and one thread for all of it, woken by SIGCHLD. Orders never wait for the
//! thread.
//!
//! A program that called [`answer_for_orphans`] also inherits what its agents leave behind. An
//! orphan that bears the mark of an agent is killed when that agent is gone. One that bears none
//! cannot have come from an agent younger than itself: it is killed when no living agent is old
//! enough to be its parent. But if anybody besides agents may leave us orphans, whoever is
//! unmarked is theirs, and lives.
//!
//! Not here: finding and signalling processes (see `family`), how they are marked (see `mark`),
//! our own death (see `keeper`).

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::family::{self, Census, Kin};
use super::fate::Fate;
use super::mark::{Mark, Worn};
use super::roll::{Agent, Roll};
use crate::transport::StopStep;

/// Shortest time between two looks for orphans while agents live.
const SWEEP: Duration = Duration::from_secs(1);
/// First and longest pause before looking again whether what was killed is gone.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));
/// Shortest time between two looks for agents that have exited. Each agent is asked, some 0.3 µs.
const REAP: Duration = Duration::from_millis(5);

struct House {
    state: Mutex<Roll>,
    /// Rung whenever there is something to do.
    bell: Notify,
    /// Rung whenever something was done.
    done: Condvar,
}

/// When the thread does what may be done only now and then.
struct Pace {
    next_reap: Instant,
    next_look: Instant,
    next_sweep: Instant,
    /// What is waited for those who were killed.
    pause: Duration,
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
        let children = || family::children(me, &BTreeSet::new());
        let others = me == 1 || children().is_ok_and(|found| found.iter().any(|c| c.alive));
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
    house().settled(patience).is_some()
}

/// The same when no agent will be started any more: if nothing is left of those there were, the
/// keeper need not look for it.
pub fn farewell(patience: Duration) -> bool {
    let Some(mut state) = house().settled(patience) else {
        return false;
    };
    // Of those who hide below others' children only the keeper knows, which has looked. And what
    // cannot be seen to be over is left to it.
    let over = state.agents.is_empty() && state.expected == 0 && !state.others;
    if over && state.is_alone() {
        state.keeper.release();
    }
    true
}

/// To be called before a child is started; dropped, when it could not be.
///
/// # Errors
/// When there can be no thread to reap it.
pub(super) fn expect_birth() -> io::Result<Birth> {
    let house = house();
    let mut state = house.lock();
    if !state.started {
        house.start()?;
        state.started = true;
    }
    state.expected += 1;
    state.births += 1;
    let ticket = state.births;
    if state.adopts {
        state.staff_keeper();
    }
    let mark = state.me.map(|me| Mark::new(me, ticket));
    drop(state);
    Ok(Birth {
        ticket,
        _mark: mark.and_then(Mark::wear),
    })
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
    drop(state);
    house.bell.notify_one();
}

/// Kills a whole tree, which nobody has any more.
pub(super) fn bury(ticket: u64) {
    let house = house();
    let mut state = house.lock();
    if let Some(agent) = state.agents.get_mut(&ticket) {
        agent.order = Some(StopStep::Kill);
        agent.leaving = true;
    }
    drop(state);
    house.bell.notify_one();
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            next_reap: now,
            next_look: now,
            next_sweep: now,
            pause: RETRY.0,
        }
    }

    /// When there will be something to do, if nothing happens until then.
    fn due(&self, agents: &Roll) -> Option<Instant> {
        let due = [
            agents.died.then_some(self.next_reap),
            agents.leaving().next().map(|_| self.next_look),
            (agents.adopts && agents.stirred).then_some(self.next_sweep),
        ];
        due.into_iter().flatten().min()
    }
}

impl Birth {
    /// The child is there; what it is listed under, and where its exit will be told.
    pub(super) fn of(self, child: Child) -> (u64, Arc<Fate>) {
        let house = house();
        let mut state = house.lock();
        let (ticket, pid) = (self.ticket, child.id());
        state.births += 1;
        // Not known where there is no `/proc`; then there is its group.
        let who = Kin::of(pid).unwrap_or(Kin { pid, start: 0 });
        let fate = Arc::<Fate>::default();
        state.agents.insert(
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
        state.keeper.announce(who);
        // It may have exited before it was listed.
        state.died = true;
        drop(state);
        house.bell.notify_one();
        (ticket, fate)
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
        bell: Notify::new(),
        done: Condvar::new(),
    })
}

impl House {
    fn lock(&self) -> MutexGuard<'_, Roll> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is left to be done; `None` when that takes longer than `patience`.
    fn settled(&self, patience: Duration) -> Option<MutexGuard<'_, Roll>> {
        let (state, timeout) = self
            .done
            .wait_timeout_while(self.lock(), patience, |state| {
                state.leaving().next().is_some()
                    || state.sweeping
                    || (state.adopts && state.stirred)
            })
            .unwrap_or_else(PoisonError::into_inner);
        (!timeout.timed_out()).then_some(state)
    }

    /// Starts the thread. It has a runtime of its own, so that it hears of every SIGCHLD whichever
    /// other runtimes come and go.
    fn start(&'static self) -> io::Result<()> {
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("household".to_owned());
        thread.spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            runtime.block_on(async {
                match signal(SignalKind::child()) {
                    Ok(deaths) => {
                        // Whoever starts us waits for this word.
                        let _ = tell.send(Ok(()));
                        self.keep(deaths).await;
                    }
                    Err(error) => drop(tell.send(Err(error))),
                }
            });
        })?;
        told.recv().map_err(io::Error::other)?
    }

    /// The thread. Sleeps unless there is an order, a leaving agent, or something stirred.
    async fn keep(&self, mut deaths: Signals) {
        let mut pace = Pace::new();
        loop {
            while self.work(&mut pace) {
                self.done.notify_all();
            }
            let until = pace.due(&self.lock());
            let due = async {
                match until {
                    Some(until) => sleep(until.saturating_duration_since(Instant::now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.bell.notified() => {}
                () = due => {}
                _ = deaths.recv() => {
                    let mut state = self.lock();
                    state.died = true;
                    state.stirred = true;
                }
            }
        }
    }

    /// Does one thing that is due; whether there was one.
    fn work(&self, pace: &mut Pace) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let ordered = state.agents.values().any(|agent| agent.order.is_some());
        let leaving = state.leaving().next().is_some();
        if state.died && now >= pace.next_reap {
            state.reap();
            pace.next_reap = Instant::now() + REAP;
        } else if ordered || (leaving && now >= pace.next_look) {
            if ordered {
                pace.pause = RETRY.0;
            }
            drop(state);
            let gone = self.carry_out();
            pace.next_look = Instant::now() + pace.pause;
            pace.pause = (pace.pause * 2).min(RETRY.1);
            if gone {
                pace.next_sweep = now;
            }
        } else if state.adopts && state.stirred && now >= pace.next_sweep {
            state.stirred = false;
            state.sweeping = true;
            drop(state);
            let again = self.sweep();
            let mut state = self.lock();
            state.sweeping = false;
            state.stirred |= again;
            let idle = again && state.agents.is_empty();
            pace.next_sweep = Instant::now() + if idle { RETRY.0 * 5 } else { SWEEP };
        } else {
            return false;
        }
        true
    }

    /// Signals whom we were ordered to, and lets go of who is gone; whether somebody is.
    fn carry_out(&self) -> bool {
        let mut terminate = Vec::new();
        let mut kill = Vec::new();
        let mut state = self.lock();
        let top = state.top();
        for agent in state.agents.values_mut() {
            match agent.order.take() {
                Some(StopStep::Terminate) => terminate.push((agent.who, agent.reaped)),
                Some(StopStep::Kill) => kill.push((agent.who, agent.reaped)),
                None if agent.leaving => kill.push((agent.who, agent.reaped)),
                None => {}
            }
        }
        drop(state);
        for &(who, reaped) in &terminate {
            ask(who, reaped, top);
        }
        if !kill.is_empty() {
            let roots: Vec<Kin> = kill.iter().map(|&(who, _)| who).collect();
            if let Err(error) = family::fell(&roots, top) {
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
        state.reap();
        let gone = |agent: &&Agent| agent.reaped && agent.leaving;
        let dead: Vec<(u64, Kin)> = (state.agents.iter())
            .filter(|(_, agent)| gone(agent))
            .map(|(&ticket, agent)| (ticket, agent.who))
            .collect();
        let top = state.top();
        drop(state);
        if dead.is_empty() {
            return false;
        }
        // Without `/proc` there is nothing more to find out.
        let census = Census::within(top).unwrap_or_default();
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
        let Ok(strangers) = family::children(std::process::id(), &listed) else {
            return false;
        };
        // Nobody but us reaps them, so their numbers stay theirs.
        let found: Vec<(Kin, bool, Option<Mark>)> = (strangers.into_iter())
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
        let top = state.top();
        drop(state);
        if orphans.is_empty() {
            return false;
        }
        match family::fell(&orphans, top) {
            Ok(felled) => {
                tracing::debug!(count = felled.len(), "killed what agents left behind");
                // One that has gone by itself may have left us its children.
                !felled.is_empty() || orphans.iter().any(|orphan| !orphan.is_alive())
            }
            Err(_) => false,
        }
    }
}

/// Asks a tree to end. Each process is asked once: many take a second signal for impatience.
fn ask(who: Kin, reaped: bool, top: Option<u32>) {
    let Ok(census) = Census::within(top) else {
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
