//! Ensures that no process that an agent started outlives the program (see `transport::process`).

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use transport::link_watchdog;
use transport::process::{adopt_orphans, browser, settle, watchdog};

/// Time for the operating system to remove the remaining processes. All have been killed before.
const REAP_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a watchdog or another part of the program, if this process was started as one.
pub(super) fn watchdog() -> Option<ExitCode> {
    let code = |ended: io::Result<()>| ended.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    match std::env::args_os().nth(1)?.to_str()? {
        watchdog::SUBCOMMAND => Some(code(watchdog::run())),
        link_watchdog::SUBCOMMAND => Some(run_and_reap(|| code(link_watchdog::run()))),
        login::SUBCOMMAND => Some(code(login::run())),
        _ if browser::is_browser() => Some(browser::run()),
        _ => None,
    }
}

/// Makes this process responsible for all that its agents start, runs `main`, and waits until no
/// such process is left. Where that is not possible (on Linux without `/proc`), starting an agent
/// fails; connecting to one that listens needs no process of ours.
pub(super) fn run_and_reap<T>(main: impl FnOnce() -> T) -> T {
    adopt_orphans(own_file());
    let done = main();
    if !settle(REAP_TIMEOUT) {
        tracing::warn!("a process of an agent has not exited yet");
    }
    done
}

/// The file that runs, also when another one takes its place.
fn own_file() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    if cfg!(not(target_os = "linux")) {
        return Ok(path);
    }
    // Open until the end. `/proc/self/exe` names another program under some debuggers.
    let file = File::open(path)?.into_raw_fd();
    Ok(format!("/proc/self/fd/{file}").into())
}
