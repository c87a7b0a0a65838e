//! The conformance suite of the transports. It runs on each one in the registry.

use std::time::Duration;

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, FrameFault, Id, Limits};
use acp_relay::link::MAX_HEADER;
use acp_relay::transport::{CloseReason, Endpoint, registry};
use tokio::time::timeout;

use super::pairs::{Pair, listening, pair, place, schemes};
use crate::support::link::{accept, close, feed, flush, listen, next, ready, received, run, send};

/// Runs `test` over a fresh pair of each transport.
fn each(test: impl AsyncFn(Pair)) {
    each_within(&Limits::default(), test);
}

fn each_within(limits: &Limits, test: impl AsyncFn(Pair)) {
    for scheme in schemes() {
        run(async { test(pair(scheme, limits).await).await });
    }
}

fn numbered(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"number":{number}}}}}"#)
}

/// A notification of about `bytes` bytes.
fn large(bytes: usize) -> Frame {
    format!(r#"{{"method":"m","params":"{}"}}"#, "x".repeat(bytes)).into()
}

#[test]
fn messages_go_both_ways_at_once_and_in_order() {
    each(async |mut pair| {
        let count = 2000;
        let exchange = async |link: &mut transport::Link| {
            let (rx, tx) = (&mut link.rx, &mut link.tx);
            let sending = async {
                for number in 0..count {
                    feed(&mut **tx, numbered(number)).await.unwrap();
                    if number % 7 == 0 {
                        flush(&mut **tx).await.unwrap();
                    }
                }
                flush(&mut **tx).await.unwrap();
            };
            let receiving = async {
                for number in 0..count {
                    assert_eq!(received(&mut **rx).await, Frame::from(numbered(number)));
                }
            };
            tokio::join!(sending, receiving);
        };
        tokio::join!(exchange(&mut pair.client), exchange(&mut pair.server));
    });
}

#[test]
fn small_and_large_messages_keep_their_order() {
    each(async |mut pair| {
        let sizes = [
            10,
            16 << 10,
            20,
            200_000,
            30,
            131_000,
            17_000,
            40,
            8 << 20,
            50,
        ];
        let (tx, rx) = (&mut pair.client.tx, &mut pair.server.rx);
        let sending = async {
            for size in sizes {
                feed(&mut **tx, large(size)).await.unwrap();
            }
            flush(&mut **tx).await.unwrap();
        };
        let receiving = async {
            for size in sizes {
                let got = received(&mut **rx).await;
                assert!(got == large(size), "{}: {size}", pair.scheme);
                // Back again, in the memory it came in.
                feed(&mut *pair.server.tx, got).await.unwrap();
                flush(&mut *pair.server.tx).await.unwrap();
            }
        };
        let returned = async {
            for size in sizes {
                assert!(received(&mut *pair.client.rx).await == large(size));
            }
        };
        tokio::join!(sending, receiving, returned);
    });
}

#[test]
fn a_message_beyond_the_limit_has_a_defined_outcome() {
    let limit = 40_000;
    let limits = Limits {
        frame_from_network: limit,
        frame_from_child: limit,
        ..Limits::default()
    };
    each_within(&limits, async |mut pair| {
        // 413 (see `http::codes`), and close code 1009 (see `websocket::messages`).
        if ["http", "link", "ws", "wss"].contains(&pair.scheme) {
            return;
        }
        let (client, server) = (&mut pair.client, &mut pair.server);
        send(&mut *client.tx, numbered(1)).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, Frame::from(numbered(1)));
        let sending = async {
            let request = format!(r#"{{"id":1,"params":"{}"}}"#, "x".repeat(400_000));
            send(&mut *client.tx, request).await.unwrap();
            send(&mut *client.tx, numbered(2)).await.unwrap();
        };
        let receiving = async {
            match next(&mut *server.rx).await {
                Some(Ok(Decoded::Error(error))) => {
                    // The header of a link comes before its messages.
                    let header = if pair.scheme == "begun" {
                        MAX_HEADER
                    } else {
                        0
                    };
                    let limit = limit + header;
                    assert_eq!(error.fault, FrameFault::TooLong { limit });
                    assert_eq!(error.id, Id::Number(b"1").to_owned());
                }
                other => panic!("{}: {other:?}", pair.scheme),
            }
            // The next message is read.
            assert_eq!(received(&mut *server.rx).await, Frame::from(numbered(2)));
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn a_reader_that_stalls_pauses_its_writer_and_misses_nothing() {
    each(async |mut pair| {
        // Each message over HTTP is a request, and waits for the one before.
        let count = match pair.scheme {
            "http" => 2000,
            _ => 10_000,
        };
        let message = |number: usize| {
            let text = "x".repeat(12_000);
            Frame::from(format!(r#"{{"method":"n","params":"{number:8}{text}"}}"#))
        };
        let (tx, rx) = (&mut pair.client.tx, &mut pair.server.rx);
        let mut given = 0;
        // Until the writer pauses. A wait that is too short makes the test weaker, not wrong.
        while given < count {
            match timeout(Duration::from_millis(200), ready(&mut **tx)).await {
                Ok(ready) => ready.unwrap(),
                Err(_) => break,
            }
            tx.start_send(message(given)).unwrap();
            given += 1;
        }
        assert!(given < count / 2, "{}: it never paused", pair.scheme);
        let sending = async {
            for number in given..count {
                feed(&mut **tx, message(number)).await.unwrap();
            }
            flush(&mut **tx).await.unwrap();
        };
        let receiving = async {
            for number in 0..count {
                let got = received(&mut **rx).await;
                assert!(got == message(number), "{number}: {got:?}");
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn messages_before_a_close_arrive_and_one_direction_may_end_before_the_other() {
    each(async |pair| {
        let (mut client, mut server) = (pair.client, pair.server);
        let sending = async {
            for number in 0..100 {
                feed(&mut *client.tx, numbered(number)).await.unwrap();
            }
            // Closing flushes.
            close(&mut *client.tx, CloseReason::Done).await.unwrap();
        };
        let receiving = async {
            for number in 0..100 {
                let got = received(&mut *server.rx).await;
                assert_eq!(got, Frame::from(numbered(number)));
            }
            assert!(next(&mut *server.rx).await.is_none());
            assert!(next(&mut *server.rx).await.is_none(), "it stays ended");
        };
        tokio::join!(sending, receiving);
        if pair.scheme == "kept" {
            // The conversation is what ends, and not a stream of it.
            return;
        }
        // The end of ssh's stream is the end of the conversation there.
        let half_close = server.peer.half_close && pair.scheme != "ssh";
        assert_eq!(client.peer.half_close, half_close);
        if !client.peer.half_close {
            return;
        }
        send(&mut *server.tx, numbered(1)).await.unwrap();
        close(&mut *server.tx, CloseReason::Done).await.unwrap();
        assert_eq!(received(&mut *client.rx).await, Frame::from(numbered(1)));
        assert!(next(&mut *client.rx).await.is_none());
    });
}

#[test]
fn a_peer_that_vanishes_ends_the_stream() {
    each(async |mut pair| {
        send(&mut *pair.client.tx, numbered(1)).await.unwrap();
        // A child that is dropped is killed before it forwards what it has read, and a POST is cut off.
        let mut client = Some(pair.client);
        if !["exec", "http", "ssh"].contains(&pair.scheme) {
            client = None;
        }
        let got = received(&mut *pair.server.rx).await;
        assert_eq!(got, Frame::from(numbered(1)));
        drop(client);
        assert!(!matches!(next(&mut *pair.server.rx).await, Some(Ok(_))));
        assert!(next(&mut *pair.server.rx).await.is_none());
        if pair.scheme == "kept" {
            // It writes to the next client.
            return;
        }
        // Writing to a closed peer fails, sooner or later, and does not hang.
        let sending = async { while send(&mut *pair.server.tx, large(100_000)).await.is_ok() {} };
        sending.await;
        let _ = close(&mut *pair.server.tx, CloseReason::PeerFailed).await;
    });
}

#[test]
fn a_part_of_a_message_is_progress() {
    each(async |mut pair| {
        // These read no messages in parts, or none that others could.
        if ["http", "kept", "link"].contains(&pair.scheme) {
            return;
        }
        let (tx, rx) = (&mut pair.client.tx, &mut pair.server.rx);
        let message = large(8 << 20);
        let receiving = async {
            while timeout(Duration::ZERO, next(&mut **rx)).await.is_err() {
                if rx.has_progressed() {
                    assert!(!rx.has_progressed(), "{}", pair.scheme);
                    return assert!(received(&mut **rx).await == message);
                }
                tokio::task::yield_now().await;
            }
            panic!("{}: 8 MiB came at once", pair.scheme);
        };
        let (sent, ()) = tokio::join!(send(&mut **tx, message.clone()), receiving);
        sent.unwrap();
    });
}

#[test]
fn a_cancelled_read_loses_nothing() {
    each(async |mut pair| {
        let message = large(3 << 20);
        let (tx, rx) = (&mut pair.client.tx, &mut pair.server.rx);
        let sending = async {
            for _ in 0..4 {
                send(&mut **tx, message.clone()).await.unwrap();
            }
        };
        let receiving = async {
            let mut got = 0;
            while got < 4 {
                // Cancelled after one poll, repeatedly and in the middle of a message.
                let once = timeout(Duration::ZERO, next(&mut **rx)).await;
                match once {
                    Ok(Some(Ok(Decoded::Frame(frame)))) => {
                        assert!(frame == message);
                        got += 1;
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn every_byte_arrives_as_it_was_written() {
    let texts = [
        r#"{"id":"ü-😀-\u00fc","method":"m","params":"日本語"}"#,
        r#"{"id":1,"method":"session\/new","params":"\"\\\/\b\f\n\r\t\u0000"}"#,
        r#"{"method":"lone","params":["\ud83d","\udc00\ud800"]}"#,
        r#"{"id":12345678901234567890123,"result":1e400}"#,
        r#"{ "id" : 1.50 , "result" : -0 }"#,
        "not JSON at all",
        "\u{7f}\u{85}\u{2028}",
    ];
    each(async |mut pair| {
        for text in texts {
            // HTTP accepts only messages.
            if pair.scheme != "http" || text.starts_with('{') {
                send(&mut *pair.client.tx, text).await.unwrap();
                let got = received(&mut *pair.server.rx).await;
                assert_eq!(got.as_bytes(), text.as_bytes());
            }
            send(&mut *pair.server.tx, text).await.unwrap();
            assert_eq!(
                received(&mut *pair.client.rx).await.as_bytes(),
                text.as_bytes()
            );
        }
    });
}

#[test]
fn a_pretty_printed_message_stays_one_message() {
    each(async |mut pair| {
        for padding in ["", &" ".repeat(20_000)] {
            let pretty = format!("{{\r\n  \"id\": 1,\n{padding}\t\"result\": [\n]\n}}");
            send(&mut *pair.client.tx, pretty.clone()).await.unwrap();
            let got = received(&mut *pair.server.rx).await;
            let flat = pretty.replace(['\r', '\n'], " ");
            let as_it_was = got.as_bytes() == pretty.as_bytes();
            assert!(as_it_was || got.as_bytes() == flat.as_bytes(), "{got:?}");
        }
    });
}

#[test]
fn a_client_with_a_slow_handshake_does_not_delay_others() {
    for scheme in listening() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let (at, setup) = place(scheme, &Limits::default(), &dir);
            let mut listener = listen(&at, &setup).await;
            // Port 0 is replaced by the real one, and the printed address can be connected to.
            let address = listener.address();
            assert_eq!(address == at, scheme == "unix", "{address}");
            assert_eq!(address.to_string().parse::<Endpoint>(), Ok(address.clone()));
            // The first connection's handshake is never run.
            let first = tokio::spawn({
                let (address, setup) = (address.clone(), setup.clone());
                async move { registry::connect(&address, &setup).await.map(drop) }
            });
            let unfinished = listener.accept().await.unwrap().unwrap();
            let connecting = registry::connect(&address, &setup);
            let (client, _server) = tokio::join!(connecting, accept(&mut *listener));
            client.unwrap();
            drop(unfinished);
            let _ = first.await.unwrap();
        });
    }
}
