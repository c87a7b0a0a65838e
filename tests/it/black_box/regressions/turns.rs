//! Turns and requests that a side does not end.

use serde_json::{Value, json};

use super::support::NEW_SESSION;
use crate::support::agent::scripted;
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::Program;

/// A `connect` with a limit to an agent by these rules.
fn connect(limits: &[&str], rules: &[(&str, Value)]) -> Program {
    let agent = scripted(rules);
    let mut args = vec!["connect"];
    for limit in limits {
        args.extend(["--limit", *limit]);
    }
    args.push("--");
    args.extend(agent.iter().map(String::as_str));
    Program::start(&args)
}

/// Begins the session `s` and a turn of it.
async fn prompt(client: &mut Program, id: u32) {
    client
        .write(&format!("{INITIALIZE}\n{NEW_SESSION}\n"))
        .await;
    for _ in 0..2 {
        client.json().await;
    }
    client.write(&format!("{}\n", prompt_of(id))).await;
}

fn prompt_of(id: u32) -> Value {
    let params = json!({"sessionId": "s", "prompt": []});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
}

#[test]
fn a_cancelled_turn_ends_and_so_does_its_question() {
    block_on(async {
        let question = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
            "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}});
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s", "update": {"answered": "$text"}}});
        // It ends a turn once its question is answered.
        let end = json!({"result": {"stopReason": "refusal"}});
        let rules = [
            (
                "session/prompt",
                json!([{"keep": true}, {"send": question}]),
            ),
            ("answer", json!([{"send": update}, end])),
        ];
        let mut client = connect(&["cancel-grace=100ms"], &rules);
        prompt(&mut client, 10).await;
        assert_eq!(client.json().await["id"], 7);
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
        client.write(&format!("{cancel}\n")).await;
        let ended = client.json().await;
        assert_eq!(ended["id"], 10);
        assert_eq!(ended["result"]["stopReason"], "cancelled");
        assert_eq!(ended["result"]["_meta"]["acp-relay"]["by"], "relay");
        client.write(&format!("{}\n", prompt_of(11))).await;
        // The question is answered in place of the client; the own answer of the agent to the first
        // prompt is dropped, and the second one is sent. Its question gets an id that is not in use.
        let is_told = |update: Value, answered: &str| {
            assert_eq!(update["params"]["update"]["answered"], answered, "{update}");
        };
        is_told(
            client.json().await,
            r#"{"outcome": {"outcome": "cancelled"}}"#,
        );
        let second = client.json().await;
        assert_eq!(second["method"], "session/request_permission", "{second}");
        assert_ne!(second["id"], 7);
        for (id, option) in [(&json!(7), "late"), (&second["id"], "no")] {
            let outcome = json!({"outcome": "selected", "optionId": option});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}});
            client.write(&format!("{answer}\n")).await;
        }
        let told = r#"{"outcome": {"outcome": "selected", "optionId": "no"}}"#;
        is_told(client.json().await, told);
        let second = client.json().await;
        assert_eq!(second["id"], 11);
        assert_eq!(second["result"]["stopReason"], "refusal");
    });
}

#[test]
fn limits_end_what_a_silent_agent_does_not_answer() {
    block_on(async {
        let mut client = connect(&["handshake-silence=100ms"], &[("initialize", json!([]))]);
        client.write(&format!("{INITIALIZE}\n")).await;
        let answer = client.json().await;
        assert_eq!(answer["error"]["code"], -32055, "{answer}");

        let end = json!({"jsonrpc": "2.0", "id": 10, "result": {"stopReason": "cancelled"}});
        let rules = [
            ("session/prompt", json!([])),
            ("session/cancel", json!([{ "send": end }])),
        ];
        let mut client = connect(&["turn-silence=100ms"], &rules);
        prompt(&mut client, 10).await;
        let answer = client.json().await;
        assert_eq!(answer["id"], 10);
        assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
    });
}
