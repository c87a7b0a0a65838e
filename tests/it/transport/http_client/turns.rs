//! A conversation without faults: what is posted where, which streams are opened, how it is closed.

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::{CloseReason, RequestHeaders, Setup};
use hyper::{Method, Version};

use super::server::{INITIALIZE, INITIALIZED, Server};
use crate::support::link::{close, next, received, run, send, setup};

const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#;
const PROMPT: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}"#;
const ASKS: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"s1"}}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"content":""}}"#;

#[test]
fn a_turn_uses_the_streams_of_its_connection_and_its_session() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, events) = server.begun(&setup()).await;

        send(&mut *link.tx, NEW).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.header("acp-connection-id"), Some("c1"));
        assert_eq!(asked.header("acp-session-id"), None);
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(asked.body, NEW);
        asked.accept();
        let created = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}"#;
        events.send(created).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(created));

        // The stream is opened before the request is posted whose answer comes on it.
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("acp-connection-id"), Some("c1"));
        assert_eq!(asked.header("acp-session-id"), Some("s1"));
        send(&mut *link.tx, PROMPT).await.unwrap();
        server.quiet().await;
        let session = asked.stream();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.header("acp-session-id"), Some("s1"));
        asked.accept();

        session.send(ASKS).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(ASKS));
        send(&mut *link.tx, ANSWER).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.body, ANSWER);
        assert_eq!(asked.header("acp-session-id"), Some("s1"), "{asked:?}");
        asked.accept();

        send(&mut *link.tx, CANCEL).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.header("acp-session-id"), Some("s1"));
        asked.accept();
        let over = r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}"#;
        session.send(over).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(over));

        let deleting = async {
            let asked = server.of(Method::DELETE).await;
            assert_eq!(asked.header("acp-connection-id"), Some("c1"));
            asked.accept();
        };
        let (closed, ()) = tokio::join!(close(&mut *link.tx, CloseReason::Done), deleting);
        closed.unwrap();
        assert!(next(&mut *link.rx).await.is_none());
        events.unread().await;
        session.unread().await;
        server.quiet().await;
    });
}

#[test]
fn requests_and_notifications_keep_their_order_and_answers_do_not_wait_for_them() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, events) = server.begun(&setup()).await;
        let notices: Vec<String> = (0..3)
            .map(|n| format!(r#"{{"jsonrpc":"2.0","method":"n{n}"}}"#))
            .collect();
        for notice in &notices {
            send(&mut *link.tx, notice.clone()).await.unwrap();
        }
        let held = server.of(Method::POST).await;
        assert_eq!(held.body, notices[0]);
        server.quiet().await;
        // An answer that the held request may depend on.
        let asks = r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file"}"#;
        events.send(asks).await;
        received(&mut *link.rx).await;
        let answer = r#"{"jsonrpc":"2.0","id":"a","result":null}"#;
        send(&mut *link.tx, answer).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.body, answer);
        assert_eq!(asked.header("acp-session-id"), None);
        asked.accept();
        held.accept();
        for notice in &notices[1..] {
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.body, *notice);
            asked.accept();
        }
    });
}

#[test]
fn the_stream_of_a_session_is_opened_before_it_is_loaded() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, _events) = server.begun(&setup()).await;
        let load = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"caf\u00e9 1"}}"#;
        send(&mut *link.tx, load).await.unwrap();
        let asked = server.of(Method::GET).await;
        let session = asked.headers.get("acp-session-id").unwrap();
        assert_eq!(session.as_bytes(), "caf\u{e9} 1".as_bytes());
        let session = asked.stream();
        server.of(Method::POST).await.accept();
        session
            .send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
            .await;
        received(&mut *link.rx).await;
    });
}

