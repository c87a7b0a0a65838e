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

#[test]
fn the_rule_and_its_reason_are_printed_below_the_deviation() {
    let (_, stdout, _) = check(&["--agent-dialect", "copilot-overseer", "-"], STEPS);
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("line 1    agent  session/update  /params/update/steps"));
    assert!(
        lines[1].starts_with("          repaired by copilot-overseer/plan-steps: Plans travel as"),
        "{stdout}"
    );
    for expected in [
        "2 violations: 1 refused, 1 ignored; 2 repaired by rules",
        "/params/update/steps  repaired by copilot-overseer/plan-steps",
        "the agent was read as copilot-overseer",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in\n{stdout}");
    }
    assert!(
        !stdout.contains("the client was read"),
        "it sent nothing: {stdout}"
    );
}

#[test]
fn fail_on_unrepaired_ignores_repaired_deviations() {
    let unrepaired = [
        "--fail-on",
        "unrepaired",
        "--agent-dialect",
        "copilot-overseer",
        "-",
    ];
    assert_eq!(check(&unrepaired, STEPS).0, Some(0));
    assert_eq!(check(&unrepaired[2..], STEPS).0, Some(1));
    assert_eq!(check(&["--fail-on", "unrepaired", "-"], STEPS).0, Some(1));
    assert_eq!(check(&["--fail-on", "nothing", "-"], STEPS).0, Some(64));
}

#[test]
fn an_unknown_dialect_is_a_usage_error() {
    let (code, stdout, stderr) = check(&["--agent-dialect", "copilot-overser", "-"], STEPS);
    assert_eq!((code, stdout.as_str()), (Some(64), ""));
    assert!(
        stderr.contains("did you mean `copilot-overseer`?"),
        "{stderr}"
    );
    assert_eq!(check(&["--table", "/nowhere", "-"], STEPS).0, Some(66));
}

/// `| head` causes neither an error nor a success.
#[test]
fn an_early_closed_reader_does_not_change_the_exit_code() {
    let output = run_unread(&["check", "-"], STEPS.repeat(100).as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
