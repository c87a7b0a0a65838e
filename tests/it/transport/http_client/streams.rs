//! Streams of events that are split, broken, ended or not read.

use std::time::Duration;

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::{Link, LinkError};
use bytes::Bytes;
use hyper::Method;

use super::server::{Events, Server};
use crate::support::link::{next, received, run, send, setup};

fn prompt(id: u8, session: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}"}}}}"#
    )
}

fn update(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"n":{number}}}}}"#)
}

async fn begun() -> (Server, Link, Events) {
    let mut server = Server::start().await;
    let (link, events) = server.begun(&setup()).await;
    (server, link, events)
}

/// Posts a prompt; returns the stream of its session.
async fn prompted(server: &mut Server, link: &mut Link, id: u8, session: &str) -> Events {
    send(&mut *link.tx, prompt(id, session)).await.unwrap();
    let asked = server.of(Method::GET).await;
    assert_eq!(asked.header("acp-session-id"), Some(session));
    let events = asked.stream();
    server.of(Method::POST).await.accept();
    events
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
fn a_stream_is_reopened_when_the_server_is_busy_or_gone_for_a_moment() {
    run(async {
        let (mut server, mut link, events) = begun().await;
        events
            .piece(format!("retry: 1\nid: 1\ndata: {}\n\n", update(1)))
            .await;
        received(&mut *link.rx).await;
        events.break_off().await;
        server
            .of(Method::GET)
            .await
            .answer(503, &[("retry-after", "0")], "");
        server.of(Method::GET).await.hang_up();
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("last-event-id"), Some("1"));
        asked.stream().send(&update(2)).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(update(2)));
    });
}

#[test]
fn a_gap_that_cannot_be_closed_ends_the_link_with_one_error() {
    // Whether events have ids, and the server's answer to the request for those after the last.
    for (ids, status) in [(false, 0), (true, 410), (true, 404), (true, 401)] {
        run(async {
            let (mut server, mut link, events) = begun().await;
            let id = if ids { "retry: 1\nid: 1\n" } else { "" };
            events.piece(format!("{id}data: {}\n\n", update(1))).await;
            received(&mut *link.rx).await;
            events.break_off().await;
            if ids {
                server
                    .of(Method::GET)
                    .await
                    .answer(status, &[], "too long ago");
            }
            let Some(Err(fault)) = next(&mut *link.rx).await else {
                panic!("it goes on");
            };
            let words = if ids {
                "too long ago"
            } else {
                "may have been lost"
            };
            assert!(fault.to_string().contains(words), "{fault}");
            let is_refusal = matches!(fault, LinkError::Refused(_) | LinkError::Forbidden(_));
            assert_eq!(is_refusal, ids, "{fault}");
            assert!(next(&mut *link.rx).await.is_none());
            assert!(send(&mut *link.tx, update(0)).await.is_err());
            server.of(Method::DELETE).await.accept();
        });
    }
}

#[test]
fn the_end_of_a_sessions_stream_fails_its_open_requests() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        let first = prompted(&mut server, &mut link, 1, "s1").await;
        let second = prompted(&mut server, &mut link, 2, "s2").await;
        drop(first);
        let error = received(&mut *link.rx).await;
        let error = String::from_utf8_lossy(error.as_bytes()).into_owned();
        assert!(error.contains(r#""id":1,"error""#), "{error}");
        let done = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        second.send(done).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(done));
        // What was answered is not answered again.
        drop(second);
        let third = prompted(&mut server, &mut link, 3, "s1").await;
        let done = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        third.send(done).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(done));
    });
}

#[test]
fn after_a_close_comment_the_streams_are_read_to_their_ends_and_not_reopened() {
    // The close comment, and the error it makes.
    let reported = [
        ("1000 ", None),
        ("1001 the relay is shutting down", None),
        (
            "1011 the other side failed",
            Some("closed with 1011: the other side failed"),
        ),
        ("4401 no longer", Some("4401: no longer. Check the token")),
    ];
    for (words, wrong) in reported {
        run(async {
            let (mut server, mut link, events) = begun().await;
            let session = prompted(&mut server, &mut link, 1, "s1").await;
            let close_comment = format!(": acp-relay close {words}\n\n");
            let piece = format!("retry: 1\nid: 1\ndata: {}\n\n{close_comment}", update(1));
            events.piece(piece).await;
            assert_eq!(received(&mut *link.rx).await, Frame::from(update(1)));
            // The last messages of a session come on another socket.
            let done = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            session.send(done).await;
            assert_eq!(received(&mut *link.rx).await, Frame::from(done));
            session.piece(close_comment).await;
            drop(session);
            let end = next(&mut *link.rx).await;
            match wrong {
                None => assert!(end.is_none(), "{end:?}"),
                Some(wrong) => {
                    let fault = end.unwrap().unwrap_err();
                    assert!(fault.to_string().contains(wrong), "{fault}");
                    assert!(next(&mut *link.rx).await.is_none());
                }
            }
            server.of(Method::DELETE).await.answer(404, &[], "");
            server.quiet().await;
        });
    }
}

#[test]
fn a_sessions_stream_that_broke_without_ids_is_a_gap() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        let session = prompted(&mut server, &mut link, 1, "s1").await;
        session.break_off().await;
        assert!(matches!(
            next(&mut *link.rx).await,
            Some(Err(LinkError::Io { .. }))
        ));
        assert!(next(&mut *link.rx).await.is_none());
        server.of(Method::DELETE).await.accept();
    });
}

#[test]
fn eight_mebibytes_pass_in_both_directions() {
    run(async {
        let (mut server, mut link, events) = begun().await;
        let long = format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":"{}"}}"#,
            "x".repeat(8 << 20)
        );
        send(&mut *link.tx, long.clone()).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert!(asked.body == long, "{} bytes", asked.body.len());
        asked.accept();
        let (frame, ()) = tokio::join!(received(&mut *link.rx), events.send(&long));
        assert!(frame.as_bytes() == long.as_bytes(), "{frame:?}");
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
fn dropping_the_link_closes_its_streams_and_its_connection() {
    run(async {
        let (mut server, mut link, events) = begun().await;
        let session = prompted(&mut server, &mut link, 1, "s1").await;
        drop(link);
        events.unread().await;
        session.unread().await;
        server.of(Method::DELETE).await.accept();
    });
}
