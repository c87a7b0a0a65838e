//! The watchdogs of this process: starting them, and reaping those that end.
//!
//! A thread waits for watchdogs whose agents were dropped, so no caller does. A watchdog that was
//! killed leaves its agent to this process if that adopts orphans; the thread kills and reaps those.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, WaitOptions};

use super::{Launch, tree, watchdog};

/// First and longest pause before looking again whether a watchdog has ended. They double.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// Pause between two looks for zombies where other programs may leave orphans to this process.
const SWEEP: Duration = Duration::from_secs(1);

// Children, and the adoption of orphans, belong to the process, and so does this.
static STATE: Mutex<State> = Mutex::new(State {
    program: None,
    forbidden: None,
    reaps: false,
    adopts: false,
    running: BTreeSet::new(),
    leaving: Vec::new(),
    orphaned: false,
    thread: false,
});
/// Notified when a watchdog is left, and when nothing is left to be done.
static CHANGED: Condvar = Condvar::new();

struct State {
    /// The program to run as watchdog.
    program: Option<PathBuf>,
    /// Why no agent may be started, if none may.
    forbidden: Option<String>,
    /// Whether all children belong to this module.
    reaps: bool,
    /// Whether living orphans do.
    adopts: bool,
    /// The watchdogs that are not reaped.
    running: BTreeSet<u32>,
    /// Those whose agents were dropped.
    leaving: Vec<Child>,
    /// Whether there may be orphans.
    orphaned: bool,
    /// Whether the thread runs.
    thread: bool,
}

/// Sets the program that is run as watchdog of each agent: the executable of this process, whose
/// `main` calls [`watchdog::run`] when its first argument is [`watchdog::SUBCOMMAND`].
pub fn set_watchdog(program: PathBuf) {
    STATE.lock().program = Some(program);
}

/// Makes this process responsible for every process that a killed watchdog leaves, besides
/// [`set_watchdog`].
///
/// For a program that starts children only through this module: any other child would be taken for
/// an orphan. Children that exist already (a shell script may have started something and then
/// replaced itself by this program) and all their descendants are left alone, and so are processes
/// that the first process of a container inherits from elsewhere in it. Call it once, before the
/// first agent.
///
/// # Errors
/// When the operating system does not allow it.
pub fn adopt_orphans(program: PathBuf) -> io::Result<()> {
    set_watchdog(program);
    let own_pid = std::process::id();
    let adopts = own_pid != 1 && tree::children(own_pid).iter().all(|child| !child.alive);
    #[cfg(target_os = "linux")]
    if adopts {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    let mut state = STATE.lock();
    state.reaps = true;
    state.adopts = adopts;
    Ok(())
}

/// Makes every later start of an agent fail, because its processes could not be found and ended.
/// The rest of the program keeps running.
pub fn forbid_agents(why: &io::Error) {
    STATE.lock().forbidden = Some(why.to_string());
}

/// Waits until all dropped agents are gone with all that they started; `false` when that takes
/// longer than `timeout`. Blocks: for the end of `main`, after the runtime.
pub fn settle(timeout: Duration) -> bool {
    let mut state = STATE.lock();
    let waited = CHANGED.wait_while_for(&mut state, |state| state.is_busy(), timeout);
    !waited.timed_out()
}

/// Why no agent may be started, if none may.
pub(super) fn forbidden() -> Option<String> {
    STATE.lock().forbidden.clone()
}

/// Starts the watchdog of the agent `argv`, with `control` as its stdin.
///
/// # Errors
/// When there is no program to run, or the operating system does not start it.
pub(super) fn start(argv: &[OsString], launch: &Launch, control: OwnedFd) -> io::Result<Child> {
    // Until it is listed it would look like an orphan.
    let mut state = STATE.lock();
    if !state.thread {
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        thread.spawn(reap)?;
        state.thread = true;
    }
    let program = state.program.as_ref();
    let mut command = Command::new(program.ok_or_else(|| io::Error::other("no watchdog"))?);
    command
        .arg0("acp-relay")
        .arg(watchdog::SUBCOMMAND)
        .args(argv)
        .process_group(0)
        .stdin(control)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    launch.apply(&mut command);
    let child = command.spawn()?;
    state.running.insert(child.id());
    Ok(child)
}

/// Has a watchdog reaped that is about to end.
pub(super) fn leave(watchdog: Child) {
    STATE.lock().leaving.push(watchdog);
    CHANGED.notify_all();
}

/// The thread. Sleeps unless a watchdog is to end, or an orphan is or may be left.
fn reap() {
    let mut state = STATE.lock();
    loop {
        let mut pause = PAUSE.0;
        while state.is_busy() {
            let until = Instant::now() + pause;
            pause = (pause * 2).min(PAUSE.1);
            let before = state.leaving.len();
            state.reap();
            if state.leaving.len() < before {
                pause = PAUSE.0;
            }
            if state.is_busy() {
                CHANGED.wait_until(&mut state, until);
            }
        }
        CHANGED.notify_all();
        if state.reaps && !state.adopts {
            // The zombies of others, which nothing here reports.
            CHANGED.wait_for(&mut state, SWEEP);
            state.orphaned = true;
        } else {
            CHANGED.wait(&mut state);
        }
    }
}

impl State {
    fn is_busy(&self) -> bool {
        !self.leaving.is_empty() || self.orphaned
    }

    /// Reaps what has ended, and kills orphans.
    fn reap(&mut self) {
        let (running, orphaned) = (&mut self.running, &mut self.orphaned);
        self.leaving.retain_mut(|watchdog| {
            let lives = matches!(watchdog.try_wait(), Ok(None));
            if !lives {
                running.remove(&watchdog.id());
                *orphaned = self.reaps;
            }
            lives
        });
        if !self.orphaned {
            return;
        }
        self.orphaned = false;
        for child in tree::children(std::process::id()) {
            let Ok(pid) = i32::try_from(child.pid) else {
                continue;
            };
            if running.contains(&child.pid) {
            } else if !child.alive {
                let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
            } else if self.adopts {
                self.orphaned = true;
                for entry in std::iter::once(child).chain(tree::below(child.pid)) {
                    let _ = entry.signal(Signal::KILL);
                }
            }
        }
    }
}
