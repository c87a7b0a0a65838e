//! SIGTERM ends the program within the drain time.

use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::support_ws::{WebSocket, request, serve};
use crate::support::http::Caller;
use crate::support::link::run as block_on;
use crate::support::program::Program;

/// A second for turns; an hour for every other wait.
const LIMITS: &str = "--limit drain=1s --limit tcp-user-timeout=3600 --limit http-grace=3600 \
    --limit http-write-timeout=3600 --limit http-keepalive=3600";

/// Less than the thirty seconds that a client which reads nothing used to get.
const DEADLINE: Duration = Duration::from_secs(20);

async fn ends(mut serve: Program) {
    serve.signal(Signal::TERM);
    let exit = timeout(DEADLINE, serve.exit()).await;
    assert_eq!(exit.expect("it still runs").code(), Some(0));
}

#[test]
fn sigterm_does_not_wait_for_an_http_client_lost_during_a_turn() {
    block_on(async {
        let (serve, address) = serve("http", LIMITS).await;
        let client = Caller::to(&address).initialize().await;
        let mut events = client.events(&[]).await;
        let reply = client.post(&[], &request(1, "deaf")).await;
        assert_eq!(reply.status, 202);
        events.until("begun").await;
        drop(events);
        ends(serve).await;
    });
}

#[test]
fn sigterm_does_not_wait_for_a_websocket_client_that_does_not_read() {
    block_on(async {
        let (serve, address) = serve("ws", LIMITS).await;
        let mut client = WebSocket::open(&address, "").await;
        client.send(&request(1, "flood")).await;
        // The flood has begun.
        client.0.read_u8().await.unwrap();
        ends(serve).await;
        drop(client);
    });
}

#[test]
fn sigterm_does_not_wait_for_an_agent_that_ignores_the_end_of_its_input() {
    block_on(async {
        // A step of stopping an agent may take an hour, but not after the drain time.
        let limits = format!("{LIMITS} --limit stop-grace=3600");
        let (serve, address) = serve("ws", &limits).await;
        let mut client = WebSocket::open(&address, "").await;
        client.send(&request(1, "deaf")).await;
        client.next_of(1).await;
        ends(serve).await;
        drop(client);
    });
}
