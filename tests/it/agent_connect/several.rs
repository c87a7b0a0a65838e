//! Several agents behind one listener, each for the clients that may use it; and ACP beside them.

use acp_relay::agent_connect::{AgentConnectConfig, ServedAgent};
use acp_relay::auth::{Agents, Grant};
use acp_relay::transport::{HttpOptions, Setup};
use serde_json::{Value, json};

use super::principals::{gate_for, token};
use super::stage::{Agent, Stage, configured, human, introduction};
use crate::support::link::run;

/// A listener with these agents, the first of which is the default.
fn serving(names: &[&str]) -> Setup {
    serving_at(None, names)
}

/// The same, below a path of a listener for ACP.
fn serving_at(path: Option<&str>, names: &[&str]) -> Setup {
    let offer = |name: &&str| ServedAgent {
        name: Some((*name).to_owned()),
        description: Some(format!("This is {name}")),
        default_permission: None,
    };
    Setup {
        http: HttpOptions {
            agents: names.iter().map(|name| (*name).to_owned()).collect(),
            default_agent: Some(names[0].to_owned()),
            ..HttpOptions::default()
        },
        ..configured(AgentConnectConfig {
            agents: names.iter().map(offer).collect(),
            path: path.map(str::to_owned),
            ..AgentConnectConfig::default()
        })
    }
}

/// Lets the next agent that is opened answer `initialize`.
async fn introduced(stage: &mut Stage) -> Agent {
    stage
        .introduced(json!({ "sessionCapabilities": { "close": {} } }))
        .await
}

fn found(agents: &Value) -> Vec<(String, String)> {
    let one = |agent: &Value| {
        let text = |pointer: &str| agent.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        (text("/metadata/ref/name"), text("/agent_id"))
    };
    agents.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn each_agent_is_found_by_its_name_and_runs_on_its_own_link() {
    run(async {
        let mut stage = Stage::with(serving(&["goose", "claude"])).await;
        let client = stage.client();
        let searched = client.start("/agents/search", json!({}));
        let (first, second) = (introduced(&mut stage).await, introduced(&mut stage).await);
        let (mut goose, mut claude) = match first.name() {
            Some("goose") => (first, second),
            _ => (second, first),
        };
        assert_eq!(
            (goose.name(), claude.name()),
            (Some("goose"), Some("claude"))
        );
        let agents = found(&searched.await.unwrap());
        let names: Vec<&str> = agents.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["goose", "claude"]);
        let by_name = client
            .post("/agents/search", json!({ "name": "claude" }))
            .await;
        assert_eq!(found(&by_name), agents[1..]);
        let by_version = client
            .post("/agents/search", json!({ "version": "0" }))
            .await;
        assert_eq!(by_version, json!([]));
        for path in ["claude".to_owned(), agents[1].1.clone()] {
            let agent = client.get(&format!("/agents/{path}")).await;
            assert_eq!(agent["agent_id"], agents[1].1);
            let descriptor = client.get(&format!("/agents/{path}/descriptor")).await;
            assert_eq!(descriptor["metadata"]["description"], "This is claude");
            let manifest = client.get(&format!("/agents/agent/{path}/manifest")).await;
            assert_eq!(manifest, descriptor);
        }
        assert_eq!(client.call("GET", "/agents/other", None).await.0, 404);
        // Without an agent id the default runs; with one, that agent.
        let body = json!({ "input": human("hi") });
        client.post("/runs", body.clone()).await;
        goose.open("g").await;
        goose.receive("session/prompt").await;
        let mut body = body;
        body["agent_id"] = json!(agents[1].1);
        client.post("/runs", body).await;
        claude.open("c").await;
        claude.receive("session/prompt").await;
    });
}

#[test]
fn a_thread_stays_with_its_first_agent() {
    run(async {
        let mut stage = Stage::with(serving(&["goose", "claude"])).await;
        let client = stage.client();
        let thread = client.post("/threads", json!({})).await;
        // It has no agent yet.
        assert!(
            thread["metadata"].get("acp_session_id").is_none(),
            "{thread}"
        );
        let path = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
        let run = client.start(&path, json!({ "input": human("hi") }));
        let mut goose = introduced(&mut stage).await;
        let run = run.await.unwrap();
        goose.open("g").await;
        let asked = goose.receive("session/prompt").await;
        goose.chunk("g", "Hello").await;
        goose.finish(&asked).await;
        let wait = format!("{path}/{}/wait", run["run_id"].as_str().unwrap());
        assert_eq!(client.get(&wait).await["run"]["status"], "success");
        let searched = client.start("/agents/search", json!({}));
        let _claude = introduced(&mut stage).await;
        let agents = found(&searched.await.unwrap());
        let body = json!({ "agent_id": agents[1].1, "input": human("hi") });
        let refused = client.call("POST", &path, Some(&body)).await;
        assert_eq!(refused, (422, json!("the thread belongs to another agent")));
        let body =
            json!({ "agent_id": "7f3c1c9e-0d5b-4a55-9b6e-0a2f1f6f0001", "input": human("hi") });
        assert_eq!(client.call("POST", &path, Some(&body)).await.0, 404);
    });
}

