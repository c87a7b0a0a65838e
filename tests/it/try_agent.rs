//! `acp-relay try`: at a terminal as a person uses it, and from a script.

use std::ffi::OsString;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::agent::{scripted, with_headers};
use crate::support::program::{relay, run_on};
use crate::support::terminal::Terminal;

/// An update of session `s`.
fn update(kind: &str, mut members: Value) -> Value {
    members["sessionUpdate"] = json!(kind);
    json!({ "send": {
        "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": "s", "update": members },
    } })
}

fn says(text: &str) -> Value {
    update(
        "agent_message_chunk",
        json!({ "content": { "type": "text", "text": text } }),
    )
}

/// `try` with these arguments, and an agent with these rules.
fn words(args: &[&str], rules: &[(&str, Value)]) -> Vec<OsString> {
    let command = scripted(rules).into_iter().map(OsString::from);
    let args = ["try"].iter().chain(args).map(OsString::from);
    args.chain(["--".into()]).chain(command).collect()
}

/// An agent that asks for permission to edit, and ends its turn with the answer as its words.
fn careful() -> Vec<(&'static str, Value)> {
    let options = json!([
        { "optionId": "yes", "name": "Allow it", "kind": "allow_once" },
        { "optionId": "no", "name": "Leave it", "kind": "reject_once" },
    ]);
    let content = json!([{ "type": "diff", "path": "/a.txt", "oldText": "old", "newText": "new" }]);
    let question = json!({ "send": {
        "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {
            "sessionId": "s", "options": options,
            "toolCall": { "toolCallId": "t", "title": "Edit a.txt", "content": content },
        },
    } });
    let answered = json!([
        update("agent_message_chunk", json!({ "content": { "type": "text", "text": "$text" } })),
        { "result": { "stopReason": "end_turn" } },
    ]);
    vec![
        ("session/prompt", json!([{ "keep": true }, question])),
        ("answer", answered),
    ]
}

#[test]
fn a_person_is_asked_for_prompts_and_permissions() {
    let mut terminal = Terminal::start(relay(&words(&[], &careful())));
    terminal.expect("protocol version 1");
    terminal.expect("prompt> ");
    terminal.enter("change it");
    let question = terminal.expect("your answer (1-2): ");
    for line in [
        "? Edit a.txt",
        "- old",
        "+ new",
        "1  Allow it",
        "2  Leave it",
    ] {
        assert!(question.contains(line), "{line}: {question}");
    }
    terminal.enter("3");
    terminal.expect("your answer (1-2): ");
    terminal.enter("1");
    terminal.expect("▶ Allow it");
    terminal.expect(r#""optionId": "yes""#);
    terminal.expect("◀ end_turn");
    terminal.expect("prompt> ");
    terminal.enter("");
    let (printed, status) = terminal.end();
    assert!(
        printed.contains("passed unchanged   9 of 9 messages"),
        "{printed}"
    );
    assert_eq!(status.code(), Some(0), "{printed}");
}

#[test]
fn an_interrupt_cancels_the_turn() {
    // The prompt is the third request of the client, and has the id 2.
    let cancelled = json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "cancelled" } });
    let rules = [
        ("session/prompt", json!([says("working")])),
        ("session/cancel", json!([{ "send": cancelled }])),
    ];
    let mut terminal = Terminal::start(relay(&words(&["work"], &rules)));
    terminal.expect("working");
    let pid = Pid::from_raw(terminal.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (printed, status) = terminal.end();
    assert!(printed.contains("◀ cancelled"), "{printed}");
    assert_eq!(status.code(), Some(3), "{printed}");
}

