//! A relay that has ended for good, and one that may come back.

use rustix::process::Signal;
use serde_json::json;

use crate::support::agent::scripted;
use crate::support::link::run;
use crate::support::program::{Program, answered, ask};

#[test]
fn a_relay_that_is_killed_in_a_turn_is_told_to_the_editor() {
    run(async {
        let agent = scripted(&[("session/prompt", json!([{"keep": true}]))]);
        let serve = ["serve", "--listen", "ws://127.0.0.1:0", "--"].map(str::to_owned);
        let serve: Vec<_> = serve.into_iter().chain(agent).collect();
        let mut server = Program::start(&serve);
        let address = server.address().await;
        let mut client = Program::start(&["connect", "--limit", "refused-grace=300ms", &address]);
        answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
        let params = json!({"cwd": "/", "mcpServers": []});
        answered(&mut client, 1, "session/new", params).await;
        let params = json!({"sessionId": "s", "prompt": []});
        ask(&mut client, 2, "session/prompt", params).await;
        server.signal(Signal::KILL);
        server.exit().await;
        let answer = client.json().await;
        assert_eq!(answer["id"], 2);
        let error = &answer["error"];
        assert_eq!(error["code"], -32050, "{answer}");
        assert_eq!(error["data"]["relay"]["delivered"], "unknown");
        let message = error["message"].as_str().unwrap();
        // Clients of a relay in between get this text, too.
        assert!(
            message.contains("refused-grace") && !message.contains(&address),
            "{message}"
        );
        assert_eq!(client.line().await, None, "the conversation has ended");
        client.exit().await;
    });
}
