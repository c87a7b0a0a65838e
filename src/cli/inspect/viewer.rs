//! `acp-relay inspect open`: recordings in a browser.
//!
//! The listener speaks HTTP/1.1 on loopback, for one person; `crate::viewer` answers.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::select::{report_uncreatable, report_unusable};
use crate::cli::console::{self, note};
use crate::cli::http::{self, Socket};
use crate::cli::random::random;
use crate::cli::{dialect, exit, runtime, shutdown};
use crate::proxy::StopSignals;
use crate::recording::{NotRecording, Recording};
use crate::viewer::{Viewer, ViewerAccess, router, single_file};

/// The arguments of `inspect open`.
#[derive(Debug, Args)]
pub(super) struct Open {
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
pub(super) fn run(args: &Open) -> Result<ExitCode, ExitCode> {
    if let Some(path) = &args.page {
        let written = fs::write(path, single_file());
        written.map_err(|error| report_uncreatable(path, &error))?;
        return Ok(ExitCode::SUCCESS);
    }
    check_path(&args.path)?;
    let viewer = Viewer::of(&args.path, dialect::describe_rule).map_err(|error| {
        let place = args.path.display();
        exit::fail(exit::NO_INPUT, &format!("{place}: {error}"))
    })?;
    let serving = serve(viewer, args.port);
    Ok(runtime::drive(Builder::new_multi_thread(), serving))
}

/// Prints why a path is neither a folder nor a recording. A recording that has just begun may be
/// empty.
fn check_path(path: &Path) -> Result<(), ExitCode> {
    if path.is_dir() {
        return Ok(());
    }
    let found = Recording::of(path).map_err(NotRecording::from);
    match found.and_then(|recording| recording.check()) {
        Ok(()) | Err(NotRecording::Empty) => Ok(()),
        Err(misfit) => Err(report_unusable(path, &misfit)),
    }
}

async fn serve(viewer: Viewer, port: u16) -> ExitCode {
    let stop = StopSignals::default();
    if let Err(code) = shutdown::watch(stop.clone(), None) {
        return code;
    }
    let (listener, access, address) = match bind(port).await {
        Ok(bound) => bound,
        Err(error) => {
            let fault = format!("cannot listen on loopback: {error}");
            return exit::fail(exit::UNAVAILABLE, &fault);
        }
    };
    let printed = console::print(&address, exit::SUCCESS);
    if printed != ExitCode::SUCCESS {
        return printed;
    }
    note("Open this address in a browser; it is valid for this run. Stop with Ctrl-C.");
    let routes = router("", &viewer, &access, || {});
    http::serve(Socket::Tcp(listener), routes, stop.requested).await;
    viewer.close();
    ExitCode::SUCCESS
}

/// A listener at a port of loopback, any when it is 0, with the address of its page.
async fn bind(port: u16) -> io::Result<(TcpListener, ViewerAccess, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let at = listener.local_addr()?;
    let access = ViewerAccess::new(at.port(), random()?);
    let address = format!("http://{at}{}", access.path());
    Ok((listener, access, address))
}
