//! How a connection over HTTP ends: by the client, by a timeout, and by the relay.

use std::time::Duration;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{CloseReason, LinkError};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::site::Site;
use crate::support::http::{EVERY_WAY, How, INITIALIZE};
use crate::support::link::{accept, close, feed, next, received, run, send};

fn brief() -> Limits {
    Limits {
        http_grace: Duration::from_secs(1),
        ..Limits::default()
    }
}

#[test]
fn a_client_that_vanishes_is_lost_after_its_grace() {
    for how in EVERY_WAY {
        run(async {
            let mut site = Site::open(how, brief()).await;
            let mut open = site.initialize().await;
            let name = [("acp-connection-id", &*open.id)];
            let events = site.caller.events(&name).await;
            // While a stream is open the client is not lost.
            let quiet = timeout(Duration::from_millis(1500), next(&mut *open.link.rx)).await;
            assert!(quiet.is_err(), "{quiet:?}");
            drop(events);
            let lost = next(&mut *open.link.rx).await.unwrap().unwrap_err();
            assert!(matches!(lost, LinkError::Io { .. }), "{lost}");
            assert!(next(&mut *open.link.rx).await.is_none());
            assert!(send(&mut *open.link.tx, "{}").await.is_err());
            let reply = site.caller.post(&name, "{\"method\":\"x\"}").await;
            assert_eq!(reply.status.as_u16(), 404);
        });
    }
}

#[test]
fn a_client_that_disconnects_before_initialize_is_answered_ends_its_link() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let length = INITIALIZE.len();
        let lines = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        let stream = site.caller.begin_acp("POST", &lines, INITIALIZE).await;
        let mut link = accept(&mut *site.listener).await;
        received(&mut *link.rx).await;
        drop(stream);
        assert!(next(&mut *link.rx).await.is_none());
    });
}

#[test]
fn an_initialize_that_fails_is_answered_and_leaves_no_connection() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let caller = site.caller.clone();
        let refusal = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no"}}"#;
        let answering = async {
            let mut link = accept(&mut *site.listener).await;
            received(&mut *link.rx).await;
            send(&mut *link.tx, refusal).await.unwrap();
            assert!(next(&mut *link.rx).await.is_none());
            // Closing does not wait for a client.
            close(&mut *link.tx, CloseReason::Done).await.unwrap();
        };
        let (reply, ()) = tokio::join!(caller.post(&[], INITIALIZE), answering);
        assert_eq!((reply.status.as_u16(), &*reply.body), (200, refusal));
        let id = reply.fields["acp-connection-id"].to_str().unwrap();
        let reply = caller
            .ask("DELETE", "/acp", &[("acp-connection-id", id)], "")
            .await;
        assert_eq!(reply.status.as_u16(), 404);
        // An agent that ends before it answers.
        let answering = async { drop(accept(&mut *site.listener).await) };
        let (reply, ()) = tokio::join!(caller.post(&[], INITIALIZE), answering);
        assert_eq!(reply.status.as_u16(), 502);
        assert!(reply.body.contains("-32050"), "{}", reply.body);
    });
}

