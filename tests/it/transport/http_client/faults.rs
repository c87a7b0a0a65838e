//! Servers that refuse, disconnect or are no ACP servers: one clear error for each request.

use acp_relay::jsonrpc::Limits;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::transport::{Link, LinkError, OpenErrorKind, registry};
use hyper::Method;
use serde_json::Value;

use super::server::{Events, INITIALIZE, INITIALIZED, Server};
use crate::support::link::{next, received, run, send, setup, setup_with};

const NEW: &str = r#"{"jsonrpc":"2.0","id":"n","method":"session/new","params":{}}"#;
const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"_x/y"}"#;

type Headers = &'static [(&'static str, &'static str)];

async fn begun() -> (Server, Link, Events) {
    let mut server = Server::start().await;
    let (link, events) = server.begun(&setup()).await;
    (server, link, events)
}

/// The error that answers the request `id`.
async fn error(link: &mut Link, id: &str) -> Value {
    let frame = received(&mut *link.rx).await;
    let answer: Value = serde_json::from_slice(frame.as_bytes()).unwrap();
    assert_eq!(answer["id"], id, "{answer}");
    answer["error"].clone()
}

/// The one error with which the link ends.
async fn ended(link: &mut Link) -> LinkError {
    let Some(Err(fault)) = next(&mut *link.rx).await else {
        panic!("the link goes on");
    };
    assert!(next(&mut *link.rx).await.is_none());
    fault
}

#[test]
fn a_refused_request_gets_an_error_and_the_next_is_sent() {
    // status, headers, code, delivered, words
    let cases: [(u16, Headers, i64, &str, &str); 7] = [
        (400, &[], -32600, "no", "400 Bad Request: because"),
        (409, &[], -32600, "no", "409 Conflict"),
        (413, &[], -32056, "no", "413 Payload Too Large"),
        (415, &[], -32600, "no", "415 Unsupported Media Type"),
        (500, &[], -32050, "unknown", "500 Internal Server Error"),
        (
            503,
            &[("retry-after", "3600")],
            -32053,
            "no",
            "503 Service Unavailable",
        ),
        (
            307,
            &[("location", "https://other/acp")],
            -32600,
            "no",
            "points to https://other/acp",
        ),
    ];
    for (status, headers, code, delivered, words) in cases {
        run(async {
            let (mut server, mut link, _events) = begun().await;
            send(&mut *link.tx, NEW).await.unwrap();
            server
                .of(Method::POST)
                .await
                .answer(status, headers, "because\nof that\n");
            let error = error(&mut link, "n").await;
            assert_eq!(error["code"], code, "{error}");
            assert!(
                error["message"].as_str().unwrap().contains(words),
                "{error}"
            );
            let relay = &error["data"]["relay"];
            assert_eq!(relay["delivered"], delivered, "{error}");
            assert_eq!(relay["retryable"], status == 503, "{error}");
            let after = relay["retryAfterMs"].as_u64();
            assert_eq!(after, (status == 503).then_some(3_600_000), "{error}");
            // The next message is not affected.
            send(&mut *link.tx, NOTICE).await.unwrap();
            server.of(Method::POST).await.accept();
        });
    }
}

#[test]
fn the_servers_own_error_is_passed_on() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        send(&mut *link.tx, NEW).await.unwrap();
        let own = r#"{"jsonrpc":"2.0","id":"n","error":{"code":-32000,"message":"log in"}}"#;
        server.of(Method::POST).await.answer(400, &[], own);
        assert_eq!(received(&mut *link.rx).await, own.into());
    });
}

#[test]
fn an_answer_in_the_response_to_its_post_is_received() {
    run(async {
        let json = [("content-type", "application/json; charset=utf-8")];
        let (mut server, mut link, _events) = begun().await;
        let answer = r#"{"jsonrpc":"2.0","id":"n","result":{"sessionId":"s"}}"#;
        send(&mut *link.tx, NEW).await.unwrap();
        server.of(Method::POST).await.answer(200, &json, answer);
        assert_eq!(received(&mut *link.rx).await, answer.into());
        // The stream of its session is requested from now on.
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("acp-session-id"), Some("s"));
        asked.answer(405, &[], "");
        // A body that is no answer to it means only that it was accepted.
        for odd in [
            r#"{"ok":true}"#,
            r#"{"jsonrpc":"2.0","id":"x","result":1}"#,
            "",
            "no",
        ] {
            send(&mut *link.tx, NEW).await.unwrap();
            server.of(Method::POST).await.answer(200, &json, odd);
        }
        // A stream as the answer to a POST is not read: the client gets an error at once.
        send(&mut *link.tx, NEW).await.unwrap();
        let stream = [("content-type", "text/event-stream")];
        let posted = server.of(Method::POST).await;
        posted.answer(200, &stream, "data: {}\n\n");
        let error = error(&mut link, "n").await;
        assert_eq!(error["code"], -32050);
        assert_eq!(error["data"]["relay"]["delivered"], "yes");
    });
}

