//! `acp-relay test` on folders as they are. `vectors/commands/test.trycmd` has what it prints.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acp_relay::recording::write::{self, Stamp};
use acp_relay::recording::{EventKind, Payload, pack};
use rustix::fs::{FlockOperation, flock};

use super::live::capture;
use crate::support::link::run;
use crate::support::program::{Outcome, relay, run as relay_run};
use crate::support::terminal::Terminal;

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

fn acp_relay(args: &[&str], code: i32) -> Outcome {
    let outcome = run(relay_run(args, ""));
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    outcome
}

fn test(folder: &Path, options: &[&str], code: i32) -> String {
    let folder = folder.to_str().unwrap();
    acp_relay(
        &[&["test", folder, "--settle", "50ms"], options].concat(),
        code,
    )
    .stdout
}

/// A folder with a recording of the conversation in `file`.
fn folder_of(file: &Path, name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join(name);
    acp_relay(
        &[
            "inspect",
            "import",
            file.to_str().unwrap(),
            to.to_str().unwrap(),
        ],
        0,
    );
    folder
}

/// A copy of a conversation in which the agent says something else.
fn changed(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let other = file.with_extension("changed.jsonl");
    let secret = "sk-abcdefgh0123456789abcdefgh";
    fs::write(&other, text.replace("in /old/ws/a", secret)).unwrap();
    format!("replay:{}", other.display())
}

#[test]
fn an_update_replaces_plain_and_packed_recordings_and_redacts_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let agent = changed(&file);
    for packed in [false, true] {
        let folder = folder_of(&file, "one.000.acpr");
        let mut one = folder.path().join("one.000.acpr");
        if packed {
            let to = folder.path().join("one.000.acpr.zst");
            let mut text = Vec::new();
            pack(&fs::read(&one).unwrap()[..], &mut text, 3).unwrap();
            fs::write(&to, text).unwrap();
            fs::remove_file(std::mem::replace(&mut one, to)).unwrap();
        }
        fs::set_permissions(&one, fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::read(&one).unwrap();
        let agent = ["--agent", &agent];
        assert!(test(folder.path(), &agent, 1).contains("1 failed"));
        assert_eq!(fs::read(&one).unwrap(), before);
        let printed = test(folder.path(), &[&["--update"], &agent[..]].concat(), 0);
        assert!(printed.contains("0 failed; 1 updated"), "{printed}");
        assert!(test(folder.path(), &agent, 0).contains("1 passed"));
        let one = one.to_str().unwrap();
        let shown = acp_relay(&["inspect", "export", one, "--to", "ndjson"], 0).stdout;
        assert!(
            shown.contains("‹redacted:") && !shown.contains("sk-abcdefgh"),
            "{shown}"
        );
        acp_relay(&["inspect", "verify", one], 0);
        let mode = fs::metadata(one).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode, fs::read_dir(folder.path()).unwrap().count()),
            (0o640, 1)
        );
    }
}

#[test]
fn what_cannot_be_replaced_stays_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let folder = folder_of(&file, "one.000.acpr");
    let one = folder.path().join("one.000.acpr");
    let before = fs::read(&one).unwrap();
    // An agent that ends at once has not answered.
    let printed = test(folder.path(), &["--update", "--", "true"], 1);
    assert!(printed.contains("the agent ended its stream"), "{printed}");
    assert!(
        printed.contains("0 passed; 1 failed; 0 updated"),
        "{printed}"
    );
    assert_eq!(fs::read(&one).unwrap(), before);
}

#[test]
fn a_recording_that_is_being_written_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let folder = folder_of(&file, "one.000.acpr");
    let agent = format!("replay:{}", file.display());
    let copy = folder.path().join("two.000.acpr");
    fs::copy(folder.path().join("one.000.acpr"), &copy).unwrap();
    let writer = File::open(&copy).unwrap();
    flock(&writer, FlockOperation::NonBlockingLockExclusive).unwrap();
    let printed = test(folder.path(), &["--agent", &agent], 0);
    assert!(
        printed.contains("two.000.acpr: it is still being written"),
        "{printed}"
    );
    assert!(
        printed.contains("1 passed; 0 failed; 1 skipped"),
        "{printed}"
    );
}

#[test]
fn a_file_that_is_no_recording_is_no_passed_test() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let agent = format!("replay:{}", file.display());
    let notes = dir.path().join("notes.jsonl");
    fs::write(&notes, "no recording\n").unwrap();
    let printed = test(&notes, &["--agent", &agent], 66);
    assert!(printed.contains("notes.jsonl: no recording"), "{printed}");
}

#[test]
fn a_packed_bomb_fails_its_test_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let folder = folder_of(&file, "one.000.acpr");
    let agent = format!("replay:{}", file.display());
    let text = fs::read(folder.path().join("one.000.acpr")).unwrap();
    let mut line = Vec::new();
    let noise = EventKind::Stderr(Payload::of(vec![b'y'; 16 << 20].into()));
    write::event(&mut line, Stamp::default(), &noise);
    let mut bomb = Vec::new();
    pack(&[text, line.repeat(17)].concat()[..], &mut bomb, 1).unwrap();
    assert!(bomb.len() < 1 << 20);
    fs::write(folder.path().join("bomb.acpr.zst"), bomb).unwrap();
    let printed = test(folder.path(), &["--agent", &agent], 1);
    assert!(
        printed.contains("more than 256 MiB, which is too much to play"),
        "{printed}"
    );
    assert!(printed.contains("1 passed; 1 failed"), "{printed}");
}

#[test]
fn differences_are_red_and_green_at_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let agent = changed(&file);
    let args = ["test", file.to_str().unwrap(), "--agent", &agent];
    let mut command = relay(&args);
    command.env("NO_COLOR", "").env("TERM", "xterm");
    let mut terminal = Terminal::coloured(command);
    terminal.expect("  turn 1 of ");
    terminal.expect("\x1b[31m  FAILED");
    terminal.expect("\x1b[31m    - /update/content/text: ");
    terminal.expect("\x1b[32m    + /update/content/text: ");
    terminal.expect("test result: \x1b[31mFAILED\x1b[0m. 0 passed; 1 failed");
    assert_eq!(terminal.end().1.code(), Some(1));
    // Nor is there a colour where none is wanted.
    let (printed, _) = Terminal::start(relay(&args)).end();
    assert!(
        printed.contains("FAILED") && !printed.contains('\x1b'),
        "{printed}"
    );
}

#[test]
fn the_recorded_folder_need_not_be_here() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let file = file.to_str().unwrap();
    let agent = [RELAY, "replay", "agent", file, "--match", "shape"];
    let args = [&["test", file, "--compare", "tools", "--"], &agent[..]].concat();
    let printed = acp_relay(&args, 0).stdout;
    assert!(
        printed.contains("in this folder because /old/ws is not here"),
        "{printed}"
    );
}
