//! A canonical editor and an agent with a dialect, through the built program: named, and recognised
//! by what the agent shows of itself.

use serde_json::{Value, json};

use crate::support::link::run as block_on;
use crate::support::program::{Program, run};

/// GitHub Copilot CLI as Overseer describes it, for one turn: a plan of steps, a permission whose
/// answer is `{selected: …}`, and what it heard as the last words.
const COPILOT: &str = "
import json, sys
def say(message):
    print(json.dumps(message), flush=True)
def hear():
    return json.loads(sys.stdin.readline())
about = {'protocolVersion': 1, 'agentCapabilities': {'promptCapabilities': {'text': True, 'images': True}}}
say({'jsonrpc': '2.0', 'id': hear()['id'], 'result': about})
say({'id': hear()['id'], 'result': {'sessionId': 's'}})
prompt = hear()
plan = {'sessionUpdate': 'plan', 'steps': [{'description': 'Look', 'status': 'pending'}]}
say({'method': 'session/update', 'params': {'sessionId': 's', 'update': plan}})
options = [{'optionId': 'yes', 'name': 'Allow', 'kind': 'allow_once'},
           {'optionId': 'no', 'name': 'Reject', 'kind': 'reject_once'}]
call = {'toolCallId': 't', 'title': 'Edit'}
say({'id': 0, 'method': 'session/request_permission',
     'params': {'sessionId': 's', 'toolCall': call, 'options': options}})
answer = hear()
text = {'type': 'text', 'text': json.dumps(answer['result'])}
say({'method': 'session/update',
     'params': {'sessionId': 's', 'update': {'sessionUpdate': 'agent_message_chunk', 'content': text}}})
say({'id': prompt['id'], 'result': {'stopReason': 'end_turn'}})
";

/// What a canonical editor says and hears in that turn: the plan's entries and the agent's text.
async fn turn(editor: &mut Program) -> (Value, Value) {
    let capabilities = json!({"protocolVersion": 1, "clientCapabilities": {}});
    notify(
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
    notify(
        editor,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": session}),
    )
    .await;
    assert_eq!(editor.json().await["result"]["sessionId"], "s");
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    notify(
        editor,
        &json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt}),
    )
    .await;
    let plan = editor.json().await["params"]["update"]["entries"].clone();
    let asked = editor.json().await;
    assert_eq!(asked["method"], "session/request_permission");
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "no"}});
    notify(
        editor,
        &json!({"jsonrpc": "2.0", "id": asked["id"], "result": chosen}),
    )
    .await;
    let received = editor.json().await["params"]["update"]["content"]["text"].clone();
    assert_eq!(editor.json().await["result"]["stopReason"], "end_turn");
    (plan, received)
}

async fn notify(editor: &mut Program, message: &Value) {
    editor.write(&format!("{message}\n")).await;
}

#[test]
fn an_agent_with_a_dialect_serves_a_canonical_editor() {
    block_on(async {
        for dialect in ["copilot-overseer", "auto"] {
            let args = [
                "connect",
                "--agent-dialect",
                dialect,
                "--",
                "python3",
                "-uc",
                COPILOT,
            ];
            let mut editor = Program::start(&args);
            let (plan, received) = turn(&mut editor).await;
            let entry = json!({"content": "Look", "priority": "medium", "status": "pending"});
            assert_eq!(plan, json!([entry]), "{dialect}");
            // A refusal arrives as one, in the agent's own words.
            let received: Value = serde_json::from_str(received.as_str().unwrap()).unwrap();
            assert_eq!(
                received,
                json!({"selected": {"optionId": "no"}}),
                "{dialect}"
            );
        }
    });
}

#[test]
fn a_dialect_that_nobody_knows_is_refused_at_the_start() {
    block_on(async {
        for side in ["--agent-dialect", "--client-dialect"] {
            let outcome = run(&["connect", side, "klingon", "--", "cat"], "").await;
            assert_eq!(outcome.code, Some(64), "{outcome:?}");
            assert!(outcome.stderr.contains("klingon"), "{outcome:?}");
            assert!(
                outcome.stderr.contains("elephant"),
                "it names what is known: {outcome:?}"
            );
        }
    });
}
