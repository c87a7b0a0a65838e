//! `replay` as users and CI jobs run it. `vectors/commands/replay.trycmd` has what it and `bisect`
//! print.

use std::path::Path;

use acp_relay::jsonrpc::Side;
use acp_relay::replay::Script;

use super::live::capture;
use crate::support::link::run;
use crate::support::program::{self, Program};

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

#[test]
fn the_junit_report_has_a_suite_for_each_recording_and_a_case_for_each_turn() {
    let dir = tempfile::tempdir().unwrap();
    let file = capture(&dir);
    let text = std::fs::read_to_string(&file).unwrap();
    let other = file.with_extension("changed.jsonl");
    let odd = r#"<in>\u0007 \"/b\" \ud83d"#;
    std::fs::write(&other, text.replace("in /old/ws/a", odd)).unwrap();
    let junit = dir.path().join("report.xml");
    let (one, two) = (file.to_str().unwrap(), other.to_str().unwrap());
    let odd_file = dir.path().join("empty.acpr");
    std::fs::write(&odd_file, "").unwrap();
    let odd_file = odd_file.to_str().unwrap();
    let args = ["test", odd_file, one, two, "--settle", "50ms"];
    let more = [
        "--junit",
        junit.to_str().unwrap(),
        "--",
        RELAY,
        "replay",
        "agent",
        one,
    ];
    let outcome = run(program::run(&[&args[..], &more].concat(), ""));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    let suites: Vec<&str> = xml.split("<testsuite ").skip(1).collect();
    assert!(suites[0].contains("errors=\"1\""), "{xml}");
    assert!(suites[1].contains("tests=\"3\" failures=\"0\""), "{xml}");
    assert!(suites[2].contains("tests=\"3\" failures=\"1\""), "{xml}");
    let case = "name=\"turn 1 (event 5)\">\n      <failure message=";
    assert!(suites[2].contains(case), "{xml}");
    let outcome = run(program::run(
        &[
            "test",
            one,
            "--junit",
            junit.to_str().unwrap(),
            "--agent",
            &format!("replay:{two}"),
        ],
        "",
    ));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("&lt;in&gt;") && !xml.contains("<in>"), "{xml}");
    assert!(xml.contains(r"\ud83d"), "{xml}");
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

/// A conversation whose agent shows files in the folder in many ways.
const SHOWN: [&str; 6] = [
    r#"{"dir":"c2a","ts":0.1,"msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}}"#,
    r#"{"dir":"a2c","ts":0.2,"msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}"#,
    r#"{"dir":"c2a","ts":0.3,"msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp/x/ws","mcpServers":[]}}}"#,
    r#"{"dir":"a2c","ts":0.4,"msg":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"}}}"#,
    r#"{"dir":"c2a","ts":0.5,"msg":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":"$TEXT"}]}}}"#,
    r#"{"dir":"a2c","ts":0.6,"msg":{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","_meta":{"text":"$TEXT"}}}}"#,
];

/// The played agent and the played client name the folder of this run at the same places.
#[test]
fn both_roles_find_the_folder_at_the_same_places() {
    let dir = tempfile::tempdir().unwrap();
    let short = tempfile::Builder::new()
        .prefix("f")
        .tempdir_in("/tmp")
        .unwrap();
    for text in [
        "diff --git a/tmp/x/ws/seed.txt b/tmp/x/ws/seed.txt",
        "tmp/x/ws/seed.txt",
        "**/tmp/x/ws/seed.txt** in /tmp/x/ws. Not /tmp/x/ws2",
        "-/tmp/x/ws/a -o/tmp/x/ws/b x/tmp/x/ws/c /private/tmp/x/ws",
        r"\n/tmp/x/ws \u001b[1m/tmp/x/ws\n",
    ] {
        let file = dir.path().join("shown.jsonl");
        let lines = SHOWN.map(|line| line.replace("$TEXT", text) + "\n");
        std::fs::write(&file, lines.concat()).unwrap();
        let file = file.to_str().unwrap();
        for cwd in [dir.path(), short.path()] {
            let cwd = cwd.to_str().unwrap();
            let mut args = vec!["replay", "client", file, "--cwd", cwd, "--settle", "50ms"];
            args.extend(["--", RELAY, "replay", "agent", file]);
            let done = run(program::run(&args, ""));
            assert_eq!(done.code, Some(0), "{text}: {done:?}");
        }
    }
}
