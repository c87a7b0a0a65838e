//! Any body, posted to any route of a real listener, is answered with a status other than 500. A
//! JSON body is a search or run request of Agent Connect, or an error.

#![no_main]

use std::net::SocketAddr;
use std::sync::OnceLock;

use acp_relay::agent_connect::api::search::{AgentFilter, RunFilter, Search, ThreadFilter};
use acp_relay::agent_connect::api::run_request::RunRequest;
use acp_relay::transport::{Endpoint, HttpEndpoint, Setup, registry};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

const ROUTES: [&str; 3] = ["/acp", "/acp/rpc?client_id=c", "/nothing"];

/// A listener that drops its clients as soon as they are accepted.
fn relay() -> &'static (Runtime, SocketAddr) {
    static RELAY: OnceLock<(Runtime, SocketAddr)> = OnceLock::new();
    RELAY.get_or_init(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be started");
        let at: Endpoint = "http://127.0.0.1:0".parse().expect("it is an endpoint");
        let listen = async { registry::listen(&at, &Setup::default()).await };
        let mut listener = runtime.block_on(listen).expect("a port is free");
        let Endpoint::Http(HttpEndpoint { port, .. }) = listener.address() else {
            unreachable!("it listens for HTTP");
        };
        runtime.spawn(async move { while listener.accept().await.is_some() {} });
        (runtime, SocketAddr::from(([127, 0, 0, 1], port)))
    })
}

async fn post(to: SocketAddr, route: &str, body: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).await.expect("it listens");
    let head = format!(
        "POST {route} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .await
        .expect("it reads the head");
    // It may have refused the request already.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

fuzz_target!(|input: &[u8]| {
    let [route, body @ ..] = input else {
        return;
    };
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) {
        let _ = Search::<AgentFilter>::read(&value);
        let _ = Search::<ThreadFilter>::read(&value);
        let _ = Search::<RunFilter>::read(&value);
        let _ = RunRequest::read(value);
    }
    let (runtime, at) = relay();
    let route = ROUTES[usize::from(*route) % ROUTES.len()];
    let answer = runtime.block_on(post(*at, route, body));
    assert!(
        answer.starts_with(b"HTTP/1.1 "),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    assert!(
        !answer.starts_with(b"HTTP/1.1 500"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
});
