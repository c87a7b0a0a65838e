//! A recording that fails: the conversation goes on, and it is told and counted; or it ends, when
//! that was asked for.
//!
//! The program may write files of 1 KiB and no more, which is a full disk that any shell can make.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// An agent that answers each line, and a client that says this many.
const AGENT: &str = r#"while read -r line; do echo '{"method":"session/update"}'; done
sleep 0.3; echo left in peace >&2"#;
const LINES: usize = 300;

/// With `options`, on such a disk.
fn talk(options: &[&str]) -> Output {
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
    let reports = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    // A program that was told to be strict does not read all of it.
    let _ = stdin.write_all(format!("{reports}\n").repeat(LINES).as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn the_talk_goes_on_and_the_failure_is_counted() {
    let output = talk(&[]);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{reported}");
    let received = String::from_utf8(output.stdout).unwrap();
    assert_eq!(received.lines().count(), LINES);
    let loud = "the conversation continues unrecorded";
    assert_eq!(reported.matches(loud).count(), 1, "{reported}");
    assert!(reported.contains(r#"("unrecorded", 1)"#), "{reported}");
}

#[test]
fn a_strict_one_fails_with_it() {
    let output = talk(&["--record-strict"]);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(73), "{reported}");
    assert!(reported.contains(r#"("unrecorded", 1)"#), "{reported}");
    // The log says what becomes of the conversation, and the agent has time to end.
    assert!(reported.contains("and ends the conversation"), "{reported}");
    assert!(!reported.contains("continues unrecorded"), "{reported}");
    assert!(reported.contains("left in peace"), "{reported}");
    assert!(reported.contains("cause=Unrecorded"), "{reported}");
}
