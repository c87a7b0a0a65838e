//! A WebSocket peer that a test drives byte by byte, and the scripted agent behind `serve`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;

use super::regressions::support::NEW_SESSION;
use crate::support::http::{Caller, INITIALIZE, UPGRADE, read_head};
use crate::support::program::{Program, words};
use crate::support::websocket::frame;

/// An agent that answers only `initialize` and `pid`; `flood` makes it write without end, and
/// `deaf` makes it stop reading.
const AGENT: &str = r#"
import json, os, sys, time
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1}})
    if message.get("method") == "pid":
        send({"id": message["id"], "result": os.getpid()})
    while message.get("method") == "flood":
        send({"method": "x", "params": "x" * 20000})
    if message.get("method") == "deaf":
        send({"method": "begun"})
        time.sleep(1000)
"#;

/// `serve` with the agent at a free port, and its address.
pub(super) async fn serve(scheme: &str, options: &str) -> (Program, String) {
    let line = format!("serve --listen {scheme}://127.0.0.1:0 {options} -- python3 -uc");
    let mut serve = Program::start(&[&words(&line)[..], &[AGENT]].concat());
    let address = serve.address().await;
    (serve, address)
}

/// A request of a client.
pub(super) fn request(id: u32, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string()
}

/// An open WebSocket, whose frames a test writes and reads.
pub(super) struct WebSocket(pub(super) BufReader<TcpStream>);

impl WebSocket {
    /// Opens one, with these lines in the head of the request.
    pub(super) async fn open(address: &str, fields: &str) -> Self {
        let lines = format!("{UPGRADE}{fields}");
        let mut stream = Caller::to(address).begin_acp("GET", &lines, "").await;
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Self(BufReader::new(stream))
    }

    /// Sends a whole frame.
    pub(super) async fn frame(&mut self, opcode: u8, payload: &[u8]) {
        let bytes = frame(0x80 | opcode, payload);
        self.0.write_all(&bytes).await.unwrap();
    }

    pub(super) async fn send(&mut self, message: &str) {
        self.frame(1, message.as_bytes()).await;
    }

    /// Sends messages until the server takes no more of them.
    pub(super) async fn flood(&mut self) {
        let note = format!(
            r#"{{"jsonrpc":"2.0","method":"_n","params":["{}"]}}"#,
            "x".repeat(60_000)
        );
        let sending = async {
            loop {
                self.send(&note).await;
            }
        };
        let _ = timeout(Duration::from_secs(2), sending).await;
    }

    /// Sends notifications of 100 KiB in all.
    pub(super) async fn notify_100_kib(&mut self) {
        let words = "words ".repeat(170);
        for number in 0..100 {
            let note =
                format!(r#"{{"jsonrpc":"2.0","method":"_n","params":["{number} {words}"]}}"#);
            self.send(&note).await;
        }
    }

    /// The next frame: its opcode, and its payload, masked as it was; `None` when the connection is
    /// over.
    pub(super) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = self.0.read_u8().await.ok()?;
        let second = self.0.read_u8().await.ok()?;
        let length = match second & 0x7f {
            126 => u64::from(self.0.read_u16().await.ok()?),
            127 => self.0.read_u64().await.ok()?,
            short => u64::from(short),
        };
        if second & 0x80 != 0 {
            self.0.read_u32().await.ok()?;
        }
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((first & 0x0f, payload))
    }

    /// Reads frames up to one of this kind.
    pub(super) async fn next_of(&mut self, opcode: u8) {
        while self.next().await.unwrap().0 != opcode {}
    }

    /// The next message.
    pub(super) async fn message(&mut self) -> Value {
        loop {
            match self.next().await.expect("a message, not the end") {
                (1, text) => return serde_json::from_slice(&text).unwrap(),
                (9, ping) => self.frame(10, &ping).await,
                (10, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The first message that answers the request `id`.
    pub(super) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// `initialize` and `session/new`; the process id of the agent.
    pub(super) async fn begin(&mut self) -> u64 {
        self.send(INITIALIZE).await;
        self.answer(0).await;
        self.send(NEW_SESSION).await;
        self.answer(1).await["result"]["_meta"]["pid"]
            .as_u64()
            .unwrap()
    }

    /// Asks the agent of [`serve`] for its process id.
    pub(super) async fn agent_pid(&mut self) -> u64 {
        self.send(&request(0, "pid")).await;
        self.answer(0).await["result"].as_u64().unwrap()
    }

    /// The close code and reason; earlier frames are skipped.
    pub(super) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let (8, payload) = self.next().await.expect("a close frame") {
                let reason = String::from_utf8(payload[2..].to_vec()).unwrap();
                return (u16::from_be_bytes([payload[0], payload[1]]), reason);
            }
        }
    }
}

/// `connect` to a WebSocket server whose socket the test holds, and that socket.
pub(super) async fn connected(options: &str) -> (Program, WebSocket) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("ws://{}/acp", listener.local_addr().unwrap());
    let connect = Program::start(&words(&format!(
        "connect --guard never --files editor {options} {at}"
    )));
    let (stream, _) = listener.accept().await.unwrap();
    let server: WebSocketStream<TcpStream> = tokio_tungstenite::accept_async(stream).await.unwrap();
    (connect, WebSocket(BufReader::new(server.into_inner())))
}
