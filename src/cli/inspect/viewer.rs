//! `acp-relay inspect open`: recordings in a browser.
//!
//! The listener speaks HTTP/1.1 on loopback, for one person; `viewer` answers.
//!
//! Other users of the machine can read the arguments of programs. So the browser that is started
//! here is given another address, which leads this user's program to the page once.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use axum::{Extension, Router};
use clap::Args;
use rustix::process::geteuid;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::import::of_capture;
use super::select::report_unusable;
use crate::cli::console::{self, note, uncreatable};
use crate::cli::http::{self, ClientUser, Socket};
use crate::cli::random::{random, random_hex};
use crate::cli::recordings::{home, locate};
use crate::cli::{dialect, exit, runtime, shutdown};
use observe::recorder::Folder;
use proxy::StopSignals;
use recording::{NotRecording, Recording};
use viewer::{Viewer, ViewerAccess, router, single_file};

/// The arguments of `inspect open`.
#[derive(Debug, Args)]
pub(super) struct Open {
    /// The recording, by path or name, or a folder of them [default: the one that `--record` without
    /// a value records into]; a recording that is being written is followed, and a capture is
    /// imported on the way
    #[arg(value_name = "FILE|DIR")]
    path: Option<PathBuf>,
    /// The port on loopback; 0 chooses any
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the page to this file instead: it shows recordings that are dropped onto it
    #[arg(long, value_name = "OUT.html", conflicts_with = "port")]
    page: Option<PathBuf>,
    /// Do not start a browser; one is started only if stdout is a terminal
    #[arg(long, conflicts_with = "page")]
    no_browser: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Open) -> Result<ExitCode, ExitCode> {
    if let Some(path) = &args.page {
        let written = fs::write(path, single_file());
        written.map_err(|error| uncreatable(path, &error))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = match &args.path {
        Some(path) => locate(path)?,
        None => {
            let home = home().map_err(|fault| fault.fail())?;
            // Conversations that are recorded from now on are shown, too.
            Folder::new(&home, "", 0).map_err(|error| uncreatable(&home, &error))?;
            home
        }
    };
    check_path(&path)?;
    let serving = async {
        let stop = StopSignals::default();
        shutdown::watch(stop.clone(), None)?;
        show(&path, args.port, !args.no_browser, stop).await
    };
    let serving = async { serving.await.unwrap_or_else(|code| code) };
    Ok(runtime::drive(Builder::new_multi_thread(), serving))
}

/// Serves the recordings at `path` until `stop`, and prints the address, which a browser is started
/// with if one is wanted and stdout is a terminal.
pub(in crate::cli) async fn show(
    path: &Path,
    port: u16,
    with_browser: bool,
    stop: StopSignals,
) -> Result<ExitCode, ExitCode> {
    let viewer = Viewer::of(path, dialect::describe_rule, of_capture)
        .map_err(|error| exit::fail(exit::NO_INPUT, &format!("{}: {error}", path.display())))?;
    if viewer.has_imported() {
        note(
            "This is a capture; what is shown is a recording of it, as `inspect import` makes it.",
        );
    }
    let (listener, access, address) = bind(port).await.map_err(|error| {
        exit::fail(
            exit::UNAVAILABLE,
            &format!("cannot listen on loopback: {error}"),
        )
    })?;
    let printed = console::print(&address, exit::SUCCESS);
    if printed != ExitCode::SUCCESS {
        return Ok(printed);
    }
    note("Open this address in a browser; it is valid for this run. Stop with Ctrl-C.");
    let mut routes = router("", &viewer, &access, || {});
    if with_browser && console::size().is_some() {
        match open_once(routes.clone(), &address, &access) {
            Ok(with_entry) => routes = with_entry,
            Err(why) => note(&format!("No browser was started: {why}")),
        }
    }
    http::serve(Socket::Tcp(listener), routes, stop.requested).await;
    viewer.close();
    Ok(ExitCode::SUCCESS)
}

/// Starts a browser with an address that leads to the page once; returns `routes` with this address.
fn open_once(routes: Router, address: &str, access: &ViewerAccess) -> Result<Router, String> {
    let token = random_hex::<16>().map_err(|error| error.to_string())?;
    let (page, unused) = (access.path(), Arc::new(AtomicBool::new(true)));
    let entry = get(
        move |method: Method, Extension(ClientUser(user))| async move {
            // Another user may have read the argument sooner. Not every system reports users.
            let is_own = user == Some(geteuid().as_raw()) || cfg!(not(target_os = "linux"));
            match is_own && method == Method::GET && unused.swap(false, Relaxed) {
                true => Redirect::to(&page).into_response(),
                false => StatusCode::NOT_FOUND.into_response(),
            }
        },
    );
    let origin = address.strip_suffix(&access.path()).unwrap_or(address);
    // Requests wait until the listener is served.
    login::browser::start(&format!("{origin}/once/{token}"))?;
    Ok(routes.route(&format!("/once/{token}"), entry))
}

/// Prints why a path is neither a folder nor a recording. A recording that has just begun may be
/// empty.
fn check_path(path: &Path) -> Result<(), ExitCode> {
    if path.is_dir() {
        return Ok(());
    }
    let found = Recording::of(path).map_err(NotRecording::from);
    match found.and_then(|recording| recording.check()) {
        // What is no recording may be a capture.
        Ok(()) | Err(NotRecording::Empty | NotRecording::OtherFormat) => Ok(()),
        Err(misfit) => Err(report_unusable(path, &misfit)),
    }
}

/// A listener at a port of loopback, any when it is 0, with the address of its page.
async fn bind(port: u16) -> io::Result<(TcpListener, ViewerAccess, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let at = listener.local_addr()?;
    let access = ViewerAccess::new(at.port(), random()?);
    let address = format!("http://{at}{}", access.path());
    Ok((listener, access, address))
}
