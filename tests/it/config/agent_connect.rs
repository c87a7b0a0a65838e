//! Agent Connect beside ACP: all agents of the file, with what the file says of each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{Client, JSON, Stage};
use crate::support::link::run as block_on;
use crate::support::program::Program;
use crate::transport::http::caller::{Caller, INITIALIZE};

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

/// The names of the agents, and what is said of each.
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
fn all_agents_of_a_listener_are_served_beside_acp() {
    block_on(async {
        let stage = Stage::with(TWO);
        let mut serve = stage.serve();
        let caller = Caller::to(&serve.address().await);
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
        // What the file leaves out is not served any more.
        let (before, after) = (TWO.find("[agents.two]"), TWO.find("[[listeners]]"));
        stage.write(&format!(
            "{}{}",
            &TWO[..before.unwrap()],
            &TWO[after.unwrap()..]
        ));
        serve.signal(Signal::HUP);
        while !serve.complaint().await.unwrap().ends_with("was reloaded") {}
        assert_eq!(agents(&caller).await, expected[..1]);
        assert_eq!(ask("/connect/agents/two").await.status.as_u16(), 404);
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}

/// An agent that takes images, that asks for permission in a session of nobody's before it opens one,
/// and that says there what it was answered.
const ASKS: &str = r#"
import json, sys
def say(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
options = [{'optionId': kind, 'name': kind, 'kind': kind} for kind in ('allow_once', 'reject_once')]
wish = {'sessionId': 'none', 'toolCall': {'toolCallId': 't'}, 'options': options}
about = {'protocolVersion': 1, 'agentCapabilities': {'promptCapabilities': {'image': True}}}
for line in sys.stdin:
    message = json.loads(line)
    if message['method'] == 'initialize':
        say(id=message['id'], result=about)
    if message['method'] == 'session/new':
        say(id=0, method='session/request_permission', params=wish)
        said = json.loads(sys.stdin.readline())['result']['outcome']['optionId']
        say(id=message['id'], result={'sessionId': 's'})
    if message['method'] == 'session/prompt':
        update = {'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'text', 'text': said}}
        say(method='session/update', params={'sessionId': 's', 'update': update})
        say(id=message['id'], result={'stopReason': 'end_turn'})
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

/// How this agent was answered.
async fn answered(caller: &Caller, agent: &str) -> String {
    let found = caller
        .ask("GET", &format!("/connect/agents/{agent}"), &[], "")
        .await;
    let found: Value = serde_json::from_str(&found.body).unwrap();
    let input = serde_json::json!({ "messages": [{ "role": "human", "content": "go" }] });
    let wish = serde_json::json!({ "agent_id": found["agent_id"], "input": input }).to_string();
    let ran = caller
        .ask("POST", "/connect/runs/wait", &[JSON], &wish)
        .await;
    let reported = ["allow_once", "reject_once"];
    let reported = reported
        .into_iter()
        .find(|reported| ran.body.contains(reported));
    reported
        .unwrap_or_else(|| panic!("{}", ran.body))
        .to_owned()
}

#[test]
fn each_agent_has_its_own_answer_where_nobody_can_be_asked() {
    block_on(async {
        let (stage, config) = asking(ASKING);
        let mut serve = stage.serve();
        let caller = Caller::to(&serve.address().await);
        assert_eq!(answered(&caller, "careful").await, "reject_once");
        assert_eq!(answered(&caller, "trusted").await, "allow_once");
        // What is said of it can be taken back while it runs.
        stage.write(&config.replace(", default-permission = \"allow\"", ""));
        serve.signal(Signal::HUP);
        while !serve.complaint().await.unwrap().ends_with("was reloaded") {}
        assert_eq!(answered(&caller, "trusted").await, "reject_once");
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
        // The command line is stronger.
        let mut serve = Program::of(stage.command(&["--default-permission", "allow"]));
        let caller = Caller::to(&serve.address().await);
        assert_eq!(answered(&caller, "careful").await, "allow_once");
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}

#[test]
fn a_listeners_dialect_is_that_of_its_acp_clients_alone() {
    block_on(async {
        let (stage, _) = asking(ASKING);
        let mut serve = stage.serve();
        let caller = Caller::to(&serve.address().await);
        let about = caller
            .ask("GET", "/connect/agents/careful/descriptor", &[], "")
            .await;
        assert!(about.body.contains("\"image\""), "{}", about.body);
        // In goref's words that is a list.
        let about = caller
            .ask("POST", "/agents/careful/acp", &[JSON], INITIALIZE)
            .await;
        assert!(about.body.contains("\"content\":["), "{}", about.body);
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}
