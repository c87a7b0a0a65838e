//! How a WebSocket is closed, and with which close codes.

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::registry;
use acp_relay::transport::{CloseReason, Endpoint, LinkError};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{close_frame, open, text};
use crate::support::link::{close, next, received, run, send, setup};

#[test]
fn each_close_reason_has_its_close_code() {
    for (why, code) in [
        (CloseReason::Done, CloseCode::Normal),
        (CloseReason::PeerFailed, CloseCode::Error),
        (CloseReason::Shutdown, CloseCode::Away),
        (CloseReason::Unrecorded, CloseCode::Error),
        (CloseReason::Violation, CloseCode::Policy),
    ] {
        run(async {
            let (mut client, mut server) = open(&setup()).await;
            // A message sent before the close arrives before it.
            server.tx.start_send("{}".into()).unwrap();
            let closing = close(&mut *server.tx, why);
            let receiving = async {
                assert_eq!(client.next().await.unwrap().unwrap(), text("{}"));
                let frame = close_frame(&mut client).await;
                assert!(client.next().await.is_none());
                frame
            };
            let (closed, frame) = tokio::join!(closing, receiving);
            closed.unwrap();
            assert_eq!(frame.code, code);
            assert!(next(&mut *server.rx).await.is_none());
        });
    }
}

#[test]
fn a_close_frame_of_the_peer_is_answered() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        let frame = CloseFrame {
            code: CloseCode::Away,
            reason: Utf8Bytes::from_static("bye"),
        };
        client.send(text("{}")).await.unwrap();
        client.close(Some(frame)).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, Frame::from("{}"));
        assert!(next(&mut *server.rx).await.is_none());
        assert_eq!(close_frame(&mut client).await.code, CloseCode::Away);
        // Nothing can be sent, and nothing is waited for.
        send(&mut *server.tx, "{}").await.unwrap_err();
        close(&mut *server.tx, CloseReason::Done).await.unwrap();
    });
}

#[test]
fn a_close_without_a_code_or_with_1000_is_clean() {
    run(async {
        let closes = [
            (None, true),
            (Some(CloseCode::Normal), true),
            (Some(CloseCode::Away), false),
            (Some(CloseCode::Error), false),
        ];
        for (code, clean) in closes {
            let (mut client, mut server) = open(&setup()).await;
            let reason = Utf8Bytes::from_static("bye");
            let frame = code.map(|code| CloseFrame { code, reason });
            client.close(frame).await.unwrap();
            assert!(next(&mut *server.rx).await.is_none());
            assert_eq!(server.rx.ended_cleanly(), clean, "{code:?}");
        }
    });
}

#[test]
fn the_close_code_of_a_server_decides_the_error() {
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
        // It disconnects without a close frame.
        (None, "reading from the peer"),
    ];
    for (close, expected) in cases {
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
                None => assert_eq!(expected, ""),
                Some(Err(fault)) => {
                    let text = fault.to_string();
                    assert!(
                        !expected.is_empty() && text.contains(expected),
                        "{expected}: {text}"
                    );
                    let forbidden = matches!(fault, LinkError::Forbidden(_));
                    assert_eq!(forbidden, expected.starts_with("4401"), "{text}");
                }
                Some(Ok(decoded)) => panic!("{decoded:?}"),
            }
        });
    }
}

#[test]
fn a_peer_that_never_answers_our_close_frame_is_disconnected() {
    // Virtual time: the two seconds pass at once when nothing else can happen.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, mut server) = open(&setup()).await;
        tokio::time::pause();
        let before = tokio::time::Instant::now();
        close(&mut *server.tx, CloseReason::Done).await.unwrap();
        let waited = before.elapsed();
        assert!((1..=3).contains(&waited.as_secs()), "{waited:?}");
        drop(client);
    });
}

#[test]
fn a_peer_that_disconnects_without_a_close_frame_ends_the_stream() {
    run(async {
        let (mut client, mut server) = open(&setup()).await;
        client.send(text("{}")).await.unwrap();
        drop(client.into_inner());
        assert_eq!(received(&mut *server.rx).await, Frame::from("{}"));
        assert!(next(&mut *server.rx).await.is_none());
        assert!(!server.rx.ended_cleanly());
    });
}
