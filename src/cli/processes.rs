//! No process that an agent started outlives the program.
//!
//! Not here: how processes are found and ended (see `transport::process`).

use std::process::ExitCode;
use std::time::Duration;

use crate::transport::process::{answer_for_orphans, bar, farewell, keeper};

/// Time for the operating system to remove what agents have left. All of it has been killed by
/// then.
const PATIENCE: Duration = Duration::from_secs(3);

/// Plays the keeper, if that is what this process was started for.
pub(super) fn keeper() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == keeper::WORD).then(|| match keeper::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Makes this process answer for all that its agents start, runs `main`, and waits until nothing
/// of them is left. Where it cannot answer (on Linux without `/proc`), agents are refused when they
/// are to be started: to reach one that listens takes no process of ours.
pub(super) fn leave_none(main: impl FnOnce() -> ExitCode) -> ExitCode {
    let program = std::env::current_exe();
    if let Err(error) = program.and_then(|program| answer_for_orphans(&program)) {
        bar(&error);
    }
    let code = main();
    if !farewell(PATIENCE) {
        tracing::warn!("some process of an agent has not gone yet");
    }
    code
}
