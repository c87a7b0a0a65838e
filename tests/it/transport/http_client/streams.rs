//! Streams of events that are split, broken, ended or not read.

use std::time::Duration;

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::Link;
use bytes::Bytes;
use hyper::Method;
use tokio::time::sleep;

use crate::support::http_server::{Events, Server};
use crate::support::link::{next, received, run, send, setup, setup_with};

fn update(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"n":{number}}}}}"#)
}

async fn begun() -> (Server, Link, Events) {
    let mut server = Server::start().await;
    let (link, events) = server.begun(&setup()).await;
    (server, link, events)
}

#[test]
fn events_arrive_whole_however_they_are_split() {
    run(async {
        let (_server, mut link, events) = begun().await;
        let long = format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":"{}"}}"#,
            "\u{e9}".repeat(280_000)
        );
        let stream = format!(
            "retry: 10\r\nid: 1\r\ndata: {long}\r\n\r\n:\r\n\r\nid: 2\r\ndata: {}\r\n\r\n",
            update(1)
        );
        let sending = async {
            for (number, piece) in stream.as_bytes().chunks(7919).enumerate() {
                let size = if number == 0 { 1 } else { 3000 };
                for piece in piece.chunks(size) {
                    events.piece(Bytes::copy_from_slice(piece)).await;
                }
            }
        };
        let receiving = async {
            assert_eq!(received(&mut *link.rx).await, Frame::from(long.clone()));
            assert_eq!(received(&mut *link.rx).await, Frame::from(update(1)));
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn a_stream_with_ids_that_breaks_200_times_loses_nothing() {
    run(async {
        let (mut server, mut link, mut events) = begun().await;
        for number in 0..200 {
            let whole = format!("retry: 1\nid: e-{number}\ndata: {}\n\n", update(number));
            let half = format!("id: e-x\ndata: {}\n\n", update(number + 1));
            events.piece(whole).await;
            assert_eq!(received(&mut *link.rx).await, Frame::from(update(number)));
            // A partial event is discarded: the server sends it again.
            events.piece(half[..number % half.len()].to_owned()).await;
            if number % 3 == 0 {
                drop(events);
            } else {
                events.break_off().await;
            }
            let asked = server.of(Method::GET).await;
            let last = format!("e-{number}");
            assert_eq!(asked.header("last-event-id"), Some(last.as_str()));
            assert_eq!(asked.header("acp-connection-id"), Some("c1"));
            events = asked.stream();
        }
        events.send(&update(0)).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(update(0)));
    });
}

#[test]
fn a_slow_reader_pauses_the_server() {
    run(async {
        let (_server, mut link, events) = begun().await;
        let event = Bytes::from(format!("data: \"{}\"\n\n", "x".repeat(64 << 10)));
        let mut sent = 0;
        while events
            .sends(event.clone(), Duration::from_millis(500))
            .await
        {
            sent += 1;
            // The sockets of both sides and the queue hold far less than this.
            assert!(sent < 1000, "{sent} events are buffered");
        }
        let sending = async {
            for number in 0..4 {
                events.send(&update(number)).await;
            }
        };
        let receiving = async {
            for _ in 0..sent {
                assert_eq!(received(&mut *link.rx).await.len(), (64 << 10) + 2);
            }
            for number in 0..4 {
                assert_eq!(received(&mut *link.rx).await, Frame::from(update(number)));
            }
        };
        tokio::join!(sending, receiving);
    });
}

#[test]
fn a_server_that_answers_no_post_pauses_the_writer() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        let mut given = 0;
        let notice = format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":"{}"}}"#,
            "x".repeat(9000)
        );
        let sending = async {
            loop {
                send(&mut *link.tx, notice.clone()).await.unwrap();
                given += 1;
                assert!(given < 100, "{given} messages are buffered");
            }
        };
        let late = tokio::time::timeout(Duration::from_millis(300), sending).await;
        assert!(late.is_err());
        for _ in 0..given {
            server.of(Method::POST).await.accept();
        }
    });
}

#[test]
fn an_over_long_message_is_one_frame_error() {
    run(async {
        let limits = Limits {
            frame_from_network: 2000,
            ..Limits::default()
        };
        let mut server = Server::start().await;
        let setup = setup_with(limits);
        let (mut link, events) = server.begun(&setup).await;
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":9,"result":"{}"}}"#,
            "x".repeat(3000)
        );
        events.send(&long).await;
        events.send(&update(1)).await;
        let Some(Ok(Decoded::Error(error))) = next(&mut *link.rx).await else {
            panic!("it was accepted");
        };
        assert_eq!(error.id.as_id().json(), b"9", "{error}");
        assert_eq!(received(&mut *link.rx).await, update(1).into());
    });
}

/// A link that reads a stream with one event, `e1`, and an opening comment.
async fn read_first(keepalive: Duration) -> (Server, Link, Events) {
    let mut server = Server::start().await;
    let limits = Limits {
        http_keepalive: keepalive,
        ..Limits::default()
    };
    let (link, events) = server.begun(&setup_with(limits)).await;
    events.piece(": hello\nid: e1\n\n").await;
    (server, link, events)
}

#[test]
fn a_stream_without_keepalive_comments_is_resumed_after_the_last_event() {
    run(async {
        let (mut server, mut link, events) = read_first(Duration::from_secs(1)).await;
        for _ in 0..2 {
            sleep(Duration::from_millis(1500)).await;
            events.piece(":\n\n").await;
        }
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("last-event-id"), Some("e1"));
        asked.stream().send(&update(1)).await;
        assert_eq!(received(&mut *link.rx).await, update(1).into());
    });
}

#[test]
fn a_stream_with_an_unknown_keepalive_interval_is_not_given_up() {
    run(async {
        let (mut server, mut link, events) = read_first(Duration::ZERO).await;
        // An opening event and one comment: the next may be due in 30 s.
        sleep(Duration::from_millis(1500)).await;
        events.piece(":\n\n").await;
        sleep(Duration::from_secs(13)).await;
        server.quiet().await;
        events.send(&update(1)).await;
        assert_eq!(received(&mut *link.rx).await, update(1).into());
    });
}
