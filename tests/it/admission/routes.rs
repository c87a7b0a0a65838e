//! Every route × verb × credential: no answer without admission, and no agent for a client that may
//! not use it. Hosts and pages are judged before the route, see `matrix`.

use std::sync::Arc;

use acp_relay::auth::{Agents, AuthRequirement, Gate, GateRules, Grant, Key, Keyring, Keys};
use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{HttpOptions, Setup};

use super::gate::{key, token};
use super::matrix::{accept_all, ask};
use crate::support::http::Caller;
use crate::support::link::{run, setup_with};

/// Paths and the agent below each; none where nothing is served.
const OFFICIAL: [(&str, Option<&str>); 12] = [
    ("/acp", Some("one")),
    ("/agents/one/acp", Some("one")),
    ("/agents/two/acp", Some("two")),
    ("/acp/rpc?client_id=c", Some("one")),
    ("/acp/sse?client_id=c", Some("one")),
    ("/acp/rpc", Some("one")),
    ("/agents/three/acp", None),
    ("/agents/two/acp/rpc?client_id=c", None),
    ("/agents/%74wo/acp", None),
    ("/agents/two%2Facp", None),
    ("//agents/two/acp", None),
    ("/", None),
];

/// Agent Connect has one agent.
const AGENT_CONNECT: [(&str, Option<&str>); 10] = [
    ("/agents/search", Some("one")),
    ("/agents/x/descriptor", Some("one")),
    ("/runs", Some("one")),
    ("/runs/search", Some("one")),
    ("/runs/x/wait", Some("one")),
    ("/runs/x/stream", Some("one")),
    ("/threads", Some("one")),
    ("/threads/x/history", Some("one")),
    ("/openapi.json", Some("one")),
    ("/nothing", Some("one")),
];

const VERBS: [&str; 7] = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"];
/// The token of the request: all agents, the second agent alone, unknown, none.
const SHOWN: [Option<u8>; 4] = [Some(1), Some(3), Some(7), None];

fn two_agents_gate() -> Gate {
    let gate = Gate::new(GateRules {
        loopback: AuthRequirement::Credential,
        network: AuthRequirement::Credential,
        user: (0, Arc::from("me")),
        failures: usize::MAX,
    });
    let mut ring = Keyring::default();
    ring.add(key(1, "alice", None)).unwrap();
    ring.add(Key {
        grant: Grant {
            agents: Agents::These(["two".to_owned()].into()),
            admin: false,
        },
        ..key(3, "carol", None)
    })
    .unwrap();
    gate.set_keys(Keys::new(None, ring, None));
    gate
}

async fn every_case(at: &str, routes: &[(&str, Option<&str>)]) -> usize {
    let setup = Setup {
        http: HttpOptions {
            agents: ["one".to_owned(), "two".to_owned()].into(),
            default_agent: Some("one".to_owned()),
            ..HttpOptions::default()
        },
        gate: two_agents_gate(),
        ..setup_with(Limits {
            unauthenticated_sockets: 1 << 20,
            ..Limits::default()
        })
    };
    let (port, accepting) = accept_all(at, &setup).await;
    let mut count = 0;
    for (path, agent) in routes {
        for verb in VERBS {
            for shown in SHOWN {
                let bearer = shown
                    .map(|number| format!("Authorization: Bearer {}\r\n", token(number).reveal()));
                let bearer = bearer.unwrap_or_default();
                let head = format!(
                    "{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
                     Content-Length: 0\r\n{bearer}\r\n"
                );
                let answer = ask(port, &head).await;
                let status: u16 = answer[9..12].parse().unwrap();
                let allowed = shown == Some(1) || *agent == Some("two");
                let right = match () {
                    () if !matches!(shown, Some(1 | 3)) => status == 401,
                    () if agent.is_none() => status == 404,
                    () if !allowed => status == 403,
                    () => ![401, 403, 421, 500].contains(&status),
                };
                assert!(right, "{head}{answer}");
                count += 1;
            }
        }
    }
    accepting.abort();
    count
}

#[test]
fn every_route_needs_admission_and_every_agent_a_grant() {
    run(async {
        let official = every_case("http://127.0.0.1:0", &OFFICIAL).await;
        assert_eq!(official, 12 * 7 * 4);
        let agent_connect = every_case("agent-connect+http://127.0.0.1:0", &AGENT_CONNECT).await;
        assert_eq!(agent_connect, 10 * 7 * 4);
    });
}

#[test]
fn a_registry_has_the_agents_that_its_reader_may_use() {
    run(async {
        let setup = Setup {
            http: HttpOptions {
                agents: ["one".to_owned(), "two".to_owned()].into(),
                ..HttpOptions::default()
            },
            gate: two_agents_gate(),
            ..setup_with(Limits::default())
        };
        for (at, scheme) in [("http://127.0.0.1:0", "http"), ("ws://127.0.0.1:0", "ws")] {
            let (port, accepting) = accept_all(at, &setup).await;
            for (shown, ids) in [(1, &["one", "two"][..]), (3, &["two"])] {
                let caller = Caller::to(&format!("127.0.0.1:{port}"));
                let caller = caller.with_token(token(shown).reveal());
                let answer = caller.ask("GET", "/registry.json", &[], "").await;
                let registry = answer.json();
                let agents = registry["agents"].as_array().unwrap();
                let own: Vec<&str> = agents
                    .iter()
                    .map(|one| one["id"].as_str().unwrap())
                    .collect();
                assert_eq!(own, ids, "{registry}");
                let url = &agents.last().unwrap()["_meta"]["acp-relay"]["url"];
                assert_eq!(*url, format!("{scheme}://127.0.0.1:{port}/agents/two/acp"));
            }
            let head = format!("GET /registry.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
            assert!(ask(port, &head).await.starts_with("HTTP/1.1 401"));
            accepting.abort();
        }
    });
}
