//! How the program stops on a signal, and that no process remains.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::support::link::run as block_on;
use crate::support::program::{Program, command};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#;

/// Longer than the tests wait: a shutdown that waits for any of these is too late.
const SLOW: [&str; 4] = ["--limit", "stop-grace=600s", "--limit", "handshake=600s"];

/// Sends its process id and waits for the end of its input, which some agents ignore.
const MEEK: &str = "echo \"{\\\"method\\\":\\\"pid $$\\\"}\"; while read line; do :; done";
const STUBBORN: &str = "trap '' TERM; echo \"{\\\"method\\\":\\\"pid $$\\\"}\"; \
    while :; do read line || sleep 0.1; done";

/// Starts a server with one connected client; returns the agent's process id, too.
async fn serve(script: &str) -> (Program, Program, u32) {
    let listen = ["serve", "--listen", "tcp://127.0.0.1:0"];
    let agent = ["--", "sh", "-c", script];
    let mut serve = Program::start(&[&listen[..], &SLOW, &agent].concat());
    // A guard, and files of its own, hold messages of the agent back until the client's dialect is known.
    let mut client = Program::start(&[
        "connect",
        "--guard",
        "never",
        "--files",
        "editor",
        &serve.address().await,
    ]);
    let word = client.json().await["method"].as_str().unwrap().to_owned();
    let pid = word.strip_prefix("pid ").unwrap().parse().unwrap();
    assert!(is_running(pid));
    (serve, client, pid)
}

fn is_running(pid: u32) -> bool {
    fs::exists(Path::new("/proc").join(pid.to_string())).unwrap()
}

#[test]
fn the_first_signal_ends_a_server_gracefully() {
    block_on(async {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let (mut serve, mut client, agent) = serve(MEEK).await;
            serve.signal(signal);
            assert_eq!(serve.exit().await.code(), Some(0), "{signal:?}");
            assert!(!is_running(agent), "the agent still runs");
            assert_eq!(client.line().await, None);
            assert_eq!(client.exit().await.code(), Some(0));
        }
    });
}

#[test]
fn the_second_signal_does_not_wait() {
    block_on(async {
        let (mut serve, mut client, agent) = serve(STUBBORN).await;
        serve.signal(Signal::TERM);
        refused(&mut client).await;
        assert!(is_running(agent), "it has its grace");
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(75));
        assert!(!is_running(agent), "the agent still runs");
    });
}

#[test]
fn a_client_without_a_handshake_does_not_delay_the_shutdown() {
    block_on(async {
        let listen = ["serve", "--listen", "ws://127.0.0.1:0"];
        let mut serve = Program::start(&[&listen[..], &SLOW, &["--", "cat"]].concat());
        let address = serve.address().await;
        let host = address.strip_prefix("ws://").unwrap();
        let host = host.split('/').next().unwrap();
        let mut silent = TcpStream::connect(host).await.unwrap();
        // A served client proves that the silent one, which came first, has been accepted.
        let mut other = Program::start(&["connect", &address]);
        let message = r#"{"jsonrpc":"2.0","method":"a"}"#;
        other.write(&format!("{message}\n")).await;
        assert_eq!(other.line().await.unwrap(), message);
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
        assert_eq!(silent.read(&mut [0; 8]).await.unwrap_or(0), 0);
    });
}

#[test]
fn a_signal_ends_the_agent_of_connect() {
    block_on(async {
        let mut connect = Program::start(&["connect", "--", "sh", "-c", MEEK]);
        let word = connect.json().await["method"].as_str().unwrap().to_owned();
        let agent: u32 = word.strip_prefix("pid ").unwrap().parse().unwrap();
        connect.signal(Signal::TERM);
        assert_eq!(connect.line().await, None);
        assert_eq!(connect.exit().await.code(), Some(0));
        assert!(!is_running(agent), "the agent still runs");
    });
}

