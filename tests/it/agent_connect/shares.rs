//! What each principal may store and keep busy, and what that leaves for others.

use acp_relay::agent_connect::AgentConnectConfig;
use acp_relay::jsonrpc::Limits;
use acp_relay::transport::Setup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::flows::calls_at;
use super::principals::{gate, token};
use super::stage::{Agent, Client, Stage, human};
use crate::support::link::{run, setup_with};

/// A principal, as a client.
struct Tenant {
    client: Client,
    token: String,
}

/// A listener with these limits, its agent, and two principals: alice and bob.
async fn open(limits: Limits) -> (Stage, Agent, Tenant, Tenant) {
    open_with(limits, AgentConnectConfig::default()).await
}

async fn open_with(limits: Limits, config: AgentConnectConfig) -> (Stage, Agent, Tenant, Tenant) {
    let mut setup = Setup {
        gate: gate(),
        ..setup_with(limits)
    };
    config.apply(&mut setup);
    let mut stage = Stage::with(setup).await;
    let capabilities = json!({ "loadSession": true, "sessionCapabilities": { "close": {} } });
    let agent = stage.introduced(capabilities).await;
    let [alice, bob] = [1, 2].map(|number| Tenant {
        client: stage.client(),
        token: token(number).reveal().to_owned(),
    });
    (stage, agent, alice, bob)
}

impl Tenant {
    async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = (method != "GET").then_some(body);
        Box::pin(self.client.call_as(&self.token, method, path, body)).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, &body).await
    }

    async fn status_of(&self, path: &str) -> u16 {
        self.call("GET", path, &Value::Null).await.0
    }

    /// Performs a run of its own, in which the agent sends `text`, and returns its id.
    async fn run(&self, agent: &mut Agent, path: &str, text: &str) -> String {
        let (status, run) = self.post(path, json!({ "input": human("go") })).await;
        assert_eq!(status, 200, "{run}");
        answer(agent, text).await;
        let id = run["run_id"].as_str().unwrap().to_owned();
        let path = format!("/runs/{id}/wait");
        let done = self.call("GET", &path, &Value::Null);
        assert_eq!(done.await.0, 200);
        id
    }

    /// Creates threads until that is refused, at most `max`; returns how many there are.
    async fn fill(&self, agent: &mut Agent, max: usize, metadata: &Value) -> usize {
        for number in 0..max {
            let made = self.post("/threads", json!({ "metadata": metadata }));
            let (status, made) = served(agent, made).await;
            if status != 200 {
                assert_eq!(status, 503, "{made}");
                return number;
            }
        }
        max
    }
}

/// Answers requests of a client until it is a prompt, and ends that turn with a text.
async fn answer(agent: &mut Agent, text: &str) {
    loop {
        let message = agent.listen().await.unwrap();
        if message["method"] == "session/prompt" {
            let session = message["params"]["sessionId"].as_str().unwrap();
            agent.chunk(session, text).await;
            return agent.finish(&message).await;
        }
        open_session(agent, &message).await;
    }
}

/// Waits for an answer while the agent opens and closes sessions.
async fn served<T>(agent: &mut Agent, answer: impl Future<Output = T>) -> T {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            message = agent.listen() => open_session(agent, &message.unwrap()).await,
        }
    }
}

/// Opens the session that a message asks for; its id is that of the request.
async fn open_session(agent: &mut Agent, message: &Value) {
    let session = json!({ "sessionId": format!("s{}", message["id"]) });
    agent.answer(&message["id"], session).await;
}

#[test]
fn runs_of_one_principal_delete_no_run_of_another() {
    run(async {
        let limits = Limits {
            agent_connect_kept_runs: 5,
            ..Limits::default()
        };
        let (_stage, mut agent, alice, bob) = open(limits).await;
        let first = alice.run(&mut agent, "/runs", "hers").await;
        let mut all = Vec::new();
        for _ in 0..6 {
            all.push(bob.run(&mut agent, "/runs", "his").await);
        }
        assert_eq!(alice.status_of(&format!("/runs/{first}")).await, 200);
        let mut kept = Vec::new();
        for run in &all {
            kept.push(bob.status_of(&format!("/runs/{run}")).await);
        }
        assert_eq!(kept, [404, 404, 404, 404, 200, 200]);
    });
}

#[test]
fn threads_of_one_principal_leave_room_for_another() {
    run(async {
        let limits = Limits {
            agent_connect_threads: 5,
            ..Limits::default()
        };
        let (_stage, mut agent, alice, bob) = open(limits).await;
        assert_eq!(bob.fill(&mut agent, 9, &json!({})).await, 3);
        assert_eq!(alice.fill(&mut agent, 9, &json!({})).await, 1);
    });
}

