//! Principals, each of which finds only its own threads.

use std::sync::Arc;

use acp_relay::auth::{AuthRequirement, Gate, GateRules, Grant, Key, Keyring, Keys, Token};
use acp_relay::transport::Setup;
use serde_json::{Value, json};

use super::stage::{Stage, human};
use crate::support::link::{run, setup};

pub(crate) fn token(number: u8) -> Token {
    Token::new([number; 6], [number; 32])
}

/// A gate that requires a token, with those of these principals.
pub(super) fn gate_for(keys: Vec<(u8, &str, Grant)>) -> Gate {
    let gate = Gate::new(GateRules {
        loopback: AuthRequirement::Credential,
        network: AuthRequirement::Credential,
        user: (u32::MAX, Arc::from("me")),
        failures: 1,
    });
    let mut ring = Keyring::default();
    for (number, name, grant) in keys {
        let key = Key::of(&token(number), name);
        ring.add(Key { grant, ..key }).unwrap();
    }
    gate.set_keys(Keys::new(None, ring, None));
    gate
}

/// The same, of two principals that may use all agents.
pub(crate) fn gate() -> Gate {
    let all = || Grant::all_agents(false);
    gate_for(vec![(1, "alice", all()), (2, "bob", all())])
}

#[test]
fn each_principal_finds_only_its_own_threads_and_runs() {
    run(async {
        let setup = Setup {
            gate: gate(),
            ..setup()
        };
        let draining = setup.draining.clone();
        let mut stage = Stage::with(setup).await;
        let mut agent = stage.introduced(json!({})).await;
        let client = stage.client();
        let (alice, bob) = (token(1), token(2));
        let (alice, bob) = (alice.reveal(), bob.reveal());
        let body = json!({});
        let missing = client.call("POST", "/threads/search", Some(&body)).await;
        assert_eq!(missing.0, 401);
        assert!(missing.1.is_string(), "{}", missing.1);
        for status in [401, 429] {
            let wrong = client.call_as("wrong", "GET", "/threads/x", None).await;
            assert_eq!(wrong.0, status);
        }
        let asked = json!({});
        let made = client.call_as(alice, "POST", "/threads", Some(&asked));
        let ((status, thread), ()) = tokio::join!(made, agent.open("s"));
        assert_eq!(status, 200);
        let thread = thread["thread_id"].as_str().unwrap();
        let request = json!({ "input": human("hello") });
        let runs = format!("/threads/{thread}/runs");
        let (status, run) = client.call_as(alice, "POST", &runs, Some(&request)).await;
        assert_eq!(status, 200, "{run}");
        let run = run["run_id"].as_str().unwrap();
        let on_thread = json!({ "thread_id": thread, "input": human("mine") });
        let (at, of) = (format!("/threads/{thread}"), format!("/runs/{run}"));
        let tries: [(&str, String, Option<&Value>); 13] = [
            ("GET", at.clone(), None),
            ("PATCH", at.clone(), Some(&body)),
            ("DELETE", at.clone(), None),
            ("GET", format!("{at}/history"), None),
            ("GET", format!("{at}/state"), None),
            ("POST", format!("{at}/copy"), Some(&body)),
            ("GET", runs.clone(), None),
            ("POST", runs.clone(), Some(&request)),
            ("GET", of.clone(), None),
            ("GET", format!("{of}/stream"), None),
            ("POST", format!("{of}/cancel"), Some(&body)),
            ("DELETE", of.clone(), None),
            ("GET", format!("{at}/runs/{run}"), None),
        ];
        for (method, path, body) in tries {
            let refused = client.call_as(bob, method, &path, body).await;
            assert_eq!(refused.0, 404, "{method} {path}: {}", refused.1);
        }
        let refused = client.call_as(bob, "POST", "/runs", Some(&on_thread)).await;
        assert_eq!(refused.0, 404, "{}", refused.1);
        agent.receive("session/prompt").await;
        // A thread id may be that of another principal's thread; the answer does not show it.
        let same = json!({ "thread_id": thread });
        let made = client.call_as(bob, "POST", "/threads", Some(&same));
        let ((status, made), ()) = tokio::join!(made, agent.open("t"));
        assert_eq!(status, 200, "{made}");
        assert_eq!(made["thread_id"], thread);
        assert_eq!(made["metadata"]["acp_session_id"], "t");
        let again = client.call_as(bob, "POST", "/threads", Some(&same)).await;
        assert_eq!(again.0, 409, "{}", again.1);
        let deleted = client.call_as(bob, "DELETE", &at, None).await;
        assert_eq!(deleted.0, 204, "{}", deleted.1);
        for path in ["/threads/search", "/runs/search"] {
            let found = client.call_as(bob, "POST", path, Some(&body)).await;
            assert_eq!(found, (200, json!([])), "{path}");
            let found = client.call_as(alice, "POST", path, Some(&body)).await;
            assert_eq!(found.1.as_array().map(Vec::len), Some(1), "{path}");
        }
        draining.cancel();
        let late = client.call_as(alice, "POST", "/runs", Some(&request)).await;
        assert_eq!(late.0, 503);
        assert_eq!(client.call_as(alice, "GET", &of, None).await.0, 200);
    });
}
