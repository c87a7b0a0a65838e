//! The exchanges in which this program is the client: a scripted ACP client, this agent, and a
//! server with the written answers.
//!
//! A case may begin in the middle; the agent's descriptor is then derived from its steps. Without
//! being written, the server answers only what every client may request before: the agent, and the
//! running runs.

use std::collections::HashMap;

use acp_relay::transport::registry;
use serde_json::{Value, json};

use super::exchanges;
use super::stage::Agent;
use super::vectors::{Ids, covers};
use crate::support::http_server::{Asked, Events, Server};
use crate::support::link::{run, setup};

/// The agent of the exchanges.
const AGENT: &str = "7f3c1c9e-0d5b-4a55-9b6e-0a2f1f6f0001";

struct Play<'a> {
    case: &'a Value,
    peer: Agent,
    server: Server,
    stream: Option<Events>,
    ids: Ids,
}

#[test]
fn every_exchange_with_a_server_is_as_written() {
    let cases = exchanges("agntcy-server-as-acp-agent");
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    for case in cases {
        run(play(&case));
    }
}

async fn play(case: &Value) {
    let server = Server::start().await;
    let agent = case["agent"].as_str().unwrap_or(AGENT);
    let to = format!("agent-connect+http://127.0.0.1:{}/{agent}", server.port)
        .parse()
        .unwrap();
    let mut setup = setup();
    setup.request_headers.add("x-api-key: sesame").unwrap();
    let link = registry::connect(&to, &setup).await.unwrap();
    let mut play = Play {
        case,
        peer: Agent(link, None),
        server,
        stream: None,
        ids: Ids::default(),
    };
    let steps = case["steps"].as_array().unwrap();
    if steps[0]["acp"]["method"] != "initialize" {
        let form = json!({ "elicitation": { "form": {} } });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": case.get("client").unwrap_or(&form) });
        play.peer
            .send(
            &json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params }),
        )
        .await;
        let received = play.receive().await;
        assert_eq!(received["id"], "init", "{received}");
    }
    for step in steps {
        play.step(step).await;
    }
}

impl Play<'_> {
    async fn step(&mut self, step: &Value) {
        let name = &self.case["name"];
        if let Some(http) = step.get("http") {
            self.answer(http).await;
        } else if let Some(events) = step["sse"].as_array() {
            let stream = self.stream.as_ref().expect("a stream is open");
            for event in events {
                let text = format!(
                    "event: {}\ndata: {}\n\n",
                    event["event"].as_str().unwrap(),
                    event["data"]
                );
                stream.piece(text).await;
            }
            if step["open"] != true {
                self.stream = None;
            }
        } else if step["direction"] == "client_to_agent" {
            let message = self.ids.real(&step["acp"]);
            self.peer.send(&message).await;
        } else if let Some(expected) = step.get("acp") {
            let received = self.receive().await;
            let mut names = HashMap::new();
            self.ids.check(name, expected, &received, &mut names);
            if expected.get("error").is_none() {
                assert!(received.get("error").is_none(), "{name}: {received}");
            }
        }
    }

    /// Waits for the next written request, and answers it.
    async fn answer(&mut self, http: &Value) {
        loop {
            let asked = self.server.next().await;
            assert_eq!(asked.header("x-api-key"), Some("sesame"));
            let fits = http["method"] == *asked.method.as_str();
            if !fits || http["path"] != *asked.uri.to_string() {
                self.answer_unwritten(asked);
                continue;
            }
            let body = serde_json::from_str(&asked.body).unwrap_or_default();
            let result = covers(&http["request"], &body, &mut HashMap::new());
            let name = &self.case["name"];
            result.unwrap_or_else(|why| panic!("{name}: {why}\n{http}\n{body}"));
            let headers = http["headers"].as_object().into_iter().flatten();
            let headers = headers.map(|(name, value)| (&**name, value.as_str().unwrap()));
            let headers: Vec<_> = headers.collect();
            if http["content_type"] == "text/event-stream" {
                self.stream = Some(asked.stream_with(&headers));
            } else {
                let status = http["status"].as_u64().unwrap() as u16;
                let body = http.get("response").map(Value::to_string);
                asked.answer(status, &headers, body.unwrap_or_default());
            }
            return;
        }
    }

    /// The answer to a request that is not written.
    fn answer_unwritten(&self, asked: Asked) {
        let (method, path) = (asked.method.as_str(), asked.uri.path());
        let answer = if method == "GET" && path.ends_with("/descriptor") {
            self.descriptor()
        } else if method == "GET" && path.ends_with("/runs") {
            let text = self.case.to_string();
            let (_, after) = text.split_once("/runs/9").expect("a run");
            let id = format!("9{}", &after[..35]);
            json!([{ "run_id": id, "status": "pending" }])
        } else {
            panic!("{}: {asked:?}", self.case["name"]);
        };
        asked.answer(200, &[], answer.to_string());
    }

    /// The descriptor that the case assumes.
    fn descriptor(&self) -> Value {
        if let Some(given) = self.case.get("descriptor") {
            return given.clone();
        }
        let steps = self.case["steps"].as_array().unwrap();
        let streams = steps.iter().any(|step| {
            step["http"]["path"]
                .as_str()
                .is_some_and(|path| path.ends_with("/stream"))
        });
        let find = |pointer: &str| steps.iter().find_map(|step| step.pointer(pointer));
        let interrupt = find("/http/response/output/interrupt").and_then(Value::as_object);
        let name = interrupt.and_then(|all| all.keys().next());
        let flag = json!({ "type": "object", "properties": { "approved": { "type": "boolean" } }, "required": ["approved"] });
        let resume = find("/acp/params/requestedSchema").unwrap_or(&flag);
        json!({ "metadata": { "ref": { "name": "mailcomposer", "version": "0.0.1" } }, "specs": {
            "capabilities": { "threads": true, "interrupts": true, "streaming": { "values": streams } },
            "interrupts": [{ "interrupt_type": name, "interrupt_payload": {}, "resume_payload": resume }],
        } })
    }

    /// The next message; meanwhile, unwritten requests are answered.
    async fn receive(&mut self) -> Value {
        loop {
            tokio::select! {
                biased;
                received = self.peer.listen() => return received.expect("a message, not the end"),
                asked = self.server.next() => self.answer_unwritten(asked),
            }
        }
    }
}
