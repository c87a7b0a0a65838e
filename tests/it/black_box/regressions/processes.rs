//! Agents as processes: how they are stopped, how it is reported, and what they leave behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::support::{NEW_SESSION, PROMPT, serve_script};
use crate::support::agent::scripted;
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run, words};

/// Everything that a client of a stopped `serve` receives for its open prompt.
async fn stopped(agent: &str) -> Vec<Value> {
    let state = tempfile::tempdir().unwrap();
    let options = "--listen tcp://127.0.0.1:0 --limit drain=300ms --limit stop-grace=300ms";
    let mut program = serve_script(state.path(), options, agent);
    let address = program.address().await;
    let client = Caller::to(&address).begin(format!("{PROMPT}\n")).await;
    let mut lines = BufReader::new(client).lines();
    let mut received = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "begun" {
            program.signal(Signal::TERM);
        } else if message["method"] != "noise" {
            received.push(message);
        }
    }
    assert_eq!(program.exit().await.code(), Some(0));
    received
}

#[test]
fn a_prompt_ended_by_a_stop_is_answered_as_stopped_and_not_as_a_crash() {
    block_on(async {
        let quiet = r#"read x; echo '{"method":"begun"}'; while read x; do :; done; sleep 1000"#;
        // It ends with an error of its own on SIGTERM.
        let failing = r#"trap 'exit 3' TERM; read x; echo '{"method":"begun"}'; while :; do sleep 0.05; done"#;
        for agent in [quiet, failing] {
            let received = stopped(agent).await;
            assert_eq!(received.len(), 1, "{received:?}");
            assert_eq!(
                (&received[0]["id"], &received[0]["error"]["code"]),
                (&json!(2), &json!(-32054)),
                "{received:?}"
            );
        }
    });
}

#[test]
fn an_agent_that_keeps_sending_does_not_delay_a_stopping_relay() {
    block_on(async {
        let agent = r#"trap '' TERM; read x; echo '{"method":"begun"}'
            while :; do echo '{"method":"noise"}'; done"#;
        let received = stopped(agent).await;
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!(received[0]["error"]["code"], -32054, "{received:?}");
    });
}

#[test]
fn an_answer_reaches_its_request_however_its_id_is_spelled() {
    block_on(async {
        for (asked, answered) in [
            ("\"é\"", r#""\u00e9""#),
            (r#""\u0041""#, "\"A\""),
            ("1", "1.0"),
            ("100", "1e2"),
        ] {
            let script = format!(
                "read x; printf '%s\\n' '{{\"jsonrpc\":\"2.0\",\"id\":{answered},\"result\":7}}'"
            );
            let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{asked},\"method\":\"a\"}}\n");
            let outcome = run(&["connect", "--", "sh", "-c", &script], &request).await;
            // With the spelling of the request.
            let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":{asked},\"result\":7}}");
            assert_eq!(outcome.stdout.trim_end(), expected, "{outcome:?}");
        }
    });
}

#[test]
fn an_answer_with_only_an_id_is_an_error_for_its_client() {
    block_on(async {
        let script = r#"read x; echo '{"jsonrpc":"2.0","id":1}'; exec cat >/dev/null"#;
        let mut connect = Program::start(&["connect", "--", "sh", "-c", script]);
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
        connect.write(&format!("{request}\n")).await;
        let answer = connect.json().await;
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(answer["error"]["code"].is_i64(), "{answer}");
    });
}

#[test]
fn an_agent_stopped_by_the_relay_is_reported_as_stopped_with_the_reason() {
    block_on(async {
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
        let run_on = "while :; do sleep 0.05; done";
        for (script, ends, reason) in [
            (format!("read x; exec >&-; {run_on}"), false, "its output"),
            (format!("read x; {run_on}"), true, "its input"),
        ] {
            let args = words("connect --limit stop-grace=300ms -- sh -c");
            let mut connect = Program::start(&[&args[..], &[script.as_str()]].concat());
            connect.write(&format!("{request}\n")).await;
            if ends {
                connect.end();
            }
            let answer = connect.json().await;
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("was stopped"), "{message}");
            assert!(message.contains(reason), "{message}");
            connect.exit().await;
        }
    });
}

/// How many processes have this variable in their environment, as all have that the agent starts.
fn marked(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap();
    let environments = processes.filter_map(|process| {
        let process = process.unwrap().path();
        fs::read(process.join("environ")).ok()
    });
    environments
        .filter(|all| {
            all.split(|byte| *byte == 0)
                .any(|one| one == mark.as_bytes())
        })
        .count()
}

/// Six chains, each of which keeps forking in new sessions, also while it is killed.
const FORKING: &str = r#"
for i in 1 2 3 4 5 6; do
    setsid sh -c 'while i=${i}x; [ ${#i} -lt 60 ]; do setsid sleep 1000 & done; wait' &
done
wait; wait"#;

/// Forty groups of processes that record a wakeup, as a stopped one gets when its parent ends
/// first.
const SLEEPING: &str = r#"
exec bash -mc '
    for i in $(seq 40); do
        sh -c "trap \"echo woken >>$NOTES\" HUP CONT; sleep 1000 & wait; wait" &
    done
    wait; wait'"#;

#[test]
fn a_whole_process_tree_ends_and_no_process_of_it_wakes() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("woken");
        for (number, script) in [FORKING, SLEEPING].into_iter().enumerate() {
            let mark = format!("{}-{number}", folder.path().display());
            let args = words("connect --limit stop-grace=100ms -- sh -c");
            let mut connect = command(&[&args[..], &[script]].concat());
            connect.env("REGRESSION_MARK", &mark).env("NOTES", &notes);
            let mut connect = Program::of(connect);
            let mark = format!("REGRESSION_MARK={mark}");
            until(|| marked(&mark) > 40).await;
            // Twice: at once.
            connect.signal(Signal::TERM);
            connect.signal(Signal::TERM);
            connect.exit().await;
            until(|| marked(&mark) == 0).await;
        }
        assert!(!Path::new(&notes).exists(), "some have woken");
    });
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn commands_of_a_new_session_follow_its_answer() {
    block_on(async {
        let update = json!({"send": {"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "available_commands_update", "availableCommands": []},
        }}});
        let steps = json!([update, {"sleep": 0.1}, {"result": {"sessionId": "s"}}]);
        let agent = scripted(&[("session/new", steps)]);
        for (options, held) in [(&[][..], true), (&["--limit", "hold-updates=0s"], false)] {
            let mut args = vec!["connect"];
            args.extend(options);
            args.push("--");
            args.extend(agent.iter().map(String::as_str));
            let mut client = Program::start(&args);
            client
                .write(&format!("{INITIALIZE}\n{NEW_SESSION}\n"))
                .await;
            let mut received = Vec::new();
            for _ in 0..3 {
                received.push(client.json().await);
            }
            let answer = 2 - usize::from(held);
            assert_eq!(received[answer]["result"]["sessionId"], "s", "{received:?}");
        }
    });
}
