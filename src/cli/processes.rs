//! Ensures that no process that an agent started outlives the program (see `transport::process`).

use std::process::ExitCode;
use std::time::Duration;

use crate::transport::process::{adopt_orphans, forbid_agents, settle, watchdog};

/// Time for the operating system to remove the remaining processes. All have been killed before.
const REAP_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the watchdog, if this process was started as one.
pub(super) fn watchdog() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == watchdog::SUBCOMMAND).then(|| match watchdog::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Makes this process responsible for all that its agents start, runs `main`, and waits until no
/// such process is left. Where that is not possible (on Linux without `/proc`), starting an agent
/// fails; connecting to one that listens needs no process of ours.
pub(super) fn run_and_reap(main: impl FnOnce() -> ExitCode) -> ExitCode {
    let own = std::env::current_exe();
    // The file that runs, also when another one has taken its place since.
    let own = own.map(|own| {
        if cfg!(target_os = "linux") {
            "/proc/self/exe".into()
        } else {
            own
        }
    });
    if let Err(error) = own.and_then(adopt_orphans) {
        forbid_agents(&error);
    }
    let code = main();
    if !settle(REAP_TIMEOUT) {
        tracing::warn!("a process of an agent has not exited yet");
    }
    code
}
