//! Whole conversations through the core, both sides on `auto`: what each peer gets in the end.
//!
//! Not here: single rules, which are vectors.

use std::sync::Arc;
use std::time::Instant;

use acp_relay::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use serde_json::{Value, json};

struct Talk {
    core: Conversation,
    out: Outbox,
}

impl Talk {
    fn new() -> Self {
        let limits = Limits::default();
        let library = Arc::new(super::library().clone());
        let dialects =
            DialectOptions::new(&library, &DialectChoice::Auto, &DialectChoice::Auto).unwrap();
        let manners = LinkTraits::default();
        Self {
            out: Outbox::new(&limits),
            core: Conversation::new(Arc::new(limits), manners, dialects),
        }
    }

    /// One side says something; this is what the other side hears.
    fn send(&mut self, from: Side, message: &Value) -> Vec<Value> {
        let frame = Frame::from(message.to_string());
        self.core
            .handle_frame(from, frame, Instant::now(), &mut self.out);
        let mut received = Vec::new();
        while let Some(frame) = self.out.pop(from.other()) {
            received.push(serde_json::from_slice(frame.as_bytes()).unwrap());
        }
        while self.out.pop_note().is_some() {}
        received
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
fn what_was_asked_before_an_agent_is_recognised_is_not_forgotten() {
    let mut talk = Talk::new();
    talk.asks(0, "initialize", json!({"protocolVersion": 1}));
    talk.asks(
        1,
        "session/prompt",
        json!({"sessionId": "s1", "prompt": []}),
    );
    talk.answers(
        0,
        json!({"protocolVersion": 1, "agentInfo": {"name": "Kimi Code CLI", "version": "1.47.0"}}),
    );
    let received = talk.send(
        Side::Agent,
        &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid params",
            "data": {"session_id": "Session not found"}}}),
    );
    assert_eq!(received[0]["error"]["code"], -32002, "{received:?}");
}

#[test]
fn an_agent_that_shows_itself_in_its_updates_is_understood() {
    let mut talk = Talk::new();
    talk.asks(0, "initialize", json!({"protocolVersion": 1}));
    talk.answers(0, json!({"protocolVersion": 1}));
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"kind": "agentMessageChunk", "content": {"type": "text", "text": "x"}}}});
    let received = talk.send(Side::Agent, &update);
    assert_eq!(
        received[0]["params"]["update"],
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
    );
    let asked = talk.send(
        Side::Client,
        &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}),
    );
    assert_eq!(asked[0]["method"], "session/cancelled", "{asked:?}");
}

#[test]
fn an_agent_that_has_stated_v1_is_reported_v1_however_it_spells_its_updates() {
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
    for (mut stated, wanted) in states {
        let mut talk = Talk::new();
        talk.asks(0, "initialize", json!({"protocolVersion": 1}));
        stated["protocolVersion"] = json!(1);
        talk.answers(0, stated.clone());
        let reported =
            json!({"sessionUpdate": "agentMessageChunk", "content": {"type": "text", "text": "x"}});
        let update = json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": reported}});
        let received = talk.send(Side::Agent, &update);
        let name = &received[0]["params"]["update"]["sessionUpdate"];
        assert_eq!(name, "agent_message_chunk", "{stated}");
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
        let noted = talk.send(Side::Client, &cancel);
        let names: Vec<&str> = noted
            .iter()
            .map(|noted| noted["method"].as_str().unwrap())
            .collect();
        assert_eq!(names, wanted, "{stated}");
    }
}

#[test]
fn an_agent_is_not_looked_at_for_ever() {
    let mut talk = Talk::new();
    talk.asks(0, "initialize", json!({"protocolVersion": 1}));
    talk.answers(0, json!({"protocolVersion": 1}));
    let chunk = |update: Value| {
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}})
    };
    for _ in 0..32 {
        let same = chunk(json!({"sessionUpdate": "agent_message_chunk"}));
        assert_eq!(talk.send(Side::Agent, &same), [same]);
    }
    let late = chunk(json!({"kind": "agentMessageChunk"}));
    assert_eq!(talk.send(Side::Agent, &late), [late]);
}

#[test]
fn a_client_with_models_talks_with_an_agent_with_models() {
    let mut talk = Talk::new();
    let name = json!({"name": "JetBrains.WebStorm", "version": "2026.1"});
    talk.asks(
        0,
        "initialize",
        json!({"protocolVersion": 1, "clientInfo": name}),
    );
    talk.answers(
        0,
        json!({"protocolVersion": 1, "agentInfo": {"name": "gemini-cli", "version": "0.61.0"}}),
    );
    talk.asks(1, "session/new", json!({"cwd": "/", "mcpServers": []}));
    let received = talk.answers(1, json!({"sessionId": "s", "models": models()}));
    assert_eq!(received[0]["result"]["models"], models());
    let option = &received[0]["result"]["configOptions"][0];
    assert_eq!(option["category"], "model", "{received:?}");
    let asked = talk.asks(
        2,
        "session/set_model",
        json!({"sessionId": "s", "modelId": "b"}),
    );
    assert_eq!(asked[0]["method"], "session/set_model", "{asked:?}");
    assert_eq!(
        asked[0]["params"],
        json!({"sessionId": "s", "modelId": "b"})
    );
    assert_eq!(talk.answers(2, json!({}))[0]["result"], json!({}));
}

#[test]
fn a_client_with_config_options_talks_with_an_agent_with_models() {
    let mut talk = Talk::new();
    talk.asks(0, "initialize", json!({"protocolVersion": 1}));
    talk.answers(0, json!({"protocolVersion": 1}));
    talk.asks(1, "session/new", json!({"cwd": "/", "mcpServers": []}));
    let received = talk.answers(1, json!({"sessionId": "s", "models": models()}));
    let id = received[0]["result"]["configOptions"][0]["id"].clone();
    let choice = json!({"sessionId": "s", "configId": id, "value": "b"});
    let asked = talk.asks(2, "session/set_config_option", choice);
    assert_eq!(asked[0]["method"], "session/set_model", "{asked:?}");
    assert_eq!(
        asked[0]["params"],
        json!({"sessionId": "s", "modelId": "b"})
    );
    let received = talk.answers(2, json!({}));
    let option = &received[0]["result"]["configOptions"][0];
    assert_eq!(option["currentValue"], "b", "{received:?}");
}

#[test]
fn a_client_with_models_talks_with_an_agent_with_config_options() {
    let mut talk = Talk::new();
    talk.asks(0, "initialize", json!({"protocolVersion": 1}));
    talk.answers(0, json!({"protocolVersion": 1}));
    talk.asks(1, "session/new", json!({"cwd": "/", "mcpServers": []}));
    let options = |current: &str| {
        json!([{"id": "llm", "name": "Model", "category": "model", "type": "select",
            "currentValue": current, "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}])
    };
    talk.answers(1, json!({"sessionId": "s", "configOptions": options("a")}));
    let asked = talk.asks(
        2,
        "session/set_model",
        json!({"sessionId": "s", "modelId": "b"}),
    );
    assert_eq!(asked[0]["method"], "session/set_config_option", "{asked:?}");
    assert_eq!(
        asked[0]["params"],
        json!({"sessionId": "s", "configId": "llm", "value": "b"})
    );
    let received = talk.answers(2, json!({"configOptions": options("b")}));
    assert_eq!(received[0]["result"], json!({}));
}
