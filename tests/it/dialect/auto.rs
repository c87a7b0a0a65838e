//! Whole conversations through the core, both sides on `auto`: what each peer receives.
//!
//! Not here: single rules, which are vectors.

use acp_relay::conversation::DialectChoice;
use acp_relay::jsonrpc::Side;
use serde_json::{Value, json};

struct Exchange(super::Exchange);

impl Exchange {
    fn new() -> Self {
        let auto = DialectChoice::Auto;
        Self(super::Exchange::new(super::library(), &auto, &auto))
    }

    /// One side sends a message; returns what the other side receives.
    fn send(&mut self, from: Side, message: &Value) -> Vec<Value> {
        let [client, agent] = self.0.send(from, message);
        match from {
            Side::Client => agent,
            Side::Agent => client,
        }
    }

    fn asks(&mut self, id: i64, method: &str, params: Value) -> Vec<Value> {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        message["params"] = params;
        self.send(Side::Client, &message)
    }

    fn answers(&mut self, id: i64, result: Value) -> Vec<Value> {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        message["result"] = result;
        self.send(Side::Agent, &message)
    }
}

fn models() -> Value {
    json!({"currentModelId": "a", "availableModels": [
        {"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]})
}

#[test]
fn requests_sent_before_an_agent_is_recognised_are_remembered() {
    let mut exchange = Exchange::new();
    exchange.asks(0, "initialize", json!({"protocolVersion": 1}));
    exchange.asks(
        1,
        "session/prompt",
        json!({"sessionId": "s1", "prompt": []}),
    );
    exchange.answers(
        0,
        json!({"protocolVersion": 1, "agentInfo": {"name": "Kimi Code CLI", "version": "1.47.0"}}),
    );
    let received = exchange.send(
        Side::Agent,
        &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid params",
            "data": {"session_id": "Session not found"}}}),
    );
    assert_eq!(received[0]["error"]["code"], -32002, "{received:?}");
}

#[test]
fn an_agent_is_recognised_by_its_updates() {
    let mut exchange = Exchange::new();
    exchange.asks(0, "initialize", json!({"protocolVersion": 1}));
    exchange.answers(0, json!({"protocolVersion": 1}));
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"kind": "agentMessageChunk", "content": {"type": "text", "text": "x"}}}});
    let received = exchange.send(Side::Agent, &update);
    assert_eq!(
        received[0]["params"]["update"],
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
    );
    let asked = exchange.send(
        Side::Client,
        &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}),
    );
    assert_eq!(asked[0]["method"], "session/cancelled", "{asked:?}");
}

#[test]
fn an_agent_that_declared_v1_receives_v1_however_it_spells_updates() {
    let states = [
        (json!({}), vec!["session/cancel", "session/cancelled"]),
        (
            json!({"agentCapabilities": {"loadSession": false}, "authMethods": []}),
            vec!["session/cancel", "session/cancelled"],
        ),
        (
            json!({"agentCapabilities": {"promptCapabilities": {"image": true}}}),
            vec!["session/cancel"],
        ),
        (
            json!({"authMethods": [{"id": "a", "name": "A"}]}),
            vec!["session/cancel"],
        ),
        (
            json!({"authMethods": [{"id": "a", "label": "A"}]}),
            vec!["session/cancelled"],
        ),
    ];
    for (mut stated, expected) in states {
        let mut exchange = Exchange::new();
        exchange.asks(0, "initialize", json!({"protocolVersion": 1}));
        stated["protocolVersion"] = json!(1);
        exchange.answers(0, stated.clone());
        let reported =
            json!({"sessionUpdate": "agentMessageChunk", "content": {"type": "text", "text": "x"}});
        let update = json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": reported}});
        let received = exchange.send(Side::Agent, &update);
        let name = &received[0]["params"]["update"]["sessionUpdate"];
        assert_eq!(name, "agent_message_chunk", "{stated}");
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
        let noted = exchange.send(Side::Client, &cancel);
        let names: Vec<&str> = noted
            .iter()
            .map(|noted| noted["method"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{stated}");
    }
}

#[test]
fn detection_of_an_agent_ends_after_some_updates() {
    let mut exchange = Exchange::new();
    exchange.asks(0, "initialize", json!({"protocolVersion": 1}));
    exchange.answers(0, json!({"protocolVersion": 1}));
    let chunk = |update: Value| {
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}})
    };
    for _ in 0..32 {
        let same = chunk(json!({"sessionUpdate": "agent_message_chunk"}));
        assert_eq!(exchange.send(Side::Agent, &same), [same]);
    }
    let late = chunk(json!({"kind": "agentMessageChunk"}));
    assert_eq!(exchange.send(Side::Agent, &late), [late]);
}

#[test]
fn a_client_with_config_options_works_with_an_agent_with_models() {
    let mut exchange = Exchange::new();
    exchange.asks(0, "initialize", json!({"protocolVersion": 1}));
    exchange.answers(0, json!({"protocolVersion": 1}));
    exchange.asks(1, "session/new", json!({"cwd": "/", "mcpServers": []}));
    let received = exchange.answers(1, json!({"sessionId": "s", "models": models()}));
    let id = received[0]["result"]["configOptions"][0]["id"].clone();
    let choice = json!({"sessionId": "s", "configId": id, "value": "b"});
    let asked = exchange.asks(2, "session/set_config_option", choice);
    assert_eq!(asked[0]["method"], "session/set_model", "{asked:?}");
    assert_eq!(
        asked[0]["params"],
        json!({"sessionId": "s", "modelId": "b"})
    );
    let received = exchange.answers(2, json!({}));
    let option = &received[0]["result"]["configOptions"][0];
    assert_eq!(option["currentValue"], "b", "{received:?}");
}
