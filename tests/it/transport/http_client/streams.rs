//! Streams of events that are split, broken, ended or not read.

use std::time::Duration;

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::{Link, LinkError};
use bytes::Bytes;
use hyper::Method;
use tokio::time::sleep;

use crate::support::http_server::{Asked, Events, Server};
use crate::support::link::{next, received, run, send, setup, setup_with};

const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#;
const CREATED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}"#;
const PROMPT: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1"}}"#;

fn update(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"n":{number}}}}}"#)
}

/// Runs `test` in virtual time once its link is open: what waits for a clock takes no time.
fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

/// A link whose `initialize` is answered, and the request for its stream, which is not.
async fn headless() -> (Server, Link, Asked) {
    let mut server = Server::start().await;
    let (link, asked) = server.initialized(&setup()).await;
    tokio::time::pause();
    (server, link, asked)
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
fn a_stream_whose_head_comes_with_its_first_event_is_not_lost() {
    in_virtual_time(async {
        let (mut server, mut link, own) = headless().await;
        // The user is away.
        sleep(Duration::from_secs(600)).await;
        send(&mut *link.tx, NEW).await.unwrap();
        server.of(Method::POST).await.accept();
        sleep(Duration::from_secs(40)).await;
        let own = own.stream();
        own.send(CREATED).await;
        assert_eq!(received(&mut *link.rx).await, CREATED.into());
        let session = server.of(Method::GET).await;
        assert_eq!(session.header("acp-session-id"), Some("s1"));
        send(&mut *link.tx, PROMPT).await.unwrap();
        server.of(Method::POST).await.accept();
        // It thinks.
        sleep(Duration::from_secs(90)).await;
        session.stream().send(&update(1)).await;
        assert_eq!(received(&mut *link.rx).await, update(1).into());
    });
}

#[test]
fn a_gateway_that_does_not_wait_for_the_head_of_a_stream_does_not_end_it() {
    for seconds in [20, 60] {
        in_virtual_time(async {
            let (mut server, mut link, mut own) = headless().await;
            for _ in 0..5 {
                sleep(Duration::from_secs(seconds)).await;
                own.answer(504, &[], "");
                own = server.of(Method::GET).await;
            }
            own.stream().send(&update(1)).await;
            assert_eq!(received(&mut *link.rx).await, update(1).into());
        });
    }
}

#[test]
fn a_stream_that_is_refused_for_half_a_minute_is_lost() {
    in_virtual_time(async {
        let (mut server, mut link, mut own) = headless().await;
        let refusing = async {
            loop {
                own.answer(503, &[], "");
                own = server.next().await;
                if own.method == Method::DELETE {
                    return;
                }
            }
        };
        let (error, ()) = tokio::join!(next(&mut *link.rx), refusing);
        assert!(
            matches!(error, Some(Err(LinkError::Io { .. }))),
            "{error:?}"
        );
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
