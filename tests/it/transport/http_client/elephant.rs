//! elephant.ai's routes, answered as its own server does.

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::{CloseReason, Link, LinkError, OpenErrorKind, registry};
use hyper::Method;

use crate::support::http_server::{Events, Server};
use crate::support::link::{close, next, received, run, send, setup};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;

/// An open link, its stream of events, and the client's id.
async fn open(server: &mut Server) -> (Link, Events, String) {
    let endpoint = server.at("elephant+http");
    let setup = setup();
    let connecting = registry::connect(&endpoint, &setup);
    let serving = async {
        let asked = server.of(Method::GET).await;
        assert_eq!(asked.uri.path(), "/acp/sse");
        let query = asked.uri.query().unwrap().to_owned();
        let client = query.strip_prefix("client_id=").unwrap().to_owned();
        let events = asked.stream();
        server.quiet().await;
        events.piece(": connected\n\n").await;
        (events, client)
    };
    let (link, (events, client)) = tokio::join!(connecting, serving);
    (link.unwrap(), events, client)
}

#[test]
fn an_elephant_conversation_posts_messages_and_reads_one_stream() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, events, client) = open(&mut server).await;
        assert!(client.len() >= 32, "{client}");
        send(&mut *link.tx, INITIALIZE).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.uri.path(), "/acp/rpc");
        assert_eq!(
            asked.uri.query(),
            Some(format!("client_id={client}").as_str())
        );
        assert_eq!(asked.body, INITIALIZE);
        assert_eq!(asked.header("acp-connection-id"), None);
        asked.accept();
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#;
        events.piece(format!(": ping\n\ndata: {result}\n\n")).await;
        assert_eq!(received(&mut *link.rx).await, Frame::from(result));
        let asks = r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"sessionId":"s"}}"#;
        events.send(asks).await;
        received(&mut *link.rx).await;
        send(&mut *link.tx, ANSWER).await.unwrap();
        let asked = server.of(Method::POST).await;
        assert_eq!(asked.body, ANSWER);
        asked.answer(204, &[], "");
        send(&mut *link.tx, INITIALIZE).await.unwrap();
        server
            .of(Method::POST)
            .await
            .answer(400, &[], "invalid payload");
        let error = received(&mut *link.rx).await;
        let error = String::from_utf8_lossy(error.as_bytes()).into_owned();
        assert!(
            error.contains("400 Bad Request: invalid payload"),
            "{error}"
        );
        close(&mut *link.tx, CloseReason::Done).await.unwrap();
        assert!(next(&mut *link.rx).await.is_none());
        events.unread().await;
        server.quiet().await;
    });
}

#[test]
fn the_end_of_an_elephant_stream_ends_the_link() {
    run(async {
        let mut server = Server::start().await;
        let (mut link, events, _) = open(&mut server).await;
        drop(events);
        assert!(matches!(
            next(&mut *link.rx).await,
            Some(Err(LinkError::Io { .. }))
        ));
        assert!(next(&mut *link.rx).await.is_none());
        server.quiet().await;
    });
}

#[test]
fn a_server_without_elephants_routes_is_an_error_at_once() {
    for (status, words) in [(404, "404 Not Found: no"), (200, "instead of a stream")] {
        run(async {
            let mut server = Server::start().await;
            let endpoint = server.at("elephant+http");
            let setup = setup();
            let connecting = registry::connect(&endpoint, &setup);
            let serving = async { server.of(Method::GET).await.answer(status, &[], "no") };
            let (link, ()) = tokio::join!(connecting, serving);
            let fault = link.unwrap_err();
            assert_eq!(fault.kind, OpenErrorKind::Protocol, "{fault}");
            assert!(fault.to_string().contains(words), "{fault}");
        });
    }
}
