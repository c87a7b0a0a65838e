//! Messages between two relays that are longer than one of them takes.

use serde_json::{Value, json};

use crate::support::agent::scripted;
use crate::support::link::run;
use crate::support::program::{Program, answered, ask};

/// An agent that returns each prompt twice, and sends a long update on `long`.
fn agent() -> Vec<String> {
    let twice = json!({"stopReason": "end_turn", "_meta": ["$message", "$message"]});
    let update = json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "s", "update": "x".repeat(100 << 10)}});
    let long = json!([{"send": update}, {"result": {}}]);
    scripted(&[
        ("session/prompt", json!([{ "result": twice }])),
        ("_long", long),
    ])
}

fn prompt(bytes: usize) -> Value {
    json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x".repeat(bytes)}]})
}

/// Sends a request that fails, and returns the error's code and whether it was delivered.
async fn refused(client: &mut Program, id: u32, method: &str, params: Value) -> (i64, String) {
    ask(client, id, method, params).await;
    let answer = client.json().await;
    assert_eq!(answer["id"], id, "{answer}");
    let error = &answer["error"];
    let delivered = error["data"]["relay"]["delivered"]
        .as_str()
        .unwrap_or_default();
    (
        error["code"].as_i64().unwrap_or_default(),
        delivered.to_owned(),
    )
}

#[test]
fn a_message_that_the_other_relay_does_not_take_is_refused_alone() {
    let limit = ["--limit", "frame-from-network=64KiB"];
    for (scheme, option) in [
        ("ws", ""),
        ("ws", "--no-link"),
        ("http", ""),
        ("http", "--no-link"),
    ] {
        run(async {
            let listen = format!("{scheme}://127.0.0.1:0");
            let serve = [&["serve", "--listen", &listen], &limit[..], &["--"]].concat();
            let words = agent();
            let words = words.iter().map(String::as_str);
            let mut server = Program::start(&serve.into_iter().chain(words).collect::<Vec<_>>());
            let address = server.address().await;
            let words = [&["connect"], &limit[..], &[option, &address]].concat();
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let mut client = Program::start(&words);
            answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
            let params = json!({"cwd": "/", "mcpServers": []});
            answered(&mut client, 1, "session/new", params).await;
            let too_long = refused(&mut client, 2, "session/prompt", prompt(100 << 10)).await;
            assert_eq!(too_long, (-32056, "no".to_owned()), "{scheme} {option}");
            // An answer, and an update.
            let too_long = refused(&mut client, 3, "session/prompt", prompt(40 << 10)).await;
            assert_eq!(too_long, (-32056, "yes".to_owned()), "{scheme} {option}");
            if (scheme, option) != ("http", "--no-link") {
                answered(&mut client, 4, "_long", json!({})).await;
            }
            let short = answered(&mut client, 5, "session/prompt", prompt(10)).await;
            assert_eq!(short["stopReason"], "end_turn", "{scheme} {option}");
            client.end();
            assert_eq!(client.exit().await.code(), Some(0));
        });
    }
}