#[test]
fn an_agent_that_ignores_the_cancellation_is_stopped() {
    let mut terminal = Terminal::start(relay(&words(
        &["work"],
        &[("session/prompt", json!([says("working")]))],
    )));
    terminal.expect("working");
    let pid = Pid::from_raw(terminal.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (printed, status) = terminal.end();
    assert_eq!(status.code(), Some(3), "{printed}");
}

#[test]
fn without_a_terminal_a_permission_is_rejected_unless_allowed() {
    for (args, answer) in [
        (&["go"][..], "no"),
        (&["go", "--permission", "allow"], "yes"),
    ] {
        let output = run_on(&words(args, &careful()), b"");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(
            printed.contains(&format!(r#""optionId": "{answer}""#)),
            "{printed}"
        );
        assert_eq!(output.status.code(), Some(0), "{printed}");
    }
}

#[test]
fn a_question_is_no_part_of_the_lines_of_json() {
    let words = words(&["go", "--json", "--permission", "ask"], &careful());
    let output = run_on(&words, b"1\n");
    let printed = String::from_utf8(output.stdout).unwrap();
    for line in printed.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(
        printed.contains("\"option\":{\"optionId\":\"yes\""),
        "{printed}"
    );
}

#[test]
fn the_exit_code_is_how_the_turn_ended() {
    let error =
        json!([{ "send": { "jsonrpc": "2.0", "id": 2, "error": { "code": 5, "message": "no" } } }]);
    let stops = |reason: &str| json!([{ "result": { "stopReason": reason } }]);
    let ends = [
        (stops("end_turn"), 0),
        (stops("max_tokens"), 1),
        (error, 1),
        (stops("refusal"), 2),
        (stops("cancelled"), 3),
    ];
    for (steps, code) in ends {
        let output = run_on(&words(&["go"], &[("session/prompt", steps.clone())]), b"");
        assert_eq!(output.status.code(), Some(code), "{steps}: {output:?}");
    }
    let login = json!([{ "send": {
        "jsonrpc": "2.0", "id": 1, "error": { "code": -32000, "message": "Authentication required" },
    } }]);
    let about = json!([{ "result": {
        "protocolVersion": 1, "authMethods": [{ "id": "x", "name": "Log in with X" }],
    } }]);
    let output = run_on(
        &words(&["go"], &[("initialize", about), ("session/new", login)]),
        b"",
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("Log in with X"), "{printed}");
    assert_eq!(output.status.code(), Some(77), "{printed}");
    // Also without a prompt.
    let nothing = words(&["--json", "--authenticate", "x"], &[]);
    let mut nothing = nothing;
    let refuses = json!({ "on": "authenticate", "do": [{ "send": {
        "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "no such method" },
    } }] });
    nothing.push(refuses.to_string().into());
    let output = run_on(&nothing, b"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // The method that is given is used before the session is opened.
    let words = words(
        &["go", "--authenticate", "x"],
        &[
            ("authenticate", json!([says("$line"), { "result": {} }])),
            ("session/prompt", stops("end_turn")),
        ],
    );
    let output = run_on(&words, b"");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(r#""methodId":"x""#), "{printed}");
    assert_eq!(output.status.code(), Some(0), "{printed}");
}

#[test]
fn an_agent_that_is_not_reached_is_unavailable() {
    for agent in [
        "tcp://127.0.0.1:1",
        "ws://no-such-host.invalid",
        "unix:/nonexistent/none",
    ] {
        let output = run_on(&["try", agent, "go"], b"");
        assert_eq!(output.status.code(), Some(69), "{agent}: {output:?}");
    }
}

#[test]
fn a_script_gets_lines_of_json_with_the_rules_and_the_deviations() {
    // Recognised by its name as a dialect whose update kinds differ from those of v1.
    let about =
        json!([{ "result": { "protocolVersion": 1, "agentInfo": { "name": "elephant-agent" } } }]);
    let odd = update("strange_kind", json!({}));
    let prompt = json!([odd, odd, says("done"), { "result": { "stopReason": "end_turn" } }]);
    let rules = [("initialize", about), ("session/prompt", prompt)];
    let output = run_on(&words(&["go", "--json"], &rules), b"");
    let printed = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    let expected = [
        "initialized",
        "session",
        "update",
        "update",
        "update",
        "stopped",
        "report",
    ];
    assert_eq!(names, expected, "{printed}");
    let report = &events[6];
    let deviation = &report["deviations"][1];
    assert_eq!(
        deviation["pointer"], "/params/update/sessionUpdate",
        "{report}"
    );
    assert_eq!(deviation["count"], 2, "{report}");
    assert_eq!(report["changed"], 1, "{report}");
    assert_eq!(
        report["rules"][0]["rule"], "loose-v1/initialize-result",
        "{report}"
    );
    assert_eq!(report["received"], 9, "{report}");
}

#[test]
fn control_characters_of_the_agent_do_not_reach_the_terminal() {
    let prompt = json!([says("a\u{1b}[31mb\nc"), { "result": { "stopReason": "end_turn" } }]);
    let output = run_on(&words(&["go"], &[("session/prompt", prompt)]), b"");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("a\\u{1b}[31mb\nc\n"), "{printed:?}");
    // Nor in JSON, in which only some of them are escaped.
    let prompt = json!([says("\u{9b}31m\u{202e}"), { "result": { "stopReason": "end_turn" } }]);
    let output = run_on(
        &words(&["go", "--json"], &[("session/prompt", prompt)]),
        b"",
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("\\u009b31m\\u202e"), "{printed:?}");
}

/// `try` with these arguments and this agent: its exit code, stdout, and stderr.
fn tried(args: &[&str], agent: &[String]) -> (Option<i32>, String, String) {
    let agent = agent.iter().map(String::as_str);
    let args: Vec<&str> = ["try"]
        .into_iter()
        .chain(args.iter().copied())
        .chain(["--"])
        .chain(agent)
        .collect();
    let output = run_on(&args, b"");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), stdout, stderr)
}

const OPTION: &str = "--agent-framing content-length";

#[test]
fn an_agent_that_waits_for_a_header_is_started_a_second_time_with_headers() {
    thread::scope(|threads| {
        threads.spawn(|| {
            // What it writes when it starts does not count for ever.
            let (code, stdout, stderr) = tried(&["go"], &with_headers("a banner\n"));
            assert_eq!(code, Some(0), "{stdout}{stderr}");
            for line in [
                "headers 3, protocol",
                "◀ end_turn",
                "needed option      --agent-framing",
            ] {
                assert!(stdout.contains(line), "{line}: {stdout}");
            }
            assert!(stderr.contains("a second time"), "{stderr}");
        });
        threads.spawn(|| {
            let (code, stdout, stderr) = tried(&["--json", "go"], &with_headers(""));
            assert_eq!(code, Some(0), "{stdout}{stderr}");
            let events: Vec<Value> = stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            for event in [events.first(), events.last()] {
                assert_eq!(event.unwrap()["framing"], "content-length", "{stdout}");
            }
        });
    });
}

#[test]
fn an_agent_with_a_chosen_framing_is_started_once() {
    let chosen = ["--agent-framing", "content-length", "go"];
    let (code, stdout, stderr) = tried(&chosen, &with_headers(""));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(!stdout.contains(OPTION), "{stdout}");
    assert_eq!(stderr, "");
}

#[test]
fn a_silent_agent_that_takes_no_headers_goes_on() {
    thread::scope(|threads| {
        threads.spawn(|| {
            let slow = json!([{ "sleep": 17 }, { "result": { "protocolVersion": 1 } }]);
            let (code, stdout, stderr) = tried(
                &["go"],
                &scripted(&[
                    ("initialize", slow),
                    (
                        "session/prompt",
                        json!([{ "result": { "stopReason": "end_turn" } }]),
                    ),
                ]),
            );
            assert_eq!(code, Some(0), "{stdout}{stderr}");
            assert!(!stdout.contains(OPTION), "{stdout}");
        });
        threads.spawn(|| {
            let fails = ["sh", "-c", "sleep 17; exit 3"].map(str::to_owned);
            let (code, stdout, stderr) = tried(&["go"], &fails);
            assert_eq!(code, Some(1), "{stdout}{stderr}");
            let last = stderr.lines().last().unwrap();
            assert!(last.contains("exit code 3"), "{last}");
            assert!(last.contains(OPTION), "{last}");
        });
    });
}
