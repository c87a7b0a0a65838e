//! All that is wrong with a file is told at once, with its place; the example has no faults.
//!
//! A case is a file in tests/vectors/config: a configuration, and behind it what is to be said of
//! it, a line `#= LINE:COLUMN: …` for each fault. A file without such lines has none.

use std::fs;
use std::path::Path;

use crate::support::link::run as block_on;
use crate::support::program::run;

#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/config");
    let mut cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#= "))
            .collect();
        let shown = path.to_str().unwrap();
        let outcome = block_on(run(&["config", "check", shown], ""));
        let prefix = format!("{shown}:");
        let said: Vec<&str> = outcome
            .stderr
            .lines()
            .map(|line| line.trim_start_matches(&prefix))
            .collect();
        assert_eq!(said, expected, "{shown}");
        let code = if expected.is_empty() { 0 } else { 78 };
        assert_eq!(outcome.code, Some(code), "{shown}");
        cases += 1;
    }
    assert!(cases >= 6, "only {cases} cases");
}

#[test]
fn the_example_has_no_faults_and_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.toml");
    let example = block_on(run(&["config", "example"], "")).stdout;
    fs::write(&path, &example).unwrap();
    let check = |text: &str| {
        fs::write(&path, text).unwrap();
        block_on(run(&["config", "check", path.to_str().unwrap()], ""))
    };
    let outcome = check(&example);
    assert_eq!((outcome.code, &*outcome.stderr), (Some(0), ""));
    // A key that nobody knows is answered with all that are known there.
    let mut keys = 0;
    for table in [
        "",
        "[agents.x]\n",
        "[[listeners]]\n",
        "[record]\n",
        "[auth]\n",
        "[dialects]\n",
        "[log]\n",
    ] {
        let said = check(&format!("{table}zzzzzz = 1\n")).stderr;
        let (_, known) = said
            .split_once("; expected one of ")
            .unwrap_or_else(|| panic!("{said}"));
        for key in known.lines().next().unwrap().split(", ") {
            assert!(example.contains(key), "{key} is not in the example");
            keys += 1;
        }
    }
    assert!(keys > 40, "{keys}");
}
