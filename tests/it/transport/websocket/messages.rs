//! Messages over an open WebSocket: which frames are accepted, ignored and rejected.

use std::sync::Arc;

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::websocket::halves;
use acp_relay::transport::{CloseReason, LinkError};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncWriteExt, duplex};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Part;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use super::{close_frame, open, text};
use crate::support::link::{close, flush, next, received, run, send, setup};
use crate::support::websocket::frame;

#[test]
fn a_message_is_a_text_frame() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        client.send(text(r#"{"id":1}"#)).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, Frame::from(r#"{"id":1}"#));
        send(&mut *server.tx, "{\n\"id\":2}").await.unwrap();
        let got = client.next().await.unwrap().unwrap();
        assert_eq!(got, text("{\n\"id\":2}"));
        // A long one, too.
        let long = format!("\"{}\"", "é".repeat(200_000));
        send(&mut *server.tx, long.clone()).await.unwrap();
        let got = client.next().await.unwrap().unwrap();
        assert!(got == text(&long));
        // Fragments from the peer are joined, with a ping in between.
        for (data, kind, last) in [
            ("{\"id\"", Data::Text, false),
            (":3", Data::Continue, false),
            ("}", Data::Continue, true),
        ] {
            let part = Part::message(data, OpCode::Data(kind), last);
            client.send(Message::Frame(part)).await.unwrap();
            client.send(Message::Ping("p".into())).await.unwrap();
        }
        assert_eq!(received(&mut *server.rx).await, Frame::from(r#"{"id":3}"#));
        let pong = client.next().await.unwrap().unwrap();
        assert_eq!(pong, Message::Pong("p".into()));
    });
}

/// What a peer sends in `B`inary and `T`ext messages, and the messages that are received.
const BINARY: [(&[&str], &[&str]); 11] = [
    (
        &["B{\"id\":1}", "B{\"id\":2}\n"],
        &["{\"id\":1}", "{\"id\":2}"],
    ),
    (&["B \r\n{\"id\":\n1}\r\n", "T{}"], &["{\"id\":\n1}", "{}"]),
    // The chunks of a byte stream.
    (
        &["B{\"a\":", "B1}\n{\"b\"", "B:2}", "B\n"],
        &["{\"a\":1}", "{\"b\":2}"],
    ),
    (&["B{}\r\n\n[]\n"], &["{}", "[]"]),
    // A chunk that is whole by chance belongs to its line.
    (&["B{\"a\":", "B{\"b\":1}", "B}\n"], &["{\"a\":{\"b\":1}}"]),
    // The end of the connection ends the last line.
    (&["B{\"a\":1}\n{\"b\"", "B:2}"], &["{\"a\":1}", "{\"b\":2}"]),
    (&["Bready\n{}\n"], &["ready", "{}"]),
    // A peer that sends text messages sends no byte stream.
    (
        &["T{}", "B{\"a\":", "B1}\n", "B{\"b\":2}"],
        &["{}", "{\"b\":2}"],
    ),
    (&["T{}", "B{}\n[]\n"], &["{}"]),
    (&["B", "T{}"], &["{}"]),
    (&["B\n", "B{}\n"], &["{}"]),
];

#[test]
fn binary_messages_that_hold_text_are_read() {
    for role in [Role::Server, Role::Client] {
        for (sent, expected) in BINARY {
            let received = run(async {
                let (near, far) = duplex(64 << 10);
                let [mut rx, mut tx] = halves(near, &[], role, &Arc::default());
                let peer = match role {
                    Role::Server => Role::Client,
                    Role::Client => Role::Server,
                };
                let mut peer = WebSocketStream::from_raw_socket(far, peer, None).await;
                for message in sent {
                    let (kind, content) = message.split_at(1);
                    let message = match kind {
                        "B" => Message::Binary(content.as_bytes().to_vec().into()),
                        _ => text(content),
                    };
                    peer.send(message).await.unwrap();
                }
                // Answers stay text.
                send(&mut tx, "{}").await.unwrap();
                flush(&mut tx).await.unwrap();
                assert_eq!(peer.next().await.unwrap().unwrap(), text("{}"));
                let reading = async {
                    let mut received = Vec::new();
                    while let Some(item) = next(&mut rx).await {
                        let Decoded::Frame(frame) = item.unwrap() else {
                            panic!("{sent:?}: a fault")
                        };
                        received.push(String::from_utf8(frame.as_bytes().to_vec()).unwrap());
                    }
                    received
                };
                let closing = async { peer.close(None).await.unwrap() };
                tokio::join!(reading, closing).0
            });
            assert_eq!(received, expected, "{role:?}: {sent:?}");
        }
    }
}

#[test]
fn a_byte_stream_in_binary_messages_is_bounded() {
    run(async {
        let (near, far) = duplex(64 << 10);
        let limits = Limits {
            frame_from_network: 1000,
            ..Limits::default()
        };
        let [mut rx, _tx] = halves(near, &[], Role::Server, &Arc::new(limits));
        let mut peer = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
        let chunk = Message::Binary(format!("{{\"a\":\"{}", "x".repeat(900)).into());
        for _ in 0..20 {
            peer.send(chunk.clone()).await.unwrap();
        }
        peer.send(Message::Binary("\n{}\n".into())).await.unwrap();
        let too_long = next(&mut rx).await.unwrap().unwrap();
        assert!(matches!(too_long, Decoded::Error(_)), "{too_long:?}");
        assert_eq!(received(&mut rx).await, Frame::from("{}"));
    });
}

#[test]
fn ten_binary_messages_that_hold_no_text_of_ours_end_the_connection() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        client.send(text("{}")).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, Frame::from("{}"));
        for _ in 0..9 {
            client.send(Message::Binary("\u{1}".into())).await.unwrap();
        }
        client.send(text("{}")).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, Frame::from("{}"));
        client.send(Message::Binary("\u{1}".into())).await.unwrap();
        let fault = next(&mut *server.rx).await.unwrap().unwrap_err();
        assert!(matches!(fault, LinkError::Protocol { .. }), "{fault}");
        assert!(next(&mut *server.rx).await.is_none());
        assert_eq!(close_frame(&mut client).await.code, CloseCode::Unsupported);
    });
}

