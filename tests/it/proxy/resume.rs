//! Clients whose connection breaks and that resume their session.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "messages are made where they are sent"
)]

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_relay::conversation::{Cause, DialectOptions};
use acp_relay::jsonrpc::Limits;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::observe::Observers;
use acp_relay::proxy::{self, ConversationStore, End, StopSignals};
use acp_relay::transport::{FrameStream, LinkError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::bridge::{TestPeer, within};

/// A store of conversations, to which a test connects clients and agents.
struct Server {
    limits: Arc<Limits>,
    store: Arc<ConversationStore>,
}

/// An accepted client, and the task that finds its agent or adds a new one.
struct Connection {
    client: TestPeer,
    attached: JoinHandle<Option<Begun>>,
}

/// A stream that ends as a broken connection does.
struct Breaks(Box<dyn FrameStream>);

impl FrameStream for Breaks {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        self.0.poll_next(cx)
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.0.poll_lost(cx)
    }

    fn ended_cleanly(&self) -> bool {
        false
    }

    fn has_progressed(&mut self) -> bool {
        self.0.has_progressed()
    }

    fn tells_loss(&self) -> bool {
        self.0.tells_loss()
    }
}

/// The agent of a conversation that began, and the conversation.
type Begun = (TestPeer, JoinHandle<End>);

impl Server {
    fn new(limits: Limits) -> Self {
        let limits = Arc::new(limits);
        let store = Arc::new(ConversationStore::new(Arc::clone(&limits)));
        Self { limits, store }
    }

    /// A client connects, as over a WebSocket.
    fn connect(&self) -> Connection {
        self.connect_taking(usize::MAX)
    }

    /// The same for a client that takes messages of this length at most.
    fn connect_taking(&self, longest: usize) -> Connection {
        let (client, mut near) = crate::support::memory::pair(&self.limits);
        near.peer.longest = longest;
        near.peer.half_close = false;
        near.rx = Box::new(Breaks(near.rx));
        let store = Arc::clone(&self.store);
        let limits = Arc::clone(&self.limits);
        let attached = tokio::spawn(async move {
            let link = store.attach(near).await?;
            let (agent, near_agent) = crate::support::memory::pair(&limits);
            let run = tokio::spawn(async move {
                let (dialects, observers) = (DialectOptions::canonical(), Observers::default());
                let stop = StopSignals::default();
                proxy::run(link, near_agent, limits, dialects, None, observers, &stop).await
            });
            Some((TestPeer(agent), run))
        });
        Connection {
            client: TestPeer(client),
            attached,
        }
    }

    /// A client with a session `s1` and an agent of its own.
    async fn begin(&self) -> (TestPeer, TestPeer, JoinHandle<End>) {
        self.begin_taking(usize::MAX).await
    }

    /// The same for a client that takes messages of this length at most.
    async fn begin_taking(&self, longest: usize) -> (TestPeer, TestPeer, JoinHandle<End>) {
        let connection = self.connect_taking(longest);
        let mut client = connection.client;
        client.send(&initialize(0, json!({}))).await;
        let (mut agent, run) = within(connection.attached).await.unwrap().unwrap();
        agent.receive_json().await;
        agent.exchange(&mut client, &initialized(0)).await;
        let new = request(1, "session/new", json!({"cwd": "/"}));
        client.exchange(&mut agent, &new).await;
        let session = json!({"modes": {"currentModeId": "ask"}, "sessionId": "s1"});
        agent.exchange(&mut client, &result(1, session)).await;
        (client, agent, run)
    }

    /// A client connects again and requests its session.
    async fn resume(&self, method: &str, id: u32) -> TestPeer {
        self.resume_taking(usize::MAX, method, id).await
    }

    /// The same for a client that takes messages of this length at most.
    async fn resume_taking(&self, longest: usize, method: &str, id: u32) -> TestPeer {
        let connection = self.connect_taking(longest);
        Self::ask_for_session(connection, &json!({}), method, id).await
    }

    /// The same for a client with these capabilities.
    async fn resume_with(&self, capabilities: &Value, method: &str, id: u32) -> TestPeer {
        Self::ask_for_session(self.connect(), capabilities, method, id).await
    }

    async fn ask_for_session(
        mut connection: Connection,
        capabilities: &Value,
        method: &str,
        id: u32,
    ) -> TestPeer {
        connection
            .client
            .send(&initialize(id, capabilities.clone()))
            .await;
        let answer = connection.client.receive_json().await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["agentInfo"]["name"], "the agent");
        let params = json!({"sessionId": "s1", "cwd": "/", "mcpServers": []});
        connection
            .client
            .send(&request(id + 1, method, params))
            .await;
        assert!(
            within(connection.attached).await.unwrap().is_none(),
            "it got a new agent"
        );
        connection.client
    }
}