#[test]
fn unfinished_runs_of_one_principal_leave_room_for_another() {
    run(async {
        let limits = Limits {
            agent_connect_runs: 5,
            ..Limits::default()
        };
        let (_stage, _agent, alice, bob) = open(limits).await;
        let start = || json!({ "input": human("go") });
        for expected in [200, 200, 200, 503] {
            assert_eq!(bob.post("/runs", start()).await.0, expected);
        }
        for expected in [200, 503] {
            assert_eq!(alice.post("/runs", start()).await.0, expected);
        }
    });
}

#[test]
fn what_is_stored_is_limited_in_bytes() {
    let limits = || Limits {
        agent_connect_bytes: 1 << 20,
        ..Limits::default()
    };
    let file = TempDir::new().unwrap();
    let config = || AgentConnectConfig {
        store: Some(file.path().join("store.db")),
        ..AgentConnectConfig::default()
    };
    let large = json!({ "note": "x".repeat(60 << 10) });
    run(async {
        let (_stage, mut agent, alice, bob) = open_with(limits(), config()).await;
        // Half of 1 MiB.
        assert_eq!(bob.fill(&mut agent, 50, &large).await, 8);
        let found = bob.post("/threads/search", json!({ "limit": 50 })).await;
        assert_eq!(found.1.as_array().map(Vec::len), Some(8));
        let thread = &found.1[0]["thread_id"];
        let body = json!({ "input": human(&"x".repeat(100 << 10)) });
        assert_eq!(bob.post("/runs", body).await.0, 503);
        let patch = json!({ "metadata": { "more": "x".repeat(3 << 10) } });
        let path = format!("/threads/{}", thread.as_str().unwrap());
        let patched = bob.call("PATCH", &path, &patch).await;
        assert_eq!(patched.0, 200, "{}", patched.1);
        let patched = bob.call("PATCH", &path, &large_and(&patch)).await;
        assert_eq!(patched.0, 422, "{}", patched.1);
        let deleted = bob.call("DELETE", &path, &Value::Null);
        assert_eq!(served(&mut agent, deleted).await.0, 204);
        assert_eq!(bob.fill(&mut agent, 50, &large).await, 1);
        // Half of the rest.
        assert_eq!(alice.fill(&mut agent, 50, &large).await, 4);
    });
    // What an earlier process has stored counts.
    run(async {
        let (_stage, mut agent, _alice, bob) = open_with(limits(), config()).await;
        assert_eq!(bob.fill(&mut agent, 50, &large).await, 0);
    });
}

/// A patch with one more member.
fn large_and(patch: &Value) -> Value {
    let mut patch = patch.clone();
    patch["metadata"]["again"] = json!("x".repeat(3 << 10));
    patch
}

#[test]
fn an_ended_run_makes_room_for_the_next() {
    run(async {
        let limits = Limits {
            agent_connect_bytes: 1 << 20,
            ..Limits::default()
        };
        let (_stage, mut agent, alice, bob) = open(limits).await;
        let text = "x".repeat(100 << 10);
        let first = alice.run(&mut agent, "/runs", &text).await;
        let mut last = String::new();
        for _ in 0..12 {
            last = bob.run(&mut agent, "/runs", &text).await;
        }
        assert_eq!(alice.status_of(&format!("/runs/{first}")).await, 200);
        let (_, done) = bob
            .call("GET", &format!("/runs/{last}/wait"), &Value::Null)
            .await;
        assert_eq!(done["run"]["status"], "success");
        let (_, kept) = bob.post("/runs/search", json!({ "limit": 100 })).await;
        let kept = kept.as_array().unwrap().len();
        assert!((1..=5).contains(&kept), "{kept} runs are kept");
        // An output for which there is no room at all ends its run with an error.
        let last = bob.run(&mut agent, "/runs", &"x".repeat(700 << 10)).await;
        let (_, done) = bob
            .call("GET", &format!("/runs/{last}/wait"), &Value::Null)
            .await;
        assert_eq!(done["run"]["status"], "error", "{}", done["run"]);
        assert!(done["output"].to_string().contains("agent-connect-bytes"));
    });
}

#[test]
fn metadata_is_limited() {
    run(async {
        let (_stage, _agent, alice, _bob) = open(Limits::default()).await;
        let metadata = json!({ "note": "x".repeat(64 << 10) });
        for (path, body) in [
            ("/threads", json!({ "metadata": metadata })),
            (
                "/runs",
                json!({ "metadata": metadata, "input": human("go") }),
            ),
        ] {
            let (status, why) = alice.post(path, body).await;
            assert_eq!(status, 422, "{path}: {why}");
            assert_eq!(why, "\"metadata\" is longer than 65536 bytes", "{path}");
        }
    });
}

