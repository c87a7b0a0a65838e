//! WebSockets: who comes in, what is not taken, and how a conversation is closed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use acp_relay::transport::registry;
use acp_relay::transport::{Endpoint, Farewell, Link, LinkError, OpenErrorKind, Setup, Web};
use acp_relay::wire::framing::Cut;
use acp_relay::wire::{Fault, Frame, Id, Limits, Role as WhichHalf};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Part;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

use crate::support::link::{
    accept, close, flush, heard, listen, next, run, say, setup, setup_with,
};

type Client = WebSocketStream<TcpStream>;

async fn dial(address: &Endpoint) -> TcpStream {
    let Endpoint::Web(Web { host, port, .. }) = address else {
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
        // A long one, too.
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
        let Endpoint::Web(Web { port, .. }) = address else {
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
    let cases: [(&[u8], CloseCode); _] = [
        (b"\x81\x82\0\0\0\0\xc3\x28", CloseCode::Invalid),
        // In mid-message, of which most has not come.
        (b"\x01\xfe\x80\0\0\0\0\0\xc3\x28", CloseCode::Invalid),
        // It ends within a character.
        (b"\x81\x81\0\0\0\0\xc3", CloseCode::Invalid),
        (b"\x83\x80\0\0\0\0", CloseCode::Protocol),
        (b"\xc1\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x81\x02{}", CloseCode::Protocol),
        (b"\x80\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x09\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x89\xfe\0\x7e\0\0\0\0", CloseCode::Protocol),
        (b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x88\x81\0\0\0\0\x03", CloseCode::Protocol),
        (b"\x88\x82\0\0\0\0\x03\xed", CloseCode::Protocol),
        (b"\x88\x83\0\0\0\0\x03\xe8\xff", CloseCode::Invalid),
    ];
    for (bytes, code) in cases {
        run(async {
            let (client, mut server) = open(&setup()).await;
            let mut stream = client.into_inner();
            stream.write_all(bytes).await.unwrap();
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
        (Farewell::Unrecorded, CloseCode::Error),
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
fn a_close_without_a_code_or_with_1000_is_on_purpose() {
    run(async {
        let closes = [
            (None, true),
            (Some(CloseCode::Normal), true),
            (Some(CloseCode::Away), false),
            (Some(CloseCode::Error), false),
        ];
        for (code, wanted) in closes {
            let (mut client, mut server) = open(&setup()).await;
            let reason = Utf8Bytes::from_static("bye");
            let frame = code.map(|code| CloseFrame { code, reason });
            client.close(frame).await.unwrap();
            assert!(next(&mut *server.rx).await.is_none());
            assert_eq!(server.rx.ended_on_purpose(), wanted, "{code:?}");
        }
    });
}

#[test]
fn a_server_that_goes_is_told_of_by_what_it_said() {
    let closed = |code, why: &'static str| {
        Some(Some(CloseFrame {
            code: CloseCode::from(code),
            reason: Utf8Bytes::from_static(why),
        }))
    };
    let cases = [
        (Some(None), ""),
        (closed(1000, "bye"), ""),
        (closed(1001, "going"), ""),
        (closed(1011, "oops\u{1b}[2J"), "1011: oops\\u{1b}[2J"),
        (closed(1013, ""), "1013"),
        (
            closed(4401, "no longer"),
            "4401: no longer. Check the token",
        ),
        // It goes without a word.
        (None, "reading from the peer"),
    ];
    for (close, told) in cases {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = format!("ws://{}/acp", listener.local_addr().unwrap());
            let to: Endpoint = to.parse().unwrap();
            let setup = setup();
            let serve = async {
                let (stream, _) = listener.accept().await.unwrap();
                accept_async(stream).await.unwrap()
            };
            let (link, mut server) = tokio::join!(registry::connect(&to, &setup), serve);
            let mut link = link.unwrap();
            match close {
                Some(frame) => server.close(frame).await.unwrap(),
                None => drop(server),
            }
            match next(&mut *link.rx).await {
                None => assert_eq!(told, ""),
                Some(Err(fault)) => {
                    let said = fault.to_string();
                    assert!(!told.is_empty() && said.contains(told), "{told}: {said}");
                    let forbidden = matches!(fault, LinkError::Forbidden(_));
                    assert_eq!(forbidden, told.starts_with("4401"), "{said}");
                }
                Some(Ok(cut)) => panic!("{cut:?}"),
            }
        });
    }
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
        assert!(!server.rx.ended_on_purpose());
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

/// A request that upgrades to a WebSocket, but for what `headers` say.
fn request(method: &str, headers: &[(&str, &str)]) -> String {
    let mut request = format!("{method} /acp HTTP/1.1\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + "\r\n"
}

#[test]
fn who_asks_for_something_else_gets_http() {
    const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("Sec-WebSocket-Version", "13");
    const UPGRADE: (&str, &str) = ("upgrade", "h2c, WebSocket");
    const CONNECTION: (&str, &str) = ("Connection", "keep-alive, upgrade");
    let many: String = request("GET", &[("A", "b"); 100]);
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let address = listener.address();
        let Endpoint::Web(Web { port, .. }) = address else {
            panic!("{address}");
        };
        let host = format!("127.0.0.1:{port}");
        let host = ("Host", host.as_str());
        let wrong_key = ("Sec-WebSocket-Key", "short");
        // request, status, a word of the answer
        let cases = [
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION, KEY]),
                "101",
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            ),
            (request("GET", &[host]), "426", "Upgrade: websocket"),
            (
                request("POST", &[host]) + "{\"jsonrpc\":\"2.0\"}",
                "426",
                "WebSocket endpoint",
            ),
            (
                request(
                    "GET",
                    &[
                        host,
                        UPGRADE,
                        CONNECTION,
                        ("Sec-WebSocket-Version", "8"),
                        KEY,
                    ],
                ),
                "426",
                "Sec-Websocket-Version: 13",
            ),
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION]),
                "400",
                "Key",
            ),
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION, wrong_key]),
                "400",
                "Key",
            ),
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION, KEY, KEY]),
                "400",
                "Key",
            ),
            (
                request("POST", &[host, UPGRADE, CONNECTION, VERSION, KEY]),
                "400",
                "GET",
            ),
            (
                request("GET", &[host, UPGRADE, VERSION, KEY]),
                "400",
                "Connection",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n".to_owned(),
                "400",
                "no HTTP/1.1\n",
            ),
            (many.clone(), "431", "too many fields\n"),
            (
                request("GET", &[("A", &"b".repeat(40_000))]),
                "431",
                "is too long",
            ),
        ];
        for (request, status, word) in cases {
            let mut client = dial(&address).await;
            let answering = async {
                let link = listener.accept().await.unwrap().unwrap().finish.await;
                assert_eq!(link.is_ok(), status == "101", "{request}");
            };
            let asking = async {
                client.write_all(request.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                String::from_utf8(answer).unwrap()
            };
            let (answer, ()) = tokio::join!(asking, answering);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}{answer}"
            );
            assert!(answer.contains(word), "{request}{answer}");
        }
    });
}

