//! Metrics of the relay itself: the duration of its shutdown, clients that may resume, refusals of
//! its admin listener.

use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::{Message, connect};

use super::stage::{Relay, Scrape};

const LINKS: &str = "acp_relay_links";
const COME: &str = "acp_relay_link_attach_total";

fn link(scrape: &Scrape, state: &str) -> f64 {
    scrape.value(LINKS, &[("state", state)])
}

#[test]
fn the_drain_duration_is_reported_while_it_runs() {
    let mut relay = Relay::start(&[]);
    let mut client = relay.client();
    client.begin();
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1"}}"#);
    client.receive_until("request_permission");
    let scrape = relay.scrape();
    let name = "acp_relay_drain_duration_seconds";
    assert_eq!(scrape.value(name, &[]), 0.);
    assert_eq!(link(&scrape, "attached"), 1.);
    relay.signal(Signal::TERM);
    while relay.get("/readyz").status == 200 {}
    // It counts from the signal, and not from the first scrape.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(200) {
        assert_eq!(relay.get("/readyz").status, 503);
    }
    let first = relay.scrape();
    assert!(first.value(name, &[]) >= 0.2, "{}", first.value(name, &[]));
    let scrape = relay.scrape_when("more", |scrape| {
        scrape.value(name, &[]) > first.value(name, &[])
    });
    assert_eq!(scrape.value("acp_relay_draining", &[]), 1.);
    assert_eq!(link(&scrape, "draining"), 1.);
    assert_eq!(link(&scrape, "attached"), 0.);
    relay.signal(Signal::TERM);
    relay.wait();
}

/// What a client sends on its WebSocket, and a part of what it receives then.
type Turn<'a> = (&'a str, &'a str);

const HELLO: Turn<'_> = (
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
    "protocolVersion",
);

#[test]
fn detached_and_resumed_clients_are_counted_separately() {
    let options = ["--listen", "ws://127.0.0.1:0", "--on-disconnect", "detach"];
    let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
    let address = format!("ws://{}/acp", relay.address);
    let begin = |turns: &[Turn<'_>]| {
        let (mut socket, _) = connect(&address).unwrap();
        for (sent, received) in turns {
            socket.send(Message::text(*sent)).unwrap();
            while !socket.read().unwrap().to_text().unwrap().contains(received) {}
        }
        socket
    };
    let new =
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let socket = begin(&[HELLO, (new, "sessionId")]);
    let scrape = relay.scrape();
    assert_eq!(link(&scrape, "attached"), 1.);
    assert_eq!(scrape.value(COME, &[("outcome", "new")]), 1.);
    // Its connection breaks without a close.
    drop(socket.into_inner());
    let scrape = relay.scrape_for(LINKS, &[("state", "detached")]);
    assert_eq!(link(&scrape, "attached"), 0.);
    let place = [("where", "return"), ("dir", "to_client")];
    let room = scrape.value("acp_relay_buffer_limit_bytes", &place);
    assert!(room > 0., "{room}");
    let load = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s-1","cwd":"/","mcpServers":[]}}"#;
    let _back = begin(&[HELLO, (load, "\"id\":1")]);
    let scrape = relay.scrape_for(COME, &[("outcome", "resumed")]);
    assert_eq!(link(&scrape, "attached"), 1.);
    assert_eq!(link(&scrape, "detached"), 0.);
    // A third one gets an agent of its own.
    let _other = begin(&[HELLO, (new, "sessionId")]);
    let scrape = relay.scrape();
    assert_eq!(link(&scrape, "attached"), 2.);
    assert_eq!(scrape.value(COME, &[("outcome", "new")]), 2.);
}

#[test]
fn a_client_is_rejected_once_whatever_the_reason() {
    let options = [
        "--listen",
        "ws://127.0.0.1:0",
        "--require-token",
        "--limit",
        "connections=1",
    ];
    let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
    let name = "acp_relay_connections_rejected_total";
    let bearer = Relay::bearer(&relay.folder, &["show"]);
    let _connected = relay.open(&bearer);
    relay.scrape_for("acp_relay_connections_open", &[("transport", "ws")]);
    for (at, (fields, reason)) in [
        ("", "auth"),
        ("Authorization: Bearer wrong\r\n", "auth"),
        ("Origin: https://evil.example\r\n", "origin"),
    ]
    .into_iter()
    .enumerate()
    {
        let before = relay.scrape().value(name, &[("reason", reason)]);
        let stream = relay.open(fields);
        relay.scrape_when(reason, |scrape| {
            scrape.value(name, &[("reason", reason)]) > before
        });
        // The relay is done with it once the connection has ended.
        let mut rest = Vec::new();
        let _ = (&stream).read_to_end(&mut rest);
        let scrape = relay.scrape();
        assert_eq!(scrape.value(name, &[]), (at + 1) as f64, "{fields}");
        assert_eq!(scrape.value(name, &[("reason", "limit")]), 0., "{fields}");
    }
    // An admitted client above the limit receives an error, and is counted for that.
    let _second = relay.open(&bearer);
    let scrape = relay.scrape_for(name, &[("reason", "limit")]);
    assert_eq!(scrape.value(name, &[]), 4.);
}