fn request(id: u32, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn result(id: impl Into<Value>, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result}).to_string()
}

fn initialize(id: u32, capabilities: Value) -> String {
    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
    request(id, "initialize", params)
}

fn initialized(id: u32) -> String {
    let answer = json!({"protocolVersion": 1, "agentInfo": {"name": "the agent"}});
    result(id, answer)
}

fn prompt(id: u32, text: &str) -> String {
    let prompt = json!([{"type": "text", "text": text}]);
    request(
        id,
        "session/prompt",
        json!({"sessionId": "s1", "prompt": prompt}),
    )
}

fn update(text: &str) -> String {
    let content = json!({"type": "text", "text": text});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    let params = json!({"sessionId": "s1", "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

fn permission(id: u32) -> String {
    let params = json!({"sessionId": "s1", "options": [], "toolCall": {"toolCallId": "t"}});
    request(id, "session/request_permission", params)
}

/// `user:…` and `agent:…` for updates, the method of other requests, `answer` for answers.
fn summary(message: &Value) -> String {
    let update = &message["params"]["update"];
    let text = update["content"]["text"].as_str().unwrap_or_default();
    match update["sessionUpdate"].as_str() {
        Some("user_message_chunk") => format!("user:{text}"),
        Some(_) => format!("agent:{text}"),
        None if message["method"].is_string() => message["method"].as_str().unwrap().to_owned(),
        None => "answer".to_owned(),
    }
}

async fn summaries(client: &mut TestPeer, many: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..many {
        all.push(summary(&client.receive_json().await));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_resumed_client_receives_all_it_missed_and_continues() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    client.exchange(&mut agent, &prompt(2, "hello")).await;
    agent.exchange(&mut client, &update("one")).await;
    drop(client);

    agent.send(&update("two")).await;
    agent.send(&permission(0)).await;
    let mut client = server.resume("session/load", 0).await;
    let received = summaries(&mut client, 3).await;
    assert_eq!(received, ["user:hello", "agent:one", "agent:two"]);
    let loaded = client.receive_json().await;
    assert_eq!(loaded["id"], 1);
    let turn = json!({"acp-relay": {"turn": "running", "openRequests": 1}});
    let session = json!({"modes": {"currentModeId": "ask"}, "_meta": turn});
    assert_eq!(loaded["result"], session);
    let asked = client.receive_json().await;
    assert_eq!(
        (&asked["id"], summary(&asked)),
        (&json!(0), "session/request_permission".to_owned())
    );

    // The answer reaches the agent, and the new update reaches the client.
    client
        .send(&result(0, json!({"outcome": {"outcome": "cancelled"}})))
        .await;
    assert_eq!(agent.receive_json().await["id"], 0);
    agent.send(&update("three")).await;
    assert_eq!(summaries(&mut client, 1).await, ["agent:three"]);
}

#[tokio::test(start_paused = true)]
async fn a_returned_client_is_told_when_the_turn_it_has_left_ends() {
    let wants = json!({"_meta": {"acp-relay": {"status": true}}});
    for capabilities in [json!({}), wants] {
        let server = Server::new(Limits::default());
        let (mut client, mut agent, _run) = server.begin().await;
        client.exchange(&mut agent, &prompt(2, "long")).await;
        drop(client);
        let mut client = server.resume_with(&capabilities, "session/resume", 0).await;
        let turn = &client.receive_json().await["result"]["_meta"]["acp-relay"];
        assert_eq!(*turn, json!({"turn": "running", "openRequests": 0}));
        agent
            .send(&result(2, json!({"stopReason": "max_tokens"})))
            .await;
        agent.send(&update("after it")).await;
        if capabilities != json!({}) {
            let status = client.receive_json().await;
            let ended = json!({"turn": "ended", "sessionId": "s1", "stopReason": "max_tokens"});
            assert_eq!(status["method"], "_acp-relay/status");
            assert_eq!(status["params"], ended);
        }
        assert_eq!(summaries(&mut client, 1).await, ["agent:after it"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_returned_client_knows_that_the_turn_has_ended_meanwhile() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    client.exchange(&mut agent, &prompt(2, "short")).await;
    drop(client);
    sleep(Duration::from_secs(1)).await;
    agent
        .send(&result(2, json!({"stopReason": "end_turn"})))
        .await;
    sleep(Duration::from_secs(60)).await;
    let mut client = server.resume("session/resume", 0).await;
    let turn = &client.receive_json().await["result"]["_meta"]["acp-relay"];
    assert_eq!(
        (&turn["turn"], &turn["stopReason"]),
        (&json!("idle"), &json!("end_turn"))
    );
    let ended = turn["endedMs"].as_u64().unwrap();
    assert!((60_000..61_000).contains(&ended), "{turn}");
}

#[tokio::test(start_paused = true)]
async fn the_request_ids_of_two_connections_are_kept_apart() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    client.send(&prompt(2, "first")).await;
    assert_eq!(agent.receive_json().await["id"], 2);
    drop(client);

    let mut client = server.resume("session/resume", 1).await;
    assert_eq!(client.receive_json().await["id"], 2);
    // The old prompt's id is free again for the client, but not for the agent.
    let asked = client
        .exchange(
            &mut agent,
            &request(
                2,
                "session/set_mode",
                json!({"sessionId": "s1", "modeId": "x"}),
            ),
        )
        .await;
    let ours = asked["id"].as_u64().unwrap();
    assert!(ours > 1 << 30, "{asked}");
    let params = json!({"_meta": {"a": 1}, "requestId": 2});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
    client.send(&cancel.to_string()).await;
    let params = json!({"_meta": {"a": 1}, "requestId": ours});
    assert_eq!(agent.receive_json().await["params"], params);
    agent
        .send(&result(2, json!({"stopReason": "end_turn"})))
        .await;
    let answer = agent
        .exchange(&mut client, &result(ours, json!({"ours": true})))
        .await;
    assert_eq!(
        (&answer["id"], &answer["result"]["ours"]),
        (&json!(2), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn session_resume_sends_only_missed_updates() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    agent.exchange(&mut client, &update("seen")).await;
    drop(client);
    agent.send(&update("missed")).await;
    // The relay has to detect the end before the client is back.
    sleep(Duration::from_secs(1)).await;
    let mut client = server.resume("session/resume", 0).await;
    assert_eq!(summaries(&mut client, 2).await, ["agent:missed", "answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_a_new_session_gets_its_own_agent() {
    let server = Server::new(Limits::default());
    let (client, _agent, _run) = server.begin().await;
    drop(client);
    let mut connection = server.connect();
    connection.client.send(&initialize(7, json!({}))).await;
    assert_eq!(connection.client.receive_json().await["id"], 7);
    connection
        .client
        .send(&request(8, "session/new", json!({"cwd": "/"})))
        .await;
    let (mut other, _run) = within(connection.attached).await.unwrap().unwrap();
    // It receives the client's `initialize`, and its answer is not sent twice.
    assert_eq!(other.receive_json().await["method"], "initialize");
    other.send(&initialized(7)).await;
    assert_eq!(other.receive_json().await["method"], "session/new");
    other.send(&result(8, json!({"sessionId": "s2"}))).await;
    assert_eq!(connection.client.receive_json().await["id"], 8);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_not_given_to_a_client_with_fewer_capabilities() {
    let server = Server::new(Limits::default());
    let mut connection = server.connect();
    let able = json!({"fs": {"readTextFile": true, "writeTextFile": false}});
    connection.client.send(&initialize(0, able)).await;
    let (mut agent, _run) = within(connection.attached).await.unwrap().unwrap();
    agent.receive_json().await;
    agent.send(&initialized(0)).await;
    connection.client.receive_json().await;
    drop(connection.client);
    let mut less = server.connect();
    less.client.send(&initialize(0, json!({}))).await;
    let (mut other, _run) = within(less.attached).await.unwrap().unwrap();
    assert_eq!(other.receive_json().await["method"], "initialize");
}

#[tokio::test(start_paused = true)]
async fn a_detached_conversation_ends_after_its_grace() {
    let server = Server::new(Limits::default());
    let (client, mut agent, run) = server.begin().await;
    drop(client);
    sleep(Duration::from_secs(599)).await;
    assert!(!run.is_finished());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(agent.receive().await, None);
    agent.end().await;
    assert_eq!(within(run).await.unwrap().cause, Cause::ClientLeft);
    // A later client gets an agent of its own at once.
    let mut late = server.connect();
    late.client.send(&initialize(0, json!({}))).await;
    assert!(within(late.attached).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_extends_the_grace() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, run) = server.begin().await;
    client.exchange(&mut agent, &prompt(2, "long")).await;
    drop(client);
    sleep(Duration::from_secs(3600)).await;
    assert!(!run.is_finished());
    agent
        .send(&result(2, json!({"stopReason": "end_turn"})))
        .await;
    sleep(Duration::from_secs(599)).await;
    assert!(!run.is_finished());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(agent.receive().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_the_client_is_a_turn() {
    let day = Duration::from_secs(86_400);
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    client.exchange(&mut agent, &prompt(2, "may I?")).await;
    drop(client);
    sleep(Duration::from_secs(10)).await;
    agent.send(&permission(0)).await;
    sleep(day - Duration::from_secs(20)).await;
    assert!(agent.try_send(&update("still here")).await);
    sleep(Duration::from_secs(20)).await;
    let answer = agent.receive_json().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(0), &json!(-32050))
    );
    assert_eq!(agent.receive().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_detached_agent_is_paused_and_loses_nothing() {
    let limits = Limits {
        reconnect_bytes: 64 << 10,
        ..Limits::default()
    };
    let server = Server::new(limits);
    let (client, mut agent, _run) = server.begin().await;
    drop(client);
    let mut accepted = 0;
    while agent.try_send(&update(&format!("{accepted:0100}"))).await {
        accepted += 1;
        assert!(accepted < 10_000, "it is never paused");
    }
    let mut client = server.resume("session/resume", 0).await;
    let mut received = Vec::new();
    while received.len() < accepted + 1 {
        received.push(summary(&client.receive_json().await));
    }
    received.retain(|summary| summary != "answer");
    let all: Vec<String> = (0..accepted).map(|n| format!("agent:{n:0100}")).collect();
    assert_eq!(received, all);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_not_kept_is_requested_from_the_agent() {
    let limits = Limits {
        reconnect_bytes: 4 << 10,
        ..Limits::default()
    };
    let server = Server::new(limits);
    let (mut client, mut agent, _run) = server.begin().await;
    for n in 0..100 {
        agent
            .exchange(&mut client, &update(&format!("{n:0100}")))
            .await;
    }
    drop(client);
    sleep(Duration::from_secs(1)).await;
    let mut client = server.resume("session/load", 0).await;
    let asked = agent.receive_json().await;
    assert_eq!(asked["method"], "session/load");
    agent.send(&update("replayed")).await;
    agent.send(&result(asked["id"].clone(), json!({}))).await;
    assert_eq!(
        summaries(&mut client, 2).await,
        ["agent:replayed", "answer"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_answers_that_open_sessions_count_and_those_too_many_are_requested_again() {
    let limits = Limits {
        reconnect_bytes: 64 << 10,
        ..Limits::default()
    };
    let server = Server::new(limits);
    let (mut client, mut agent, _run) = server.begin().await;
    for id in 2..6 {
        let new = request(id, "session/new", json!({"cwd": "/"}));
        client.exchange(&mut agent, &new).await;
        let opened = json!({"models": "m".repeat(20 << 10), "sessionId": format!("s{id}")});
        agent.exchange(&mut client, &result(id, opened)).await;
    }
    drop(client);
    sleep(Duration::from_secs(1)).await;
    let mut client = server.resume("session/load", 0).await;
    assert_eq!(summaries(&mut client, 1).await, ["answer"]);
    for (session, is_kept) in [(2, true), (3, false), (4, false), (5, false)] {
        let load = json!({"sessionId": format!("s{session}"), "cwd": "/"});
        client.send(&request(session, "session/load", load)).await;
        if !is_kept {
            let asked = agent.receive_json().await;
            assert_eq!(asked["method"], "session/load", "{session}");
            agent.send(&result(asked["id"].clone(), json!({}))).await;
        }
        assert_eq!(client.receive_json().await["id"], session);
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_connection_replaces_the_older_one() {
    let server = Server::new(Limits::default());
    let (mut old, mut agent, _run) = server.begin().await;
    let mut new = server.resume("session/load", 0).await;
    assert_eq!(summaries(&mut new, 1).await, ["answer"]);
    assert_eq!(old.receive().await, None);
    agent.send(&update("for the new one")).await;
    assert_eq!(summaries(&mut new, 1).await, ["agent:for the new one"]);
}

#[tokio::test(start_paused = true)]
async fn a_history_is_not_replayed_by_the_relay_after_the_agent_refused_it() {
    let server = Server::new(Limits::default());
    let (mut client, mut agent, _run) = server.begin().await;
    agent.exchange(&mut client, &update("one")).await;
    let refused = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "no"}});
    client
        .exchange(
            &mut agent,
            &request(2, "session/load", json!({"sessionId": "s1"})),
        )
        .await;
    agent.exchange(&mut client, &refused.to_string()).await;
    drop(client);

    let mut client = server.resume("session/load", 0).await;
    let asked = agent.receive_json().await;
    assert_eq!(asked["method"], "session/load");
    let loaded = result(asked["id"].clone(), json!({}));
    agent.send(&update("one")).await;
    agent.send(&loaded).await;
    assert_eq!(summaries(&mut client, 2).await, ["agent:one", "answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_cannot_be_resumed() {
    let server = Server::new(Limits::default());
    let (client, mut agent, _run) = server.begin().await;
    drop(client);
    let mut client = server.resume("session/load", 0).await;
    client.receive_json().await;
    agent.exchange(&mut client, &permission(7)).await;
    let asked = client
        .exchange(
            &mut agent,
            &request(2, "session/close", json!({"sessionId": "s1"})),
        )
        .await;
    assert_eq!(asked["method"], "session/close");
    agent.send(&result(asked["id"].clone(), json!({}))).await;
    assert_eq!(client.receive_json().await["id"], 2);
    drop(client);

    let mut connection = server.connect();
    connection.client.send(&initialize(0, json!({}))).await;
    connection.client.receive_json().await;
    let load = request(1, "session/load", json!({"sessionId": "s1"}));
    connection.client.send(&load).await;
    assert!(within(connection.attached).await.unwrap().is_some());
}

/// The code of an error, and whether the message was delivered.
fn refusal(message: &Value) -> (i64, &str) {
    let error = &message["error"];
    let delivered = error["data"]["relay"]["delivered"].as_str();
    (error["code"].as_i64().unwrap(), delivered.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_takes_what_the_first_one_did_not() {
    let server = Server::new(Limits::default());
    let long = "x".repeat(2000);
    let (mut client, mut agent, _run) = server.begin_taking(1000).await;
    agent.send(&update(&long)).await;
    agent.exchange(&mut client, &update("short")).await;
    drop(client);
    // For a client that is away, no limit is known.
    sleep(Duration::from_secs(1)).await;
    agent.send(&update(&long)).await;
    let mut client = server.resume("session/resume", 0).await;
    let missed = format!("agent:{long}");
    assert_eq!(summaries(&mut client, 2).await, [&*missed, "answer"]);
    agent.send(&update(&long)).await;
    assert_eq!(summaries(&mut client, 1).await, [missed]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_is_sent_nothing_that_is_too_long_for_it() {
    let server = Server::new(Limits::default());
    let long = "x".repeat(2000);
    let asks = |id: u32| {
        let params = json!({"sessionId": "s1", "path": long});
        request(id, "fs/read_text_file", params)
    };
    let (mut client, mut agent, _run) = server.begin().await;
    agent.exchange(&mut client, &update(&long)).await;
    agent.exchange(&mut client, &update("one")).await;
    agent.exchange(&mut client, &asks(5)).await;
    drop(client);
    sleep(Duration::from_secs(1)).await;
    agent.send(&update(&long)).await;
    agent.send(&asks(6)).await;
    agent.send(&permission(7)).await;
    let notice = json!({"jsonrpc": "2.0", "method": "_x/y", "params": long});
    agent.send(&notice.to_string()).await;

    // What is kept: requests get their error, and the rest of the history comes.
    let mut client = server.resume_taking(1000, "session/load", 0).await;
    assert_eq!(summaries(&mut client, 1).await, ["agent:one"]);
    assert_eq!(client.receive_json().await["id"], 1);
    assert_eq!(client.receive_json().await["id"], 7);
    for id in [5, 6] {
        let refused = agent.receive_json().await;
        assert_eq!(
            (&refused["id"], refusal(&refused)),
            (&json!(id), (-32056, "unknown"))
        );
    }

    // What comes now.
    agent.send(&update(&long)).await;
    agent.send(&asks(8)).await;
    let refused = agent.receive_json().await;
    assert_eq!(
        (&refused["id"], refusal(&refused)),
        (&json!(8), (-32056, "no"))
    );
    let asked = client.exchange(&mut agent, &prompt(2, "hello")).await;
    let answer = result(asked["id"].clone(), json!({"stopReason": long}));
    let answer = agent.exchange(&mut client, &answer).await;
    assert_eq!(
        (&answer["id"], refusal(&answer)),
        (&json!(2), (-32056, "yes"))
    );
    agent.send(&update("two")).await;
    assert_eq!(summaries(&mut client, 1).await, ["agent:two"]);
}
