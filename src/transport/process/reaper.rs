//! The thread that reaps agents, ends their trees, and reaps what they leave behind.
//!
//! Ending a tree takes walks through `/proc`, which no runtime thread should make and which serve
//! many trees at once; reaping and the children of dead agents concern the whole process. So there
//! is one list and one thread for all of it, woken by SIGCHLD. Callers do not wait for it.
//!
//! A program that called `adopt_orphans` also inherits what its agents leave behind. An orphan with
//! the mark of an agent is killed when that agent is gone. An orphan without a mark cannot have
//! come from an agent younger than itself, so it is killed when no living agent is old enough to be
//! its parent. But where other processes than agents may leave orphans to the relay, those without
//! a mark are attributed to them and are left alone.

use std::io;
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::process::{Signal, WaitOptions};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::family::{self, Census, Kin};
use super::mark::Mark;
use super::roll::{Agent, Roll};
use crate::transport::StopStep;

/// Shortest time between two searches for orphans while agents live.
const SWEEP: Duration = Duration::from_secs(1);
/// First and longest pause before checking again whether killed processes are gone.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));
/// Shortest time between two checks for exited agents. Each agent costs some 0.3 µs.
const REAP: Duration = Duration::from_millis(5);

/// The interface to the thread.
pub(super) struct Reaper {
    roll: Mutex<Roll>,
    /// Notified whenever there is something to do.
    pub(super) bell: Notify,
    /// Notified whenever something was done.
    done: Condvar,
}

/// When the thread does what is limited in rate.
struct Pace {
    next_reap: Instant,
    next_look: Instant,
    next_sweep: Instant,
    /// The next pause before checking whether killed processes are gone.
    pause: Duration,
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

/// The reaper of this process.
pub(super) fn reaper() -> &'static Reaper {
    // Children, the adoption of orphans and SIGCHLD belong to the process, and so does this.
    static REAPER: OnceLock<Reaper> = OnceLock::new();
    REAPER.get_or_init(|| Reaper {
        roll: Mutex::default(),
        bell: Notify::new(),
        done: Condvar::new(),
    })
}

impl Reaper {
    /// The list of agents.
    pub(super) fn lock(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock()
    }

