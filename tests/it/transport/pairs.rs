//! A pair of connected links for each transport of the registry.
//!
//! A child process and our own stdin cannot be reached within one process, so this binary is
//! started a second time: the near end is the child, which reads stdin, writes stdout and forwards
//! everything to the far end over a Unix socket. A script that starts it is the `ssh` of that
//! transport.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use acp_relay::cli::guarded;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::proxy::ConversationStore;
use acp_relay::transport::process::set_watchdog;
use acp_relay::transport::{
    CloseReason, Endpoint, FrameSink, FrameStream, Link, SSH_READY, Setup, Tls, registry,
};
use tempfile::TempDir;

use crate::agent_connect::principals::{gate, token};
use crate::support::http::{INITIALIZE, INITIALIZED};
use crate::support::link::{accept, close, listen, next, received, run, send, setup_with};

/// Two ends of one fresh link.
pub(super) struct Pair {
    pub(super) scheme: &'static str,
    pub(super) client: Link,
    pub(super) server: Link,
    _kept: Kept,
}

/// What must outlive a link.
type Kept = Box<dyn std::any::Any>;

/// The environment variable of the second process with the far end's endpoint.
const FAR_END: &str = "ACP_RELAY_TEST_FAR_END";

/// Links of Unix sockets in the links that are made over others.
const DECORATORS: [&str; 2 + cfg!(feature = "cluster") as usize] = [
    "guarded",
    "kept",
    #[cfg(feature = "cluster")]
    "placed",
];

/// The schemes under test: all of them. `exec` tests `stdio` as well; a recording forwards nothing
/// (see `replay`).
pub(super) fn schemes() -> Vec<&'static str> {
    let all = Endpoint::FORMS
        .iter()
        .filter_map(|(form, _)| Some(form.split_once(':')?.0));
    // `https` and elephant.ai's schemes are variants of `http` and have tests of their own.
    let elsewhere = |scheme: &str| {
        ["stdio", "replay"].contains(&scheme) || scheme.contains("http") && scheme != "http"
    };
    let here = all.filter(|scheme| !elsewhere(scheme));
    // A resumable link over WebSockets, and a Unix socket whose first message is looked at.
    let here = here.chain(["link", "begun"]).chain(DECORATORS);
    let here: Vec<_> = here.collect();
    assert!(here.len() >= 6, "{here:?}");
    here
}

/// The schemes whose listeners accept any number of clients.
pub(super) fn listening() -> Vec<&'static str> {
    schemes()
        .into_iter()
        .filter(|scheme| !["exec", "http", "ssh", "begun"].contains(scheme))
        .filter(|scheme| !DECORATORS.contains(scheme))
        .collect()
}

/// An endpoint to listen at, and its setup.
pub(super) fn place(scheme: &str, limits: &Limits, dir: &TempDir) -> (Endpoint, Setup) {
    let mut setup = setup_with(limits.clone());
    let endpoint = match scheme {
        "tcp" => "tcp://127.0.0.1:0".to_owned(),
        "unix" | "begun" => {
            setup.detects_links = scheme == "begun";
            setup.links = setup.detects_links.then(Default::default);
            format!("unix:{}", dir.path().join("s").display())
        }
        "ws" => "ws://127.0.0.1:0".to_owned(),
        "link" => {
            authenticate(&mut setup);
            setup.links = Some(Default::default());
            "ws://127.0.0.1:0".to_owned()
        }
        "wss" => {
            setup.tls = certificate(dir);
            "wss://localhost:0".to_owned()
        }
        other => panic!("{other} needs a place in the suite"),
    };
    (endpoint.parse().unwrap(), setup)
}

/// Has the listener require a token, and the client send it.
pub(super) fn authenticate(setup: &mut Setup) {
    setup.gate = gate();
    let headers = &mut setup.request_headers;
    headers.set_bearer(token(1).reveal()).unwrap();
}

/// A certificate for `localhost`, which the setup names as trusted.
pub(super) fn certificate(dir: &TempDir) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Tls {
        cert: Some(cert.clone()),
        key: Some(key),
        ca: Some(cert),
        ..Tls::default()
    }
}

