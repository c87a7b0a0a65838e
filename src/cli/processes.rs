//! Ensures that no process that an agent started outlives the program (see `transport::process`).

use std::process::ExitCode;
use std::time::Duration;

use crate::transport::process::{answer_for_orphans, bar, farewell, keeper};

/// Time for the operating system to remove the remaining processes. All have been killed before.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs the watchdog, if this process was started as one.
pub(super) fn keeper() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == keeper::WORD).then(|| match keeper::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Makes this process the reaper of all that its agents start, runs `main`, and waits until no
/// such process is left. Where that is not possible (on Linux without `/proc`), starting an agent
/// fails; connecting to one that listens needs no process of ours.
pub(super) fn leave_none(main: impl FnOnce() -> ExitCode) -> ExitCode {
    let program = std::env::current_exe();
    if let Err(error) = program.and_then(|program| answer_for_orphans(&program)) {
        bar(&error);
    }
    let code = main();
    if !farewell(PATIENCE) {
        tracing::warn!("a process of an agent has not exited yet");
    }
    code
}