#[test]
fn a_server_that_says_no_is_explained() {
    run(async {
        for (status, kind, remedy) in [
            ("401 Unauthorized", OpenErrorKind::Forbidden, "token"),
            ("404 Not Found", OpenErrorKind::Protocol, "path"),
            ("429 Too Many Requests", OpenErrorKind::Unavailable, "later"),
            (
                "503 Service Unavailable",
                OpenErrorKind::Unavailable,
                "later",
            ),
            ("502 Bad Gateway", OpenErrorKind::Unavailable, "later"),
            ("200 OK", OpenErrorKind::Protocol, "path"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let endpoint = format!("ws://{}/acp", listener.local_addr().unwrap());
            let answering = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\nwhy\n");
                socket.write_all(answer.as_bytes()).await.unwrap();
                socket
            };
            let (endpoint, setup) = (endpoint.parse().unwrap(), setup());
            let (opened, _socket) = tokio::join!(registry::connect(&endpoint, &setup), answering);
            let error = opened.map(drop).unwrap_err();
            let told = error.to_string();
            assert_eq!(error.kind, kind, "{told}");
            assert!(told.contains(status) && told.contains("why"), "{told}");
            assert!(told.contains(remedy), "{told}");
        }
    });
}

#[test]
fn what_follows_the_head_is_heard() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let address = listener.address();
        let Endpoint::Web(Web { port, .. }) = address else {
            panic!("{address}");
        };
        let mut client = dial(&address).await;
        let host = format!("127.0.0.1:{port}");
        let mut bytes = request(
            "GET",
            &[
                ("Host", &host),
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ],
        )
        .into_bytes();
        bytes.extend_from_slice(b"\x81\x82\0\0\0\0{}");
        client.write_all(&bytes).await.unwrap();
        let mut server = accept(&mut *listener).await;
        assert_eq!(heard(&mut *server.rx).await, Frame::from("{}"));
    });
}

