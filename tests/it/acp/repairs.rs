//! The rules that `check` names for a repaired deviation.

use serde_json::Value;

use super::cases;
use super::cli::check;
use crate::support::program::run_unread;

/// All findings, and the rules that repair them; the messages are read once as a capture, and once
/// as lines without a direction.
#[test]
fn check_names_the_rules_of_each_case() {
    let cases = cases("repairs");
    assert!(cases.len() > 5);
    let mut repaired = 0;
    for (place, case) in cases {
        let messages = case["said"].as_array().unwrap();
        let mut args = vec!["--json"];
        for (key, option) in [("client", "--client-dialect"), ("agent", "--agent-dialect")] {
            args.extend(
                case[key]
                    .as_str()
                    .map(|name| [option, name])
                    .into_iter()
                    .flatten(),
            );
        }
        args.push("-");
        let captured: String = messages
            .iter()
            .map(|message| {
                let dir = if message[0] == "client" { "c2a" } else { "a2c" };
                format!("{{\"dir\":\"{dir}\",\"ts\":0.1,\"msg\":{}}}\n", message[1])
            })
            .collect();
        let plain: String = messages
            .iter()
            .map(|message| format!("{}\n", message[1]))
            .collect();
        // A method of a dialect alone does not identify the sender.
        let plain = (case["capture_only"] != true).then_some(plain);
        for input in [Some(captured), plain].into_iter().flatten() {
            let (_, stdout, stderr) = check(&args, &input);
            let mut found = Vec::new();
            for line in stdout.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                if line.get("kind").is_none() {
                    continue;
                }
                let rules = line["rules"].as_array().unwrap();
                assert_eq!(line["repaired"], !rules.is_empty(), "{place}");
                assert!(
                    rules.iter().all(|rule| rule["why"] != ""),
                    "{place}: {line}"
                );
                repaired += rules.len();
                let ids: Vec<&Value> = rules.iter().map(|rule| &rule["rule"]).collect();
                found.push(serde_json::json!([
                    line["line"],
                    line["kind"],
                    line["pointer"],
                    ids
                ]));
            }
            assert_eq!(
                Value::from(found),
                case["found"],
                "{place} {}: {stderr}",
                case["name"]
            );
        }
    }
    assert!(repaired > 10, "only {repaired} were repaired");
}

const STEPS: &str = r#"{"dir":"a2c","msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","steps":[]}}}}
"#;

/// `| head` causes neither an error nor a success.
#[test]
fn an_early_closed_reader_does_not_change_the_exit_code() {
    let output = run_unread(&["check", "-"], STEPS.repeat(100).as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
