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

use super::child_table::{Agent, ChildTable};
use super::mark::Mark;
use super::process_id::{self, ProcessId};
use super::tree::{self, ProcessTree};
use crate::transport::StopStep;

/// Shortest time between two searches for orphans while agents live.
const SWEEP: Duration = Duration::from_secs(1);
/// First and longest pause before checking again whether killed processes are gone.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));

/// The interface to the thread.
pub(super) struct Reaper {
    table: Mutex<ChildTable>,
    /// Notified whenever there is something to do.
    pub(super) wake: Notify,
    /// Notified whenever something was done.
    done: Condvar,
}

/// When the thread does what is limited in rate.
struct Schedule {
    next_check: Instant,
    next_sweep: Instant,
    /// The next pause before checking whether killed processes are gone.
    pause: Duration,
}

impl Schedule {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            next_check: now,
            next_sweep: now,
            pause: RETRY.0,
        }
    }

    /// When there will be something to do, if nothing happens until then.
    fn due(&self, agents: &ChildTable) -> Option<Instant> {
        let due = [
            agents.leaving().next().map(|_| self.next_check),
            (agents.adopts && agents.maybe_orphans).then_some(self.next_sweep),
        ];
        due.into_iter().flatten().min()
    }
}

/// The reaper of this process.
pub(super) fn reaper() -> &'static Reaper {
    // Children, the adoption of orphans and SIGCHLD belong to the process, and so does this.
    static REAPER: OnceLock<Reaper> = OnceLock::new();
    REAPER.get_or_init(|| Reaper {
        table: Mutex::default(),
        wake: Notify::new(),
        done: Condvar::new(),
    })
}

