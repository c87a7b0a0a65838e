//! The tokio runtime of a subcommand.

use std::future::Future;
use std::io;
use std::process::ExitCode;

use rustix::process::{Resource, Signal, getrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::exit;

/// Pairs of descriptors that must be available besides those already open. The runtime panics
/// without its own, and every conversation needs some.
const SPARE_PIPES: usize = 8;

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
    let runtime = check_open_files()
        .and_then(|()| builder.enable_all().build())
        .and_then(|runtime| handle_file_size_signal(&runtime).map(|()| runtime));
    runtime.map_err(|error| {
        let limit = getrlimit(Resource::Nofile).current;
        let remedy = match limit.filter(|_| is_file_limit(&error)) {
            Some(limit) => format!(
                ". This process may have {limit} files open, and needs more: raise `ulimit -n`"
            ),
            None => String::new(),
        };
        let what = format!("cannot start the runtime: {error}{remedy}");
        exit::fail(exit::SYSTEM, &what)
    })
}

/// Checks that enough files can be opened.
fn check_open_files() -> io::Result<()> {
    let mut pipes = Vec::with_capacity(SPARE_PIPES);
    for _ in 0..SPARE_PIPES {
        pipes.push(rustix::pipe::pipe()?);
    }
    Ok(())
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error, instead of ending
/// this process. Installs a handler, because agents would inherit `SIG_IGN`.
fn handle_file_size_signal(runtime: &Runtime) -> io::Result<()> {
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

fn is_file_limit(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}
