//! `acp-relay check`, as a program: its output and its exit codes.

use serde_json::Value;

use super::vectors;
use crate::support::program::run_on;

const GOOD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"logout","params":{}}
{"jsonrpc":"2.0","id":1,"result":{}}
"#;
const BAD: &str = r#"{"dir":"c2a","ts":0.1,"msg":{"jsonrpc":"2.0","id":1,"method":"logout"}}

{"dir":"a2c","ts":0.2,"raw":"Logging out\u001b[2J"}
{"dir":"a2c","ts":0.3,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}}
{"dir":"a2c","ts":0.4,"msg":{"jsonrpc":"2.0","id":1,"result":{"more":1}}}
{"dir":"note","ts":0.5,"note":{"exit":0}}
"#;

pub(super) fn check(args: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let output = run_on(&[&["check"], args].concat(), stdin.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn check_exit_codes() {
    assert_eq!(check(&["-"], GOOD).0, Some(0));
    assert_eq!(check(&["-"], BAD).0, Some(1));
    assert_eq!(check(&[], "").0, Some(64));
    assert_eq!(check(&["--from", "nobody", "-"], "").0, Some(64));
    let (code, _, stderr) = check(&["/nowhere/at-all.jsonl"], "");
    assert_eq!(code, Some(66));
    assert!(stderr.contains("/nowhere/at-all.jsonl"), "{stderr}");
    // An unreadable file is worse than a deviating one, and does not hide it.
    let (code, stdout, _) = check(&["/nowhere/at-all.jsonl", "-"], BAD);
    assert_eq!(code, Some(66));
    assert!(stdout.contains("missing-member"), "{stdout}");
    let folder = env!("CARGO_MANIFEST_DIR");
    let (code, stdout, _) = check(&[folder], "");
    assert_eq!((code, stdout.as_str()), (Some(66), ""));
}

/// The relay's own messages and all other events are skipped.
#[test]
fn check_reads_recordings() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let file = format!("{folder}/tests/vectors/recordings/v1.000.acpr");
    let (code, stdout, _) = check(&[&file], "");
    assert_eq!(code, Some(1));
    assert!(
        stdout.contains("line 6    agent  initialize (result)"),
        "{stdout}"
    );
    assert!(stdout.contains("4 messages"), "{stdout}");
}

#[test]
fn check_prints_text() {
    let (_, stdout, _) = check(&["-"], BAD);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines,
        [
            r#"line 3    agent  -  (the whole value)  not-json  expected a JSON-RPC message; not valid JSON: expected a value (at byte 0); found Logging out\u{1b}[2J"#,
            "line 4    agent  session/update  /params/update/entries  missing-member  expected an array of PlanEntry, in Plan",
            r#"line 5    agent  logout (result)  /result/more  unknown-member  expected no member "more" in LogoutResponse; found 1 (ignored)"#,
            "",
            "-: 4 messages (1 of no known type), 3 violations: 2 refused, 1 ignored; 0 repaired by rules",
            "     1  not-json",
            "             1  -  (the whole value)",
            "     1  missing-member",
            "             1  session/update  /params/update/entries",
            "     1  unknown-member",
            "             1  logout (result)  /result/more",
            "the client was read as loose-v1",
            "the agent was read as loose-v1",
        ]
    );
}

#[test]
fn check_prints_json() {
    let (_, stdout, _) = check(&["--json", "-"], BAD);
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[1],
        serde_json::json!({
            "file": "-", "line": 4, "side": "agent", "role": "notification",
            "method": "session/update", "kind": "missing-member", "severity": "refused",
            "pointer": "/params/update/entries", "found": null,
            "expected": "an array of PlanEntry, in Plan", "repaired": false, "rules": [],
        })
    );
    assert_eq!(
        lines[3],
        serde_json::json!({"file": "-", "checked": {
            "messages": 4, "violations": 3, "repaired": 0,
            "client": {"dialect": "loose-v1", "by": null},
            "agent": {"dialect": "loose-v1", "by": null},
        }})
    );
    assert_eq!(
        lines[4]["summary"],
        serde_json::json!({
            "messages": 4, "unchecked": 1, "violations": 3, "refused": 2, "ignored": 1,
            "repaired": 0, "unrepaired": 3,
            "kinds": {"not-json": 1, "missing-member": 1, "unknown-member": 1},
        })
    );
}

#[test]
fn check_accepts_lines_of_one_side() {
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    assert_eq!(check(&["-"], answer).0, Some(1));
    assert_eq!(check(&["--from", "agent", "-"], answer).0, Some(0));
    let prompt = GOOD.lines().next().unwrap();
    assert_eq!(check(&["--from", "client", "-"], prompt).0, Some(0));
    let (code, stdout, _) = check(&["--from", "agent", "-"], prompt);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("wrong-side"), "{stdout}");
}

#[test]
fn check_reads_captures_of_real_agents() {
    let path = vectors("transcripts").join("ts-sdk-example-agent-1.9.0.jsonl");
    let (code, stdout, _) = check(&[path.to_str().unwrap()], "");
    assert_eq!(code, Some(1));
    assert!(stdout.contains("39 messages"), "{stdout}");
}

/// A line with a direction and no message is reported, not skipped.
#[test]
fn capture_lines_without_a_message_are_reported() {
    let lines = "{\"dir\":\"a2c\",\"raw\":5}\n{\"dir\":\"c2a\"}\n{\"dir\":\"zzz\"}\n\u{feff}\n";
    let (code, stdout, _) = check(&["--json", "-"], lines);
    assert_eq!(code, Some(1));
    assert_eq!(
        stdout.matches("not-json-rpc\",\"severity\"").count(),
        3,
        "{stdout}"
    );
}

/// The first line may begin with a byte order mark, and lines may end with CR LF.
#[test]
fn check_reads_byte_order_marks_and_crlf() {
    let text = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
    assert_eq!(check(&["-"], &text), check(&["-"], GOOD));
}

/// A capture may use other names for the direction.
#[test]
fn check_reads_other_names_of_the_direction() {
    let spelled = |client: &str, agent: &str| {
        let text = BAD.replace("\"dir\":\"c2a\"", client);
        check(&["-"], &text.replace("\"dir\":\"a2c\"", agent))
    };
    let expected = check(&["-"], BAD);
    assert_eq!(
        spelled("\"side\":\"client\"", "\"side\":\"agent\""),
        expected
    );
    let long = ["\"dir\":\"client_to_agent\"", "\"dir\":\"agent_to_client\""];
    assert_eq!(spelled(long[0], long[1]), expected);
}
