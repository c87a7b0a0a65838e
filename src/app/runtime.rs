//! The runtime under a subcommand.
//!
//! Not here: what runs on it.

use std::future::Future;
use std::process::ExitCode;

use tokio::runtime::Builder;

use super::{cli, exit};

/// Runs `main` on the runtime that `builder` describes.
pub(super) fn drive(mut builder: Builder, main: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return cli::fail(exit::SYSTEM, &format!("cannot start the runtime: {error}"));
        }
    };
    let code = runtime.block_on(main);
    // The thread that reads our stdin may be in the middle of a read that never returns.
    runtime.shutdown_background();
    code
}
