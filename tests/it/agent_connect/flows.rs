//! Cases without exchanges: busy threads, resumed streams, callbacks, agents that exit, and relays
//! that restart.

use std::sync::Arc;
use std::time::Duration;

use acp_relay::agent_connect::AgentConnectConfig;
use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{Endpoint, Setup, registry};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::cases;
use super::stage::{Agent, Client, Stage, configured, human, id, thread};
use crate::support::link::{run, setup};

/// A listener, and its agent with all optional capabilities.
async fn open() -> (Stage, Client, Agent) {
    open_with(setup()).await
}

async fn open_with(setup: Setup) -> (Stage, Client, Agent) {
    let mut stage = Stage::with(setup).await;
    let capabilities = json!({
        "loadSession": true,
        "sessionCapabilities": { "close": {}, "fork": {}, "delete": {} },
    });
    let agent = stage.introduced(capabilities).await;
    let client = stage.client();
    (stage, client, agent)
}

fn kept(store: &TempDir) -> Setup {
    configured(AgentConnectConfig {
        store: Some(store.path().join("store.db")),
        callbacks: vec!["127.0.0.1".to_owned()],
        ..AgentConnectConfig::default()
    })
}

fn calling(callbacks: &[&str]) -> Setup {
    configured(AgentConnectConfig {
        callbacks: callbacks.iter().map(|&host| host.to_owned()).collect(),
        ..AgentConnectConfig::default()
    })
}

#[test]
fn a_stream_is_resumed_after_the_last_event() {
    run(async {
        let (_stage, client, mut agent) = open().await;
        let request =
            json!({ "input": human("go"), "stream_mode": "custom", "on_disconnect": "continue" });
        let mut events = client.events("POST", "/runs/stream", Some(&request)).await;
        let prompt = agent.open_turn("s").await;
        agent.chunk("s", "one ").await;
        let (last, _, data) = events.named().await.unwrap();
        assert_eq!(data["update"]["content"]["text"], "one ");
        drop(events);
        agent.chunk("s", "two\u{2028} ").await;
        let run = id(&data, "run_id");
        let path = format!("/runs/{run}/stream");
        let mut again = client.resumed(&path, &last).await;
        let (_, _, data) = again.named().await.unwrap();
        assert_eq!(data["update"]["content"]["text"], "two\u{2028} ");
        agent.finish(&prompt).await;
        let (_, _, data) = again.named().await.unwrap();
        assert_eq!(
            (&data["type"], &data["status"]),
            (&json!("values"), &json!("success"))
        );
        assert_eq!(data["messages"][0]["content"], "one two\u{2028} ");
        assert!(again.named().await.is_none());
        // A finished run is known without waiting, and its last event can be read again.
        let output = client
            .get(&format!("/runs/{run}/output?block_timeout=0"))
            .await;
        assert_eq!(output["status"], "success");
        let mut after = client.events("GET", &path, None).await;
        assert_eq!(after.named().await.unwrap().2["status"], "success");
    });
}

