//! Times at a terminal, which are local.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use acp_relay::recording::{Recording, rfc3339};
use serde_json::Value;

use crate::support::program::relay;
use crate::support::terminal::Terminal;

const RECORDING: &str = "tests/vectors/recordings/v1.000.acpr";

/// A zone in POSIX's form, which needs no file, and its offset in seconds.
const ZONE: &str = "XST-5:30";
const OFFSET: u64 = 5 * 3600 + 1800;

/// The local time in [`ZONE`].
fn local(seconds: u64) -> String {
    let shifted = rfc3339((seconds + OFFSET) * 1_000_000);
    shifted.replace('T', " ").trim_end_matches('Z').to_owned()
}

#[test]
fn a_terminal_shows_the_times_of_tokens_and_recordings_locally() {
    let state = tempfile::tempdir().unwrap();
    let at = |args: &[&str]| {
        let mut command = relay(args);
        command
            .env("TZ", ZONE)
            .env("ACP_RELAY_STATE_DIR", state.path());
        command
    };
    let new = at(&["token", "new", "alice", "--expires", "30d"])
        .output()
        .unwrap();
    assert!(new.status.success(), "{new:?}");
    let json = at(&["token", "list", "--json"]).output().unwrap().stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    let expires = json[0]["expires"].as_u64().unwrap();
    let (printed, _) = Terminal::start(at(&["token", "list"])).end();
    let expected = format!("until {}\n", local(expires));
    assert!(printed.ends_with(&expected), "{printed}");
    let piped = at(&["token", "list"]).output().unwrap().stdout;
    assert!(piped.ends_with(b" GMT\n"), "{piped:?}");

    let header = Recording::of(Path::new(RECORDING))
        .unwrap()
        .header()
        .unwrap();
    let began = local(header.began / 1_000_000);
    let (printed, _) = Terminal::start(at(&["inspect", "ls", RECORDING])).end();
    let line = printed.lines().nth(1).unwrap();
    assert!(line.starts_with(&began), "{printed}");
    let piped = at(&["inspect", "ls", RECORDING]).output().unwrap().stdout;
    assert!(piped.starts_with(b"recording "), "{piped:?}");
}

#[test]
fn a_terminal_shows_the_log_for_people() {
    let args = ["connect", "--log", "info", "--", "echo", "nonsense"];
    let seconds = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let mut command = relay(&args);
    command.env("TZ", ZONE);
    let before = local(seconds());
    let (printed, _) = Terminal::start(command).end();
    let after = local(seconds());
    let line = printed
        .lines()
        .find(|line| line.contains(" WARN "))
        .unwrap();
    let time = &line[..before.len()];
    assert!(*before <= *time && *time <= *after, "{line}");
    assert!(!printed.contains("note="), "{printed}");

    let piped = relay(&args).output().unwrap();
    let piped = String::from_utf8(piped.stderr).unwrap();
    let line = piped.lines().find(|line| line.contains(" WARN ")).unwrap();
    assert!(piped.contains("note="), "{piped}");
    let (time, _) = line.split_once("Z ").unwrap();
    assert_eq!(time.len(), "2026-11-20T15:59:00.123456".len(), "{line}");
}
