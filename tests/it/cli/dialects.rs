//! A canonical editor and an agent with a dialect, through the built program: named, or detected
//! from the agent's messages.

use serde_json::{Value, json};

use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::Program;

/// GitHub Copilot CLI as Overseer describes it, for one turn: a plan of steps, a permission whose
/// answer is `{selected: …}`, and a chunk with the answer it received.
fn copilot() -> Vec<String> {
    let update = |update: Value| json!({"send": {"method": "session/update", "params": {"sessionId": "s", "update": update}}});
    let able = json!({"promptCapabilities": {"text": true, "images": true}});
    let plan = json!({"sessionUpdate": "plan",
        "steps": [{"description": "Look", "status": "pending"}]});
    let question = json!({"send": {"id": 0, "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": {"toolCallId": "t", "title": "Edit"}, "options": [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}}});
    let chunk = json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "$text"}});
    scripted(&[
        (
            "initialize",
            json!([{"result": {"protocolVersion": 1, "agentCapabilities": able}}]),
        ),
        (
            "session/new",
            json!([{"send": {"id": "$id", "result": {"sessionId": "s"}}}]),
        ),
        (
            "session/prompt",
            json!([{"keep": true}, update(plan), question]),
        ),
        (
            "answer",
            json!([update(chunk), {"result": {"stopReason": "end_turn"}}]),
        ),
    ])
}

/// The editor's part of that turn: returns the plan's entries and the agent's text.
async fn turn(editor: &mut Program) -> (Value, Value) {
    let capabilities = json!({"protocolVersion": 1, "clientCapabilities": {}});
    send_line(
        editor,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": capabilities}),
    )
    .await;
    let about = editor.json().await;
    assert_eq!(
        about["result"]["agentCapabilities"]["promptCapabilities"]["image"],
        true
    );
    let session = json!({"cwd": "/", "mcpServers": []});
    send_line(
        editor,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": session}),
    )
    .await;
    assert_eq!(editor.json().await["result"]["sessionId"], "s");
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    send_line(
        editor,
        &json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt}),
    )
    .await;
    let plan = editor.json().await["params"]["update"]["entries"].clone();
    let asked = editor.json().await;
    assert_eq!(asked["method"], "session/request_permission");
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "no"}});
    send_line(
        editor,
        &json!({"jsonrpc": "2.0", "id": asked["id"], "result": chosen}),
    )
    .await;
    let received = editor.json().await["params"]["update"]["content"]["text"].clone();
    assert_eq!(editor.json().await["result"]["stopReason"], "end_turn");
    (plan, received)
}

async fn send_line(editor: &mut Program, message: &Value) {
    editor.write(&format!("{message}\n")).await;
}

#[test]
fn an_agent_with_a_dialect_works_with_a_canonical_editor() {
    block_on(async {
        for dialect in ["copilot-overseer", "auto"] {
            let mut args = ["connect", "--agent-dialect", dialect, "--"]
                .map(str::to_owned)
                .to_vec();
            args.extend(copilot());
            let mut editor = Program::start(&args);
            let (plan, received) = turn(&mut editor).await;
            let entry = json!({"content": "Look", "priority": "medium", "status": "pending"});
            assert_eq!(plan, json!([entry]), "{dialect}");
            // A refusal arrives as one, in the agent's dialect.
            let received: Value = serde_json::from_str(received.as_str().unwrap()).unwrap();
            assert_eq!(
                received,
                json!({"selected": {"optionId": "no"}}),
                "{dialect}"
            );
        }
    });
}