#[test]
fn clients_share_one_failed_attempt_and_see_the_agent_as_configured() {
    run(async {
        let mut stage = Stage::with(serving(&["broken"])).await;
        let mut agent = stage.agent().await;
        let asked = agent.receive("initialize").await;
        let client = stage.client();
        let search = |_| client.start("/agents/search", json!({}));
        let searches: Vec<_> = (0..8).map(search).collect();
        let error = json!({ "code": -32603, "message": "it fails" });
        agent
            .send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .await;
        for search in searches {
            let agents = search.await.unwrap();
            assert_eq!(agents[0]["metadata"]["ref"]["name"], "broken");
            assert_eq!(agents[0]["metadata"]["ref"]["version"], "unknown");
        }
        assert!(!stage.has_another_agent(), "another link was tried");
    });
}

#[test]
fn a_client_sees_only_the_agents_that_it_may_use() {
    run(async {
        let keys = [
            (1, "alice", &["claude"][..]),
            (2, "bob", &["goose", "claude"]),
            (3, "carol", &["none"]),
        ];
        let gate = gate_for(
            keys.map(|(number, name, agents)| {
                let agents = Agents::These(agents.iter().map(|&name| name.to_owned()).collect());
                let admin = false;
                (number, name, Grant { agents, admin })
            })
            .into(),
        );
        let setup = Setup {
            gate,
            ..serving(&["goose", "claude"])
        };
        let mut stage = Stage::with(setup).await;
        let client = stage.client();
        let [alice, bob, carol] = [1, 2, 3].map(|number| token(number).reveal().to_owned());
        let all = json!({});
        let searching = client.call_as(&alice, "POST", "/agents/search", Some(&all));
        let ((_, seen), mut claude) = tokio::join!(searching, introduced(&mut stage));
        let seen = found(&seen);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].0, "claude");
        let searching = client.call_as(&bob, "POST", "/agents/search", Some(&all));
        let ((_, agents), _goose) = tokio::join!(searching, introduced(&mut stage));
        let agents = found(&agents);
        assert_eq!(agents.len(), 2);
        let goose = &agents.iter().find(|(name, _)| name == "goose").unwrap().1;
        for path in [
            format!("/agents/{goose}"),
            "/agents/goose/descriptor".to_owned(),
        ] {
            assert_eq!(
                client.call_as(&alice, "GET", &path, None).await.0,
                404,
                "{path}"
            );
            assert_eq!(
                client.call_as(&bob, "GET", &path, None).await.0,
                200,
                "{path}"
            );
        }
        let body = json!({ "agent_id": goose, "input": human("hi") });
        let refused = client.call_as(&alice, "POST", "/runs", Some(&body)).await;
        assert_eq!(refused.0, 404, "{}", refused.1);
        // The default is not allowed, and there is only one other.
        let body = json!({ "input": human("hi") });
        let run = client.call_as(&alice, "POST", "/runs", Some(&body)).await;
        assert_eq!(run.0, 200, "{}", run.1);
        claude.open("c").await;
        assert_eq!(
            client
                .call_as(&carol, "POST", "/agents/search", Some(&all))
                .await
                .0,
            403
        );
    });
}

#[test]
fn acp_and_agent_connect_are_served_at_one_port() {
    run(async {
        let setup = serving_at(Some("/"), &["goose"]);
        let mut stage = Stage::at("http://127.0.0.1:0", setup).await;
        let _goose = introduced(&mut stage).await;
        let client = stage.client();
        let agents = client.post("/agents/search", json!({})).await;
        assert_eq!(found(&agents)[0].0, "goose");
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
        for path in ["/acp", "/agents/goose/acp"] {
            let opened = client.start(path, initialize.clone());
            let mut agent = stage.agent().await;
            let asked = agent.receive("initialize").await;
            agent
                .answer(&asked["id"], introduction(&json!({}), &json!([])))
                .await;
            assert_eq!(
                opened.await.unwrap()["result"]["protocolVersion"],
                1,
                "{path}"
            );
        }
        // Each refuses in its own format.
        let wrong = client.send("PATCH", "/acp", None).await;
        assert_eq!(wrong.headers()["content-type"], "text/plain; charset=utf-8");
        let (status, why) = client.call("GET", "/acp/nothing", None).await;
        assert_eq!((status, why.is_string()), (404, true));
    });
}