#[test]
fn a_server_that_answers_wrong_is_not_spoken_to() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK"),
        (
            "HTTP/1.1 101 Whatever\r\n\r\n",
            "upgrades to something else",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "not to our request",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n", "not HTTP/1.1"),
        ("", "end of file"),
    ];
    for (answer, word) in cases {
        run(async {
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = socket.local_addr().unwrap().port();
            let to: Endpoint = format!("ws://127.0.0.1:{port}").parse().unwrap();
            let setup = setup();
            let serving = async {
                let (mut stream, _) = socket.accept().await.unwrap();
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (opened, ()) = tokio::join!(registry::connect(&to, &setup), serving);
            let fault = opened.unwrap_err();
            assert_eq!(fault.kind, OpenErrorKind::Protocol);
            assert!(fault.to_string().contains(word), "{word}: {fault}");
        });
    }
}

/// A frame of a client, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0xff];
    frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

#[test]
fn an_over_long_message_in_fragments_is_one_flaw() {
    run(async {
        let limit = 100_000;
        let limits = Limits {
            frame_from_network: limit,
            ..Limits::default()
        };
        let (client, mut server) = open(&setup_with(limits)).await;
        let mut stream = client.into_inner();
        let speak = async {
            let head = frame(0x01, br#"{"id":"long","method":"m","params":""#);
            stream.write_all(&head).await.unwrap();
            for _ in 0..300 {
                // Not UTF-8 beyond the limit, and pings in between.
                stream.write_all(&frame(0x00, &[b'x'; 1000])).await.unwrap();
                stream.write_all(b"\x89\x80\0\0\0\0").await.unwrap();
            }
            stream.write_all(&frame(0x80, b"\"}")).await.unwrap();
            stream.write_all(&frame(0x81, b"{}")).await.unwrap();
        };
        let listen = async {
            let Some(Ok(Cut::Flaw(flaw))) = next(&mut *server.rx).await else {
                panic!("it was taken");
            };
            assert_eq!(flaw.fault, Fault::TooLong { limit });
            assert_eq!(flaw.id, Id::String(b"\"long\"").to_owned());
            assert_eq!(flaw.role, Some(WhichHalf::Call));
            assert_eq!(heard(&mut *server.rx).await, Frame::from("{}"));
        };
        tokio::join!(speak, listen);
    });
}

#[test]
fn a_flood_of_pings_holds_up_nothing() {
    run(async {
        let (client, mut server) = open(&setup()).await;
        let mut stream = client.into_inner();
        // Some 13 MB of pongs that nobody reads: more than the sockets hold.
        let ping = [&b"\x89\xfd\0\0\0\0"[..], &[b'p'; 125]].concat();
        let flood = ping.repeat(1000);
        let speak = async {
            for _ in 0..100 {
                stream.write_all(&flood).await.unwrap();
            }
            stream.write_all(&frame(0x81, b"{}")).await.unwrap();
        };
        let (heard, ()) = tokio::join!(heard(&mut *server.rx), speak);
        assert_eq!(heard, Frame::from("{}"));
        // Once the pongs are read, whole frames come, and what we say is among them.
        let mut client = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        let hear = async {
            loop {
                match client.next().await.unwrap().unwrap() {
                    Message::Pong(payload) => assert_eq!(payload.len(), 125),
                    message => break assert_eq!(message, text("[]")),
                }
            }
        };
        let (said, ()) = tokio::join!(say(&mut *server.tx, "[]"), hear);
        said.unwrap();
    });
}

#[test]
fn a_flood_of_fragments_is_one_message() {
    run(async {
        let (client, mut server) = open(&setup()).await;
        let mut stream = client.into_inner();
        // 300,000 fragments of one byte, and as many of none.
        let pair = [&frame(0x00, b"x")[..], &frame(0x00, b"")].concat();
        let flood = pair.repeat(1000);
        let speak = async {
            stream.write_all(&frame(0x01, b"")).await.unwrap();
            for _ in 0..300 {
                stream.write_all(&flood).await.unwrap();
            }
            stream.write_all(&frame(0x80, b"")).await.unwrap();
        };
        let (heard, ()) = tokio::join!(heard(&mut *server.rx), speak);
        assert!(heard.as_bytes() == "x".repeat(300_000).as_bytes());
    });
}
