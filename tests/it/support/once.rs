//! The built program, run to its end by a test that needs no runtime.
//!
//! Not here: programs with a dialogue (see `program`).

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::thread;

/// The program with these arguments, without the relay's variables of the tester's environment.
pub(crate) fn relay(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-relay"));
    command
        .args(args)
        .env_remove("ACP_RELAY_LOG")
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
