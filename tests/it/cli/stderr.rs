//! stderr and the log: a reader that stops delays nothing.

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use std::time::Duration;

use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run};

const HELLO: &str = r#"{"jsonrpc":"2.0","method":"hello"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#;

/// Sends a line and returns the next one.
async fn exchange(stream: &mut BufReader<UnixStream>, line: &str) -> String {
    stream
        .write_all(format!("{line}\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    answer.trim_end().to_owned()
}

async fn dial(address: &str) -> BufReader<UnixStream> {
    let path = address.strip_prefix("unix:").unwrap();
    BufReader::new(UnixStream::connect(path).await.unwrap())
}

#[test]
fn an_unread_stderr_delays_no_message() {
    // 100 lines of 8 KiB are more than the pipe and the queue hold together.
    let script = "i=0; line=$(head -c 8000 /dev/zero | tr '\\0' x); \
        while [ $i -lt 99 ]; do echo $line >&2; i=$((i+1)); done; exec cat";
    block_on(async {
        let mut program = Program::start(&["--log", "info", "connect", "--", "sh", "-c", script]);
        program.write(&format!("{HELLO}\n")).await;
        assert_eq!(program.line().await.as_deref(), Some(HELLO));
        program.end();
        let mut lost = 0;
        while let Some(line) = program.complaint().await {
            lost += line.matches("more lines were lost").count();
        }
        assert_eq!(lost, 1);
        assert_eq!(program.exit().await.code(), Some(0));
    });
}

#[test]
fn an_unread_stderr_does_not_delay_the_exit() {
    let script = "head -c 800000 /dev/zero | tr '\\0' x | fold -w 8000 >&2; exit 3";
    block_on(async {
        let mut program = Program::start(&["--log", "info", "connect", "--", "sh", "-c", script]);
        assert_eq!(program.exit().await.code(), Some(3));
    });
}

#[test]
fn a_closed_stderr_does_not_end_the_program() {
    block_on(async {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut connect = command(&["--log", "info", "connect", "--", "cat"]);
        connect.stderr(writer);
        let mut connect = Program::of(connect);
        connect.write(&format!("{HELLO}\n")).await;
        assert_eq!(connect.line().await.as_deref(), Some(HELLO));
        connect.end();
        assert_eq!(connect.exit().await.code(), Some(0));
    });
}

#[test]
fn an_agent_that_the_relay_stops_is_not_logged_as_failed() {
    block_on(async {
        let args = [
            "connect",
            "--limit",
            "stop-grace=500ms",
            "--",
            "sleep",
            "600",
        ];
        let outcome = run(&args, "").await;
        assert_eq!(outcome.code, Some(128 + 15), "{outcome:?}");
        assert!(!outcome.stderr.contains("ended with"), "{outcome:?}");
    });
}

#[test]
fn rejected_clients_are_logged_at_a_bounded_rate() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let listen = format!("unix:{}/s", folder.path().display());
        let args = [
            "serve",
            "--limit",
            "connections=1",
            "--listen",
            &listen,
            "--",
            "cat",
        ];
        let mut serve = Program::start(&args);
        let address = serve.address().await;
        let mut connected = dial(&address).await;
        assert_eq!(exchange(&mut connected, HELLO).await, HELLO);
        let answer = exchange(&mut dial(&address).await, INITIALIZE).await;
        assert!(
            answer.contains(r#""id":7,"error":{"code":-32053"#),
            "{answer}"
        );
        assert!(answer.contains("1 clients are connected"), "{answer}");

        // Silent clients hold a connection for a while; one beyond the limit is closed at once.
        let mut silent = Vec::new();
        for _ in 0..65 {
            silent.push(dial(&address).await);
        }
        let closed = async {
            loop {
                for stream in &mut silent {
                    let read = timeout(Duration::from_millis(1), stream.read_u8()).await;
                    if matches!(read, Ok(Err(_))) {
                        return;
                    }
                }
            }
        };
        closed.await;
        assert_eq!(exchange(&mut connected, HELLO).await, HELLO);
        drop((silent, connected));
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
        let mut reported = 0;
        while let Some(line) = serve.complaint().await {
            reported += line.matches("are connected already").count();
        }
        assert!((1..20).contains(&reported), "{reported}");
    });
}
