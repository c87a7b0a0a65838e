//! An Agent Connect listener with a relay behind it, and a scripted agent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use acp_relay::agent_connect::AgentConnectConfig;
use acp_relay::conversation::DialectOptions;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::observe::Observers;
use acp_relay::proxy::{self, StopSignals};
use acp_relay::transport::{Endpoint, Link, Listener, Setup, registry};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::support::link::{next, send, setup};

/// A listener that is served.
pub(crate) struct Stage {
    pub(crate) at: SocketAddr,
    /// An agent for each link that the listener opens.
    agents: mpsc::Receiver<Agent>,
    stop: StopSignals,
}

/// The agent at the other end of a relay, and the name by which it was selected.
pub(crate) struct Agent(Link, Option<String>);

/// A client of the listener.
#[derive(Clone, Copy)]
pub(crate) struct Client(SocketAddr);

/// A stream of events.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

/// The default settings, with this configuration.
pub(crate) fn configured(config: AgentConnectConfig) -> Setup {
    let mut setup = setup();
    config.apply(&mut setup);
    setup
}

impl Stage {
    pub(crate) async fn open() -> Self {
        Self::with(setup()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        Self::at("agent-connect+http://127.0.0.1:0", setup).await
    }

    pub(crate) async fn at(at: &str, setup: Setup) -> Self {
        let at: Endpoint = at.parse().unwrap();
        let listener = registry::listen(&at, &setup).await.unwrap();
        let Endpoint::Http(web) = listener.address() else {
            panic!("no address");
        };
        let at = format!("{}:{}", web.host, web.port).parse().unwrap();
        let (tx, agents) = mpsc::channel(4);
        let stop = StopSignals::default();
        tokio::spawn(serve(listener, setup, tx, stop.clone()));
        Self { at, agents, stop }
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.at)
    }

    /// The agent of the next link.
    pub(crate) async fn agent(&mut self) -> Agent {
        self.agents.recv().await.expect("the listener opens a link")
    }

    /// Whether the listener has opened another link.
    pub(crate) fn has_another_agent(&mut self) -> bool {
        self.agents.try_recv().is_ok()
    }

    /// The same, once it has answered `initialize`.
    pub(crate) async fn introduced(&mut self, capabilities: Value) -> Agent {
        let mut agent = self.agent().await;
        let asked = agent.receive("initialize").await;
        agent
            .answer(&asked["id"], introduction(&capabilities, &json!([])))
            .await;
        agent
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.requested.cancel();
    }
}

pub(crate) fn introduction(capabilities: &Value, logins: &Value) -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": { "name": "claude-agent", "version": "0.13.0" },
        "agentCapabilities": capabilities,
        "authMethods": logins,
    })
}

async fn serve(
    mut listener: Box<dyn Listener>,
    setup: Setup,
    agents: mpsc::Sender<Agent>,
    stop: StopSignals,
) {
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            () = stop.requested.cancelled() => return,
        };
        let Some(Ok(arrival)) = arrival else {
            return;
        };
        // A rejected client is an event and no client.
        let Ok(client) = arrival.finish.await else {
            continue;
        };
        let (near, far) = crate::support::memory::pair(&setup.limits);
        let wanted_agent = client.peer.wanted_agent.as_deref().map(str::to_owned);
        relay(client, near, &setup, &stop);
        if agents.send(Agent(far, wanted_agent)).await.is_err() {
            return;
        }
    }
}

/// Passes messages between a client and an agent.
pub(crate) fn relay(client: Link, agent: Link, setup: &Setup, stop: &StopSignals) {
    let (limits, stop) = (Arc::clone(&setup.limits), stop.clone());
    tokio::spawn(async move {
        let (dialects, observers) = (DialectOptions::canonical(), Observers::default());
        proxy::run(client, agent, limits, dialects, None, observers, &stop).await
    });
}

/// Creates a thread, for which the agent opens a session of this name.
pub(crate) async fn thread(client: Client, agent: &mut Agent, session: &str) -> String {
    let made = tokio::spawn(client.clone_post("/threads", json!({})));
    agent.open(session).await;
    id(&made.await.unwrap(), "thread_id")
}

pub(crate) fn id(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap().to_owned()
}

impl Agent {
    /// The name by which it was selected.
    pub(crate) fn name(&self) -> Option<&str> {
        self.1.as_deref()
    }

