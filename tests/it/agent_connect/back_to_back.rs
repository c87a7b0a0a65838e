//! Both halves of Agent Connect: a client of this program in front of a server of it, and at the
//! two ends a client and an agent that use only ACP.

use acp_relay::proxy::StopSignals;
use acp_relay::transport::registry;
use serde_json::{Value, json};

use super::stage::{Agent, Stage, relay};
use crate::support::link::{run, setup};

/// An editor.
struct Editor {
    peer: Agent,
    received: Vec<Value>,
    id: u64,
}

impl Editor {
    async fn before(stage: &Stage, agent: &str) -> Self {
        let setup = setup();
        let to = format!("agent-connect+http://{}/{agent}", stage.at)
            .parse()
            .unwrap();
        let remote = registry::connect(&to, &setup).await.unwrap();
        let (near, link) = crate::support::memory::pair(&setup.limits);
        relay(near, remote, &setup, &StopSignals::default());
        let mut editor = Self {
            peer: Agent(link, None),
            received: Vec::new(),
            id: 0,
        };
        let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
        let asked = editor.ask("initialize", params).await;
        let about = editor.answer(asked).await;
        assert_eq!(about["agentInfo"]["name"], "claude-agent");
        assert_eq!(about["agentCapabilities"]["loadSession"], true);
        editor
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }))
            .await;
        self.id
    }

    async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.ask(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
        .await
    }

    /// Opens a session; the agent opens its own for it.
    async fn open(&mut self, agent: &mut Agent, theirs: &str) -> String {
        let servers = json!([{ "name": "files", "command": "/bin/files", "args": [], "env": [] }]);
        let asked = self
            .ask(
                "session/new",
                json!({ "cwd": "/work", "mcpServers": servers }),
            )
            .await;
        let opening = agent.receive("session/new").await;
        assert_eq!(opening["params"]["cwd"], "/work");
        assert_eq!(opening["params"]["mcpServers"], servers);
        agent
            .answer(&opening["id"], json!({ "sessionId": theirs }))
            .await;
        let opened = self.answer(asked).await;
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    async fn send(&mut self, message: Value) {
        self.peer.send(&message).await;
    }

    async fn next(&mut self) -> Value {
        self.peer.listen().await.expect("a message, not the end")
    }

    /// The result of a request; earlier messages are kept.
    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id && message["method"].is_null() {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
            self.received.push(message);
        }
    }

    /// The updates of a session since the last call.
    fn updates(&mut self, session: &str) -> Vec<Value> {
        let (of, others) = std::mem::take(&mut self.received)
            .into_iter()
            .partition(|message| message["params"]["sessionId"] == session);
        self.received = others;
        let of: Vec<Value> = of;
        of.into_iter()
            .map(|one| one["params"]["update"].clone())
            .collect()
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

#[test]
fn a_turn_with_a_permission_passes_both_halves() {
    run(async {
        let mut stage = Stage::open().await;
        let mut agent = stage.introduced(json!({ "loadSession": true })).await;
        let mut editor = Editor::before(&stage, "claude-agent").await;
        let session = editor.open(&mut agent, "s1").await;
        let asked = editor.prompt(&session, "Run the tests").await;
        let turn = agent.receive("session/prompt").await;
        assert_eq!(turn["params"]["prompt"][0]["text"], "Run the tests");
        agent.chunk("s1", "I ").await;
        agent.chunk("s1", "will.").await;
        agent.ask(7, "s1").await;
        let question = loop {
            let message = editor.next().await;
            if message["method"] == "session/request_permission" {
                break message;
            }
            editor.received.push(message);
        };
        assert_eq!(question["params"]["sessionId"], session);
        assert_eq!(question["params"]["toolCall"], json!({ "toolCallId": "t" }));
        assert_eq!(question["params"]["options"][1]["optionId"], "reject");
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
        editor
            .send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": chosen }))
            .await;
        let answered = agent.listen().await.unwrap();
        assert_eq!((&answered["id"], &answered["result"]), (&json!(7), &chosen));
        agent.chunk("s1", " Not.").await;
        agent
            .answer(&turn["id"], json!({ "stopReason": "refusal" }))
            .await;
        assert_eq!(editor.answer(asked).await["stopReason"], "refusal");
        let texts: Vec<String> = editor
            .updates(&session)
            .iter()
            .map(|update| update["content"]["text"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(texts.concat(), "I will. Not.");

        // Another editor continues the same thread.
        let mut other = Editor::before(&stage, "claude-agent").await;
        let params = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
        let asked = other.ask("session/load", params).await;
        other.answer(asked).await;
        let history = [
            chunk("user_message_chunk", "Run the tests"),
            chunk("agent_message_chunk", "I will. Not."),
        ];
        assert_eq!(other.updates(&session), history);
    });
}

#[test]
fn two_sessions_are_independent_and_one_is_cancelled() {
    run(async {
        let mut stage = Stage::open().await;
        let mut agent = stage.introduced(json!({ "loadSession": true })).await;
        let mut editor = Editor::before(&stage, "claude-agent").await;
        let first = editor.open(&mut agent, "s1").await;
        let second = editor.open(&mut agent, "s2").await;
        let long = editor.prompt(&first, "Write a long mail").await;
        let turn = agent.receive("session/prompt").await;
        let short = editor.prompt(&second, "Hi").await;
        let other = agent.receive("session/prompt").await;
        assert_eq!(other["params"]["sessionId"], "s2");
        agent.chunk("s1", "Dear").await;
        agent.chunk("s2", "Hello").await;
        agent.finish(&other).await;
        assert_eq!(editor.answer(short).await["stopReason"], "end_turn");
        assert_eq!(
            editor.updates(&second),
            [chunk("agent_message_chunk", "Hello")]
        );
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": first } });
        editor.send(cancel).await;
        let received = agent.receive("session/cancel").await;
        assert_eq!(received["params"]["sessionId"], "s1");
        agent
            .answer(&turn["id"], json!({ "stopReason": "cancelled" }))
            .await;
        assert_eq!(editor.answer(long).await["stopReason"], "cancelled");
        // The thread is free again.
        let again = loop {
            let asked = editor.prompt(&first, "Again").await;
            let message = tokio::select! {
                turn = agent.receive("session/prompt") => Ok(turn),
                message = editor.next() => Err(message),
            };
            match message {
                Ok(turn) => {
                    agent.finish(&turn).await;
                    break asked;
                }
                // The client's run is over as soon as the server has the cancel.
                Err(refused) if refused["error"]["data"]["acp-relay"]["httpStatus"] == 409 => {}
                Err(message) => editor.received.push(message),
            }
        };
        assert_eq!(editor.answer(again).await["stopReason"], "end_turn");
    });
}

#[test]
fn a_run_without_a_follower_is_cancelled() {
    run(async {
        let mut stage = Stage::open().await;
        let mut agent = stage.introduced(json!({})).await;
        let mut editor = Editor::before(&stage, "claude-agent").await;
        let session = editor.open(&mut agent, "s1").await;
        editor.prompt(&session, "Hi").await;
        agent.receive("session/prompt").await;
        drop(editor);
        agent.receive("session/cancel").await;
    });
}
