//! A WebSocket peer that a test drives byte by byte, and the scripted agent behind `serve`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;

use crate::support::program::Program;

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
pub(super) async fn serve(scheme: &str, options: &[&str]) -> (Program, String) {
    let at = format!("{scheme}://127.0.0.1:0");
    let args = [
        &["serve", "--listen", &at],
        options,
        &["--", "python3", "-uc", AGENT],
    ]
    .concat();
    let mut serve = Program::start(&args);
    let address = serve.address().await;
    (serve, address)
}

/// The host and port of an address.
pub(super) fn host(address: &str) -> &str {
    let (_, rest) = address.split_once("://").unwrap();
    rest.split('/').next().unwrap()
}

/// A request of a client.
pub(super) fn request(id: u32, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string()
}

/// A client's frame, masked with zeros.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// A client that has opened a WebSocket by hand.
pub(super) async fn open(address: &str) -> TcpStream {
    let host = host(address);
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "GET /acp HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"));
    stream
}

/// The next frame: its first byte and its payload, masked as it was; `None` at the end of the
/// stream.
pub(super) async fn received(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let first = stream.read_u8().await.ok()?;
    let second = stream.read_u8().await.ok()?;
    let length = match second & 0x7f {
        126 => usize::from(stream.read_u16().await.ok()?),
        127 => usize::try_from(stream.read_u64().await.ok()?).unwrap(),
        short => usize::from(short),
    };
    if second & 0x80 != 0 {
        stream.read_u32().await.ok()?;
    }
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.ok()?;
    Some((first, payload))
}

/// Asks the agent for its process id, and answers pings meanwhile.
pub(super) async fn agent_pid(stream: &mut TcpStream) -> u64 {
    let ask = frame(0x81, request(0, "pid").as_bytes());
    stream.write_all(&ask).await.unwrap();
    loop {
        let (first, payload) = received(stream).await.unwrap();
        if first == 0x89 {
            stream.write_all(&frame(0x8a, b"")).await.unwrap();
        }
        if first == 0x81 {
            let answer: Value = serde_json::from_slice(&payload).unwrap();
            return answer["result"].as_u64().unwrap();
        }
    }
}

/// `connect` to a WebSocket server whose socket the test holds, and that socket.
pub(super) async fn connected(options: &[&str]) -> (Program, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("ws://{}/acp", listener.local_addr().unwrap());
    let connect = Program::start(&[&["connect", "--guard", "never"], options, &[&at]].concat());
    let (stream, _) = listener.accept().await.unwrap();
    let server: WebSocketStream<TcpStream> = tokio_tungstenite::accept_async(stream).await.unwrap();
    (connect, server.into_inner())
}
