//! Several recordings on one command line.

use std::fs;

use serde_json::Value;

use super::{CAPTURES, answer, capture, import, inspect, recording};

/// A conversation that breaks the protocol: a request without an answer.
const BROKEN: &str = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}"#;

/// A valid one.
const SOUND: &str = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}
{"dir":"a2c","ts":1,"msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}
"#;

fn objects(text: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

#[test]
fn each_recording_is_linted_and_one_failure_fails_all() {
    let folder = tempfile::tempdir().unwrap();
    let sound = recording(folder.path(), "sound", SOUND);
    let broken = recording(folder.path(), "broken", BROKEN);
    let missing = folder.path().join("missing.acpr");
    let missing = missing.to_str().unwrap();
    let report = folder.path().join("report.xml");
    let junit = ["--junit", report.to_str().unwrap()];

    let reported = answer(&["lint", &sound, &broken, junit[0], junit[1]], 1);
    let heads = [format!("{sound}:"), format!("{broken}:")];
    for head in &heads {
        assert!(reported.lines().any(|line| line == head), "{reported}");
    }
    assert!(reported.contains("unanswered"), "{reported}");
    let xml = fs::read_to_string(&report).unwrap();
    let suites: Vec<&str> = xml.split("<testsuite ").skip(1).collect();
    assert_eq!(suites.len(), 2, "{xml}");
    assert!(suites[0].contains("failures=\"0\""), "{xml}");
    assert!(suites[1].contains("failures=\"1\""), "{xml}");
    assert!(suites[1].contains("name=\"unanswered\">"), "{xml}");

    let found = objects(&answer(&["lint", &sound, &broken, "--json"], 1));
    assert_eq!(
        (&found[0]["file"], found.len()),
        (&broken.as_str().into(), 1)
    );
    // Excluding a finding or not selecting its rule is the same.
    answer(&["lint", &sound, &broken, "not lint:unanswered"], 0);
    answer(&["lint", &sound, &broken, "--filter", "lint:noise"], 0);
    answer(&["lint", &sound, &sound], 0);

    // A missing file is reported, and the others are checked nevertheless.
    let output = inspect(&["lint", missing, &broken, junit[0], junit[1]]);
    assert_eq!(output.status.code(), Some(66));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("unanswered")
    );
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("no such file")
    );
    let xml = fs::read_to_string(&report).unwrap();
    assert!(xml.contains("errors=\"1\""), "{xml}");
    // A pattern without matches is no filter.
    let none = folder.path().join("*.acpr");
    let output = inspect(&["lint", &sound, none.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(66));
    let output = inspect(&["lint", &sound, "n>"]);
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn stats_matches_and_lists_are_printed_for_each_recording() {
    let folder = tempfile::tempdir().unwrap();
    let one = import(folder.path(), &capture(CAPTURES[4]), "one");
    let two = recording(folder.path(), "two", SOUND);
    let missing = folder.path().join("missing.acpr");
    let missing = missing.to_str().unwrap();

    let figures = objects(&answer(&["stats", "--json", &one, &two], 0));
    assert_eq!(figures[0]["file"], one.as_str());
    assert_eq!(figures[1]["agent"]["frames"], 1);
    let of_client = objects(&answer(&["stats", "--json", &one, &two, "from:client"], 0));
    assert_eq!(of_client[1]["agent"]["frames"], 0);
    assert!(answer(&["stats", &one, &two], 0).contains(&format!("{two}:\n")));

    let hits = objects(&answer(&["grep", "--json", "initialize", &one, &two], 0));
    assert!(hits.iter().any(|hit| hit["file"] == two.as_str()));
    let hits = answer(&["grep", "end_turn", &two, &one], 0);
    assert!(hits.starts_with(&format!("{one}:\n")), "{hits}");
    answer(&["grep", "nowhere", &one, &two], 1);
    answer(&["grep", "initialize", missing, &two], 66);

    assert_eq!(answer(&["ls", &one, &two], 0).lines().count(), 3);
    let all = folder.path().to_str().unwrap();
    assert_eq!(answer(&["ls", all, &two], 0).lines().count(), 3);
    answer(&["ls", all, "/nowhere"], 66);

    assert_eq!(answer(&["verify", &one, &two, &two], 0).lines().count(), 2);
    assert_eq!(answer(&["verify", missing, &two], 66).lines().count(), 1);

    let copies = folder.path().join("copies");
    let to = copies.to_str().unwrap();
    answer(&["scrub", &one, &two, to], 64);
    fs::create_dir(&copies).unwrap();
    let reported = objects(&answer(&["scrub", "--json", &one, &two, to], 0));
    assert_eq!(reported.len(), 2);
    let copy = copies.join("two.acpr");
    assert_eq!(reported[1]["file"], copy.to_str().unwrap());
    answer(&["verify", copy.to_str().unwrap()], 0);
    answer(&["diff", &two, copy.to_str().unwrap()], 0);
}
