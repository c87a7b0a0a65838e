//! At which ports this user's relays listen, so that `connect` knows when to show the user's own
//! token.
//!
//! A port alone does not tell: behind it may be another user's program, or the way to another
//! machine (`ssh -L`), and the token is for neither. So a relay keeps a file in the state
//! directory, named after its port and locked for as long as it runs. A file that nobody has locked
//! was left by a relay that was killed. Not here: what is in the state directory else (see
//! `state`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::app::state::State;
use crate::app::token::Store;
use crate::transport::{Endpoint, Setup, Web, owner};

/// The directory of the files, in the state directory.
const DIRECTORY: &str = "relays";

/// A file that says that a relay listens.
#[derive(Debug)]
pub(in crate::app) struct Sign {
    path: PathBuf,
    _locked: File,
}

impl Sign {
    /// Says that a relay listens there; `None` where that is of no use, or cannot be said.
    pub(in crate::app) fn hang_out(at: &Endpoint) -> Option<Self> {
        let port = port(at)?;
        let state = State::find().ok()?;
        let hung = || -> io::Result<Self> {
            let directory = state.file(DIRECTORY);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
            let path = file(&state, port);
            let mut open = OpenOptions::new();
            open.write(true).create(true).truncate(false).mode(0o600);
            let file = open.open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let _locked = file;
            Ok(Self { path, _locked })
        };
        let hung = hung();
        if let Err(fault) = &hung {
            tracing::debug!(%fault, "`connect` will not find this listener's token");
        }
        hung.ok()
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // Gone already, or for the next relay at this port to lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Has the server at `to` be shown the user's own token, if it is a relay of this user and nothing
/// else is to be shown to it.
pub(in crate::app) fn greet(to: &Endpoint, setup: &mut Setup) {
    if setup.greeting.headers.contains_key("authorization") || !to.is_loopback() {
        return;
    }
    let Some(port) = port(to) else { return };
    let Ok(store) = Store::find(None) else { return };
    let is_there = State::find().is_ok_and(|state| is_locked(&file(&state, port)));
    // Another user's program may listen at another of this machine's addresses.
    let alone = || owner::listens_alone(geteuid().as_raw(), port) != Some(false);
    if !is_there || !alone() {
        return;
    }
    match store.own() {
        Ok(Some(token)) => {
            if let Err(fault) = setup.greeting.bear(token.reveal()) {
                tracing::debug!("the token is not shown: {fault}");
            }
        }
        Ok(None) => {}
        Err(fault) => tracing::warn!("the token is not shown: {fault}"),
    }
}

fn port(at: &Endpoint) -> Option<u16> {
    match at {
        Endpoint::Web(Web { port, .. }) => Some(*port),
        _ => None,
    }
}

fn file(state: &State, port: u16) -> PathBuf {
    state.file(DIRECTORY).join(port.to_string())
}

fn is_locked(path: &PathBuf) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let locked = flock(&file, FlockOperation::NonBlockingLockShared);
    locked == Err(Errno::WOULDBLOCK)
}
