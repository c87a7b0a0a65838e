//! The protocol of July 2025, in which every message is a request and there is one session: the
//! state of its translation.

use acp_relay::dialect::Translator;
use acp_relay::jsonrpc::Side;
use serde_json::{Value, json};

use super::pass;

/// A peer of v0.0.9 on one side.
struct Peer(Translator);

impl Peer {
    fn new(side: Side, dialect: &str) -> Self {
        let program = super::library().program(dialect).unwrap();
        Self(Translator::new(side, program))
    }

    /// What is forwarded and what is answered when the peer sends `message`.
    fn sends(&mut self, message: &Value) -> (Vec<Value>, Vec<Value>) {
        pass(&mut self.0, true, message).values().into()
    }

    /// What is forwarded and what is answered when the peer receives `message`.
    fn receives(&mut self, message: &Value) -> (Vec<Value>, Vec<Value>) {
        pass(&mut self.0, false, message).values().into()
    }
}

fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn result(id: impl Into<Value>, result: impl Into<Value>) -> Value {
    let result = result.into();
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result})
}

fn update(update: impl Into<Value>) -> Value {
    let update = update.into();
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

/// A client with a session `s` and a prompt in flight, under the id 5.
fn client_in_a_turn() -> Peer {
    let mut client = Peer::new(Side::Client, "zed-legacy-0.0.9");
    client.0.set_cwd("/where/it/runs");
    client.sends(&request(
        0,
        "initialize",
        json!({"protocolVersion": "0.0.9"}),
    ));
    let (_, asked) = client.receives(&result(
        0,
        json!({"protocolVersion": 1, "agentCapabilities": {}}),
    ));
    assert_eq!(asked[0]["params"]["cwd"], "/where/it/runs");
    client.receives(&result(asked[0]["id"].clone(), json!({"sessionId": "s"})));
    let chunks = json!({"chunks": [{"text": "go"}]});
    let (prompt, _) = client.sends(&request(5, "sendUserMessage", chunks));
    assert_eq!(prompt[0]["params"]["sessionId"], "s");
    client
}

#[test]
fn messages_after_a_waiting_update_do_not_overtake_it() {
    let mut client = client_in_a_turn();
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit", "kind": "edit"});
    let (push, _) = client.receives(&update(call));
    let done =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "so"}});
    for later in [
        update(done),
        update(chunk),
        result(5, json!({"stopReason": "end_turn"})),
    ] {
        assert_eq!(
            client.receives(&later),
            (vec![], vec![]),
            "the number is not known yet"
        );
    }
    let (_, reported) = client.sends(&result(push[0]["id"].clone(), json!({"id": 7})));
    let methods: Vec<_> = reported
        .iter()
        .map(|message| message["method"].as_str())
        .collect();
    let expected = [
        Some("updateToolCall"),
        Some("streamAssistantMessageChunk"),
        None,
    ];
    assert_eq!(methods, expected);
    assert_eq!(reported[0]["params"]["toolCallId"], 7);
    assert_eq!(reported[2], result(5, json!(null)));
}

#[test]
fn a_confirmation_gives_its_tool_call_a_number() {
    let mut client = client_in_a_turn();
    let update_of_it = |status| {
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}))
    };
    let dropped = client.receives(&update_of_it("pending"));
    assert_eq!(
        dropped,
        (vec![], vec![]),
        "the client could not read its id"
    );
    let (asked, _) = client.receives(&request(
        "p",
        "session/request_permission",
        json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "Edit", "kind": "edit"},
               "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}),
    ));
    let answer = json!({"id": 8, "outcome": "allow"});
    let (allowed, _) = client.sends(&result(asked[0]["id"].clone(), answer));
    assert_eq!(
        allowed,
        [result(
            "p",
            json!({"outcome": {"outcome": "selected", "optionId": "y"}})
        )]
    );
    let (stated, _) = client.receives(&update_of_it("completed"));
    assert_eq!(stated[0]["params"]["toolCallId"], 8);
}

#[test]
fn the_stop_reason_is_sent_as_a_chunk_before_the_null_result() {
    for (reason, describes) in [
        ("refusal", true),
        ("max_tokens", true),
        ("max_turn_requests", true),
        ("end_turn", false),
    ] {
        let mut client = client_in_a_turn();
        let (reported, _) = client.receives(&result(5, json!({"stopReason": reason})));
        let (last, before) = reported.split_last().unwrap();
        assert_eq!(*last, result(5, json!(null)));
        assert_eq!(before.len(), usize::from(describes), "{reason}: {before:?}");
        if describes {
            assert_eq!(before[0]["method"], "streamAssistantMessageChunk");
            // The answer of the client to it is dropped.
            let acknowledged = client.sends(&result(before[0]["id"].clone(), json!(null)));
            assert_eq!(acknowledged, (vec![], vec![]));
        }
    }
}

#[test]
fn an_agent_without_sessions_gets_one_after_authentication() {
    let mut agent = Peer::new(Side::Agent, "zed-legacy-0.0.9");
    let open = |id| request(id, "session/new", json!({"cwd": "/w", "mcpServers": []}));
    agent.receives(&request(0, "initialize", json!({"protocolVersion": 1})));
    agent.sends(&result(
        0,
        json!({"protocolVersion": "0.0.9", "isAuthenticated": false}),
    ));
    let (on, back) = agent.receives(&open(1));
    assert_eq!((on.len(), &back[0]["error"]["code"]), (0, &json!(-32000)));
    agent.receives(&request(
        2,
        "authenticate",
        json!({"methodId": "legacy-auth"}),
    ));
    agent.sends(&result(2, json!(null)));
    let (on, back) = agent.receives(&open(3));
    assert_eq!(
        (on.len(), &back[0]["result"]["sessionId"]),
        (0, &json!("legacy-1"))
    );
    let (on, back) = agent.receives(&open(4));
    assert_eq!((on.len(), &back[0]["error"]["code"]), (0, &json!(-32600)));
}

#[test]
fn a_cancel_names_the_id_that_the_peer_knows() {
    let mut client = Peer::new(Side::Client, "goref-ccui");
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []});
    let (asked, _) = client.receives(&request("a-b", "session/request_permission", params));
    assert!(asked[0]["id"].is_number());
    let cancel = |id: Value| json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
    let (stated, _) = client.receives(&cancel(json!("a-b")));
    assert_eq!(stated, [cancel(asked[0]["id"].clone())]);
    assert_eq!(client.receives(&cancel(json!(7))).0, [cancel(json!(7))]);
    assert_eq!(client.receives(&cancel(json!("never"))).0, [] as [Value; 0]);
    // Where every message is a request, the notification has no meaning.
    for side in [Side::Client, Side::Agent] {
        let stated = Peer::new(side, "zed-legacy-0.0.9").receives(&cancel(json!(7)));
        assert_eq!(stated, (vec![], vec![]));
    }
}

#[test]
fn a_peer_that_changes_its_dialect_still_answers() {
    let mut agent = Peer::new(Side::Agent, "loose-v1");
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    agent.receives(&request(1, "session/prompt", prompt));
    let program = super::library().program("draft-v0.0.16").unwrap();
    agent.0.switch_to(program);
    let (ended, _) = agent.sends(&result(1, json!(null)));
    assert_eq!(ended, [result(1, json!({"stopReason": "end_turn"}))]);
}
