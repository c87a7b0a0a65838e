//! An echo over the relay's own WebSocket set-up, for the Autobahn suite to judge (`autobahn.py`).
//!
//! `autobahn_echo server` prints `listening on ws://127.0.0.1:PORT/` and echoes whatever comes,
//! until it is killed; `autobahn_echo client ws://HOST:PORT` runs every case that the suite has
//! there. It stands on `open` and `halves`, so all that moves messages is the relay's; as
//! a server it answers the handshake itself, for the relay's listener takes no binary messages.

use std::error::Error;
use std::future::poll_fn;
use std::process::ExitCode;
use std::sync::Arc;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::http::client::HttpStream;
use acp_relay::transport::websocket::{Half, Opened, Role, derive_accept_key, halves, open};
use acp_relay::transport::{CloseReason, Endpoint, FrameSink, Setup};
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The name under which the suite files its verdicts.
const NAME: &str = "acp-relay";

type Halves<S> = [Half<S>; 2];

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
            let limits = Arc::new(Limits::default());
            match open_server(stream).await {
                Ok((stream, begun)) => {
                    echo(halves(stream, &begun, Role::Server, &limits)).await;
                }
                Err(error) => eprintln!("autobahn_echo: not opened: {error}"),
            }
        });
    }
}

/// Answers the suite's request, whatever it says besides its key.
async fn open_server(mut stream: TcpStream) -> Result<(TcpStream, BytesMut), String> {
    const KEY: &str = "sec-websocket-key:";
    let mut head = BytesMut::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read_buf(&mut head).await;
        if read.map_err(|error| error.to_string())? == 0 || head.len() > 32 << 10 {
            return Err("no head came".to_owned());
        }
    };
    let begun = head.split_off(end);
    let head = String::from_utf8_lossy(&head).into_owned();
    let keyed = |line: &&str| line.to_ascii_lowercase().starts_with(KEY);
    let line = head.lines().find(keyed).ok_or("there is no key")?;
    let accept = derive_accept_key(line[KEY.len()..].trim().as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    let written = stream.write_all(answer.as_bytes()).await;
    written.map_err(|error| error.to_string())?;
    Ok((stream, begun))
}

async fn run_cases(url: &str) -> Outcome {
    let [mut receiver, mut sender] = open_client(&format!("{url}/getCaseCount")).await?;
    let received = poll_fn(|cx| receiver.poll_message(cx)).await;
    let (_, count) = received.ok_or("no case count came")??;
    let count: u32 = std::str::from_utf8(&count)?.parse()?;
    poll_fn(|cx| sender.poll_close(cx, CloseReason::Done)).await?;
    for case in 1..=count {
        echo(open_client(&format!("{url}/runCase?case={case}&agent={NAME}")).await?).await;
    }
    echo(open_client(&format!("{url}/updateReports?agent={NAME}")).await?).await;
    Ok(())
}

async fn open_client(url: &str) -> Outcome<Halves<HttpStream>> {
    // An endpoint of the relay's command line has no query.
    let (base, target) = url.split_at(url.rfind('/').unwrap_or(url.len()));
    let mut to: Endpoint = base.parse()?;
    if let Endpoint::Http(web) = &mut to {
        target.clone_into(&mut web.path);
    }
    let setup = Setup::default();
    let Opened { stream, begun, .. } = open(&to, &setup, None).await?;
    Ok(halves(stream, &begun, Role::Client, &setup.limits))
}

/// Echoes until the other end closes, or breaks the protocol; then closes as the relay does.
async fn echo<S>([mut receiver, mut sender]: Halves<S>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    while let Some(Ok((kind, message))) = poll_fn(|cx| receiver.poll_message(cx)).await {
        let ready = poll_fn(|cx| sender.poll_ready(cx)).await.is_ok();
        if !ready || sender.start_message(kind, message).is_err() {
            break;
        }
        if poll_fn(|cx| sender.poll_flush(cx)).await.is_err() {
            break;
        }
    }
    let _ = poll_fn(|cx| sender.poll_close(cx, CloseReason::Done)).await;
}
