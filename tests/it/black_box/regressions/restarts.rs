//! An agent that has died is started again with its session.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::NEW_SESSION;
use crate::support::agent::scripted;
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask};

/// An agent that can load its session, says so, and dies when it is asked to.
fn mortal() -> Vec<String> {
    let loaded = json!({"jsonrpc": "2.0", "method": "_loaded", "params": "$message"});
    let version = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    scripted(&[
        ("initialize", json!([{ "result": version }])),
        ("session/load", json!([{"send": loaded}, {"result": null}])),
        (
            "_hang",
            json!([{"send": {"jsonrpc": "2.0", "method": "_hangs"}}]),
        ),
        ("_die", json!([{"exit": 3}])),
        ("_pid", json!([{"result": "$pid"}])),
    ])
}

/// `serve` with such an agent.
async fn serve(address: &str) -> (Program, String) {
    let agent = mortal();
    let mut args = vec!["serve", "--listen", address, "--"];
    args.extend(agent.iter().map(String::as_str));
    let mut serve = Program::start(&args);
    let address = serve.address().await;
    (serve, address)
}

async fn begin(args: &[&str]) -> Program {
    let mut client = Program::start(args);
    client
        .write(&format!("{INITIALIZE}\n{NEW_SESSION}\n"))
        .await;
    for _ in 0..2 {
        client.json().await;
    }
    client
}

/// Asks for something of the session; the agent has loaded it before it answers.
async fn is_back(client: &mut Program, id: u32) -> Value {
    ask(client, id, "_pid", json!({"sessionId": "s"})).await;
    let loaded = client.json().await;
    assert_eq!(loaded["method"], "_loaded", "{loaded}");
    let load = &loaded["params"];
    let session: Value = serde_json::from_str(NEW_SESSION).unwrap();
    assert_eq!(load["method"], "session/load");
    assert_eq!(load["params"]["sessionId"], "s");
    for same in ["cwd", "mcpServers"] {
        assert_eq!(load["params"][same], session["params"][same], "{load}");
    }
    let answer = client.json().await;
    assert_eq!(answer["id"], id, "{answer}");
    answer["result"].clone()
}

#[test]
fn an_agent_that_dies_comes_back_with_the_next_request_over_each_way() {
    block_on(async {
        let agent = mortal();
        let (_serve, ws) = serve("ws://127.0.0.1:0").await;
        let (_other, http) = serve("http://127.0.0.1:0").await;
        let mut here = vec!["connect", "--"];
        here.extend(agent.iter().map(String::as_str));
        let ways = [
            here,
            vec!["connect", &ws],
            vec!["connect", "--no-link", &ws],
            vec!["connect", "--no-link", &http],
        ];
        for way in ways {
            let mut client = begin(&way).await;
            let first = answered(&mut client, 10, "_pid", json!({"sessionId": "s"})).await;
            ask(&mut client, 11, "_die", json!({"sessionId": "s"})).await;
            let error = client.json().await;
            assert_eq!(error["id"], 11, "{way:?}");
            assert_eq!(error["error"]["code"], -32051, "{way:?}: {error}");
            let second = is_back(&mut client, 12).await;
            assert!(second.is_u64() && second != first, "{way:?}");
            // It does not load it again.
            let third = answered(&mut client, 13, "_pid", json!({"sessionId": "s"})).await;
            assert_eq!(third, second, "{way:?}");
            client.end();
            assert!(client.exit().await.success(), "{way:?}");
        }
    });
}

#[test]
fn a_server_that_was_started_anew_gets_the_session_again() {
    block_on(async {
        for options in [&["--no-link"][..], &["--limit", "refused-grace=100ms"]] {
            let (mut before, address) = serve("ws://127.0.0.1:0").await;
            let mut args = vec!["connect"];
            args.extend(options);
            args.push(&address);
            let mut client = begin(&args).await;
            ask(&mut client, 10, "_hang", json!({"sessionId": "s"})).await;
            assert_eq!(client.json().await["method"], "_hangs");
            before.signal(Signal::KILL);
            before.exit().await;
            let error = client.json().await;
            assert_eq!(error["id"], 10, "{args:?}");
            assert_eq!(error["error"]["code"], -32050, "{args:?}: {error}");
            let (_after, _) = serve(&address).await;
            is_back(&mut client, 11).await;
        }
    });
}

#[test]
fn an_agent_that_is_not_to_come_back_ends_the_conversation() {
    block_on(async {
        let agent = mortal();
        let mut args = vec!["connect", "--agent-restart", "never", "--"];
        args.extend(agent.iter().map(String::as_str));
        let mut client = begin(&args).await;
        ask(&mut client, 10, "_die", json!({"sessionId": "s"})).await;
        let error = client.json().await;
        assert_eq!(error["error"]["code"], -32051, "{error}");
        assert!(!client.exit().await.success());
    });
}