    /// Waits until nothing is left to be done; `None` when that takes longer than `timeout`.
    pub(super) fn settled(&self, patience: Duration) -> Option<MutexGuard<'_, Roll>> {
        let busy = |roll: &mut Roll| {
            roll.leaving().next().is_some() || roll.sweeping || (roll.adopts && roll.stirred)
        };
        let mut roll = self.lock();
        let waited = self.done.wait_while_for(&mut roll, busy, patience);
        (!waited.timed_out()).then_some(roll)
    }

    /// Starts the thread. To be called once. It has a runtime of its own, so that it receives every
    /// SIGCHLD independently of other runtimes.
    pub(super) fn start(&'static self) -> io::Result<()> {
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        thread.spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            runtime.block_on(async {
                match signal(SignalKind::child()) {
                    Ok(deaths) => {
                        // `start` waits for this.
                        let _ = tell.send(Ok(()));
                        self.keep(deaths).await;
                    }
                    Err(error) => drop(tell.send(Err(error))),
                }
            });
        })?;
        told.recv().map_err(io::Error::other)?
    }

    /// The thread. Sleeps unless there is an order, a leaving agent, or a possible orphan.
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
                    let mut roll = self.lock();
                    roll.died = true;
                    roll.stirred = true;
                }
            }
        }
    }

    /// Does one thing that is due; whether there was one.
    fn work(&self, pace: &mut Pace) -> bool {
        let now = Instant::now();
        let mut roll = self.lock();
        let ordered = roll.agents.values().any(|agent| agent.order.is_some());
        let leaving = roll.leaving().next().is_some();
        if roll.died && now >= pace.next_reap {
            roll.reap();
            pace.next_reap = Instant::now() + REAP;
        } else if ordered || (leaving && now >= pace.next_look) {
            if ordered {
                pace.pause = RETRY.0;
            }
            drop(roll);
            let gone = self.carry_out();
            pace.next_look = Instant::now() + pace.pause;
            pace.pause = (pace.pause * 2).min(RETRY.1);
            if gone {
                pace.next_sweep = now;
            }
        } else if roll.adopts && roll.stirred && now >= pace.next_sweep {
            roll.stirred = false;
            roll.sweeping = true;
            drop(roll);
            let again = self.sweep();
            let mut roll = self.lock();
            roll.sweeping = false;
            roll.stirred |= again;
            let idle = again && roll.agents.is_empty();
            pace.next_sweep = Instant::now() + if idle { RETRY.0 * 5 } else { SWEEP };
        } else {
            return false;
        }
        true
    }

    /// Sends the ordered signals, and removes agents that are gone; whether one was removed.
    fn carry_out(&self) -> bool {
        let mut terminate = Vec::new();
        let mut kill = Vec::new();
        let mut roll = self.lock();
        let top = roll.top();
        for agent in roll.agents.values_mut() {
            match agent.order.take() {
                Some(StopStep::Terminate) => terminate.push((agent.who, agent.reaped)),
                Some(StopStep::Kill) => kill.push((agent.who, agent.reaped)),
                None if agent.leaving => kill.push((agent.who, agent.reaped)),
                None => {}
            }
        }
        drop(roll);
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

    /// Removes the leaving agents that are reaped and have left nothing; whether there were any.
    fn let_go(&self) -> bool {
        let mut roll = self.lock();
        roll.reap();
        let gone = |agent: &&Agent| agent.reaped && agent.leaving;
        let dead: Vec<(u64, Kin)> = (roll.agents.iter())
            .filter(|(_, agent)| gone(agent))
            .map(|(&ticket, agent)| (ticket, agent.who))
            .collect();
        let top = roll.top();
        drop(roll);
        if dead.is_empty() {
            return false;
        }
        // Without `/proc` there is nothing more to find out.
        let census = Census::within(top).unwrap_or_default();
        let mut roll = self.lock();
        let mut gone = false;
        for (ticket, who) in dead {
            if census.below([who]).is_empty() {
                roll.agents.remove(&ticket);
                roll.keeper.dismiss(who);
                gone = true;
            }
        }
        roll.stirred |= gone;
        gone
    }

    /// Reaps and kills orphans; whether another search soon is worth it.
    fn sweep(&self) -> bool {
        let roll = self.lock();
        let births = roll.births;
        let listed = roll.listed();
        drop(roll);
        let Ok(strangers) = family::children(std::process::id(), &listed) else {
            return false;
        };
        // Only this thread reaps them, so their numbers stay theirs.
        let found: Vec<(Kin, bool, Option<Mark>)> = (strangers.into_iter())
            .map(|child| (child.who, child.alive, Mark::on(child.who.pid)))
            .collect();
        let mut roll = self.lock();
        if roll.expected > 0 || roll.births != births {
            // A child that is not listed yet would look like an orphan.
            return true;
        }
        if roll.keeper.is_gone() && !roll.agents.is_empty() {
            roll.staff_keeper();
        }
        let keeper = roll.keeper.id();
        let mut orphans = Vec::new();
        for (who, alive, mark) in found {
            if keeper == Some(who.pid) {
                continue;
            }
            if alive {
                if roll.is_over(who, mark) {
                    orphans.push(who);
                }
            } else if let Some(pid) = family::number(who.pid) {
                // A zombie child: the call does not block, and no other process has the number.
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        let top = roll.top();
        drop(roll);
        if orphans.is_empty() {
            return false;
        }
        match family::fell(&orphans, top) {
            Ok(felled) => {
                tracing::debug!(count = felled.len(), "killed what agents left behind");
                // An orphan that exited by itself may have left its children to this process.
                !felled.is_empty() || orphans.iter().any(|orphan| !orphan.is_alive())
            }
            Err(_) => false,
        }
    }
}

/// Sends SIGTERM to a tree, once to each process: many treat a second one as a request to hurry.
fn ask(who: Kin, reaped: bool, top: Option<u32>) {
    let Ok(census) = Census::within(top) else {
        signal_group(who, reaped, Signal::TERM);
        return;
    };
    let tree = census.below([who]);
    if !reaped {
        // With one call, so that no member sees another vanish first.
        signal_group(who, reaped, Signal::TERM);
    }
    for kin in tree {
        let in_group = census.get(kin.pid).is_some_and(|e| e.group == who.pid);
        if reaped || !in_group {
            // It does not matter if it is gone already.
            let _ = kin.signal(Signal::TERM);
        }
    }
}

/// Signals the group of a child that is not reaped yet, so that the number is still its own.
fn signal_group(who: Kin, reaped: bool, signal: Signal) {
    if let (Some(group), false) = (family::number(who.pid), reaped) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}