#[test]
fn a_thread_continues_after_a_restart_of_the_relay() {
    let store = TempDir::new().unwrap();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let webhook = format!("http://{}/", socket.local_addr().unwrap());
    let (thread, open, asking) = run(async {
        let (_stage, client, mut agent) = open_with(kept(&store)).await;
        let thread = thread(client, &mut agent, "s").await;
        let path = format!("/threads/{thread}/runs/wait");
        let ran = client.start(&path, json!({ "input": human("one") }));
        let prompt = agent.receive("session/prompt").await;
        agent.chunk("s", "first").await;
        agent.finish(&prompt).await;
        ran.await.unwrap();
        // Two that will not be finished; one of them waits for an answer.
        let open = client.post("/runs", json!({ "input": human("two") })).await;
        agent.open_turn("other").await;
        let mut calls = calls_at(socket.try_clone().unwrap());
        let request = json!({ "input": human("two"), "webhook": webhook });
        let asking = client.post("/runs", request).await;
        agent.open_turn("third").await;
        agent.ask(5, "third").await;
        // The first call is answered with 503, so there is a second.
        for _ in 0..2 {
            assert_eq!(calls.recv().await.unwrap()["status"], "interrupted");
        }
        (thread, id(&open, "run_id"), id(&asking, "run_id"))
    });
    run(async {
        let mut calls = calls_at(socket);
        let (_stage, client, mut agent) = open_with(kept(&store)).await;
        let called = calls.recv().await.unwrap();
        assert_eq!(
            (id(&called, "run_id"), &called["status"]),
            (asking.clone(), &json!("error"))
        );
        for lost in [open, asking] {
            let lost = client.get(&format!("/runs/{lost}/wait")).await;
            assert_eq!(lost["run"]["status"], "error");
            assert_eq!(lost["output"]["errcode"], -32603);
        }
        let finished = client.get(&format!("/threads/{thread}/runs")).await;
        assert_eq!(finished[0]["status"], "success");
        let path = format!("/threads/{thread}/runs/wait");
        let ran = client.start(&path, json!({ "input": human("three") }));
        let loaded = agent.receive("session/load").await;
        assert_eq!(loaded["params"]["sessionId"], "s");
        agent.answer(&loaded["id"], json!({})).await;
        let prompt = agent.receive("session/prompt").await;
        agent.finish(&prompt).await;
        assert_eq!(ran.await.unwrap()["run"]["status"], "success");
        let state = client.get(&format!("/threads/{thread}/state")).await;
        let texts: Vec<&Value> = state["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| &m["content"])
            .collect();
        assert_eq!(texts, ["one", "first", "three"]);
    });
}

#[test]
fn two_relays_do_not_share_a_store() {
    let store = TempDir::new().unwrap();
    run(async {
        let _first = open_with(kept(&store)).await;
        let at: Endpoint = "agent-connect+http://127.0.0.1:0".parse().unwrap();
        let fault = registry::listen(&at, &kept(&store)).await.err().unwrap();
        assert!(fault.what.contains("another relay uses it"), "{fault}");
    });
}

#[test]
fn only_databases_of_this_version_are_used() {
    let store = TempDir::new().unwrap();
    let at: Endpoint = "agent-connect+http://127.0.0.1:0".parse().unwrap();
    let listen = || run(async { registry::listen(&at, &kept(&store)).await.err() });
    assert!(listen().is_none());
    for (change, refused) in [
        ("PRAGMA user_version = 3", None),
        ("PRAGMA user_version = 2", Some("older")),
        ("PRAGMA user_version = 99", Some("newer")),
        ("PRAGMA application_id = 7", Some("another program")),
    ] {
        let database = Connection::open(store.path().join("store.db")).unwrap();
        database.execute_batch(change).unwrap();
        drop(database);
        let fault = listen().map(|fault| fault.to_string());
        let is_as_expected = match refused {
            Some(words) => fault.as_ref().is_some_and(|what| what.contains(words)),
            None => fault.is_none(),
        };
        assert!(is_as_expected, "{change}: {fault:?}");
    }
}

#[test]
fn the_runs_of_an_exited_agent_fail_and_it_is_started_again() {
    run(async {
        let (mut stage, client, mut agent) = open().await;
        let run = client.post("/runs", json!({ "input": human("go") })).await;
        agent.open_turn("s").await;
        drop(agent);
        let ended = client
            .get(&format!("/runs/{}/wait", id(&run, "run_id")))
            .await;
        assert_eq!(ended["output"]["type"], "error");
        assert_eq!(ended["output"]["errcode"], -32603);
        let searched = client.start("/agents/search", json!({}));
        let _agent = stage.introduced(json!({})).await;
        assert_eq!(
            searched.await.unwrap()[0]["metadata"]["ref"]["name"],
            "claude-agent"
        );
    });
}

#[test]
fn a_run_that_takes_too_long_times_out() {
    run(async {
        let limits = Limits {
            agent_connect_run: Duration::from_millis(200),
            ..Limits::default()
        };
        let (_stage, client, mut agent) = open_with(Setup {
            limits: Arc::new(limits),
            ..setup()
        })
        .await;
        let run = client.post("/runs", json!({ "input": human("go") })).await;
        agent.open_turn("s").await;
        agent.receive("session/cancel").await;
        let ended = client
            .get(&format!("/runs/{}/wait", id(&run, "run_id")))
            .await;
        assert_eq!(ended["run"]["status"], "timeout");
    });
}

/// A case has the address of a webhook, and the refusal, if there is one.
#[test]
fn private_addresses_are_called_only_when_allowed() {
    run(async {
        let allowed = calling(&["127.0.0.1:8080", "hooks.internal"]);
        let (_stage, client, _agent) = open_with(allowed).await;
        for case in cases("agent_connect", "webhooks") {
            let request = json!({ "input": human("go"), "webhook": case["webhook"] });
            let (status, answer) = client.call("POST", "/runs", Some(&request)).await;
            match case.get("refused") {
                Some(refused) => assert_eq!((status, &answer), (422, refused), "{case}"),
                None => assert_eq!(status, 200, "{case}: {answer}"),
            }
        }
    });
}

/// The calls at a socket.
pub(super) fn calls_at(socket: std::net::TcpListener) -> mpsc::Receiver<Value> {
    let (tx, calls) = mpsc::channel(8);
    tokio::spawn(answer_calls(TcpListener::from_std(socket).unwrap(), tx));
    calls
}

/// Answers the first call with 503 and the others with 204; their bodies are sent to `notify`.
async fn answer_calls(socket: TcpListener, notify: mpsc::Sender<Value>) {
    let mut answers = ["503 Busy"]
        .into_iter()
        .chain(std::iter::repeat("204 No Content"));
    while let Ok((mut call, _)) = socket.accept().await {
        let mut text = Vec::new();
        let body = loop {
            let mut part = [0; 4096];
            let count = call.read(&mut part).await.unwrap();
            assert!(count > 0, "the call broke off");
            text.extend_from_slice(&part[..count]);
            let end = text.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(body) = end.and_then(|end| serde_json::from_slice(&text[end + 4..]).ok()) {
                break body;
            }
        };
        let answer = answers.next().unwrap();
        let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        call.write_all(answer.as_bytes()).await.unwrap();
        notify.send(body).await.unwrap();
    }
}

#[test]
fn runs_on_many_threads_are_concurrent() {
    run(async {
        let (_stage, client, mut agent) = open().await;
        const COUNT: usize = 200;
        let say = |number: usize| json!({ "input": human(&format!("say {number}")) });
        let runs: Vec<_> = (0..COUNT)
            .map(|number| client.start("/runs/wait", say(number)))
            .collect();
        // None is answered before all have been sent.
        let mut prompts = Vec::new();
        let mut opened = 0;
        while prompts.len() < COUNT {
            let message = agent.listen().await.unwrap();
            if message["method"] == "session/new" {
                opened += 1;
                agent
                    .answer(&message["id"], json!({ "sessionId": format!("s{opened}") }))
                    .await;
            } else {
                assert_eq!(message["method"], "session/prompt");
                prompts.push(message);
            }
        }
        let answer = async {
            for prompt in &prompts {
                let session = prompt["params"]["sessionId"].as_str().unwrap();
                let text = prompt["params"]["prompt"][0]["text"].as_str().unwrap();
                agent.chunk(session, text).await;
                agent.finish(prompt).await;
            }
            // The sessions of runs without a thread are closed.
            for _ in 0..COUNT {
                let closed = agent.receive("session/close").await;
                agent.answer(&closed["id"], json!({})).await;
            }
        };
        let receive = async {
            for (number, run) in runs.into_iter().enumerate() {
                let text = &run.await.unwrap()["output"]["messages"][0]["content"];
                assert_eq!(*text, format!("say {number}"));
            }
        };
        tokio::join!(answer, receive);
    });
}

#[test]
fn every_operation_of_the_document_has_a_route() {
    run(async {
        let (_stage, client, _agent) = open().await;
        let unknown = "b7a9f2d4-6c1e-4a0b-9c55-0000000002ff";
        let document = client.get("/openapi.json").await;
        assert!(document["paths"]["/runs"]["post"].is_object());
        // The body is one that starts nothing.
        for (path, operations) in document["paths"].as_object().unwrap() {
            let named = path.split('/').map(|part| match part.starts_with('{') {
                true => unknown,
                false => part,
            });
            let path = named.collect::<Vec<_>>().join("/");
            for method in operations.as_object().unwrap().keys() {
                let method = method.to_uppercase();
                let (status, body) = client.call(&method, &path, Some(&json!([]))).await;
                let has_route = status != 405 && body != "nothing is served at this path";
                assert!(has_route, "{method} {path}: {status} {body}");
            }
        }
    });
}
