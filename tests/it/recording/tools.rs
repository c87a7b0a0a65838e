//! The program: `--record`, and `inspect` on the recordings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use acp_relay::recording::{EventKind, open, recordings};
use serde_json::Value;

use crate::support::program::{Outcome, Program, run};

/// An agent that answers twice, writes to stderr, and ends.
const AGENT: &str = r#"echo 'listening on \033[31m' >&2
read a; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
for word in Hel lo; do echo "{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$word\"}}}}"; done
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

    let lines = inspect(&["show", "--json", path]).await;
    let lines: Vec<Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line["took"].is_number() && line["event"]["re"].is_number())
    );

    let found = inspect(&["grep", "Hel|protocolV", path]).await;
    assert_eq!(found.code, Some(0));
    assert!(
        found.stdout.contains("/params/update/content/text: Hel"),
        "{}",
        found.stdout
    );
    assert_eq!(
        inspect(&["grep", "nothing of the kind", path]).await.code,
        Some(1)
    );

    let listed = inspect(&["ls", "--json", folder.to_str().unwrap()]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed["turns"], &listed["errors"]),
        (&1.into(), &1.into())
    );
    assert_eq!(listed["ended"], true);

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

#[tokio::test]
async fn a_mark_is_added_and_damage_is_reported() {
    let temporary = tempfile::tempdir().unwrap();
    record(temporary.path(), &[]).await;
    let path = file(temporary.path());
    let name = path.to_str().unwrap();
    assert_eq!(inspect(&["mark", name, "look here"]).await.code, Some(0));
    let before = fs::read(&path).unwrap();
    let verified = inspect(&["verify", name]).await;
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    // Cut off, then continued: the bytes stay, and the damage is reported.
    fs::write(&path, &before[..before.len() - 3]).unwrap();
    assert_eq!(inspect(&["verify", name]).await.code, Some(1));
    assert_eq!(inspect(&["mark", name, "again"]).await.code, Some(0));
    assert!(
        fs::read(&path)
            .unwrap()
            .starts_with(&before[..before.len() - 3])
    );
    let events: Vec<EventKind> = open(&path)
        .unwrap()
        .events()
        .map(|event| event.unwrap().kind)
        .collect();
    assert_eq!(
        events[events.len() - 2..],
        [EventKind::Resume, EventKind::Mark("again".to_owned())]
    );
    let verified = inspect(&["verify", "--json", name]).await;
    let report: Value = serde_json::from_str(&verified.stdout).unwrap();
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
    let marked = inspect(&["mark", path.to_str().unwrap(), SECRET]).await;
    assert_eq!(marked.code, Some(0), "{}", marked.stderr);
    let marks = path.with_extension("acpr.marks");
    let mode = fs::metadata(&marks).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let waiting = fs::read_to_string(&marks).unwrap();
    assert!(
        waiting.starts_with("the key is ‹redacted:") && !waiting.contains("sk-"),
        "{waiting}"
    );
}

#[tokio::test]
async fn a_mark_is_added_to_a_recording_that_is_being_written() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().to_str().unwrap();
    let args = [
        "connect",
        "--record",
        folder,
        "--",
        "sh",
        "-c",
        "echo '{\"method\":\"x\"}'; cat >/dev/null",
    ];
    let mut program = Program::start(&args);
    program.line().await.unwrap();
    let path = file(temporary.path());
    for text in ["now", SECRET] {
        let marked = inspect(&["mark", path.to_str().unwrap(), text]).await;
        assert_eq!(marked.code, Some(0), "{}", marked.stderr);
    }
    program.end();
    program.exit().await;
    let events = open(&path)
        .unwrap()
        .events()
        .map(|event| event.unwrap().kind);
    assert_eq!(
        events
            .filter(|what| *what == EventKind::Mark("now".to_owned()))
            .count(),
        1
    );
    let kept = fs::read_to_string(&path).unwrap();
    assert!(
        kept.contains("the key is ") && !kept.contains("sk-abcdefgh"),
        "{kept}"
    );
    assert_eq!(
        inspect(&["verify", path.to_str().unwrap()]).await.code,
        Some(0)
    );
}

#[tokio::test]
async fn a_mark_leaves_a_finished_recording_ended_and_has_no_secret() {
    for (mode, is_kept) in [
        ("default", false),
        ("full", true),
        ("structure", false),
        ("meta", false),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        record(temporary.path(), &["--record-redact", mode]).await;
        let path = file(temporary.path());
        let name = path.to_str().unwrap();
        for text in ["look here", SECRET] {
            assert_eq!(inspect(&["mark", name, text]).await.code, Some(0));
            let verified = inspect(&["verify", "--json", name]).await;
            let report: Value = serde_json::from_str(&verified.stdout).unwrap();
            assert_eq!(verified.code, Some(0), "{report}");
            assert_eq!(report["ended"], true, "{report}");
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.contains("look here") && kept.contains("the key is "));
        let key = SECRET.rsplit(' ').next().unwrap();
        assert_eq!(kept.contains(key), is_kept, "{mode}: {kept}");
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
    let path = file(temporary.path());
    assert_eq!(
        inspect(&["verify", path.to_str().unwrap()]).await.code,
        Some(0)
    );
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
        let report = acp_relay::recording::verify(&recording);
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
