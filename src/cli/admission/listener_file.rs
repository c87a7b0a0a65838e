//! Records at which ports this user's relays listen, so that `connect` can tell which agents are on
//! this machine and when to send the user's own token.
//!
//! A port alone proves nothing: another user's program may listen there, or a tunnel to another
//! machine (`ssh -L`), and neither is trusted or sent the token. So a relay keeps a file in the
//! state directory, named after its port, locked while it runs, with the secret of its `LocalKey`.
//! An unlocked file was left by a relay that was killed. `connect` has the listener prove that it
//! knows the secret (see `auth::local`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use hyper::Request;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tokio::time::timeout;

use crate::auth::{CHALLENGE, LocalKey, PROOF};
use crate::cli::state::{self, StateDir};
use crate::cli::token::Store;
use crate::transport::{Endpoint, HttpEndpoint, Setup, one_shot, owner};

/// The directory of the files, in the state directory.
const DIRECTORY: &str = "relays";

/// Identifies this boot of this machine among others that share the state directory.
const MACHINE: &str = "/proc/sys/kernel/random/boot_id";

/// The secret of this process's listeners, and the key made from it.
static SECRET: LazyLock<Option<(String, Arc<LocalKey>)>> = LazyLock::new(|| {
    let secret = random()?;
    let key = Arc::new(key(&secret));
    Some((secret, key))
});

/// A file that announces a listener.
#[derive(Debug)]
pub(in crate::cli) struct ListenerFile {
    path: PathBuf,
    _locked: File,
}

impl ListenerFile {
    /// The key with which listeners of this process prove that they are on this machine.
    pub(in crate::cli) fn key() -> Option<Arc<LocalKey>> {
        SECRET.as_ref().map(|(_, key)| Arc::clone(key))
    }

    /// Announces a listener; `None` where that is useless or fails.
    pub(in crate::cli) fn create(at: &Endpoint) -> Option<Self> {
        let port = port(at)?;
        let state = StateDir::find().ok()?;
        let (secret, _) = SECRET.as_ref()?;
        let write = || -> io::Result<Self> {
            let directory = state.file(DIRECTORY);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
            let path = file(&state, port);
            let mut open = OpenOptions::new();
            open.write(true).create(true).truncate(false).mode(0o600);
            let mut file = open.open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.set_len(0)?;
            file.write_all(secret.as_bytes())?;
            let _locked = file;
            Ok(Self { path, _locked })
        };
        let written = write();
        if let Err(fault) = &written {
            tracing::debug!(%fault, "this listener cannot prove to `connect` that it is on this machine");
        }
        written.ok()
    }
}

impl Drop for ListenerFile {
    fn drop(&mut self) {
        // Already gone, or left for the next relay at this port to lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the listener at `to` proves that it is a relay of this user on this machine. If so, it
/// will be sent the user's own token, unless another one is configured.
pub(in crate::cli) async fn verify_local(to: &Endpoint, setup: &mut Setup) -> bool {
    let within = setup.limits.handshake;
    let proven = timeout(within, is_proven(to, setup)).await;
    if proven != Ok(Some(true)) {
        return false;
    }
    // Another user's program may listen at another address of this machine.
    let alone = |port| owner::is_only_listener(geteuid().as_raw(), port) != Some(false);
    if !setup.request_headers.headers.contains_key("authorization") && port(to).is_some_and(alone) {
        match Store::find(None).and_then(|store| store.own_token()) {
            Ok(Some(token)) => {
                if let Err(fault) = setup.request_headers.set_bearer(token.reveal()) {
                    tracing::debug!("the token is not sent: {fault}");
                }
            }
            Ok(None) => {}
            Err(fault) => tracing::warn!("the token is not sent: {fault}"),
        }
    }
    true
}

/// Challenges the listener at `to` if a relay of this user listens at its port; `None` if there is
/// none, or no answer.
async fn is_proven(to: &Endpoint, setup: &Setup) -> Option<bool> {
    let Endpoint::Http(web) = to else { return None };
    let path = file(&StateDir::find().ok()?, web.port);
    if !to.is_loopback() || !is_locked(&path) {
        return None;
    }
    let key = key(&state::read(&path).ok()??);
    let nonce = random()?;
    let request = Request::get(format!("http://{}{}", web.authority(), web.path))
        .header(CHALLENGE, &nonce)
        .body(Bytes::new());
    let answer = one_shot(to, setup, request.ok()?).await.ok()?;
    let dialed = answer.extensions().get::<SocketAddr>()?;
    let proof = answer.headers().get(PROOF)?;
    Some(key.verify(nonce.as_bytes(), *dialed, proof.as_bytes()))
}

fn key(secret: &str) -> LocalKey {
    LocalKey::new(secret, &fs::read_to_string(MACHINE).unwrap_or_default())
}

/// 256 random bits.
fn random() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(HEXLOWER.encode(&bytes))
}

fn port(at: &Endpoint) -> Option<u16> {
    match at {
        Endpoint::Http(HttpEndpoint { port, .. }) => Some(*port),
        _ => None,
    }
}

fn file(state: &StateDir, port: u16) -> PathBuf {
    state.file(DIRECTORY).join(port.to_string())
}

fn is_locked(path: &PathBuf) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let locked = flock(&file, FlockOperation::NonBlockingLockShared);
    locked == Err(Errno::WOULDBLOCK)
}