    /// The next message, which has this method.
    pub(crate) async fn receive(&mut self, method: &str) -> Value {
        let message = self.listen().await.expect("a message, not the end");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// The next message; `None` at the end.
    pub(crate) async fn listen(&mut self) -> Option<Value> {
        match next(&mut *self.0.rx).await {
            Some(Ok(Decoded::Frame(frame))) => {
                Some(serde_json::from_slice(frame.as_bytes()).unwrap())
            }
            None => None,
            other => panic!("expected a message, received {other:?}"),
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        send(&mut *self.0.tx, message.to_string()).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Ends the turn of a prompt.
    pub(crate) async fn finish(&mut self, prompt: &Value) {
        let result = json!({ "stopReason": "end_turn" });
        self.answer(&prompt["id"], result).await;
    }

    /// Opens the session that is requested next.
    pub(crate) async fn open(&mut self, session: &str) {
        let asked = self.receive("session/new").await;
        self.answer(&asked["id"], json!({ "sessionId": session }))
            .await;
    }

    /// Sends a text in a session.
    pub(crate) async fn chunk(&mut self, session: &str, text: &str) {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        let params = json!({ "sessionId": session, "update": update });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
            .await;
    }

    /// Requests permission in a session.
    pub(crate) async fn ask(&mut self, id: u64, session: &str) {
        let params = json!({ "sessionId": session, "toolCall": { "toolCallId": "t" }, "options": [
            { "optionId": "allow", "name": "Allow", "kind": "allow_once" },
            { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
        ] });
        let method = "session/request_permission";
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }
}

impl Client {
    pub(crate) async fn send(
        self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Response<Incoming> {
        self.send_as(method, path, body, None, None).await
    }

    pub(crate) async fn send_as(
        self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        last_event: Option<&str>,
        token: Option<&str>,
    ) -> Response<Incoming> {
        let socket = TcpStream::connect(self.0).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.0.to_string());
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(last) = last_event {
            request = request.header("last-event-id", last);
        }
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        sender
            .send_request(request.body(Full::new(body)).unwrap())
            .await
            .unwrap()
    }

    /// The same, of a request with these header fields, which may be wrong.
    pub(crate) async fn call_with(
        self,
        method: &str,
        path: &str,
        fields: &Map<String, Value>,
        body: &str,
    ) -> (u16, Value) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.0);
        if !fields.contains_key("content-length") {
            head += &format!("content-length: {}\r\n", body.len());
        }
        for (name, value) in fields {
            head += &format!("{name}: {}\r\n", value.as_str().unwrap());
        }
        let mut socket = TcpStream::connect(self.0).await.unwrap();
        let request = format!("{head}connection: close\r\n\r\n{body}");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// The status of an answer, and its body; `null` when it has none.
    pub(crate) async fn call(self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        status_and_body(self.send(method, path, body).await).await
    }

    /// The same, with a token.
    pub(crate) async fn call_as(
        self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        status_and_body(self.send_as(method, path, body, None, Some(token)).await).await
    }

    pub(crate) async fn get(self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, None).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    pub(crate) async fn post(self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call("POST", path, Some(&body)).await;
        assert_eq!(status, 200, "POST {path}: {answer}");
        answer
    }

    /// The same, for a task of its own.
    pub(crate) fn clone_post(
        self,
        path: &str,
        body: Value,
    ) -> impl Future<Output = Value> + Send + use<> {
        let path = path.to_owned();
        async move { self.post(&path, body).await }
    }

    /// Opens a stream of events after the one with this id.
    pub(crate) async fn resumed(self, path: &str, last: &str) -> Events {
        Events::of(self.send_as("GET", path, None, Some(last), None).await)
    }

    /// Opens a stream of events.
    pub(crate) async fn events(self, method: &str, path: &str, body: Option<&Value>) -> Events {
        Events::of(self.send(method, path, body).await)
    }
}

impl Events {
    pub(crate) fn of(answer: Response<Incoming>) -> Self {
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            body: answer.into_body(),
            text: String::new(),
        }
    }

    /// The next event's id, name and data; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = event.lines();
                    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    found.map(str::to_owned)
                };
                let (id, name, data) = (field("id"), field("event"), field("data"));
                self.text = rest.to_owned();
                if let (Some(id), Some(name), Some(data)) = (id, name, data) {
                    return Some((id, name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let part = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
    }
}

async fn status_and_body(answer: Response<Incoming>) -> (u16, Value) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap_or_else(|_| panic!("no JSON: {body:?}"))
    };
    (status, body)
}

/// A message from a human.
pub(crate) fn human(text: &str) -> Value {
    json!({ "messages": [{ "role": "human", "content": text }] })
}
