//! Records at which ports this user's relays listen, so that `connect` can tell which agents are on
//! this machine and when to send the user's own token.
//!
//! A port alone proves nothing: another user's program may listen there, or a tunnel to another
//! machine (`ssh -L`), and neither is trusted or sent the token. So a relay announces each
//! listener in a file named after its port, with the secret of its `LocalKey`. `connect` has the
//! listener prove that it knows the secret (see `auth::local`).

use std::fs;
use std::sync::{Arc, LazyLock};

use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper_util::client::legacy::connect::HttpInfo;
use rustix::process::geteuid;
use tokio::time::timeout;

use crate::cli::announcement::Announcement;
use crate::cli::random::random_hex;
use crate::cli::token::Store;
use auth::{CHALLENGE, LocalKey, PROOF};
use transport::{Endpoint, HttpClient, HttpEndpoint, RequestHeaders, Setup, owner};

/// The folder of the files.
const FOLDER: &str = "relays";

/// Identifies this boot of this machine among others that share the state directory.
const MACHINE: &str = "/proc/sys/kernel/random/boot_id";

/// Longest response to a challenge that is read, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The secret of this process's listeners, and the key made from it.
static SECRET: LazyLock<Option<(String, Arc<LocalKey>)>> = LazyLock::new(|| {
    let secret = random_hex::<32>().ok()?;
    let key = Arc::new(key(&secret));
    Some((secret, key))
});

/// The key with which listeners of this process prove that they are on this machine.
pub(in crate::cli) fn local_key() -> Option<Arc<LocalKey>> {
    SECRET.as_ref().map(|(_, key)| Arc::clone(key))
}

/// Announces a listener; `None` where that is useless or fails.
pub(in crate::cli) fn announce(at: &Endpoint) -> Option<Announcement> {
    let (port, (secret, _)) = (port(at)?, SECRET.as_ref()?);
    let written = Announcement::create(FOLDER, &port.to_string(), secret);
    if let Err(fault) = &written {
        tracing::debug!(%fault, "this listener cannot prove to `connect` that it is on this machine");
    }
    written.ok()
}

/// The ports at which relays of this user listen.
pub(in crate::cli) fn announced_ports() -> Vec<String> {
    let all = Announcement::all(FOLDER).into_iter();
    let mut ports: Vec<String> = all.map(|(port, _)| port).collect();
    ports.sort();
    ports
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
    if !setup.request_headers.headers.contains_key(AUTHORIZATION) && port(to).is_some_and(alone) {
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
    if !to.is_loopback() {
        return None;
    }
    let key = key(&Announcement::read(FOLDER, &web.port.to_string())?);
    let nonce = random_hex::<32>().ok()?;
    // Before the proof, the listener gets no token.
    let setup = Setup {
        request_headers: RequestHeaders::default(),
        ..setup.clone()
    };
    let client = HttpClient::new(to, &setup).ok()?;
    let mut request = client.request(Method::GET, &web.path, "").ok()?;
    let challenge = HeaderValue::from_str(&nonce).ok()?;
    request.headers_mut().insert(CHALLENGE, challenge);
    let answer = client.fetch(request, MAX_BODY).await.ok()?;
    let dialed = answer.extensions().get::<HttpInfo>()?.remote_addr();
    let proof = answer.headers().get(PROOF)?;
    Some(key.verify(nonce.as_bytes(), dialed, proof.as_bytes()))
}

fn key(secret: &str) -> LocalKey {
    LocalKey::new(secret, &fs::read_to_string(MACHINE).unwrap_or_default())
}

fn port(at: &Endpoint) -> Option<u16> {
    match at {
        Endpoint::Http(HttpEndpoint { port, .. }) => Some(*port),
        _ => None,
    }
}
