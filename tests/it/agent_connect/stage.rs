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
use hyper::Response;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::http::{Caller, Events, Reply};
use crate::support::link::{next, send, setup};

/// A listener that is served.
pub(crate) struct Stage {
    pub(crate) at: SocketAddr,
    /// An agent for each link that the listener opens.
    agents: mpsc::Receiver<Agent>,
    stop: StopSignals,
}

/// The agent at the other end of a relay, and the name by which it was selected; or another peer.
pub(crate) struct Agent(pub(crate) Link, pub(crate) Option<String>);

/// A client of the listener.
#[derive(Clone, Copy)]
pub(crate) struct Client(SocketAddr);

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
        let Ok(Some(client)) = arrival.finish.await else {
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
    let made = client.start("/threads", json!({}));
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

    /// The same, and the prompt of its first turn.
    pub(crate) async fn open_turn(&mut self, session: &str) -> Value {
        self.open(session).await;
        self.receive("session/prompt").await
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
    fn caller(self) -> Caller {
        Caller::to(&self.0.to_string())
    }

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
        let mut caller = self.caller();
        if body.is_some() {
            caller = caller.with("content-type", "application/json");
        }
        if let Some(token) = token {
            caller = caller.with_token(token);
        }
        if let Some(last) = last_event {
            caller = caller.with("last-event-id", last);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        caller.call(method, path, &[], body).await
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
        let request = format!("{head}connection: close\r\n\r\n{body}");
        let answer = self.caller().raw(request).await;
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

    /// The same, in a task of its own.
    pub(crate) fn start(self, path: &str, body: Value) -> JoinHandle<Value> {
        let path = path.to_owned();
        tokio::spawn(async move { self.post(&path, body).await })
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
    /// The next event's id, name and data; `None` at the end.
    pub(crate) async fn named(&mut self) -> Option<(String, String, Value)> {
        let event = self.next_event().await?;
        let data = event.json();
        Some((event.id, event.name, data))
    }
}

async fn status_and_body(answer: Response<Incoming>) -> (u16, Value) {
    let reply = Reply::of(answer).await;
    (reply.status.as_u16(), reply.json())
}

/// A message from a human.
pub(crate) fn human(text: &str) -> Value {
    json!({ "messages": [{ "role": "human", "content": text }] })
}
