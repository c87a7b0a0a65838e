//! `rust-sdk-server COMMAND...`: the official Rust SDK's HTTP and WebSocket server in front of an
//! agent on stdio, one process per connection. Prints its port on stdout, and each request.

use agent_client_protocol::AcpAgent;
use agent_client_protocol_http::AcpHttpServer;
use axum::extract::Request;
use axum::middleware::{self, Next};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let agent = move || AcpAgent::from_args(command.clone()).expect("a command");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening {}", listener.local_addr().expect("bound").port());
    let router = AcpHttpServer::new(agent).into_router().layer(middleware::from_fn(async |request: Request, next: Next| {
        println!("asked {} {:?}", request.method(), request.version());
        next.run(request).await
    }));
    axum::serve(listener, router).await.expect("it serves");
}
