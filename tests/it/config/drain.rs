//! The drain: running turns finish, new ones are refused, and load balancers see it.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{Client, JSON, Stage, ask};
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::Program;

const CONFIG: &str = r#"
[agents.one]
command = ["AGENT"]
cwd = "."
[[listeners]]
endpoint = "http://127.0.0.1:0"
[[listeners]]
endpoint = "tcp://127.0.0.1:0"
[drain]
max = 3600
"#;

const SLOW: &str = r#"{"jsonrpc":"2.0","id":7,"method":"slow"}"#;

#[test]
fn a_running_turn_finishes_and_new_requests_are_refused() {
    block_on(async {
        let stage = Stage::with(CONFIG);
        let (mut serve, caller) = stage.start().await;
        let client = Client::open(&caller, "/acp").await;
        let mut events = client.events().await;
        assert_eq!(client.post(SLOW).await, 202);
        assert!(events.data().await.contains("begun"));
        serve.signal(Signal::TERM);
        // Requests before the signal are queued behind the turn; the first one after it is refused
        // at once.
        let refused = 'refused: {
            for id in 100.. {
                let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"new"}}"#);
                assert_eq!(client.post(&ask).await, 202);
                let soon = std::time::Duration::from_millis(50);
                if let Ok(answer) = tokio::time::timeout(soon, events.data()).await {
                    break 'refused answer;
                }
            }
            unreachable!("it repeats until it is refused")
        };
        let refused: Value = serde_json::from_str(&refused).unwrap();
        assert_eq!(refused["error"]["code"], -32054, "{refused}");
        assert_eq!(
            refused["error"]["data"]["relay"]["delivered"], "no",
            "{refused}"
        );
        fs::write(stage.path("go"), "").unwrap();
        let answer: Value = serde_json::from_str(&events.data().await).unwrap();
        assert_eq!(
            (&answer["id"], answer.get("error")),
            (&7.into(), None),
            "{answer}"
        );
        while events.next().await.is_some() {}
        assert_eq!(serve.exit().await.code(), Some(0));
    });
}

#[test]
fn listeners_stay_open_and_refuse_during_a_drain() {
    block_on(async {
        let stage = Stage::with(&format!("{CONFIG}min = 3600\n"));
        let (mut serve, caller) = stage.start().await;
        let tcp = serve.address().await;
        let client = Client::open(&caller, "/acp").await;
        serve.signal(Signal::TERM);
        let reply = loop {
            let reply = caller.ask("POST", "/acp", &[JSON], INITIALIZE).await;
            if reply.status.as_u16() != 200 {
                break reply;
            }
        };
        assert_eq!(reply.status.as_u16(), 503, "{}", reply.body);
        assert!(reply.fields.contains_key("retry-after"));
        let ws = format!("ws://{}", caller.host);
        let ws = Program::start(&["connect", &ws]).exit().await;
        assert_eq!(ws.code(), Some(69));
        let mut other = Program::start(&["connect", &tcp]);
        ask(&mut other, 1).await;
        let answer = other.json().await;
        assert_eq!(answer["error"]["code"], -32054, "{answer}");
        assert_eq!(
            answer["error"]["data"]["relay"]["retryable"], true,
            "{answer}"
        );
        // A client without a turn is closed although listeners are open.
        while client.post(r#"{"jsonrpc":"2.0","method":"x"}"#).await != 404 {}
        serve.signal(Signal::TERM);
        assert_eq!(serve.exit().await.code(), Some(75));
    });
}