#[test]
fn an_endless_output_ends_its_run() {
    run(async {
        let (_stage, mut agent, alice, _bob) = open(Limits::default()).await;
        let (_, started) = alice.post("/runs", json!({ "input": human("go") })).await;
        let prompt = agent.open_turn("s").await;
        let text = "x".repeat(1 << 20);
        let sent = async {
            for _ in 0..20 {
                agent.chunk("s", &text).await;
            }
            assert_eq!(
                agent.receive("session/cancel").await["params"]["sessionId"],
                "s"
            );
            agent.finish(&prompt).await;
        };
        let path = format!("/runs/{}/wait", started["run_id"].as_str().unwrap());
        let ((_, done), ()) = tokio::join!(alice.call("GET", &path, &Value::Null), sent);
        assert_eq!(done["run"]["status"], "error");
        let why = done["output"]["description"].as_str().unwrap();
        assert_eq!(why, "the agent's output is longer than 16777216 bytes");
    });
}

#[test]
fn an_answer_with_many_results_ends_early() {
    run(async {
        let (_stage, mut agent, alice, bob) = open(Limits::default()).await;
        assert_eq!(bob.fill(&mut agent, 1, &json!({ "kind": "b" })).await, 1);
        assert_eq!(alice.fill(&mut agent, 3, &json!({ "kind": "a" })).await, 3);
        let search = async |body: Value| {
            let (status, found) = alice.post("/threads/search", body).await;
            assert_eq!(status, 200, "{found}");
            let found = found.as_array().unwrap().clone();
            let ids = found
                .iter()
                .map(|one| one["thread_id"].as_str().unwrap().to_owned());
            ids.collect::<Vec<_>>()
        };
        let all = search(json!({})).await;
        assert_eq!(all.len(), 3);
        let text = "x".repeat(7 << 20);
        for thread in &all {
            let path = format!("/threads/{thread}/runs");
            alice.run(&mut agent, &path, &text).await;
        }
        assert_eq!(
            search(json!({ "metadata": { "kind": "a" } })).await,
            all[..2]
        );
        assert_eq!(
            search(json!({ "offset": 2, "values": { "stopReason": "end_turn" } })).await,
            all[2..]
        );
        assert_eq!(search(json!({ "status": "busy" })).await.len(), 0);
        assert_eq!(
            search(json!({ "metadata": { "kind": "b" } })).await.len(),
            0
        );
        // The states of a thread hold all messages before them.
        let path = format!("/threads/{}", all[0]);
        alice.run(&mut agent, &format!("{path}/runs"), &text).await;
        let (_, states) = alice
            .call("GET", &format!("{path}/history"), &Value::Null)
            .await;
        assert_eq!(states.as_array().map(Vec::len), Some(1));
        let (_, states) = alice
            .call("GET", &format!("{path}/history?offset=1"), &Value::Null)
            .await;
        assert_eq!(states.as_array().map(Vec::len), Some(1));
    });
}

#[test]
fn sessions_of_one_principal_release_none_of_another() {
    run(async {
        let limits = Limits {
            agent_connect_sessions: 3,
            ..Limits::default()
        };
        let (_stage, mut agent, alice, bob) = open(limits).await;
        assert_eq!(alice.fill(&mut agent, 1, &json!({})).await, 1);
        assert_eq!(bob.fill(&mut agent, 6, &json!({})).await, 6);
        let (_, found) = alice.post("/threads/search", json!({})).await;
        let (thread, session) = (
            &found[0]["thread_id"],
            &found[0]["metadata"]["acp_session_id"],
        );
        let path = format!("/threads/{}/runs", thread.as_str().unwrap());
        let (status, _) = alice.post(&path, json!({ "input": human("go") })).await;
        assert_eq!(status, 200);
        // Closed sessions of bob apart, the prompt comes at once: hers is still open.
        let prompt = loop {
            let message = agent.listen().await.unwrap();
            if message["method"] != "session/close" {
                break message;
            }
            agent.answer(&message["id"], json!({})).await;
        };
        assert_eq!(prompt["method"], "session/prompt");
        assert_eq!(prompt["params"]["sessionId"], *session);
    });
}

#[test]
fn webhooks_of_one_principal_do_not_delay_those_of_another() {
    run(async {
        let config = AgentConnectConfig {
            callbacks: vec!["127.0.0.1".to_owned()],
            ..AgentConnectConfig::default()
        };
        let (_stage, mut agent, alice, bob) = open_with(Limits::default(), config).await;
        // Nothing answers here.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let quick = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        quick.set_nonblocking(true).unwrap();
        let at = |address: std::io::Result<std::net::SocketAddr>| {
            let webhook = format!("http://{}/", address.unwrap());
            json!({ "input": human("go"), "webhook": webhook })
        };
        let (hanging, hers) = (at(silent.local_addr()), at(quick.local_addr()));
        for _ in 0..200 {
            assert_eq!(bob.post("/runs", hanging.clone()).await.0, 200);
            answer(&mut agent, "done").await;
        }
        let mut calls = calls_at(quick);
        let (_, started) = alice.post("/runs", hers).await;
        answer(&mut agent, "done").await;
        // Answered with 503, and repeated.
        for _ in 0..2 {
            let call = calls.recv().await.unwrap();
            assert_eq!(call["run_id"], started["run_id"]);
        }
    });
}
