//! The exchanges in which this program is the client: a scripted ACP client, this agent, and a
//! server with the written answers.
//!
//! A case may begin in the middle; the agent's descriptor is then derived from its steps. Without
//! being written, the server answers only what every client may request before: the agent, and the
//! running runs.

use std::collections::HashMap;

use acp_relay::transport::registry;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame as Part, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::exchanges;
use super::stage::Agent;
use super::vectors::{Ids, covers};
use crate::support::link::{run, setup};

/// The agent of the exchanges.
const AGENT: &str = "7f3c1c9e-0d5b-4a55-9b6e-0a2f1f6f0001";

type Body = BoxBody<Bytes, std::convert::Infallible>;

/// A request to the server.
struct Asked {
    method: String,
    path: String,
    body: Value,
    answer: oneshot::Sender<Response<Body>>,
}

struct Play<'a> {
    case: &'a Value,
    peer: Agent,
    asked: mpsc::Receiver<Asked>,
    stream: Option<mpsc::Sender<Bytes>>,
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (tx, asked) = mpsc::channel(16);
    let serving = tokio::spawn(serve(listener, tx));
    let agent = case["agent"].as_str().unwrap_or(AGENT);
    let to = format!("agent-connect+http://{at}/{agent}")
        .parse()
        .unwrap();
    let mut setup = setup();
    setup.request_headers.add("x-api-key: sesame").unwrap();
    let link = registry::connect(&to, &setup).await.unwrap();
    let mut play = Play {
        case,
        peer: Agent(link, None),
        asked,
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
    serving.abort();
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
                stream.send(text.into()).await.unwrap();
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
            let asked = self.asked.recv().await.expect("a request");
            let fits = http["method"] == *asked.method && http["path"] == *asked.path;
            if !fits {
                self.answer_unwritten(asked);
                continue;
            }
            let result = covers(&http["request"], &asked.body, &mut HashMap::new());
            let name = &self.case["name"];
            result.unwrap_or_else(|why| panic!("{name}: {why}\n{http}\n{}", asked.body));
            let mut answer = Response::builder().status(http["status"].as_u64().unwrap() as u16);
            for (name, value) in http["headers"].as_object().into_iter().flatten() {
                answer = answer.header(name, value.as_str().unwrap());
            }
            let body = if http["content_type"] == "text/event-stream" {
                let (tx, rx) = mpsc::channel(16);
                self.stream = Some(tx);
                answer = answer.header("content-type", "text/event-stream");
                let parts = futures_util::stream::unfold(rx, |mut rx| async {
                    let part = Part::data(rx.recv().await?);
                    Some((Ok(part), rx))
                });
                StreamBody::new(parts).boxed()
            } else {
                whole(http.get("response"))
            };
            // The client may have closed the request.
            let _ = asked.answer.send(answer.body(body).unwrap());
            return;
        }
    }

    /// The answer to a request that is not written.
    fn answer_unwritten(&self, asked: Asked) {
        let answer = if asked.method == "GET" && asked.path.ends_with("/descriptor") {
            Some(self.descriptor())
        } else if asked.method == "GET" && asked.path.ends_with("/runs") {
            let text = self.case.to_string();
            let (_, after) = text.split_once("/runs/9").expect("a run");
            let id = format!("9{}", &after[..35]);
            Some(json!([{ "run_id": id, "status": "pending" }]))
        } else {
            panic!(
                "{}: {} {} {}",
                self.case["name"], asked.method, asked.path, asked.body
            );
        };
        let _ = asked.answer.send(Response::new(whole(answer.as_ref())));
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
                asked = self.asked.recv() => self.answer_unwritten(asked.expect("a request")),
            }
        }
    }
}

async fn serve(listener: TcpListener, tx: mpsc::Sender<Asked>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let tx = tx.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let tx = tx.clone();
            async move {
                assert_eq!(request.headers()["x-api-key"], "sesame");
                let (method, path) = (request.method().to_string(), request.uri().to_string());
                let body = request.into_body().collect().await?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let (answer, answered) = oneshot::channel();
                let asked = Asked {
                    method,
                    path,
                    body,
                    answer,
                };
                if tx.send(asked).await.is_err() {
                    return Ok(Response::new(whole(None)));
                }
                Ok::<_, hyper::Error>(
                    answered
                        .await
                        .unwrap_or_else(|_| Response::new(whole(None))),
                )
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

fn whole(body: Option<&Value>) -> Body {
    let bytes = body.map_or_else(Bytes::new, |body| body.to_string().into());
    Full::new(bytes).boxed()
}