pub(super) async fn pair(scheme: &'static str, limits: &Limits) -> Pair {
    if scheme == "http" {
        return over_http(limits).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let child = ["exec", "ssh"].contains(&scheme);
    let over_unix = child || DECORATORS.contains(&scheme);
    let (at, mut setup) = place(if over_unix { "unix" } else { scheme }, limits, &dir);
    let mut listener = listen(&at, &setup).await;
    let mut address = listener.address();
    if child {
        address = second_process(&address);
    }
    if let ("ssh", Endpoint::Exec(words)) = (scheme, &address) {
        let words = shell_words::join(words.iter().map(|word| word.to_string_lossy()));
        let script = format!("#!/bin/sh\necho '{SSH_READY}'\nexec {words}\n");
        std::fs::write(dir.path().join("ssh"), script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path().join("ssh"), mode).unwrap();
        let path = format!(
            "{}:{}",
            dir.path().display(),
            std::env::var("PATH").unwrap()
        );
        setup.launch.env = vec![("PATH".into(), path.into())];
        address = "ssh://devbox".parse().unwrap();
    }
    let connecting = async {
        let client = registry::connect(&address, &setup).await;
        let mut client = client.unwrap_or_else(|fault| panic!("{fault}"));
        if scheme == "begun" {
            send(&mut *client.tx, INITIALIZE).await.unwrap();
        }
        client
    };
    let (mut client, mut server) = tokio::join!(connecting, accept(&mut *listener));
    if scheme == "begun" {
        assert_eq!(received(&mut *server.rx).await, Frame::from(INITIALIZE));
    }
    if child {
        // The test harness of the second process prints lines of its own first.
        while received(&mut *client.rx).await != Frame::from("ready") {}
    }
    if scheme == "placed" {
        client = decorate(scheme, client, &setup).await;
    } else {
        server = decorate(scheme, server, &setup).await;
    }
    Pair {
        scheme,
        client,
        server,
        _kept: Box::new(dir),
    }
}

/// The link of that scheme over another one.
async fn decorate(scheme: &str, link: Link, setup: &Setup) -> Link {
    match scheme {
        "guarded" => {
            // Without a rate it is returned unchanged.
            let limits = Limits {
                client_messages: 1 << 29,
                ..Limits::clone(&setup.limits)
            };
            guarded(link, &setup.gate, &limits)
        }
        "kept" => {
            let store = ConversationStore::new(Arc::clone(&setup.limits));
            store.attach(link).await.unwrap()
        }
        #[cfg(feature = "cluster")]
        "placed" => {
            let nowhere = |_| Box::pin(async { Ok(None) }) as _;
            cluster::placed(link, &setup.limits, Box::new(nowhere))
        }
        _ => link,
    }
}

/// A link of each scheme that is made over others, here over one that `change` has changed.
pub(super) async fn decorated(change: impl Fn(&mut Link)) -> Vec<(&'static str, Link)> {
    let mut all = Vec::new();
    for scheme in DECORATORS {
        let mut link = pair("unix", &Limits::default()).await.server;
        change(&mut link);
        all.push((
            scheme,
            decorate(scheme, link, &setup_with(Limits::default())).await,
        ));
    }
    all
}

/// Our own client and our own listener, after `initialize`.
async fn over_http(limits: &Limits) -> Pair {
    let setup = setup_with(limits.clone());
    let mut listener = listen(&"http://127.0.0.1:0".parse().unwrap(), &setup).await;
    let client = registry::connect(&listener.address(), &setup).await;
    let mut client = client.unwrap_or_else(|fault| panic!("{fault}"));
    send(&mut *client.tx, INITIALIZE).await.unwrap();
    let mut server = accept(&mut *listener).await;
    received(&mut *server.rx).await;
    send(&mut *server.tx, INITIALIZED).await.unwrap();
    received(&mut *client.rx).await;
    Pair {
        scheme: "http",
        client,
        server,
        _kept: Box::new(listener),
    }
}

fn second_process(far_end: &Endpoint) -> Endpoint {
    set_watchdog(env!("CARGO_BIN_EXE_acp-relay").into());
    let program = std::env::current_exe().unwrap();
    let options = [
        "--exact",
        "transport::pairs::in_the_second_process",
        "--nocapture",
    ];
    let variable = format!("{FAR_END}={far_end}");
    let command = ["env".into(), variable.into(), program.into_os_string()];
    Endpoint::Exec(command.into_iter().chain(options.map(Into::into)).collect())
}

/// Not a test: what the second process runs. It forwards everything between stdio and the far end.
#[test]
fn in_the_second_process() {
    let Ok(far_end) = std::env::var(FAR_END) else {
        return;
    };
    run(async {
        let setup = setup_with(Limits::default());
        let far = registry::connect(&far_end.parse().unwrap(), &setup).await;
        let near = registry::connect(&Endpoint::Stdio, &setup).await;
        let (far, mut near) = (far.unwrap(), near.unwrap());
        send(&mut *near.tx, "ready").await.unwrap();
        tokio::join!(forward(near.rx, far.tx), forward(far.rx, near.tx));
    });
    // Before the harness prints more.
    std::process::exit(0);
}

async fn forward(mut from: Box<dyn FrameStream>, mut to: Box<dyn FrameSink>) {
    while let Some(Ok(Decoded::Frame(frame))) = next(&mut *from).await {
        if send(&mut *to, frame).await.is_err() {
            break;
        }
    }
    let _ = close(&mut *to, CloseReason::Done).await;
}
