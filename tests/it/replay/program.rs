//! `replay` and `bisect` as users and CI jobs run them.

use std::path::Path;

use acp_relay::jsonrpc::Side;
use acp_relay::recording::replay::Script;

use super::live::capture;
use crate::support::link::run;
use crate::support::program::{self, Outcome, Program};

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

/// Plays the client of `file` to the agent of `other`.
fn against(subcommand: &[&str], file: &Path, other: &Path, more: &[&str]) -> Outcome {
    let mut args = subcommand.to_vec();
    args.push(file.to_str().unwrap());
    args.extend(["--settle", "50ms"]);
    args.extend(more);
    args.extend(["--", RELAY, "replay", "agent", other.to_str().unwrap()]);
    run(program::run(&args, ""))
}

/// The same conversation with something replaced in it.
fn changed(file: &Path, from: &str, to: &str) -> std::path::PathBuf {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from));
    let path = file.with_extension("changed.jsonl");
    std::fs::write(&path, text.replace(from, to)).unwrap();
    path
}

#[test]
fn a_difference_is_reported_to_people_programs_and_ci() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let same = against(&["replay", "client"], &file, &file, &[]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.contains("2 turns, 15 steps") && same.stdout.contains(": the same"));

    let other = changed(&file, "in /old/ws/a", "<in>\\u0007 \\\"/b\\\"");
    let junit = dir.path().join("report.xml");
    let differs = against(
        &["replay", "client"],
        &file,
        &other,
        &["--junit", junit.to_str().unwrap()],
    );
    assert_eq!(differs.code, Some(1), "{differs:?}");
    let line = differs.stdout.lines().next().unwrap();
    assert!(
        line.starts_with(
            "turn 1     event 6     agent   changed  session/update agent_message_chunk"
        ),
        "{line}"
    );
    assert!(
        differs.stdout.contains("/update/content/text is now"),
        "{differs:?}"
    );
    assert!(differs.stdout.ends_with(": 1 difference\n"), "{differs:?}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("tests=\"3\" failures=\"1\""), "{xml}");
    assert!(
        xml.contains("name=\"turn 1 (event 5)\">\n      <failure message="),
        "{xml}"
    );
    assert!(xml.contains("&lt;in&gt;") && !xml.contains("<in>"), "{xml}");

    let json = against(&["replay", "client"], &file, &other, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&value["same"], &value["differences"][0]["event"]),
        (&false.into(), &6.into())
    );

    // Half of an emoji is shown as its escape, in text that every JSON reader accepts.
    let half = changed(&file, "in /old/ws/a", "half \\ud83d of it");
    for (more, spelled) in [
        (
            &["--junit", junit.to_str().unwrap()][..],
            r"half \ud83d of it",
        ),
        (&["--json"], r"half \\ud83d of it"),
    ] {
        let printed = against(&["replay", "client"], &file, &half, more).stdout;
        assert!(printed.contains(spelled), "{printed}");
        assert!(!printed.contains('\u{10f03d}'), "{printed}");
    }
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains(r"half \ud83d of it"), "{xml}");

    let ignored = ["--ignore", "/params/update/content/text"];
    let same = against(&["replay", "client"], &file, &other, &ignored);
    assert_eq!(same.code, Some(0), "{same:?}");
}

