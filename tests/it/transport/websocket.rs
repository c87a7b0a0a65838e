//! WebSockets: who comes in, what is not taken, and how a conversation is closed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use acp_relay::transport::{Endpoint, Farewell, Link, LinkError, OpenErrorKind, Setup, registry};
use acp_relay::wire::{Frame, Limits};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Part;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::link::{
    accept, close, flush, heard, listen, next, run, say, setup, setup_with,
};

type Client = WebSocketStream<TcpStream>;

async fn dial(address: &Endpoint) -> TcpStream {
    let Endpoint::WebSocket { host, port, .. } = address else {
        panic!("{address}");
    };
    TcpStream::connect((host.as_str(), *port)).await.unwrap()
}

/// A client of the library's own making, and our end.
async fn open(setup: &Setup) -> (Client, Link) {
    let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), setup).await;
    let address = listener.address();
    let stream = dial(&address).await;
    let opening = client_async(address.to_string(), stream);
    let (client, server) = tokio::join!(opening, accept(&mut *listener));
    (client.unwrap().0, server)
}

/// The close frame our end sends, after which it hangs up.
async fn farewell(client: &mut Client) -> CloseFrame {
    loop {
        match client.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return frame,
            Some(Ok(_)) => {}
            other => panic!("no close frame: {other:?}"),
        }
    }
}

fn text(text: &str) -> Message {
    Message::Text(text.into())
}

#[test]
fn a_message_is_a_text_frame() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        client.send(text(r#"{"id":1}"#)).await.unwrap();
        assert_eq!(heard(&mut *server.rx).await, Frame::from(r#"{"id":1}"#));
        say(&mut *server.tx, "{\n\"id\":2}").await.unwrap();
        let got = client.next().await.unwrap().unwrap();
        assert_eq!(got, text("{\n\"id\":2}"));
        // A long one comes in pieces, and is one message all the same.
        let long = format!("\"{}\"", "é".repeat(200_000));
        say(&mut *server.tx, long.clone()).await.unwrap();
        let got = client.next().await.unwrap().unwrap();
        assert!(got == text(&long));
        // Fragments of a peer are put together, with a ping in between.
        for (data, kind, last) in [
            ("{\"id\"", Data::Text, false),
            (":3", Data::Continue, false),
            ("}", Data::Continue, true),
        ] {
            let part = Part::message(data, OpCode::Data(kind), last);
            client.send(Message::Frame(part)).await.unwrap();
            client.send(Message::Ping("p".into())).await.unwrap();
        }
        assert_eq!(heard(&mut *server.rx).await, Frame::from(r#"{"id":3}"#));
        let pong = client.next().await.unwrap().unwrap();
        assert_eq!(pong, Message::Pong("p".into()));
    });
}

#[test]
fn another_path_or_a_web_page_is_refused() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let address = listener.address();
        let Endpoint::WebSocket { port, .. } = address else {
            panic!("{address}");
        };
        let good = format!("Host: 127.0.0.1:{port}\r\n");
        // path, headers, status
        let cases = [
            ("/acp", good.clone(), "101"),
            ("/acp?x=1", good.clone(), "101"),
            ("/", good.clone(), "404"),
            ("/acp/", good.clone(), "404"),
            (
                "/acp",
                format!("{good}Origin: http://evil.example\r\n"),
                "403",
            ),
            ("/acp", format!("{good}Origin: null\r\n"), "403"),
            (
                "/acp",
                format!("{good}Origin: http://127.0.0.1:{port}\r\n"),
                "403",
            ),
            ("/acp", format!("Host: evil.example:{port}\r\n"), "403"),
            ("/acp", "Host: 127.0.0.1\r\n".to_owned(), "403"),
            ("/acp", String::new(), "403"),
        ];
        for (path, headers, status) in cases {
            let mut client = dial(&address).await;
            let request = format!(
                "GET {path} HTTP/1.1\r\n{headers}Connection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
            );
            client.write_all(request.as_bytes()).await.unwrap();
            let arrival = listener.accept().await.unwrap().unwrap();
            let link = arrival.finish.await;
            let mut answer = vec![0; 1024];
            let count = client.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..count]).to_ascii_lowercase();
            assert!(
                answer.starts_with(&format!("http/1.1 {status}")),
                "{request}{answer}"
            );
            assert!(!answer.contains("deflate"), "{answer}");
            match link {
                Ok(_) => assert_eq!(status, "101"),
                Err(fault) => assert_eq!(fault.kind, OpenErrorKind::Forbidden, "{fault}"),
            }
        }
    });
}

#[test]
fn a_connector_says_why_it_was_refused() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0/here".parse().unwrap(), &setup()).await;
        let there = listener.address().to_string().replace("/here", "/there");
        let (there, setup) = (there.parse().unwrap(), setup());
        let connecting = registry::connect(&there, &setup);
        let accepting = async { listener.accept().await.unwrap().unwrap().finish.await };
        let (client, server) = tokio::join!(connecting, accepting);
        let fault = client.unwrap_err();
        assert_eq!(fault.kind, OpenErrorKind::Protocol);
        let said = fault.to_string();
        assert!(
            said.contains("404") && said.contains("only /here is served"),
            "{said}"
        );
        assert!(server.unwrap_err().to_string().contains("404"));
    });
}

