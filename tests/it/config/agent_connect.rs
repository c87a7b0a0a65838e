//! Agent Connect beside ACP: all agents of the file, with what the file says of each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{Client, JSON, Stage};
use crate::support::link::run as block_on;
use crate::transport::http::caller::Caller;

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
        while !serve.complaint().await.unwrap().ends_with("was read again") {}
        assert_eq!(agents(&caller).await, expected[..1]);
        assert_eq!(ask("/connect/agents/two").await.status.as_u16(), 404);
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}
