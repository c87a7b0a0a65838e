//! A recording that fails: the conversation goes on, and the failure is reported and counted; with
//! `--record-strict` the conversation ends.
//!
//! The program may only write files of 1 KiB, which is like a full disk and needs only a shell.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// An agent that answers each line.
const AGENT: &str = r#"while read -r line; do echo '{"method":"session/update"}'; done
sleep 0.3; echo left in peace >&2"#;
/// How many lines the client sends.
const LINES: usize = 300;

/// Runs a conversation with `options`, on such a disk.
fn converse(options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", r#"ulimit -f 2; exec "$@""#, "sh"])
        .arg(env!("CARGO_BIN_EXE_acp-relay"))
        .args(["connect", "--log", "info", "--record"])
        .arg(folder.path().join("recordings"))
        .args(options)
        .args(["--", "sh", "-c", AGENT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let message = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    // With `--record-strict` the program does not read all of it.
    let _ = stdin.write_all(format!("{message}\n").repeat(LINES).as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn a_conversation_goes_on_when_its_recording_fails_and_the_failure_is_counted() {
    let output = converse(&[]);
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    let received = String::from_utf8(output.stdout).unwrap();
    assert_eq!(received.lines().count(), LINES);
    let warning = "the conversation continues unrecorded";
    assert_eq!(log.matches(warning).count(), 1, "{log}");
    assert!(log.contains(r#"("unrecorded", 1)"#), "{log}");
}

#[test]
fn a_strict_conversation_ends_when_its_recording_fails() {
    let output = converse(&["--record-strict"]);
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(73), "{log}");
    assert!(log.contains(r#"("unrecorded", 1)"#), "{log}");
    // The log states that the conversation ends, and the agent has time to end.
    assert!(log.contains("and ends the conversation"), "{log}");
    assert!(!log.contains("continues unrecorded"), "{log}");
    assert!(log.contains("left in peace"), "{log}");
    assert!(log.contains("cause=Unrecorded"), "{log}");
}
