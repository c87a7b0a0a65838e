//! An echo over the relay's own WebSocket set-up, for the Autobahn suite to judge (`autobahn.py`).
//!
//! `autobahn_echo server` prints `listening on ws://127.0.0.1:PORT/` and echoes whatever comes,
//! until it is killed; `autobahn_echo client ws://HOST:PORT` runs every case that the suite has
//! there. It stands on `accept_stream` and `connect_stream`, so the door, the library and its
//! configuration are those of the relay. Not here: what the relay makes of messages (it takes no
//! binary ones), which the suite does not ask.

use std::error::Error;
use std::process::ExitCode;

use acp_relay::guard::origin::{Door, Names};
use acp_relay::transport::websocket::{Entrance, accept_stream, connect_stream};
use acp_relay::wire::Limits;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;

/// The name under which the suite files its verdicts.
const NAME: &str = "acp-relay";

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["server"] => serve().await,
        ["client", url] => run_cases(url.trim_end_matches('/')).await,
        _ => Err("usage: autobahn_echo server | client ws://HOST:PORT".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("autobahn_echo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    eprintln!("listening on ws://127.0.0.1:{port}/");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let default_port = 80;
            let entrance = Entrance {
                path: "/".to_owned(),
                door: Door {
                    origins: Vec::new(),
                    names: Names::Loopback { port, default_port },
                },
            };
            match accept_stream(stream, &entrance, &Limits::default()).await {
                Ok(stream) => echo(stream).await,
                Err(error) => eprintln!("autobahn_echo: not opened: {error}"),
            }
        });
    }
}

async fn run_cases(url: &str) -> Outcome {
    let count = open(&format!("{url}/getCaseCount")).await?.next().await;
    let count: u32 = count.ok_or("no case count came")??.to_text()?.parse()?;
    for case in 1..=count {
        echo(open(&format!("{url}/runCase?case={case}&agent={NAME}")).await?).await;
    }
    echo(open(&format!("{url}/updateReports?agent={NAME}")).await?).await;
    Ok(())
}

async fn open(url: &str) -> Outcome<WebSocketStream<TcpStream>> {
    let rest = url.strip_prefix("ws://").ok_or("the URL is not ws://")?;
    let address = rest.split('/').next().unwrap_or(rest);
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(connect_stream(stream, url, &Limits::default()).await?)
}

/// Echoes until the other end closes, or breaks the protocol: then the connection is dropped,
/// which the suite takes for failing it.
async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut stream: WebSocketStream<S>) {
    while let Some(Ok(message)) = stream.next().await {
        let data = message.is_text() || message.is_binary();
        if data && stream.send(message).await.is_err() {
            return;
        }
    }
}