#[test]
fn binary_messages_are_passed_over_until_there_are_ten() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        for _ in 0..9 {
            client.send(Message::Binary("{}".into())).await.unwrap();
        }
        client.send(text("{}")).await.unwrap();
        assert_eq!(heard(&mut *server.rx).await, Frame::from("{}"));
        client.send(Message::Binary("{}".into())).await.unwrap();
        let fault = next(&mut *server.rx).await.unwrap().unwrap_err();
        assert!(matches!(fault, LinkError::Protocol { .. }), "{fault}");
        assert!(next(&mut *server.rx).await.is_none());
        assert_eq!(farewell(&mut client).await.code, CloseCode::Unsupported);
    });
}

#[test]
fn what_breaks_the_protocol_is_told_its_code() {
    let limits = Limits {
        frame_from_network: 100_000,
        ..Limits::default()
    };
    let raw = |bytes: &'static [u8], code| (bytes.to_vec(), code);
    // A header that announces 1 MiB, and some of it.
    let mut long = vec![0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
    long.resize(300_000, b'x');
    let cases = [
        (long, CloseCode::Size),
        raw(b"\x81\x82\0\0\0\0\xc3\x28", CloseCode::Invalid),
        raw(b"\x83\x80\0\0\0\0", CloseCode::Protocol),
        raw(b"\xc1\x80\0\0\0\0", CloseCode::Protocol),
        raw(b"\x81\x02{}", CloseCode::Protocol),
    ];
    for (bytes, code) in cases {
        run(async {
            let (client, mut server) = open(&setup_with(limits.clone())).await;
            let mut stream = client.into_inner();
            stream.write_all(&bytes).await.unwrap();
            let fault = next(&mut *server.rx).await.unwrap().unwrap_err();
            assert!(matches!(fault, LinkError::Protocol { .. }), "{fault}");
            let mut client = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
            let leaving = async {
                close(&mut *server.tx, Farewell::Violation).await.unwrap();
                drop(server);
            };
            let hearing = async {
                // It has not noticed yet and goes on; a reset would cost it our close frame.
                let more = vec![0; 8 << 20];
                client.get_mut().write_all(&more).await.unwrap();
                assert_eq!(farewell(&mut client).await.code, code);
                drop(client);
            };
            tokio::join!(leaving, hearing);
        });
    }
}

#[test]
fn the_close_code_says_why() {
    for (why, code) in [
        (Farewell::Done, CloseCode::Normal),
        (Farewell::PeerFailed, CloseCode::Error),
        (Farewell::Shutdown, CloseCode::Away),
        (Farewell::Violation, CloseCode::Policy),
    ] {
        run(async {
            let (mut client, mut server) = open(&setup()).await;
            // What was said before arrives before.
            server.tx.start_send("{}".into()).unwrap();
            let leaving = close(&mut *server.tx, why);
            let hearing = async {
                assert_eq!(client.next().await.unwrap().unwrap(), text("{}"));
                let frame = farewell(&mut client).await;
                assert!(client.next().await.is_none());
                frame
            };
            let (left, frame) = tokio::join!(leaving, hearing);
            left.unwrap();
            assert_eq!(frame.code, code);
            assert!(next(&mut *server.rx).await.is_none());
        });
    }
}

#[test]
fn a_peer_that_closes_is_answered() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        let frame = CloseFrame {
            code: CloseCode::Away,
            reason: Utf8Bytes::from_static("bye"),
        };
        client.send(text("{}")).await.unwrap();
        client.close(Some(frame)).await.unwrap();
        assert_eq!(heard(&mut *server.rx).await, Frame::from("{}"));
        assert!(next(&mut *server.rx).await.is_none());
        assert_eq!(farewell(&mut client).await.code, CloseCode::Away);
        // There is nobody to write to, and nothing to wait for.
        say(&mut *server.tx, "{}").await.unwrap_err();
        close(&mut *server.tx, Farewell::Done).await.unwrap();
    });
}

#[test]
fn a_peer_that_never_answers_our_close_is_left() {
    // Virtual time: the two seconds pass at once when nothing else can happen.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, mut server) = open(&setup()).await;
        tokio::time::pause();
        let before = tokio::time::Instant::now();
        close(&mut *server.tx, Farewell::Done).await.unwrap();
        let waited = before.elapsed();
        assert!((1..=3).contains(&waited.as_secs()), "{waited:?}");
        drop(client);
    });
}

#[test]
fn a_peer_that_goes_without_a_word_just_ends_the_stream() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        client.send(text("{}")).await.unwrap();
        drop(client.into_inner());
        assert_eq!(heard(&mut *server.rx).await, Frame::from("{}"));
        assert!(next(&mut *server.rx).await.is_none());
    });
}

#[test]
fn text_that_is_not_utf8_is_never_sent() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        let broken = Frame::new(&b"\"\xff\""[..]);
        say(&mut *server.tx, broken).await.unwrap_err();
        say(&mut *server.tx, "{}").await.unwrap();
        flush(&mut *server.tx).await.unwrap();
        assert_eq!(client.next().await.unwrap().unwrap(), text("{}"));
    });
}