/// Waits until a new request is refused: then the signal has been handled. The stubborn agent never
/// answers a request that was forwarded before, so another one is sent.
async fn refused(client: &mut Program) {
    for id in 1.. {
        let ask = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\"}}\n");
        client.write(&ask).await;
        let answer = timeout(Duration::from_millis(100), client.json()).await;
        if answer.is_ok_and(|answer| answer["error"]["code"] == -32054) {
            return;
        }
    }
}

#[test]
fn connecting_can_be_interrupted() {
    block_on(async {
        // It accepts connections and sends nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("ws://{}", silent.local_addr().unwrap());
        let args = ["connect", "--limit", "handshake=600", &address];
        let mut program = Program::start(&args);
        program.write(&format!("{INITIALIZE}\n")).await;
        let _peer = silent.accept().await.unwrap();
        program.signal(Signal::TERM);
        let answer = program.line().await.unwrap();
        assert!(
            answer.contains(r#""id":7,"error":{"code":-32054"#),
            "{answer}"
        );
        assert_eq!(program.exit().await.code(), Some(75));
        let stated = program.complaint().await.unwrap();
        assert_eq!(stated, "acp-relay: stopped before the agent was reached");
    });
}

#[test]
fn a_server_that_is_connecting_can_be_interrupted() {
    block_on(async {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let agent = format!("ws://{}", silent.local_addr().unwrap());
        let listen = ["serve", "--listen", "tcp://127.0.0.1:0", "--agent", &agent];
        let mut serve = Program::start(&[&listen[..], &SLOW].concat());
        let address = serve.address().await;
        let host = address.strip_prefix("tcp://").unwrap();
        let mut client = BufReader::new(TcpStream::connect(host).await.unwrap());
        client
            .write_all(format!("{INITIALIZE}\n").as_bytes())
            .await
            .unwrap();
        let _peer = silent.accept().await.unwrap();
        serve.signal(Signal::TERM);
        let mut answer = String::new();
        client.read_line(&mut answer).await.unwrap();
        assert!(
            answer.contains(r#""id":7,"error":{"code":-32054"#),
            "{answer}"
        );
        drop(client);
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}

#[test]
fn the_second_signal_ends_the_wait_and_sets_the_exit_code() {
    block_on(async {
        let script = "trap '' TERM; echo {}; exec tail -f /dev/null";
        let mut program = Program::start(&["--log", "info", "connect", "--", "sh", "-c", script]);
        for word in ["connected", "once more"] {
            while !program.complaint().await.expect(word).contains(word) {}
            program.signal(Signal::TERM);
        }
        assert_eq!(program.exit().await.code(), Some(75));
    });
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let script = format!(
            "trap '' HUP; exec '{}' serve --listen 'unix:{}' -- cat",
            env!("CARGO_BIN_EXE_acp-relay"),
            socket.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::null());
        shell
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut serve = Program::of(shell);
        serve.address().await;
        let before = UnixStream::connect(&socket).await.unwrap();
        serve.signal(Signal::HUP);
        drop(before);
        let mut client = BufReader::new(UnixStream::connect(&socket).await.unwrap());
        let line = "{\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n";
        client.write_all(line.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_line(&mut answer).await.unwrap();
        assert_eq!(answer, line);
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0), "the hangup was counted");
    });
}

#[test]
fn the_demo_leaves_nothing_when_it_is_interrupted() {
    block_on(async {
        for attempt in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            let mut demo = command(&["demo"]);
            demo.env("TMPDIR", folder.path());
            let mut demo = Program::of(demo);
            let files = || fs::read_dir(folder.path()).unwrap().count();
            while files() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            demo.signal(Signal::INT);
            let code = demo.exit().await.code();
            assert_eq!(files(), 0);
            if code == Some(75) {
                return;
            }
            assert_eq!(code, Some(0), "attempt {attempt}");
        }
        panic!("it was never interrupted in time");
    });
}
