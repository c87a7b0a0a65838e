//! `acp-relay check`, as a program: its output and its exit codes.

use std::fs;

use serde_json::{Value, json};

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
fn an_unreadable_file_does_not_hide_the_findings_of_another() {
    let (code, stdout, stderr) = check(&["/nowhere/at-all.jsonl", "-"], BAD);
    assert_eq!(code, Some(66));
    assert!(stdout.contains("missing-member"), "{stdout}");
    assert!(stderr.contains("/nowhere/at-all.jsonl"), "{stderr}");
    let folder = env!("CARGO_MANIFEST_DIR");
    let (code, stdout, _) = check(&[folder], "");
    assert_eq!((code, stdout.as_str()), (Some(66), ""));
}

#[test]
fn another_schema_takes_the_place_of_the_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.json");
    let path = file.to_str().unwrap();
    let own = r#"{"jsonrpc":"2.0","id":1,"method":"own/do","params":{"member":1}}"#;
    let (code, stdout, _) = check(&["-"], own);
    assert_eq!(code, Some(1), "{stdout}");

    let root = env!("CARGO_MANIFEST_DIR");
    let text = fs::read_to_string(format!("{root}/src/acp/acp-v1.schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    schema["$defs"]["OwnRequest"] = json!({"type": "object", "x-side": "agent",
        "x-method": "own/do", "properties": {"member": {"type": "string"}}});
    schema["$defs"]["OwnResponse"] =
        json!({"type": "object", "x-side": "agent", "x-method": "own/do"});
    fs::write(&file, schema.to_string()).unwrap();
    let (code, stdout, _) = check(&["--schema", path, "-"], own);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("/params/member"), "{stdout}");
    let fits = own.replace(r#""member":1"#, r#""member":"1""#);
    let (code, stdout, _) = check(&["--schema", path, "-"], &fits);
    assert_eq!(code, Some(0), "{stdout}");

    schema["$defs"]["Loop"] = json!({"$ref": "#/$defs/Loop"});
    let two = ["--schema", path, "--schema", path, "-"];
    for (text, args, why) in [
        ("{}".to_owned(), &two[2..], "$defs"),
        (text, &two[..], "two of ACP v1"),
        (schema.to_string(), &two[2..], "lead to themselves"),
    ] {
        fs::write(&file, text).unwrap();
        let (code, _, stderr) = check(args, own);
        assert_eq!(code, Some(64), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
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