#[test]
fn without_session_streams_all_messages_come_on_the_connections_stream() {
    for status in [400, 404, 405, 409, 501] {
        run(async {
            let mut server = Server::start().await;
            let (mut link, events) = server.begun(&setup()).await;
            send(&mut *link.tx, PROMPT).await.unwrap();
            server
                .of(Method::GET)
                .await
                .answer(status, &[], "no such thing");
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.header("acp-session-id"), Some("s1"));
            asked.accept();
            events.send(ASKS).await;
            assert_eq!(received(&mut *link.rx).await, Frame::from(ASKS));
            send(&mut *link.tx, ANSWER).await.unwrap();
            // The stream is requested again, for the server may know the session by now.
            let mut asked = server.next().await;
            if asked.method == Method::GET {
                asked.answer(status, &[], "no such thing");
                asked = server.next().await;
            }
            assert_eq!(asked.header("acp-session-id"), Some("s1"));
            asked.accept();
        });
    }
}

#[test]
fn an_answer_may_come_before_its_202() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, events) = server.begun(&setup()).await;
        send(&mut *link.tx, NEW).await.unwrap();
        let asked = server.of(Method::POST).await;
        let created = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        events.send(created).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(created));
        asked.accept();
        send(&mut *link.tx, CANCEL).await.unwrap();
        server.of(Method::GET).await.stream();
    });
}

#[test]
fn cookies_and_headers_are_sent_with_each_request() {
    run(async {
        let mut headers = RequestHeaders::default();
        headers.add("X-Team: blue").unwrap();
        headers.add("Cookie: mine=1").unwrap();
        headers.set_bearer(" secret\n").unwrap();
        let setup = Setup {
            request_headers: headers,
            ..setup()
        };
        let mut server = Server::start().await;
        let mut link = server.link(&setup).await;
        send(&mut *link.tx, INITIALIZE).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.header("cookie"), Some("mine=1"));
        let head = [
            ("acp-connection-id", "c1"),
            ("content-type", "application/json; charset=utf-8"),
            ("set-cookie", "route=a; Path=/; HttpOnly"),
            ("set-cookie", "other=b; Path=/elsewhere"),
        ];
        asked.answer(200, &head, INITIALIZED);
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("cookie"), Some("mine=1; route=a"));
        assert_eq!(asked.header("x-team"), Some("blue"));
        assert_eq!(asked.header("authorization"), Some("Bearer secret"));
        let local = format!("localhost:{}", server.port);
        assert_eq!(asked.header("host"), Some(local.as_str()));
        let _events = asked.stream();
        drop(link);
        let asked = server.of(Method::DELETE).await;
        assert_eq!(asked.header("cookie"), Some("mine=1; route=a"));
        assert_eq!(asked.header("authorization"), Some("Bearer secret"));
        assert!(!format!("{setup:?}").contains("secret"), "{setup:?}");
    });
}

#[test]
fn http_2_is_used_without_tls_when_it_is_set() {
    run(async {
        let headers = RequestHeaders {
            http2: true,
            ..RequestHeaders::default()
        };
        let setup = Setup {
            request_headers: headers,
            ..setup()
        };
        let mut server = Server::start().await;
        let (mut link, _events) = server.begun(&setup).await;
        send(&mut *link.tx, NEW).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.version, Version::HTTP_2);
        asked.accept();
    });
}

#[test]
fn closing_takes_bounded_time_without_answers() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, _events) = server.begun(&setup()).await;
        send(&mut *link.tx, NEW).await.unwrap();
        let held = server.of(Method::POST).await;
        let deleting = async {
            let asked = server.of(Method::DELETE).await;
            // Neither request is ever answered.
            std::mem::forget(asked);
        };
        let (closed, ()) = tokio::join!(close(&mut *link.tx, CloseReason::Done), deleting);
        closed.unwrap();
        assert!(next(&mut *link.rx).await.is_none());
        drop(held);
    });
}

#[test]
fn messages_are_posted_before_the_connection_is_deleted() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, _events) = server.begun(&setup()).await;
        for number in 0..20 {
            let notice = format!(r#"{{"jsonrpc":"2.0","method":"n{number}"}}"#);
            send(&mut *link.tx, notice).await.unwrap();
        }
        let last = async {
            for number in 0..20 {
                let asked = server.of(Method::POST).await;
                assert!(asked.body.contains(&format!("n{number}\"")), "{asked:?}");
                asked.accept();
            }
            server.of(Method::DELETE).await.accept();
        };
        let (closed, ()) = tokio::join!(close(&mut *link.tx, CloseReason::Done), last);
        closed.unwrap();
    });
}
