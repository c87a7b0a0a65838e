//! `acp-relay inspect open`: recordings in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tokio::runtime::Builder;

use super::page;
use super::routes::Viewer;
use super::server::Server;
use crate::cli::console::{self, note};
use crate::cli::inspect::report_unusable;
use crate::cli::{exit, runtime, shutdown};
use crate::proxy::StopSignals;
use crate::recording::{NotRecording, Recording};

/// The arguments of `inspect open`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Open {
    /// The recording, or a folder of them; one that is being written is followed
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    path: PathBuf,
    /// The port on loopback; 0 chooses any
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the page to this file instead: it shows recordings that are dropped onto it
    #[arg(long, value_name = "OUT.html", conflicts_with = "port")]
    page: Option<PathBuf>,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Open) -> ExitCode {
    if let Some(path) = &args.page {
        return match fs::write(path, page::single_file()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => exit::fail(exit::CANNOT_CREATE, &format!("{}: {error}", path.display())),
        };
    }
    if let Some(code) = check_path(&args.path) {
        return code;
    }
    let viewer = match Viewer::of(&args.path) {
        Ok(viewer) => viewer,
        Err(error) => {
            let place = args.path.display();
            return exit::fail(exit::NO_INPUT, &format!("{place}: {error}"));
        }
    };
    runtime::drive(Builder::new_multi_thread(), serve(viewer, args.port))
}

/// Prints why a path is neither a folder nor a recording. A recording that has just begun may be
/// empty.
fn check_path(path: &Path) -> Option<ExitCode> {
    if path.is_dir() {
        return None;
    }
    let found = Recording::of(path).map_err(NotRecording::from);
    match found.and_then(|recording| recording.check()) {
        Ok(()) | Err(NotRecording::Empty) => None,
        Err(misfit) => Some(report_unusable(path, &misfit)),
    }
}

async fn serve(viewer: Viewer, port: u16) -> ExitCode {
    let stop = StopSignals::default();
    if let Err(error) = shutdown::watch(stop.clone()) {
        return exit::fail(exit::SYSTEM, &format!("cannot listen for signals: {error}"));
    }
    let server = match Server::bind(port).await {
        Ok(server) => server,
        Err(error) => {
            return exit::fail(
                exit::UNAVAILABLE,
                &format!("cannot listen on loopback: {error}"),
            );
        }
    };
    let printed = console::print(server.address(), exit::SUCCESS);
    if printed != ExitCode::SUCCESS {
        return printed;
    }
    note("Open this address in a browser; it is valid for this run. Stop with Ctrl-C.");
    server.run(viewer, stop.requested).await;
    ExitCode::SUCCESS
}