#[test]
fn several_recordings_are_played_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let other = changed(&file, "\"end_turn\"", "\"refusal\"");
    let junit = dir.path().join("report.xml");
    let (one, two) = (file.to_str().unwrap(), other.to_str().unwrap());
    let played = |files: &[&str], more: &[&str]| {
        let mut args = vec!["replay", "client"];
        args.extend(files);
        args.extend(["--settle", "50ms", "--junit", junit.to_str().unwrap()]);
        args.extend(more);
        args.extend(["--", RELAY, "replay", "agent", one]);
        run(program::run(&args, ""))
    };
    let suites = || {
        let xml = std::fs::read_to_string(&junit).unwrap();
        let suites = xml.split("<testsuite ").skip(1);
        let heads = suites.map(|suite| suite.split_once('>').unwrap().0.to_owned());
        heads.collect::<Vec<_>>()
    };
    let outcome = played(&[one, two], &["--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let same: Vec<bool> = (outcome.stdout.lines())
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|value| value["same"].as_bool().unwrap())
        .collect();
    assert_eq!(same, [true, false]);
    let found = suites();
    assert!(found[0].contains("tests=\"3\" failures=\"0\""), "{found:?}");
    assert!(found[1].contains("tests=\"3\" failures=\"1\""), "{found:?}");
    // A file named twice is played once; the others are played when one is missing.
    assert_eq!(played(&[one, one], &[]).stdout.lines().count(), 1);
    let outcome = played(&["/none.acpr", one], &[]);
    assert_eq!(outcome.code, Some(66), "{outcome:?}");
    assert!(outcome.stdout.ends_with(": the same\n"), "{outcome:?}");
    assert!(suites()[0].contains("errors=\"1\""));
}

#[test]
fn bisect_finds_the_first_turn_that_differs() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let same = against(&["bisect"], &file, &file, &[]);
    assert_eq!(
        (same.code, same.stdout.as_str()),
        (Some(0), "2 turns: the same\n")
    );

    let found = |from: &str, to: &str, turns: &str, last: u64| {
        let other = changed(&file, from, to);
        let saved = dir.path().join("small.jsonl");
        let save = ["--save", saved.to_str().unwrap()];
        let outcome = against(&["bisect"], &file, &other, &save);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let verdict = format!("smallest failing prefix: {turns}, to event {last}\n");
        assert!(outcome.stdout.contains(&verdict), "{outcome:?}");
        // The saved prefix fails as well.
        let again = against(&["replay", "client"], &saved, &other, &[]);
        assert_eq!(again.code, Some(1), "{again:?}");
        let lines = std::fs::read_to_string(&saved).unwrap().lines().count();
        assert_eq!(lines as u64, last);
    };
    found("\"hm\"", "\"no\"", "2 turns", 15);
    found("\"end_turn\"", "\"refusal\"", "1 turn", 10);
    found(
        "\"result\":{\"protocolVersion\":1}",
        "\"result\":{\"protocolVersion\":2}",
        "the handshake alone",
        4,
    );
}

#[test]
fn bisect_finds_the_first_turn_that_matches_a_filter() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let not = against(
        &["bisect"],
        &file,
        &file,
        &["--until", "lint:schema-unknown-value"],
    );
    assert_eq!(
        (not.code, not.stdout.as_str()),
        (Some(0), "2 turns: not met\n")
    );
    let met = |filter: &str, other: &Path, turns: &str| {
        let outcome = against(&["bisect"], &file, other, &["--until", filter]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let verdict = format!("smallest failing prefix: {turns}, to event ");
        assert!(outcome.stdout.contains(&verdict), "{outcome:?}");
        outcome.stdout
    };
    // A difference that the filter does not match does not count.
    let other = changed(&file, "\"hm\"", "\"zebra\"");
    assert!(met("from:agent zebra", &other, "2 turns").contains("agent: session/update"));
    let other = changed(&file, "\"end_turn\"", "\"bored\"");
    let printed = met("kind:result lint:schema-*", &other, "1 turn");
    assert!(printed.contains("bored"), "{printed}");
    let refused = against(&["bisect"], &file, &file, &["--until", "lint"]);
    assert_eq!(refused.code, Some(64), "{refused:?}");
}

