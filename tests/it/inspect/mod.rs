//! `acp-relay inspect`: reports on recordings, and conversions of them.

mod canonical;
mod files;
mod filter;
mod follow;
mod forms;
mod lint;
mod handmade;
mod reports;
mod scrub;
mod several;

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::program::relay;

/// Captures of real agents.
const CAPTURES: [&str; 5] = [
    "codex-acp-zed-0.16.0",
    "copilot-1.0.102",
    "gemini-cli-0.61.0",
    "opencode-1.18.33",
    "ts-sdk-example-agent-1.9.0",
];

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn capture(name: &str) -> PathBuf {
    vectors().join(format!("transcripts/{name}.jsonl"))
}

/// Runs `acp-relay inspect` to its end.
fn inspect(args: &[&str]) -> Output {
    relay(&[&["inspect"], args].concat()).output().unwrap()
}

/// Runs it, checks this exit code, and returns its output.
fn answer(args: &[&str], code: i32) -> String {
    let output = inspect(args);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {reported}");
    String::from_utf8(output.stdout).unwrap()
}

/// A recording made of `from`, in `folder`.
fn import(folder: &Path, from: &Path, name: &str) -> String {
    let to = folder.join(format!("{name}.acpr"));
    let to = to.to_str().unwrap().to_owned();
    answer(&["import", from.to_str().unwrap(), &to], 0);
    to
}

/// The same from a text.
fn recording(folder: &Path, name: &str, text: &str) -> String {
    let from = folder.join(format!("{name}.jsonl"));
    std::fs::write(&from, text).unwrap();
    import(folder, &from, name)
}
