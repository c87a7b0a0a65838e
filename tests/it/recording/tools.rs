//! The program: `--record`, and `inspect` on the recordings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_relay::recording::{EventKind, open, recordings};
use serde_json::Value;

use crate::support::program::{Outcome, Program, run};

/// An agent that answers twice, writes to stderr, and ends. Its updates are written at once, so that
/// no other event comes between them.
const AGENT: &str = r#"echo 'listening on \033[31m' >&2
read a; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
chunks=$(for word in Hel lo; do echo "{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$word\"}}}}"; done)
echo "$chunks"
read b; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"\u001b[31mno"}}'
read c"#;

const INPUT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"token":"sk-abcdefgh0123456789abcdef"}}
{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}
"#;

/// A mark that a user may write.
const SECRET: &str = "the key is sk-abcdefgh0123456789zyxwvu";

async fn record(folder: &Path, more: &[&str]) -> Outcome {
    let folder = folder.to_str().unwrap();
    let mut args = vec!["connect", "--record", folder];
    args.extend([
        "--client-dialect",
        "canonical",
        "--agent-dialect",
        "canonical",
    ]);
    args.extend(more);
    args.extend(["--", "sh", "-c", AGENT]);
    run(&args, INPUT).await
}

/// The one file of the one recording.
fn file(folder: &Path) -> PathBuf {
    let found = recordings(folder).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].segments[0].clone()
}

async fn inspect(args: &[&str]) -> Outcome {
    let all: Vec<&str> = ["inspect"].iter().chain(args).copied().collect();
    run(&all, "").await
}

#[tokio::test]
async fn a_conversation_is_recorded_and_read_again() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("deep/er");
    let outcome = record(&folder, &[]).await;
    assert!(
        outcome.stdout.contains("protocolVersion"),
        "{}",
        outcome.stderr
    );
    let path = file(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    let path = path.to_str().unwrap();
    assert!(!fs::read_to_string(path).unwrap().contains("sk-abcdefgh"));

    let verified = inspect(&["verify", path]).await;
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert!(verified.stdout.contains("intact"));

    let shown = inspect(&["show", path]).await;
    for expected in [
        "initialize [0]",
        "(1 redacted)",
        "] result ",
        "result after ",
        "agent_message_chunk ×2",
        "Hello",
        "session/prompt [1] error",
        "stderr: listening",
        "the recording ends: over",
    ] {
        assert!(
            shown.stdout.contains(expected),
            "{expected} in {}",
            shown.stdout
        );
    }
    let all = inspect(&["show", "--all", "--bodies", path]).await;
    assert!(all.stdout.contains("forwarded to the client unchanged"));
    assert!(!all.stdout.contains('\u{1b}'), "{}", all.stdout);

    let scrubbed = temporary.path().join("scrubbed.acpr");
    let args = [
        "scrub",
        path,
        scrubbed.to_str().unwrap(),
        "--redact-pointer",
        "/error/message",
    ];
    assert_eq!(inspect(&args).await.code, Some(0));
    assert_eq!(inspect(&args).await.code, Some(73), "it exists already");
    let text = fs::read_to_string(&scrubbed).unwrap();
    assert!(!text.contains("[31mno"), "{text}");
    assert_eq!(
        inspect(&["verify", scrubbed.to_str().unwrap()]).await.code,
        Some(0)
    );
}

/// The exit code of `inspect verify`, and its report.
async fn verify(path: &Path) -> (Option<i32>, Value) {
    let outcome = inspect(&["verify", "--json", path.to_str().unwrap()]).await;
    (outcome.code, serde_json::from_str(&outcome.stdout).unwrap())
}

async fn mark(path: &Path, text: &str) {
    let marked = inspect(&["mark", path.to_str().unwrap(), text]).await;
    assert_eq!(marked.code, Some(0), "{}", marked.stderr);
}

/// What happened, event by event.
fn kinds(path: &Path) -> Vec<EventKind> {
    let events = open(path).unwrap().events();
    events.map(|event| event.unwrap().kind).collect()
}