#[test]
fn a_wrong_command_line_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let file = file.to_str().unwrap();
    let endpoint = format!("replay:{file}");
    for (args, code, why) in [
        (
            vec!["replay", "client", file],
            64,
            "`acp-relay replay client FILE -- COMMAND ARGS…`",
        ),
        (
            vec!["bisect", file],
            64,
            "`acp-relay bisect FILE -- COMMAND ARGS…`",
        ),
        (
            vec!["connect"],
            64,
            "`acp-relay connect -- COMMAND ARGS…`, or where it listens, `acp-relay connect ENDPOINT`",
        ),
        (
            vec!["serve"],
            64,
            "`acp-relay serve -- COMMAND ARGS…`, or where it listens, `acp-relay serve --agent ENDPOINT`",
        ),
        (
            vec!["replay", "client", "/none", "--", "true"],
            66,
            "there is no such file",
        ),
        (vec!["replay", "agent", "/none"], 66, "No such file"),
        (
            vec!["replay", "agent", file, "--match", "loose"],
            64,
            "possible values: strict, shape, order",
        ),
        (
            vec!["replay", "agent", file, "--unmatched", "forward"],
            64,
            "--forward ENDPOINT",
        ),
        (
            vec!["serve", "--listen", &endpoint, "--", "true"],
            64,
            "replay client",
        ),
    ] {
        let outcome = run(program::run(&args, ""));
        assert_eq!(outcome.code, Some(code), "{args:?}: {outcome:?}");
        assert!(outcome.stderr.contains(why), "{args:?}: {outcome:?}");
    }
}

#[test]
fn a_recording_serves_any_number_of_clients() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let agent = format!("replay:{}?match=shape", file.display());
    run(async {
        let plain = [
            "--client-dialect",
            "canonical",
            "--agent-dialect",
            "canonical",
        ];
        let mut args = vec!["serve", "--listen", "ws://127.0.0.1:0", "--agent", &agent];
        args.extend(plain);
        let mut serve = Program::start(&args);
        let address = serve.address().await;
        let file = file.to_str().unwrap();
        let args = ["replay", "client", file, "--agent", &address];
        let (one, two) = tokio::join!(program::run(&args, ""), program::run(&args, ""));
        for outcome in [one, two] {
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
    });
}

#[test]
fn a_translated_conversation_is_played_at_either_edge() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors/transcripts/ts-sdk-example-agent-1.9.0.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recordings");
    let played = |file: &Path, edge: &str, relay: &[&str]| {
        let file = file.to_str().unwrap();
        let mut args = vec![
            "replay", "client", file, "--edge", edge, "--", RELAY, "connect",
        ];
        args.extend(["--agent-dialect", "draft-gemini-0.1.21"]);
        args.extend(relay);
        let outcome = run(program::run(&args, ""));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    };
    let agent = format!("replay:{}?match=order", capture.display());
    let record = [
        "--record",
        folder.to_str().unwrap(),
        "--record-redact",
        "full",
    ];
    played(&capture, "client", &[&record[..], &[&agent]].concat());
    let recording = std::fs::read_dir(&folder).unwrap().next().unwrap();
    let recording = recording.unwrap().path();
    let frames = |edge| {
        let script = Script::open(&recording, edge).unwrap();
        let steps = script.steps.into_iter();
        steps.map(|step| step.frame).collect::<Vec<_>>()
    };
    assert_ne!(
        frames(Side::Client),
        frames(Side::Agent),
        "nothing was translated"
    );
    // What the agent sent, translated again, is what the client had received.
    let agent = format!("replay:{}?edge=agent", recording.display());
    played(&recording, "client", &[&agent]);
}

#[test]
fn a_line_that_is_no_message_reaches_the_client() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let faults = dir.path().join("faults.txt");
    std::fs::write(&faults, "after 2 garbage not { json\nafter 2 garbage\n").unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let received = |edge: &str| {
        let mut args = vec!["replay", "agent", file.to_str().unwrap(), "--edge", edge];
        args.extend(["--fault", faults.to_str().unwrap()]);
        let outcome = run(program::run(&args, &format!("{hello}\n")));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    };
    let client = received("client");
    let lines: Vec<&str> = client.lines().collect();
    assert!(lines[0].contains("\"result\""), "{client}");
    assert_eq!(lines[1..], ["not { json", "{\"garbage\":"]);
    // At the agent's edge a relay is in between, which does not forward such lines.
    assert_eq!(received("agent").lines().count(), 1);
}
