//! SIGTERM ends the program within the drain time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support_ws::{frame, host, open, request, serve};
use crate::support::link::run as block_on;
use crate::support::program::Program;

/// A second for turns; an hour for every other wait.
const LIMITS: [&str; 10] = [
    "--limit",
    "drain=1s",
    "--limit",
    "tcp-user-timeout=3600",
    "--limit",
    "http-grace=3600",
    "--limit",
    "http-write-timeout=3600",
    "--limit",
    "http-keepalive=3600",
];

/// Less than the thirty seconds that a client which reads nothing used to get.
const DEADLINE: Duration = Duration::from_secs(20);

async fn ends(mut serve: Program) {
    serve.signal(Signal::TERM);
    let exit = timeout(DEADLINE, serve.exit()).await;
    assert_eq!(exit.expect("it still runs").code(), Some(0));
}

/// The answer to a request whose connection stays open.
async fn ask(address: &str, method: &str, fields: &str, body: &str) -> (TcpStream, String) {
    let host = host(address);
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let text = format!(
        "{method} /acp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

#[test]
fn sigterm_does_not_wait_for_an_http_client_lost_during_a_turn() {
    block_on(async {
        let (serve, address) = serve("http", &LIMITS).await;
        let (_post, head) = ask(&address, "POST", "", &request(0, "initialize")).await;
        let named = |line: &str| line.to_ascii_lowercase().starts_with("acp-connection-id: ");
        let id = head.lines().find(|line| named(line)).unwrap();
        let fields = format!("{id}\r\n");
        let (mut events, _) = ask(&address, "GET", &fields, "").await;
        let (_post, head) = ask(&address, "POST", &fields, &request(1, "deaf")).await;
        assert!(head.starts_with("HTTP/1.1 202"), "{head}");
        let mut seen = Vec::new();
        while !seen.ends_with(b"begun") {
            seen.push(events.read_u8().await.unwrap());
        }
        drop(events);
        ends(serve).await;
    });
}

#[test]
fn sigterm_does_not_wait_for_a_websocket_client_that_does_not_read() {
    block_on(async {
        let (serve, address) = serve("ws", &LIMITS).await;
        let mut client = open(&address).await;
        let flood = frame(0x81, request(1, "flood").as_bytes());
        client.write_all(&flood).await.unwrap();
        // The flood has begun.
        client.read_u8().await.unwrap();
        ends(serve).await;
        drop(client);
    });
}

#[test]
fn sigterm_does_not_wait_for_an_agent_that_ignores_the_end_of_its_input() {
    block_on(async {
        // A step of stopping an agent may take an hour, but not after the drain time.
        let limits = [&LIMITS[..], &["--limit", "stop-grace=3600"]].concat();
        let (serve, address) = serve("ws", &limits).await;
        let mut client = open(&address).await;
        let deaf = frame(0x81, request(1, "deaf").as_bytes());
        client.write_all(&deaf).await.unwrap();
        client.read_u8().await.unwrap();
        ends(serve).await;
        drop(client);
    });
}
