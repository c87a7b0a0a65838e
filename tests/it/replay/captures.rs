//! Record, replay as the agent, record again: each capture of a real agent gives the same
//! conversation, through the whole program.

use std::path::{Path, PathBuf};

use acp_relay::jsonrpc::{Frame, Side};
use acp_relay::replay::{IgnoreRules, Script, compare};

use crate::support::link::run;
use crate::support::program;

pub(super) fn captures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors/")
        .join(folder);
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut found: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    found
}

/// Plays both sides of `file`, the agent behind a relay that records into `into`; returns the
/// recording.
async fn record(file: &Path, into: &Path) -> PathBuf {
    let relay = env!("CARGO_BIN_EXE_acp-relay");
    let (file, folder) = (file.to_str().unwrap(), into.to_str().unwrap());
    let script = Script::open(Path::new(file), Side::Agent).unwrap();
    let cwd = script.directory().unwrap_or(".");
    let mut args = vec!["replay", "client", file, "--cwd", cwd, "--"];
    args.extend([relay, "replay", "agent", file, "--record", folder]);
    args.extend(["--record-redact", "full"]);
    let (recording, code) = run_recorded(&args, into).await;
    assert_eq!(code, 0, "{file}");
    recording
}

/// Runs the program, which records one conversation into a folder. Returns the recording and the
/// exit code.
pub(super) async fn run_recorded(args: &[&str], into: &Path) -> (PathBuf, i32) {
    let outcome = program::run(args, "").await;
    assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
    let mut files = std::fs::read_dir(into)
        .unwrap()
        .map(|file| file.unwrap().path());
    let recording = files.next().unwrap();
    assert_eq!(files.next(), None, "one conversation, one recording");
    (recording, outcome.code.unwrap())
}

/// The frames that one side sent, in order.
fn frames_of(script: &Script, side: Side) -> Vec<&Frame> {
    let steps = script.steps.iter();
    let of_side = steps.filter(|step| step.from == side);
    of_side.map(|step| &step.frame).collect()
}

#[test]
fn a_replayed_recording_is_recorded_unchanged() {
    for capture in captures("transcripts") {
        let dir = tempfile::tempdir().unwrap();
        let original = Script::open(&capture, Side::Client).unwrap();
        let (first, second) = run(async {
            let first = record(&capture, &dir.path().join("1")).await;
            let second = record(&first, &dir.path().join("2")).await;
            (first, second)
        });
        let open = |path: &Path| Script::open(path, Side::Client).unwrap();
        let (first, second) = (open(&first), open(&second));
        for (name, other) in [("first", &first), ("second", &second)] {
            let compared = compare(&original, other, &IgnoreRules::default());
            assert!(compared.steps > 20, "{}: {compared:?}", capture.display());
            assert_eq!(compared.differences, [], "{}, {name}", capture.display());
            // No name was changed, so the bytes are the same as well.
            for side in [Side::Client, Side::Agent] {
                let (was, is) = (frames_of(&original, side), frames_of(other, side));
                let differing = was.iter().zip(&is).find(|(was, is)| was != is);
                assert_eq!(differing, None, "{}, {name}", capture.display());
                assert_eq!(was.len(), is.len(), "{}, {name}", capture.display());
            }
        }
    }
}

/// Requests that overlap, in both directions and in several sessions, that are never answered or
/// answered out of order, ids of all kinds, batches, and lines that are no messages.
#[test]
fn unusual_conversations_are_played_as_recorded() {
    run(async {
        let all = captures("replay").into_iter().map(|capture| async move {
            let dir = tempfile::tempdir().unwrap();
            let first = record(&capture, &dir.path().join("1")).await;
            let second = record(&first, &dir.path().join("2")).await;
            let open = |path: &Path| Script::open(path, Side::Client).unwrap();
            let original = open(&capture);
            for recording in [&first, &second] {
                let other = open(recording);
                let compared = compare(&original, &other, &IgnoreRules::default());
                assert_eq!(compared.differences, [], "{}", capture.display());
                // Lines that are no messages arrive byte for byte, too, except for empty lines.
                for side in [Side::Client, Side::Agent] {
                    let odd = |script: &Script| -> Vec<Frame> {
                        let steps = script.steps.iter().filter(|step| step.from == side);
                        let odd = steps.filter(|step| step.envelope.is_none());
                        let frames = odd.map(|step| step.frame.clone());
                        frames
                            .filter(|frame| !frame.as_bytes().is_empty())
                            .collect()
                    };
                    assert_eq!(odd(&original), odd(&other), "{}", capture.display());
                }
            }
        });
        futures_util::future::join_all(all).await;
    });
}

#[test]
fn a_capture_with_one_word_changed_is_another_conversation() {
    let capture = &captures("transcripts")[0];
    let text = std::fs::read_to_string(capture).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("changed.jsonl");
    std::fs::write(&changed, text.replacen("\"end_turn\"", "\"refusal\"", 1)).unwrap();
    let open = |path: &Path| Script::open(path, Side::Client).unwrap();
    let compared = compare(&open(capture), &open(&changed), &IgnoreRules::default());
    assert_eq!(compared.differences.len(), 1, "{:?}", compared.differences);
    assert_eq!(compared.differences[0].title, "result of session/prompt");
}
