//! The conversations of `tests/vectors/versions`, run by `acp-relay dialect test`.

use std::fs;
use std::path::Path;

use crate::support::link::run as block_on;
use crate::support::program::run;

#[test]
fn every_conversation_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/versions");
    let files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    let mut args = vec!["dialect", "test", "--quiet"];
    args.extend(files.iter().map(String::as_str));
    let done = block_on(run(&args, ""));
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    assert!(!files.is_empty());
}

#[test]
fn a_conversation_that_differs_is_named_with_its_steps() {
    let script = concat!(
        r#"{"name":"wrong","steps":[{"from":"client","in":{"jsonrpc":"2.0","id":0,"method":"initialize","#,
        r#""params":{"protocolVersion":1}},"out":[]},{"after_ms":20,"out":[{"to":"client","msg":{}}]}]}"#
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.jsonl");
    fs::write(&file, script).unwrap();
    let done = block_on(run(&["dialect", "test", &file.display().to_string()], ""));
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    for expected in [
        "wrong: step 1: the agent gets ",
        "; step 2: the client does not get {}",
    ] {
        assert!(done.stdout.contains(expected), "{}", done.stdout);
    }
}
