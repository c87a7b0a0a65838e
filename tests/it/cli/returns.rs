//! A client whose connection is cut and that resumes, through the built program.

use acp_relay::jsonrpc::Side;
use acp_relay::recording::{EventKind, recordings};
use rustix::process::Signal;
use serde_json::json;

use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask};

/// The rules of an agent that returns its process id for each session, and asks for a permission in
/// each prompt.
fn agent() -> Vec<String> {
    let question = json!({"jsonrpc": "2.0", "id": "ask", "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}});
    scripted(&[
        (
            "session/new",
            json!([{"result": {"sessionId": "s", "_meta": {"pid": "$pid"}}}]),
        ),
        (
            "session/prompt",
            json!([{"keep": true}, {"send": question}]),
        ),
        ("answer", json!([{"result": {"stopReason": "end_turn"}}])),
    ])
}

#[test]
fn a_lost_client_resumes_with_detach_and_gets_a_new_agent_without() {
    block_on(async {
        for (how, kept) in [("detach", true), ("terminate", false)] {
            let folder = tempfile::tempdir().unwrap();
            let record = folder.path().to_str().unwrap();
            let options = ["serve", "--listen", "ws://127.0.0.1:0", "--record", record];
            let options = [&options[..], &["--on-disconnect", how, "--"]].concat();
            let agent = agent();
            let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
            let mut serve = Program::start(&[options, agent].concat());
            let address = serve.address().await;
            let mut first = Program::start(&["connect", &address]);
            let version = json!({"protocolVersion": 1});
            answered(&mut first, 0, "initialize", version.clone()).await;
            let session = answered(&mut first, 1, "session/new", json!({"cwd": "/"})).await;
            ask(
                &mut first,
                2,
                "session/prompt",
                json!({"sessionId": "s", "prompt": []}),
            )
            .await;
            assert_eq!(first.json().await["id"], "ask");
            first.signal(Signal::KILL);
            first.exit().await;

            let mut second = Program::start(&["connect", &address]);
            answered(&mut second, 0, "initialize", version).await;
            if kept {
                let params = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
                let loaded = answered(&mut second, 1, "session/load", params).await;
                assert_eq!(loaded["_meta"]["pid"], session["_meta"]["pid"]);
                // An unanswered request is sent again.
                assert_eq!(second.json().await["id"], "ask");
                // The recording has the loss of the client.
                serve.signal(Signal::TERM);
                let outcome = json!({"outcome": {"outcome": "cancelled"}});
                let answer = json!({"jsonrpc": "2.0", "id": "ask", "result": outcome});
                second.write(&format!("{answer}\n")).await;
                serve.exit().await;
                let found = recordings(folder.path()).unwrap();
                let events = found[0].events().map(Result::unwrap);
                let links = events.filter_map(|event| match event.kind {
                    EventKind::Link {
                        side: Side::Client,
                        event,
                        ..
                    } => Some(event),
                    _ => None,
                });
                let links: Vec<String> = links.collect();
                let expected = ["open", "lost", "resumed"];
                assert_eq!(links[..3], expected, "{links:?}");
            } else {
                let other = answered(&mut second, 1, "session/new", json!({"cwd": "/"})).await;
                assert_ne!(other["_meta"]["pid"], session["_meta"]["pid"]);
            }
        }
    });
}
