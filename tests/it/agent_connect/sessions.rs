//! The sessions behind threads: closed for others, loaded again, and found where the relay did not
//! open them.

use std::time::Duration;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::Setup;
use serde_json::{Value, json};

use super::principals::{gate, token};
use super::stage::{Agent, Client, Stage, human, thread};
use crate::support::http::Events;
use crate::support::link::{run, setup_with};

/// Runs a turn on a thread with an open session, and returns its result.
async fn turn(client: Client, agent: &mut Agent, thread: &str, session: &str) -> Value {
    let path = format!("/threads/{thread}/runs/wait");
    let done = client.start(&path, json!({ "input": human("hi") }));
    finish(agent, session, "Hello").await;
    done.await.unwrap()
}

async fn finish(agent: &mut Agent, session: &str, text: &str) {
    let asked = agent.receive("session/prompt").await;
    agent.chunk(session, text).await;
    agent.finish(&asked).await;
}

fn user(text: &str) -> Value {
    json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } })
}

#[test]
fn the_least_recently_used_session_is_closed() {
    run(async {
        let limits = Limits {
            agent_connect_sessions: 2,
            ..Limits::default()
        };
        let mut stage = Stage::with(setup_with(limits)).await;
        let capabilities = json!({ "loadSession": true, "sessionCapabilities": { "close": {} } });
        let mut agent = stage.introduced(capabilities).await;
        let client = stage.client();
        let first = thread(client, &mut agent, "a").await;
        let second = thread(client, &mut agent, "b").await;
        turn(client, &mut agent, &first, "a").await;
        let made = client.start("/threads", json!({}));
        // The second was not used since.
        let mut received = [agent.listen().await.unwrap(), agent.listen().await.unwrap()];
        received.sort_by_key(|message| message["method"].to_string());
        assert_eq!(received[0]["method"], "session/close");
        assert_eq!(received[0]["params"]["sessionId"], "b");
        assert_eq!(received[1]["method"], "session/new");
        agent.answer(&received[0]["id"], json!({})).await;
        agent
            .answer(&received[1]["id"], json!({ "sessionId": "c" }))
            .await;
        made.await.unwrap();
        // It still exists.
        let path = format!("/threads/{second}/runs/wait");
        let done = client.start(&path, json!({ "input": human("hi") }));
        let closed = agent.receive("session/close").await;
        agent.answer(&closed["id"], json!({})).await;
        let loaded = agent.receive("session/load").await;
        assert_eq!(loaded["params"]["sessionId"], "b");
        agent.answer(&loaded["id"], json!({})).await;
        finish(&mut agent, "b", "Again").await;
        assert_eq!(done.await.unwrap()["run"]["status"], "success");
    });
}

#[test]
fn replayed_history_is_not_part_of_the_turn() {
    run(async {
        let mut stage = Stage::open().await;
        let client = stage.client();
        let capabilities = json!({ "loadSession": true });
        let mut agent = stage.introduced(capabilities.clone()).await;
        let thread = thread(client, &mut agent, "s").await;
        turn(client, &mut agent, &thread, "s").await;
        drop(agent);
        let path = format!("/threads/{thread}/runs/wait");
        let done = client.start(&path, json!({ "input": human("And?") }));
        let mut agent = stage.introduced(capabilities).await;
        let loaded = agent.receive("session/load").await;
        agent.answer(&loaded["id"], json!({})).await;
        let asked = agent.receive("session/prompt").await;
        // After the answer, as Gemini CLI does it.
        let params = json!({ "sessionId": "s", "update": user("hi") });
        agent
            .send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
            .await;
        for text in ["Hel", "lo", "Hello", " again"] {
            agent.chunk("s", text).await;
        }
        agent.finish(&asked).await;
        let done = done.await.unwrap();
        assert_eq!(
            done["output"]["messages"][0]["content"], "Hello again",
            "{done}"
        );
        let state = client.get(&format!("/threads/{thread}/state")).await;
        let texts: Vec<&str> = state["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["hi", "Hello", "And?", "Hello again"]);
    });
}

#[test]
fn a_revoked_token_ends_streams_and_waits() {
    run(async {
        let gate = gate();
        let limits = Limits {
            credential_check: Duration::from_millis(20),
            ..Limits::default()
        };
        let setup = Setup {
            gate: gate.clone(),
            ..setup_with(limits)
        };
        let mut stage = Stage::with(setup).await;
        let mut agent = stage.introduced(json!({})).await;
        let client = stage.client();
        let alice = token(1);
        let request = json!({ "input": human("hi"), "stream_mode": "custom" });
        let stream = client.send_as(
            "POST",
            "/runs/stream",
            Some(&request),
            None,
            Some(alice.reveal()),
        );
        let (stream, ()) = tokio::join!(stream, agent.open("s"));
        let place = stream.headers()["content-location"]
            .to_str()
            .unwrap()
            .to_owned();
        agent.receive("session/prompt").await;
        agent.chunk("s", "Hello").await;
        let mut events = Events::of(stream);
        let (_, _, data) = events.named().await.unwrap();
        assert_eq!(place, format!("/runs/{}", data["run_id"].as_str().unwrap()));
        let path = format!("{place}/wait");
        let waiting = async { client.call_as(alice.reveal(), "GET", &path, None).await };
        let withdrawing = async {
            tokio::task::yield_now().await;
            gate.set_keys(auth::Keys::default());
        };
        let ((status, _), ()) = tokio::join!(waiting, withdrawing);
        assert_eq!(status, 401);
        assert!(events.named().await.is_none());
        // It has no follower, and was not to continue without one.
        agent.receive("session/cancel").await;
    });
}