impl Reaper {
    /// The list of agents.
    pub(super) fn lock(&self) -> MutexGuard<'_, ChildTable> {
        self.table.lock()
    }

    /// Waits until nothing is left to be done; `None` when that takes longer than `timeout`.
    pub(super) fn wait_settled(&self, timeout: Duration) -> Option<MutexGuard<'_, ChildTable>> {
        let busy = |table: &mut ChildTable| {
            table.leaving().next().is_some()
                || table.sweeping
                || (table.adopts && table.maybe_orphans)
        };
        let mut table = self.lock();
        let waited = self.done.wait_while_for(&mut table, busy, timeout);
        (!waited.timed_out()).then_some(table)
    }

    /// Starts the thread. To be called once. It has a runtime of its own, so that it receives every
    /// SIGCHLD independently of other runtimes.
    pub(super) fn start(&'static self) -> io::Result<()> {
        let (tx, rx) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        thread.spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tx.send(Err(error))),
            };
            runtime.block_on(async {
                match signal(SignalKind::child()) {
                    Ok(deaths) => {
                        // `start` waits for this.
                        let _ = tx.send(Ok(()));
                        self.run(deaths).await;
                    }
                    Err(error) => drop(tx.send(Err(error))),
                }
            });
        })?;
        rx.recv().map_err(io::Error::other)?
    }

    /// The thread. Sleeps unless there is an order, a leaving agent, or a possible orphan.
    async fn run(&self, mut deaths: Signals) {
        let mut schedule = Schedule::new();
        loop {
            while self.run_once(&mut schedule) {
                self.done.notify_all();
            }
            let until = schedule.due(&self.lock());
            let due = async {
                match until {
                    Some(until) => sleep(until.saturating_duration_since(Instant::now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = due => {}
                _ = deaths.recv() => {
                    let mut table = self.lock();
                    table.child_exited = true;
                    table.maybe_orphans = true;
                }
            }
        }
    }

    /// Does one thing that is due; whether there was one.
    fn run_once(&self, schedule: &mut Schedule) -> bool {
        let now = Instant::now();
        let mut table = self.lock();
        let ordered = table.agents.values().any(|agent| agent.order.is_some());
        let leaving = table.leaving().next().is_some();
        if table.child_exited {
            table.reap();
        } else if ordered || (leaving && now >= schedule.next_check) {
            if ordered {
                schedule.pause = RETRY.0;
            }
            drop(table);
            let removed = self.execute_orders();
            schedule.next_check = Instant::now() + schedule.pause;
            schedule.pause = (schedule.pause * 2).min(RETRY.1);
            if removed {
                schedule.next_sweep = now;
            }
        } else if table.adopts && table.maybe_orphans && now >= schedule.next_sweep {
            table.maybe_orphans = false;
            table.sweeping = true;
            drop(table);
            let again = self.sweep();
            let mut table = self.lock();
            table.sweeping = false;
            table.maybe_orphans |= again;
            let idle = again && table.agents.is_empty();
            schedule.next_sweep = Instant::now() + if idle { RETRY.0 * 5 } else { SWEEP };
        } else {
            return false;
        }
        true
    }

    /// Sends the ordered signals, and removes agents that are gone; whether one was removed.
    fn execute_orders(&self) -> bool {
        let mut terminate = Vec::new();
        let mut kill = Vec::new();
        let mut table = self.lock();
        let root = table.root();
        for agent in table.agents.values_mut() {
            match agent.order.take() {
                Some(StopStep::Terminate) => terminate.push((agent.id, agent.is_reaped())),
                Some(StopStep::Kill) => kill.push((agent.id, agent.is_reaped())),
                None if agent.leaving => kill.push((agent.id, agent.is_reaped())),
                None => {}
            }
        }
        drop(table);
        for &(id, reaped) in &terminate {
            terminate_tree(id, reaped, root);
        }
        if !kill.is_empty() {
            let roots: Vec<ProcessId> = kill.iter().map(|&(id, _)| id).collect();
            if let Err(error) = tree::kill_tree(&roots, root) {
                tracing::debug!(%error, "killing by process group only");
            }
            for &(id, reaped) in &kill {
                signal_group(id, reaped, Signal::KILL);
            }
        }
        self.remove_gone()
    }

    /// Removes the leaving agents that are reaped and have left nothing; whether there were any.
    fn remove_gone(&self) -> bool {
        let mut table = self.lock();
        table.reap();
        let has_left = |agent: &&Agent| agent.is_reaped() && agent.leaving;
        let dead: Vec<(u64, ProcessId)> = (table.agents.iter())
            .filter(|(_, agent)| has_left(agent))
            .map(|(&ticket, agent)| (ticket, agent.id))
            .collect();
        let root = table.root();
        drop(table);
        if dead.is_empty() {
            return false;
        }
        // Without `/proc` there is nothing more to find out.
        let tree = ProcessTree::scan_below(root).unwrap_or_default();
        let mut table = self.lock();
        let mut removed = false;
        for (ticket, id) in dead {
            if tree.below([id]).is_empty() {
                table.agents.remove(&ticket);
                table.watchdog.remove(id);
                removed = true;
            }
        }
        table.maybe_orphans |= removed;
        removed
    }

    /// Reaps and kills orphans; whether another search soon is worth it.
    fn sweep(&self) -> bool {
        let table = self.lock();
        let starts = table.starts;
        let listed = table.listed();
        drop(table);
        let Ok(children) = tree::children(std::process::id(), &listed) else {
            return false;
        };
        // Only this thread reaps them, so their numbers stay theirs.
        let found: Vec<(ProcessId, bool, Option<Mark>)> = (children.into_iter())
            .map(|child| (child.id, child.alive, Mark::of(child.id.pid)))
            .collect();
        let mut table = self.lock();
        if table.starting > 0 || table.starts != starts {
            // A child that is not listed yet would look like an orphan.
            return true;
        }
        if table.watchdog.is_missing() && !table.agents.is_empty() {
            table.ensure_watchdog();
        }
        let watchdog = table.watchdog.id();
        let mut orphans = Vec::new();
        for (id, alive, mark) in found {
            if watchdog == Some(id.pid) {
                continue;
            }
            if alive {
                if table.is_abandoned(id, mark) {
                    orphans.push(id);
                }
            } else if let Some(pid) = process_id::to_pid(id.pid) {
                // A zombie child: the call does not block, and no other process has the number.
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        let root = table.root();
        drop(table);
        if orphans.is_empty() {
            return false;
        }
        match tree::kill_tree(&orphans, root) {
            Ok(killed) => {
                tracing::debug!(count = killed.len(), "killed what agents left behind");
                // An orphan that exited by itself may have left its children to this process.
                !killed.is_empty() || orphans.iter().any(|orphan| !orphan.is_alive())
            }
            Err(_) => false,
        }
    }
}

/// Sends SIGTERM to a tree, once to each process: many treat a second one as a request to hurry.
fn terminate_tree(id: ProcessId, reaped: bool, root: Option<u32>) {
    let Ok(processes) = ProcessTree::scan_below(root) else {
        signal_group(id, reaped, Signal::TERM);
        return;
    };
    let tree = processes.below([id]);
    if !reaped {
        // With one call, so that no member sees another vanish first.
        signal_group(id, reaped, Signal::TERM);
    }
    for member in tree {
        let in_group = processes.get(member.pid).is_some_and(|e| e.group == id.pid);
        if reaped || !in_group {
            // It does not matter if it is gone already.
            let _ = member.signal(Signal::TERM);
        }
    }
}

/// Signals the group of a child that is not reaped yet, so that the number is still its own.
fn signal_group(id: ProcessId, reaped: bool, signal: Signal) {
    if let (Some(group), false) = (process_id::to_pid(id.pid), reaped) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}