#[tokio::test]
async fn a_mark_is_added_and_damage_is_reported() {
    let temporary = tempfile::tempdir().unwrap();
    record(temporary.path(), &[]).await;
    let path = file(temporary.path());
    mark(&path, "look here").await;
    let whole = fs::read(&path).unwrap();
    assert_eq!(verify(&path).await.0, Some(0));
    // Cut off, then continued: the bytes stay, and the damage is reported.
    let cut = &whole[..whole.len() - 3];
    fs::write(&path, cut).unwrap();
    assert_eq!(verify(&path).await.0, Some(1));
    mark(&path, "again").await;
    assert!(fs::read(&path).unwrap().starts_with(cut));
    let again = EventKind::Mark("again".to_owned());
    assert!(kinds(&path).ends_with(&[EventKind::Resume, again]));
    let (_, report) = verify(&path).await;
    assert_eq!(report["findings"][0]["id"], "damaged");
}

#[tokio::test]
async fn a_mark_that_waits_for_the_writer_has_no_secret_and_is_private() {
    let temporary = tempfile::tempdir().unwrap();
    record(temporary.path(), &[]).await;
    let path = file(temporary.path());
    // Locked, as by a writer that does not read marks.
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    mark(&path, SECRET).await;
    let marks = path.with_extension("acpr.marks");
    let mode = fs::metadata(&marks).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let waiting = fs::read_to_string(&marks).unwrap();
    assert!(waiting.starts_with("the key is ‹redacted:") && !waiting.contains("sk-"));
}

#[tokio::test]
async fn a_mark_is_added_to_a_recording_that_is_being_written() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().to_str().unwrap();
    let agent = "echo '{\"method\":\"x\"}'; cat >/dev/null";
    let args = ["connect", "--record", folder, "--", "sh", "-c", agent];
    let mut program = Program::start(&args);
    program.line().await.unwrap();
    // The file is created for the first message, by another thread.
    while recordings(temporary.path()).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let path = file(temporary.path());
    for text in ["now", SECRET] {
        mark(&path, text).await;
    }
    program.end();
    program.exit().await;
    let now = EventKind::Mark("now".to_owned());
    assert_eq!(kinds(&path).iter().filter(|kind| **kind == now).count(), 1);
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.contains("the key is ") && !kept.contains("sk-abcdefgh"));
    assert_eq!(verify(&path).await.0, Some(0));
}

#[tokio::test]
async fn a_mark_leaves_a_finished_recording_ended_and_has_no_secret() {
    for mode in ["default", "full", "structure", "meta"] {
        let temporary = tempfile::tempdir().unwrap();
        record(temporary.path(), &["--record-redact", mode]).await;
        let path = file(temporary.path());
        for text in ["look here", SECRET] {
            mark(&path, text).await;
            let (code, report) = verify(&path).await;
            assert_eq!((code, &report["ended"]), (Some(0), &true.into()));
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.contains("look here") && kept.contains("the key is "));
        let key = SECRET.rsplit(' ').next().unwrap();
        assert_eq!(kept.contains(key), mode == "full", "{mode}: {kept}");
    }
}

#[tokio::test]
async fn a_folder_that_others_can_write_is_refused_at_once() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = record(&folder, &[]).await;
    assert_eq!(outcome.code, Some(73));
    assert!(
        outcome.stderr.contains("other users can write"),
        "{}",
        outcome.stderr
    );
    let outcome = run(&["connect", "--record-strict", "--", "true"], "").await;
    assert_eq!(outcome.code, Some(64), "{}", outcome.stderr);
}

#[tokio::test]
async fn on_error_keeps_only_conversations_with_errors() {
    let temporary = tempfile::tempdir().unwrap();
    record(temporary.path(), &["--record-mode", "on-error"]).await;
    assert_eq!(verify(&file(temporary.path())).await.0, Some(0));
    let quiet = tempfile::tempdir().unwrap();
    let folder = quiet.path().to_str().unwrap();
    let args = [
        "connect",
        "--record",
        folder,
        "--record-mode",
        "on-error",
        "--",
        "true",
    ];
    run(&args, "").await;
    assert_eq!(recordings(quiet.path()).unwrap(), []);
}

/// Files of every version of the format stay readable.
#[test]
fn recordings_of_all_versions_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/recordings");
    let found = recordings(&folder).unwrap();
    assert!(!found.is_empty());
    for recording in found {
        let report = recording::verify(&recording);
        assert!(
            report.findings.is_empty(),
            "{}: {:?}",
            recording.name,
            report.findings
        );
        let kinds = recording.events().map(|event| event.unwrap().kind);
        let unknown = kinds
            .filter(|what| matches!(what, EventKind::Other { .. }))
            .count();
        assert_eq!(unknown, 1, "the vector has one event of an unknown kind");
    }
}