#[test]
fn the_statuses_401_403_404_and_410_end_the_link() {
    for (status, words) in [
        (401, "401 Unauthorized: because"),
        (403, "403 Forbidden: because"),
        (404, "404 Not Found: because"),
        (410, "410 Gone: because"),
    ] {
        run(async {
            let (mut server, mut link, events) = begun().await;
            send(&mut *link.tx, NEW).await.unwrap();
            server.of(Method::POST).await.answer(status, &[], "because");
            // The refused request was not delivered.
            let error = error(&mut link, "n").await;
            assert_eq!(error["code"], -32050, "{error}");
            assert_eq!(error["data"]["relay"]["delivered"], "no", "{error}");
            assert!(
                error["message"].as_str().unwrap().contains(words),
                "{error}"
            );
            let fault = ended(&mut link).await;
            match status {
                401 | 403 => assert!(matches!(fault, LinkError::Forbidden(_)), "{fault}"),
                _ => assert!(matches!(fault, LinkError::Refused(_)), "{fault}"),
            }
            assert!(fault.to_string().contains(words), "{fault}");
            events.unread().await;
            server.of(Method::DELETE).await.accept();
        });
    }
}

#[test]
fn an_unknown_session_is_distinguished_from_an_unknown_connection() {
    // The server's status for the same POST without the session, and words of the error.
    for (status, words) in [(202, ""), (400, "unknown session"), (404, "no connection")] {
        run(async {
            let (mut server, mut link, _events) = begun().await;
            let load =
                r#"{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":"s"}}"#;
            send(&mut *link.tx, load).await.unwrap();
            server
                .of(Method::GET)
                .await
                .answer(404, &[], "unknown session");
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.header("acp-session-id"), Some("s"));
            asked.answer(404, &[], "unknown session");
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.header("acp-session-id"), None);
            assert_eq!(asked.body, load);
            asked.answer(status, &[], "no connection");
            match status {
                400 | 404 => {
                    let error = error(&mut link, "l").await;
                    assert!(
                        error["message"].as_str().unwrap().contains(words),
                        "{error}"
                    );
                    assert_eq!(error["data"]["relay"]["delivered"], "no", "{error}");
                    if status == 404 {
                        assert!(ended(&mut link).await.to_string().contains(words));
                    }
                }
                _ => {
                    send(&mut *link.tx, NOTICE).await.unwrap();
                    assert_eq!(server.of(Method::POST).await.body, NOTICE);
                }
            }
        });
    }
}

#[test]
fn a_request_is_repeated_to_a_busy_server() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        send(&mut *link.tx, NEW).await.unwrap();
        send(&mut *link.tx, NOTICE).await.unwrap();
        for status in [429, 503] {
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.body, NEW);
            asked.answer(status, &[("retry-after", "0")], "");
        }
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.body, NEW);
        asked.accept();
        assert_eq!(server.of(Method::POST).await.body, NOTICE);
    });
}

#[test]
fn a_request_to_a_server_that_stays_busy_fails_after_four_attempts() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        send(&mut *link.tx, NEW).await.unwrap();
        for _ in 0..4 {
            let asked = server.of(Method::POST).await;
            asked.answer(429, &[("retry-after", "0")], "");
        }
        let error = error(&mut link, "n").await;
        assert_eq!(error["code"], -32053, "{error}");
        server.quiet().await;
    });
}

#[test]
fn a_request_whose_connection_broke_is_not_repeated() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        send(&mut *link.tx, NEW).await.unwrap();
        server.of(Method::POST).await.hang_up();
        let error = error(&mut link, "n").await;
        assert_eq!(error["code"], -32050, "{error}");
        assert_eq!(error["data"]["relay"]["delivered"], "unknown", "{error}");
        server.quiet().await;
        send(&mut *link.tx, NOTICE).await.unwrap();
        assert_eq!(server.of(Method::POST).await.body, NOTICE);
    });
}

#[test]
fn an_answer_whose_connection_broke_is_repeated() {
    run(async {
        let (mut server, mut link, events) = begun().await;
        events
            .send(r#"{"jsonrpc":"2.0","id":5,"method":"terminal/create"}"#)
            .await;
        received(&mut *link.rx).await;
        let answer = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#;
        send(&mut *link.tx, answer).await.unwrap();
        server.of(Method::POST).await.hang_up();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.body, answer);
        asked.accept();
        server.quiet().await;
    });
}

