//! The watchdogs of this process: starting them, and reaping those that end.
//!
//! A watchdog that was killed leaves its agent to this process, if that adopts orphans; those are
//! killed and reaped, too. A thread waits for the end of any child.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use parking_lot::Condvar;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitOptions};

use super::{Launch, tree, watchdog};
use panics::SharedMutex;

/// Pause between two looks for zombies while no agent runs, where other programs may leave orphans
/// to this process.
const SWEEP: Duration = Duration::from_secs(1);

// Children, and the adoption of orphans, belong to the process, and so does this.
static STATE: SharedMutex<State> = SharedMutex::new(State {
    program: None,
    adopts: false,
    running: BTreeSet::new(),
    outliving: BTreeSet::new(),
    orphaned: false,
    thread_is_due: false,
});
/// Notified when a watchdog was started or reaped.
static CHANGED: Condvar = Condvar::new();

struct State {
    /// The program to run as watchdog, or why no agent may be started.
    program: Option<Result<PathBuf, String>>,
    /// Whether living orphans do.
    adopts: bool,
    /// The watchdogs that are not reaped.
    running: BTreeSet<u32>,
    /// Other processes of this program that are not reaped, and that nothing waits for.
    outliving: BTreeSet<u32>,
    /// Whether orphans were killed that are not reaped.
    orphaned: bool,
    /// Whether all children belong to this module, and the thread that reaps them was not started.
    thread_is_due: bool,
}

/// Sets the program that is run as watchdog of each agent: the executable of this process, whose
/// `main` calls [`watchdog::run`] when its first argument is [`watchdog::SUBCOMMAND`].
pub fn set_watchdog(program: PathBuf) {
    STATE.lock().program = Some(Ok(program));
}

/// Makes this process responsible for every child: reaps the watchdogs, and ends what a killed
/// watchdog leaves. Where that is not possible, or `program` (see [`set_watchdog`]) is an error, no
/// agent can be started; the rest of the program runs.
///
/// For a program that starts children only through this module: any other child would be taken for
/// an orphan. Children that exist already (a shell script may have started something and then
/// replaced itself by this program) and all their descendants are left alone, and so are processes
/// that the first process of a container inherits from elsewhere in it. Call it once, before the
/// first agent.
pub fn adopt_orphans(program: io::Result<PathBuf>) {
    let own_pid = std::process::id();
    let adopts = own_pid != 1 && tree::children(own_pid).iter().all(|child| !child.alive);
    #[cfg(target_os = "linux")]
    let program = match adopts {
        true => program.and_then(|program| {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            Ok(program)
        }),
        false => program,
    };
    let mut state = STATE.lock();
    state.program = Some(program.map_err(|error| error.to_string()));
    state.thread_is_due = true;
    state.adopts = adopts;
}

/// Waits until all agents are gone with all that they started; `false` when that takes longer than
/// `timeout`. Blocks: for the end of `main`, when all agents were dropped.
pub fn settle(timeout: Duration) -> bool {
    let is_busy = |state: &mut State| state.orphaned || !state.running.is_empty();
    let waited = CHANGED.wait_while_for(STATE.lock().inner(), is_busy, timeout);
    !waited.timed_out()
}

/// Why no agent may be started, if none may.
pub(super) fn forbidden() -> Option<String> {
    STATE.lock().program.clone()?.err()
}

/// Starts the watchdog of the agent `argv`, with `control` as its stdin.
///
/// # Errors
/// When there is no program to run, or the operating system does not start it.
pub(super) fn start(argv: &[OsString], launch: &Launch, control: OwnedFd) -> io::Result<()> {
    start_part(watchdog::SUBCOMMAND, argv, launch, control, false)
}

/// Starts this program once more, with only `subcommand` as argument and `input` as its stdin. It may
/// outlive this process, and [`settle`] does not wait for it.
///
/// # Errors
/// As `start`.
pub fn start_outliving(subcommand: &str, input: OwnedFd) -> io::Result<()> {
    start_part(subcommand, &[], &Launch::default(), input, true)
}

fn start_part(
    subcommand: &str,
    argv: &[OsString],
    launch: &Launch,
    control: OwnedFd,
    outlives: bool,
) -> io::Result<()> {
    // Until it is listed it would look like an orphan.
    let mut state = STATE.lock();
    if state.thread_is_due {
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        thread.spawn(reap)?;
        state.thread_is_due = false;
    }
    let Some(Ok(program)) = &state.program else {
        return Err(io::Error::other("no watchdog"));
    };
    let mut command = Command::new(program);
    command
        .arg0("acp-relay")
        .arg(subcommand)
        .args(argv)
        .process_group(0)
        .stdin(control)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    launch.apply(&mut command);
    let child = command.spawn()?;
    match outlives {
        true => state.outliving.insert(child.id()),
        false => state.running.insert(child.id()),
    };
    CHANGED.notify_all();
    Ok(())
}

/// The thread. Sleeps until a child ends.
fn reap() {
    loop {
        // The child is reaped below, so that its number is its own until it is not listed.
        let ended =
            rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let mut state = STATE.lock();
        state.reap();
        CHANGED.notify_all();
        if ended.is_err() && state.running.is_empty() {
            // There is no child. Orphans may come where other programs leave them to this process.
            let pause = if state.adopts { Duration::MAX } else { SWEEP };
            CHANGED.wait_for(state.inner(), pause);
        }
    }
}

impl State {
    /// Reaps what has ended, and kills orphans.
    fn reap(&mut self) {
        while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_pid().unsigned_abs();
            self.running.remove(&pid);
            self.outliving.remove(&pid);
        }
        if !self.adopts {
            return;
        }
        let mut orphans = tree::children(std::process::id());
        let is_ours = |pid| self.running.contains(&pid) || self.outliving.contains(&pid);
        orphans.retain(|child| !is_ours(child.pid));
        self.orphaned = !orphans.is_empty();
        for orphan in orphans {
            for entry in std::iter::once(orphan).chain(tree::below(orphan.pid)) {
                entry.signal(Signal::KILL);
            }
        }
    }
}
