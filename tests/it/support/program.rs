//! The built program, run as a user runs it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{self, ExitStatus, Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::link::PATIENCE;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running program with a dialogue. Dropping it kills it.
pub(crate) struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// `None` when the test has given it another one.
    stderr: Option<Lines<BufReader<ChildStderr>>>,
}

/// The state directory of all programs without one of their own.
pub(crate) const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// The words of a part of a command line without quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The program with these arguments, without the relay's variables of the tester's environment,
/// for a test that needs no runtime.
pub(crate) fn relay(args: &[impl AsRef<OsStr>]) -> process::Command {
    let mut command = process::Command::new(env!("CARGO_BIN_EXE_acp-relay"));
    command
        .args(args)
        .env_remove("ACP_RELAY_LOG")
        .env("ACP_RELAY_STATE_DIR", STATE)
        // No configuration file of the tester is read.
        .env("XDG_CONFIG_HOME", STATE)
        .env_remove("ACP_RELAY_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it with `input` on a pipe that is its stdin.
pub(crate) fn run_on(args: &[impl AsRef<OsStr>], input: &[u8]) -> Output {
    let mut child = relay(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|threads| {
        // A program that fails at once does not read it.
        threads.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

/// Runs it on that text again and again, with its stdout closed.
pub(crate) fn run_unread(args: &[impl AsRef<OsStr>], input: &[u8]) -> Output {
    let mut child = relay(args).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    while stdin.write_all(input).is_ok() {}
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// The same for a test with a runtime.
pub(crate) fn command(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::from(relay(args));
    command.stdin(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs the program to its end with `input` on a stdin that ends after it.
pub(crate) async fn run(args: &[impl AsRef<OsStr>], input: &str) -> Outcome {
    run_command(command(args), input).await
}

/// The same with a state directory of its own.
pub(crate) async fn run_in(state: &Path, args: &[impl AsRef<OsStr>]) -> Outcome {
    let mut command = command(args);
    command.env("ACP_RELAY_STATE_DIR", state);
    run_command(command, "").await
}

/// The same, with a command that was changed.
pub(crate) async fn run_command(mut command: Command, input: &str) -> Outcome {
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let input = input.to_owned();
    let write = tokio::spawn(async move {
        // A program that fails at once does not read it.
        drop(stdin?.write_all(input.as_bytes()).await);
        Some(())
    });
    let output = timeout(PATIENCE, child.wait_with_output());
    let output = output.await.expect("the program hangs").unwrap();
    drop(write.await);
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a request to the program.
pub(crate) async fn ask(client: &mut Program, id: u32, method: &str, params: Value) {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    client.write(&format!("{message}\n")).await;
}

/// The same, and waits for its result.
pub(crate) async fn answered(client: &mut Program, id: u32, method: &str, params: Value) -> Value {
    ask(client, id, method, params).await;
    let answer = client.json().await;
    assert_eq!(answer["id"], id, "{answer}");
    answer["result"].clone()
}

impl Program {
    pub(crate) fn start(args: &[impl AsRef<OsStr>]) -> Self {
        Self::of(command(args))
    }

    /// The same with a state directory of its own.
    pub(crate) fn start_in(state: &Path, args: &[impl AsRef<OsStr>]) -> Self {
        let mut command = command(args);
        command.env("ACP_RELAY_STATE_DIR", state);
        Self::of(command)
    }

    /// The same, with a command that was changed.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            stderr: child
                .stderr
                .take()
                .map(|stderr| BufReader::new(stderr).lines()),
            child,
        }
    }

    /// The next line on stderr.
    pub(crate) async fn complaint(&mut self) -> Option<String> {
        let line = timeout(PATIENCE, self.stderr.as_mut()?.next_line());
        line.await.expect("the program prints nothing").unwrap()
    }

    /// The address that it logs.
    pub(crate) async fn address(&mut self) -> String {
        let line = self.complaint().await.unwrap_or_default();
        let address = line.strip_prefix("acp-relay: listening on ");
        address.unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    /// Writes to its stdin.
    pub(crate) async fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }

    /// Ends its stdin.
    pub(crate) fn end(&mut self) {
        self.stdin = None;
    }

    /// The next line of its stdout, without its end; `None` when there are no more.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.stdout.read_line(&mut line));
        let read = read.await.expect("the program prints nothing").unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next line of its stdout as JSON.
    pub(crate) async fn json(&mut self) -> Value {
        let line = self.line().await.expect("a message, not the end");
        serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
    }

    /// So many bytes of its stdout.
    pub(crate) async fn bytes(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        let read = timeout(PATIENCE, self.stdout.read_exact(&mut bytes));
        read.await.expect("the program prints nothing").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let exit = timeout(PATIENCE, self.child.wait());
        exit.await.expect("the program hangs").unwrap()
    }
}
