//! The tokio runtime of a subcommand.

use std::future::Future;
use std::io;
use std::process::ExitCode;

use rustix::process::{Resource, Signal, getrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::{cli, exit};

/// Pairs of descriptors that must be available besides those already open. The runtime panics
/// without its own, and every conversation needs some.
const PAIRS: usize = 8;

/// Runs `main` on the runtime that `builder` describes.
pub(super) fn drive(builder: Builder, main: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match build(builder) {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let code = runtime.block_on(main);
    // The thread that reads our stdin may be in the middle of a read that never returns.
    runtime.shutdown_background();
    code
}

/// Builds the runtime. Errors are printed, and the exit code is returned.
pub(super) fn build(mut builder: Builder) -> Result<Runtime, ExitCode> {
    let runtime = room()
        .and_then(|()| builder.enable_all().build())
        .and_then(|runtime| outlive_long_files(&runtime).map(|()| runtime));
    runtime.map_err(|error| {
        let limit = getrlimit(Resource::Nofile).current;
        let remedy = match limit.filter(|_| is_for_want_of_files(&error)) {
            Some(limit) => format!(
                ". This process may have {limit} files open, and needs more: raise `ulimit -n`"
            ),
            None => String::new(),
        };
        let what = format!("cannot start the runtime: {error}{remedy}");
        cli::fail(exit::SYSTEM, &what)
    })
}

/// Checks that enough files can be opened.
fn room() -> io::Result<()> {
    let mut held = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        held.push(rustix::pipe::pipe()?);
    }
    Ok(())
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error, instead of ending
/// this process. Installs a handler, because agents would inherit `SIG_IGN`.
fn outlive_long_files(runtime: &Runtime) -> io::Result<()> {
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

fn is_for_want_of_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}