#[test]
fn a_protocol_violation_is_answered_with_its_close_code() {
    let cases: [(&[u8], CloseCode); _] = [
        (b"\x81\x82\0\0\0\0\xc3\x28", CloseCode::Invalid),
        // In a fragment; the rest of the message has not come.
        (b"\x01\x82\0\0\0\0\xc3\x28", CloseCode::Invalid),
        // The message ends within a character.
        (b"\x81\x81\0\0\0\0\xc3", CloseCode::Invalid),
        (b"\x83\x80\0\0\0\0", CloseCode::Protocol),
        (b"\xc1\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x81\x02{}", CloseCode::Protocol),
        (b"\x80\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x09\x80\0\0\0\0", CloseCode::Protocol),
        // Longer than a control frame may be.
        (
            &[&b"\x89\xfe\0\x7e\0\0\0\0"[..], &[0; 126]].concat(),
            CloseCode::Protocol,
        ),
        (b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x88\x81\0\0\0\0\x03", CloseCode::Protocol),
        (b"\x88\x82\0\0\0\0\x03\xed", CloseCode::Protocol),
        (b"\x88\x83\0\0\0\0\x03\xe8\xff", CloseCode::Invalid),
        // The first fault counts, whatever follows it.
        (
            b"\x88\x81\0\0\0\0\x03\x82\xff\x40\0\0\0\0\0\0\0\0\0\0\0",
            CloseCode::Protocol,
        ),
        // Longer than a message may be, by its header; alone, and with the fragment before.
        (b"\x82\xff\x40\0\0\0\0\0\0\0\0\0\0\0", CloseCode::Size),
        (
            b"\x01\x81\0\0\0\0x\x80\xff\0\0\0\0\x01\0\0\0\0\0\0\0",
            CloseCode::Size,
        ),
    ];
    for (bytes, code) in cases {
        run(async {
            let (client, mut server) = open(&setup()).await;
            let mut stream = client.into_inner();
            stream.write_all(bytes).await.unwrap();
            let fault = next(&mut *server.rx).await.unwrap().unwrap_err();
            assert!(matches!(fault, LinkError::Protocol { .. }), "{fault}");
            let mut client = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
            let closing = async {
                close(&mut *server.tx, CloseReason::Violation)
                    .await
                    .unwrap();
                drop(server);
            };
            let receiving = async {
                // The client goes on sending; a reset would lose our close frame.
                let more = vec![0; 8 << 20];
                client.get_mut().write_all(&more).await.unwrap();
                assert_eq!(close_frame(&mut client).await.code, code);
                drop(client);
            };
            tokio::join!(closing, receiving);
        });
    }
}

#[test]
fn text_that_is_not_utf8_is_never_sent() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        let broken = Frame::new(&b"\"\xff\""[..]);
        send(&mut *server.tx, broken).await.unwrap_err();
        send(&mut *server.tx, "{}").await.unwrap();
        flush(&mut *server.tx).await.unwrap();
        assert_eq!(client.next().await.unwrap().unwrap(), text("{}"));
    });
}

#[test]
fn a_flood_of_pings_delays_no_message() {
    run(async {
        let (client, mut server) = open(&setup()).await;
        let mut stream = client.into_inner();
        // Some 13 MB of pongs that the client does not read: more than the sockets hold.
        let flood = frame(0x89, &[b'p'; 125]).repeat(1000);
        let sending = async {
            for _ in 0..100 {
                stream.write_all(&flood).await.unwrap();
            }
            stream.write_all(&frame(0x81, b"{}")).await.unwrap();
        };
        let (received, ()) = tokio::join!(received(&mut *server.rx), sending);
        assert_eq!(received, Frame::from("{}"));
        // Once the pongs are read, whole frames come, and our message is among them.
        let mut client = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        let receive = async {
            loop {
                match client.next().await.unwrap().unwrap() {
                    Message::Pong(payload) => assert_eq!(payload.len(), 125),
                    message => break assert_eq!(message, text("[]")),
                }
            }
        };
        let (sent, ()) = tokio::join!(send(&mut *server.tx, "[]"), receive);
        sent.unwrap();
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
        let sending = async {
            stream.write_all(&frame(0x01, b"")).await.unwrap();
            for _ in 0..300 {
                stream.write_all(&flood).await.unwrap();
            }
            stream.write_all(&frame(0x80, b"")).await.unwrap();
        };
        let (received, ()) = tokio::join!(received(&mut *server.rx), sending);
        assert!(received.as_bytes() == "x".repeat(300_000).as_bytes());
    });
}