#[test]
fn messages_that_precede_the_answer_to_initialize_wait_for_a_stream() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let caller = site.caller.clone();
        let answered = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
        let answering = async {
            let mut link = accept(&mut *site.listener).await;
            received(&mut *link.rx).await;
            send(&mut *link.tx, r#"{"method":"early"}"#).await.unwrap();
            // A request of the agent with the same id is no answer.
            send(&mut *link.tx, r#"{"id":0,"method":"early"}"#)
                .await
                .unwrap();
            send(&mut *link.tx, answered).await.unwrap();
            link
        };
        let (reply, _link) = tokio::join!(caller.post(&[], INITIALIZE), answering);
        assert_eq!(reply.body, answered);
        let id = reply.fields["acp-connection-id"].to_str().unwrap();
        let mut own = caller.events(&[("acp-connection-id", id)]).await;
        assert_eq!(own.data().await, r#"{"method":"early"}"#);
        assert_eq!(own.data().await, r#"{"id":0,"method":"early"}"#);
    });
}

#[test]
fn the_last_messages_reach_the_streams_before_they_end() {
    for how in EVERY_WAY {
        run(async {
            let mut site = Site::open(how, Limits::default()).await;
            let open = site.initialize().await;
            let name = [("acp-connection-id", &*open.id)];
            let mut own = site.caller.events(&name).await;
            let mut link = open.link;
            let text = |number: u32| format!(r#"{{"method":"n","params":{number}}}"#);
            let sending = async {
                for number in 0..500 {
                    feed(&mut *link.tx, text(number)).await.unwrap();
                }
                close(&mut *link.tx, CloseReason::Done).await.unwrap();
                drop(link);
            };
            let receiving = async {
                for number in 0..500 {
                    assert_eq!(own.data().await, text(number));
                }
                assert!(own.ends().await);
            };
            tokio::join!(sending, receiving);
            let reply = site.caller.post(&name, "{\"method\":\"x\"}").await;
            assert_eq!(reply.status.as_u16(), 404);
        });
    }
}

#[test]
fn each_stream_ends_with_a_comment_that_gives_the_close_reason() {
    let reasons = [
        (CloseReason::Done, "1000 "),
        (CloseReason::Shutdown, "1001 the relay is shutting down"),
        (CloseReason::PeerFailed, "1011 the other side failed"),
        (
            CloseReason::Unrecorded,
            "1011 the conversation cannot be recorded",
        ),
    ];
    for (why, words) in reasons {
        run(async {
            let mut site = Site::open(How::H1, Limits::default()).await;
            let open = site.initialize().await;
            let mut link = open.link;
            let name = ("acp-connection-id", &*open.id);
            let prompt = r#"{"id":1,"method":"session/prompt","params":{"sessionId":"a"}}"#;
            assert_eq!(site.caller.post(&[name], prompt).await.status, 202);
            received(&mut *link.rx).await;
            // Another stream takes over; the first ends without a close comment.
            let mut first = site.caller.events(&[name]).await;
            let opening = first.next().await.unwrap();
            let back = ("last-event-id", &*opening.id);
            let mut own = site.caller.events(&[name, back]).await;
            assert_eq!(first.last_comment().await, None);
            let answer = r#"{"id":1,"result":{}}"#;
            send(&mut *link.tx, answer).await.unwrap();
            let closing = async {
                close(&mut *link.tx, why).await.unwrap();
                drop(link);
            };
            let receiving = async {
                let comment = format!(" acp-relay close {words}");
                assert_eq!(own.last_comment().await, Some(comment.clone()));
                // What waits can be read, but nothing more is accepted.
                let reply = site.caller.post(&[name], r#"{"method":"x"}"#).await;
                assert_eq!(reply.status, 503);
                assert_eq!(reply.fields["retry-after"], "1");
                let session = ("acp-session-id", "a");
                let mut a = site.caller.events(&[name, session]).await;
                assert_eq!(a.data().await, answer);
                assert_eq!(a.last_comment().await, Some(comment));
            };
            tokio::join!(closing, receiving);
        });
    }
}

#[test]
fn a_listener_that_is_dropped_leaves_connections_alone() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let mut open = site.initialize().await;
        let Site {
            listener, caller, ..
        } = site;
        drop(listener);
        let name = [("acp-connection-id", &*open.id)];
        // On a socket that is opened now.
        let reply = caller.post(&name, "{\"method\":\"x\"}").await;
        assert_eq!(reply.status.as_u16(), 202);
        received(&mut *open.link.rx).await;
        let reply = caller.post(&[], INITIALIZE).await;
        assert_eq!(reply.status.as_u16(), 503);
        drop(open.link);
        // The port is released once the last connection has ended.
        while TcpStream::connect(&caller.host).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_reader_that_stops_reading_loses_its_socket_and_not_its_messages() {
    run(async {
        let limits = Limits {
            http_write_timeout: Duration::from_millis(500),
            http_waiting: 64 << 20,
            http_replay: 64 << 20,
            ..Limits::default()
        };
        let mut site = Site::open(How::H1, limits).await;
        let open = site.initialize().await;
        let mut link = open.link;
        let lines = format!(
            "Accept: text/event-stream\r\nAcp-Connection-Id: {}\r\n",
            open.id
        );
        let mut stream = site.caller.begin_acp("GET", &lines, "").await;
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).await.unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200");
        let text = |number: usize| format!("{{\"method\":\"{number} {}\"}}", "x".repeat(1 << 18));
        for number in 0..64 {
            send(&mut *link.tx, text(number)).await.unwrap();
        }
        // It reconnects when the relay has closed this socket.
        let name = ("acp-connection-id", &*open.id);
        let mut own = loop {
            let fields = [name, ("accept", "text/event-stream")];
            let reply = site.caller.try_events(&fields).await;
            match reply {
                Some(events) => break events,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        // Some were in transit when the socket was closed; the rest comes in order.
        let first = own.event().await.data;
        let number = |data: &str| {
            data[11..]
                .split(' ')
                .next()
                .unwrap()
                .parse::<usize>()
                .unwrap()
        };
        let from = number(&first);
        assert!(from < 64);
        for at in from + 1..64 {
            assert!(own.data().await == text(at));
        }
    });
}