#[test]
fn a_notification_that_may_be_lost_ends_the_link() {
    run(async {
        let (mut server, mut link, _events) = begun().await;
        send(&mut *link.tx, NOTICE).await.unwrap();
        server.of(Method::POST).await.hang_up();
        let fault = ended(&mut link).await;
        assert!(matches!(fault, LinkError::Io { .. }), "{fault}");
        server.of(Method::DELETE).await.accept();
    });
}

#[test]
fn a_server_that_is_no_acp_server_ends_the_link_with_the_reason() {
    const JSON: (&str, &str) = ("content-type", "application/json");
    const ID: (&str, &str) = ("acp-connection-id", "c1");
    // status, headers, body, words
    let cases: [(u16, Headers, &'static str, &str); 6] = [
        (
            200,
            &[("content-type", "text/html"), ID],
            "<html>",
            "\"text/html\" instead of",
        ),
        (202, &[JSON, ID], "", "202 Accepted"),
        (200, &[JSON], INITIALIZED, "no Acp-Connection-Id"),
        (
            200,
            &[JSON, ID],
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "is not a JSON-RPC answer",
        ),
        (200, &[JSON, ID], "{}", "is not a JSON-RPC answer"),
        (404, &[], "nothing here\n", "404 Not Found: nothing here"),
    ];
    for (status, headers, body, words) in cases {
        run(async {
            let mut server = Server::start().await;
            let mut link = server.link(&setup()).await;
            send(&mut *link.tx, INITIALIZE).await.unwrap();
            server.of(Method::POST).await.answer(status, headers, body);
            if status == 404 {
                let answer = received(&mut *link.rx).await;
                let answer: Value = serde_json::from_slice(answer.as_bytes()).unwrap();
                let delivered = &answer["error"]["data"]["relay"]["delivered"];
                assert_eq!(delivered, "no", "{answer}");
            }
            let fault = ended(&mut link).await;
            assert!(fault.to_string().contains(words), "{fault}");
            server.quiet().await;
        });
    }
}

#[test]
fn initialize_comes_first_and_may_be_tried_again() {
    run(async {
        let mut server = Server::start().await;
        let mut link = server.link(&setup()).await;
        send(&mut *link.tx, NOTICE).await.unwrap();
        send(&mut *link.tx, NEW).await.unwrap();
        let early = error(&mut link, "n").await;
        assert_eq!(early["code"], -32600, "{early}");
        server.quiet().await;
        send(&mut *link.tx, INITIALIZE).await.unwrap();
        let no = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}"#;
        let json = [("content-type", "application/json")];
        server.of(Method::POST).await.answer(200, &json, no);
        assert_eq!(received(&mut *link.rx).await, no.into());
        send(&mut *link.tx, INITIALIZE).await.unwrap();
        let head = [json[0], ("acp-connection-id", "c2")];
        server
            .of(Method::POST)
            .await
            .answer(200, &head, INITIALIZED);
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("acp-connection-id"), Some("c2"));
    });
}

#[test]
fn initialize_is_tried_again_over_another_connection() {
    run(async {
        let mut server = Server::start().await;
        let mut link = server.link(&setup()).await;
        let no = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"protocol version"}}"#;
        let json = ("content-type", "application/json");
        for (id, answer) in [("c1", no), ("c2", no), ("c3", INITIALIZED)] {
            send(&mut *link.tx, INITIALIZE).await.unwrap();
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.header("acp-connection-id"), None, "{asked:?}");
            asked.answer(200, &[json, ("acp-connection-id", id)], answer);
            assert_eq!(received(&mut *link.rx).await, answer.into());
            if answer == no {
                // The agent of the connection that did not open is released.
                let asked = server.of(Method::DELETE).await;
                assert_eq!(asked.header("acp-connection-id"), Some(id));
                asked.accept();
            }
        }
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.header("acp-connection-id"), Some("c3"));
        let _events = asked.stream();
        send(&mut *link.tx, NEW).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.header("acp-connection-id"), Some("c3"));
        asked.accept();
    });
}

#[test]
fn a_port_without_a_listener_is_an_error_at_once() {
    run(async {
        let server = Server::start().await;
        let mut host = server.at("http").to_string();
        host.truncate(host.rfind(':').unwrap());
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let endpoint = format!("{host}:{port}/acp").parse().unwrap();
        let fault = registry::connect(&endpoint, &setup()).await.unwrap_err();
        assert_eq!(fault.kind, OpenErrorKind::Unavailable, "{fault}");
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
        events.send(NOTICE).await;
        let Some(Ok(Decoded::Error(error))) = next(&mut *link.rx).await else {
            panic!("it was accepted");
        };
        assert_eq!(error.id.as_id().json(), b"9", "{error}");
        assert_eq!(received(&mut *link.rx).await, NOTICE.into());
    });
}
