//! Where each transport of the registry can be tried out.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use acp_relay::transport::{Endpoint, Link, Setup, Tls, registry};
use acp_relay::wire::Limits;
use tempfile::TempDir;

use crate::support::link::{accept, listen, setup_with};

/// Two ends of one fresh link.
pub(super) struct Pair {
    pub(super) scheme: &'static str,
    pub(super) client: Link,
    pub(super) server: Link,
    _dir: TempDir,
}

/// The schemes that can reach themselves within one process.
pub(super) fn schemes() -> Vec<&'static str> {
    let all = registry::all().iter().flat_map(|one| one.schemes());
    let mut here: Vec<_> = all.copied().collect();
    // There is one stdin, and a child process is another program; both are tried with the binary.
    here.retain(|scheme| !["stdio", "exec"].contains(scheme));
    assert!(here.len() >= 5, "{here:?}");
    here
}

/// An endpoint to listen at, and what it needs.
pub(super) fn place(scheme: &str, limits: &Limits, dir: &TempDir) -> (Endpoint, Setup) {
    let mut setup = setup_with(limits.clone());
    let endpoint = match scheme {
        "tcp" => "tcp://127.0.0.1:0".to_owned(),
        "unix" => format!("unix:{}", dir.path().join("s").display()),
        "ws" => "ws://127.0.0.1:0".to_owned(),
        "wss" => {
            setup.tls = certificate(dir);
            "wss://localhost:0".to_owned()
        }
        "memory" => format!("memory:{}", dir.path().display()),
        other => panic!("{other} needs a place in the suite"),
    };
    (endpoint.parse().unwrap(), setup)
}

/// A certificate for `localhost` that is trusted because it is named.
pub(super) fn certificate(dir: &TempDir) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Tls {
        cert: Some(cert.clone()),
        key: Some(key),
        ca: Some(cert),
    }
}

pub(super) async fn pair(scheme: &'static str, limits: &Limits) -> Pair {
    let dir = tempfile::tempdir().unwrap();
    let (at, setup) = place(scheme, limits, &dir);
    let mut listener = listen(&at, &setup).await;
    let address = listener.address();
    let connecting = registry::connect(&address, &setup);
    let (client, server) = tokio::join!(connecting, accept(&mut *listener));
    Pair {
        scheme,
        client: client.unwrap_or_else(|fault| panic!("{fault}")),
        server,
        _dir: dir,
    }
}
