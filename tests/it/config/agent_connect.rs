//! Agent Connect beside ACP: all agents of the file, with the description of each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;

use super::stage::{Client, JSON, Stage, reload, stop};
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::Program;

const TWO: &str = r#"
default-agent = "one"
[agents.one]
description = "The first"
command = ["AGENT", "1"]
[agents.two]
command = ["AGENT", "2"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
agent-connect = "/connect"
"#;

/// The names and descriptions of the agents.
async fn agents(caller: &Caller) -> Vec<(String, String)> {
    let found = caller
        .ask("POST", "/connect/agents/search", &[JSON], "{}")
        .await;
    assert_eq!(found.status.as_u16(), 200, "{}", found.body);
    let found: Value = serde_json::from_str(&found.body).unwrap();
    let text = |agent: &Value, at: &str| agent.pointer(at).unwrap().as_str().unwrap().to_owned();
    let one = |agent: &Value| {
        let name = text(agent, "/metadata/ref/name");
        (name, text(agent, "/metadata/description"))
    };
    found.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn agent_connect_serves_all_agents_of_a_listener_beside_acp() {
    block_on(async {
        let stage = Stage::with(TWO);
        let (mut serve, caller) = stage.start().await;
        let about = "Coding agent reached through the Agent Client Protocol".to_owned();
        let expected = [
            ("one".to_owned(), "The first".to_owned()),
            ("two".to_owned(), about),
        ];
        assert_eq!(agents(&caller).await, expected);
        assert_eq!(Client::open(&caller, "/acp").await.words(), ["1"]);
        assert_eq!(
            Client::open(&caller, "/agents/two/acp").await.words(),
            ["2"]
        );
        let ask = |path| caller.ask("GET", path, &[], "");
        assert_eq!(ask("/connect/agents/two").await.status.as_u16(), 200);
        assert_eq!(ask("/connect/agents/three").await.status.as_u16(), 404);
        assert_eq!(ask("/connected/agents/two").await.status.as_u16(), 404);
        // An agent that the file no longer has is not served.
        let (before, after) = (TWO.find("[agents.two]"), TWO.find("[[listeners]]"));
        stage.write(&format!(
            "{}{}",
            &TWO[..before.unwrap()],
            &TWO[after.unwrap()..]
        ));
        reload(&mut serve).await;
        assert_eq!(agents(&caller).await, expected[..1]);
        assert_eq!(ask("/connect/agents/two").await.status.as_u16(), 404);
        stop(serve).await;
    });
}

/// An agent that takes images, asks for permission in an unknown session before it opens one, and
/// returns the answer in its turn.
const ASKS: &str = r#"
import json, sys
def send(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
options = [{'optionId': kind, 'name': kind, 'kind': kind} for kind in ('allow_once', 'reject_once')]
request = {'sessionId': 'none', 'toolCall': {'toolCallId': 't'}, 'options': options}
about = {'protocolVersion': 1, 'agentCapabilities': {'promptCapabilities': {'image': True}}}
for line in sys.stdin:
    message = json.loads(line)
    if message['method'] == 'initialize':
        send(id=message['id'], result=about)
    if message['method'] == 'session/new':
        send(id=0, method='session/request_permission', params=request)
        chosen = json.loads(sys.stdin.readline())['result']['outcome']['optionId']
        send(id=message['id'], result={'sessionId': 's'})
    if message['method'] == 'session/prompt':
        update = {'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'text', 'text': chosen}}
        send(method='session/update', params={'sessionId': 's', 'update': update})
        send(id=message['id'], result={'stopReason': 'end_turn'})
"#;

const ASKING: &str = r#"
agents.careful = { command = ["python3", "ASKS"] }
agents.trusted = { command = ["python3", "ASKS"], default-permission = "allow" }
[[listeners]]
endpoint = "http://127.0.0.1:0"
dialect = "goref"
agent-connect = "/connect"
"#;

fn asking(config: &str) -> (Stage, String) {
    let stage = Stage::with("");
    let asks = stage.path("asks.py");
    std::fs::write(&asks, ASKS).unwrap();
    let config = config.replace("ASKS", asks.to_str().unwrap());
    stage.write(&config);
    (stage, config)
}

/// The answer to this agent.
async fn answered(caller: &Caller, agent: &str) -> String {
    let found = caller
        .ask("GET", &format!("/connect/agents/{agent}"), &[], "")
        .await;
    let found: Value = serde_json::from_str(&found.body).unwrap();
    let input = serde_json::json!({ "messages": [{ "role": "human", "content": "go" }] });
    let request = serde_json::json!({ "agent_id": found["agent_id"], "input": input }).to_string();
    let ran = caller
        .ask("POST", "/connect/runs/wait", &[JSON], &request)
        .await;
    let chosen = ["allow_once", "reject_once"];
    let chosen = chosen.into_iter().find(|chosen| ran.body.contains(chosen));
    chosen.unwrap_or_else(|| panic!("{}", ran.body)).to_owned()
}

#[test]
fn each_agent_has_its_own_default_permission() {
    block_on(async {
        let (stage, config) = asking(ASKING);
        let (mut serve, caller) = stage.start().await;
        assert_eq!(answered(&caller, "careful").await, "reject_once");
        assert_eq!(answered(&caller, "trusted").await, "allow_once");
        // The rule can be removed while it runs.
        stage.write(&config.replace(", default-permission = \"allow\"", ""));
        reload(&mut serve).await;
        assert_eq!(answered(&caller, "trusted").await, "reject_once");
        stop(serve).await;
        // The command line overrides the file.
        let mut serve = Program::of(stage.command(&["--default-permission", "allow"]));
        let caller = Caller::to(&serve.address().await);
        assert_eq!(answered(&caller, "careful").await, "allow_once");
        stop(serve).await;
    });
}

#[test]
fn a_listeners_dialect_applies_only_to_its_acp_clients() {
    block_on(async {
        let (stage, _) = asking(ASKING);
        let (serve, caller) = stage.start().await;
        let about = caller
            .ask("GET", "/connect/agents/careful/descriptor", &[], "")
            .await;
        assert!(about.body.contains("\"image\""), "{}", about.body);
        // In the dialect goref it is a list.
        let about = caller
            .ask("POST", "/agents/careful/acp", &[JSON], INITIALIZE)
            .await;
        assert!(about.body.contains("\"content\":["), "{}", about.body);
        stop(serve).await;
    });
}
