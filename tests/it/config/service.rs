//! What systemd does for a service and what it receives, as far as a test can do it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use tokio::net::UnixDatagram;
use tokio::process::Command;
use tokio::time::timeout;

use super::stage::{Client, Stage, stop};
use crate::support::http::Caller;
use crate::support::link::{PATIENCE, run as block_on};
use crate::support::program::{Program, command, run_command};

/// Starts the program as its argument with the socket that is its stdin.
const ACTIVATE: &str = r#"exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@""#;

fn activated(like: &Command, socket: impl Into<OwnedFd>) -> Command {
    let like = like.as_std();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(ACTIVATE)
        .arg(like.get_program())
        .args(like.get_args());
    shell.stdin(Stdio::from(socket.into()));
    shell
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    shell
}

async fn notification(by: &UnixDatagram) -> String {
    let mut text = vec![0; 4096];
    let length = timeout(PATIENCE, by.recv(&mut text))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8(text[..length].to_vec()).unwrap()
}

#[test]
fn a_socket_that_was_passed_is_served() {
    block_on(async {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let config = format!(
            "[agents.a]\ncommand = [\"AGENT\"]\n[[listeners]]\nendpoint = \"http://{at}\"\n"
        );
        let stage = Stage::with(&config);
        let mut serve = Program::of(activated(&stage.command(&[]), socket));
        let address = serve.address().await;
        assert_eq!(address, format!("http://{at}/acp"));
        let client = Client::open(&Caller::to(&address), "/acp").await;
        // The agent has neither the socket nor its variables.
        let pid = client.about["pid"].to_string();
        let fds = std::fs::read_dir(Path::new("/proc").join(&pid).join("fd")).unwrap();
        let fds = fds.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap_or_default());
        assert!(
            !fds.into_iter()
                .any(|to| to.to_string_lossy().starts_with("socket:"))
        );
        let environ = std::fs::read(Path::new("/proc").join(&pid).join("environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environ).contains("LISTEN_"));
    });
}

#[test]
fn a_socket_file_that_was_passed_is_served_and_left() {
    block_on(async {
        let stage = Stage::with("");
        let path = stage.path("passed");
        let socket = UnixListener::bind(&path).unwrap();
        let at = format!("unix:{}", path.display());
        let like = command(&["serve", "--listen", &at, "--", "cat"]);
        let mut serve = Program::of(activated(&like, socket));
        assert_eq!(serve.address().await, at);
        let mut client = Program::start(&["connect", &at]);
        client
            .write("{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n")
            .await;
        assert_eq!(client.json().await["method"], "hello");
        stop(serve).await;
        assert!(path.exists(), "it belongs to its creator");
    });
}

#[test]
fn a_passed_socket_without_a_listener_is_an_error() {
    block_on(async {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap().to_string();
        let like = command(&["serve", "--listen", "tcp://127.0.0.1:0", "--", "cat"]);
        let outcome = run_command(activated(&like, socket), "").await;
        assert_eq!(outcome.code, Some(78), "{outcome:?}");
        assert!(outcome.stderr.contains(&at), "{outcome:?}");
    });
}

#[test]
fn systemd_is_notified_of_start_reload_and_stop() {
    block_on(async {
        let config =
            "[agents.a]\ncommand = [\"AGENT\"]\n[[listeners]]\nendpoint = \"tcp://127.0.0.1:0\"\n";
        let stage = Stage::with(config);
        let socket = stage.path("notify");
        let manager = UnixDatagram::bind(&socket).unwrap();
        let mut serve = stage.command(&[]);
        serve.env("NOTIFY_SOCKET", &socket);
        let serve = Program::of(serve);
        let ready = notification(&manager).await;
        assert!(ready.starts_with("READY=1\nSTATUS=1 listener"), "{ready}");
        serve.signal(Signal::HUP);
        let reloading = notification(&manager).await;
        assert!(
            reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
            "{reloading}"
        );
        assert!(notification(&manager).await.starts_with("READY=1"));
        serve.signal(Signal::TERM);
        assert!(notification(&manager).await.starts_with("STOPPING=1"));
    });
}
