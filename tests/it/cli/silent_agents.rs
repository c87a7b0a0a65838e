//! An agent that writes nothing may wait for a header, and `connect` and `serve` say so.

use serde_json::json;

use crate::support::agent::with_headers;
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask};

/// A program with these arguments before the agent's command.
fn start(args: &[&str]) -> Program {
    let agent = with_headers("");
    let agent = agent.iter().map(String::as_str);
    let args: Vec<&str> = args.iter().copied().chain(["--"]).chain(agent).collect();
    Program::start(&args)
}

#[test]
fn an_agent_that_waits_for_a_header_is_told_on_stderr() {
    block_on(async {
        let mut silent = start(&["connect"]);
        ask(
            &mut silent,
            0,
            "initialize",
            json!({ "protocolVersion": 1 }),
        )
        .await;
        let line = silent.complaint().await.unwrap();
        for text in ["written nothing for 5 s", "--agent-framing content-length"] {
            assert!(line.contains(text), "{text}: {line}");
        }
    });
}

#[test]
fn an_agent_of_serve_that_waits_for_a_header_is_told_on_stderr() {
    block_on(async {
        let mut serve = start(&["serve", "--listen", "tcp://127.0.0.1:0"]);
        let address = serve.address().await;
        let mut client = Program::start(&["connect", &address]);
        ask(
            &mut client,
            0,
            "initialize",
            json!({ "protocolVersion": 1 }),
        )
        .await;
        let line = serve.complaint().await.unwrap();
        assert!(line.contains("--agent-framing content-length"), "{line}");
    });
}

#[test]
fn a_chosen_framing_is_not_told() {
    block_on(async {
        let mut client = start(&["connect", "--agent-framing", "content-length"]);
        let about = answered(
            &mut client,
            0,
            "initialize",
            json!({ "protocolVersion": 1 }),
        )
        .await;
        assert_eq!(about["agentInfo"]["name"], "headers");
        client.end();
        assert_eq!(client.complaint().await, None);
    });
}
