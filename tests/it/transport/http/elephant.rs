//! elephant.ai's routes, which answer as elephant.ai's own server does.

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::HttpOptions;

use super::site::Site;
use crate::support::http::How;
use crate::support::link::{accept, received, run, send};

const JSON: (&str, &str) = ("content-type", "application/json");
const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"x"}"#;

/// method, path, body, status, words.
const CASES: &[(&str, &str, &str, u16, &str)] = &[
    ("POST", "/acp/rpc", NOTICE, 400, "client_id"),
    ("POST", "/acp/rpc?client_id=", NOTICE, 400, "client_id"),
    ("POST", "/acp/rpc?client_id=a", "{", 400, "-32700"),
    ("POST", "/acp/rpc?client_id=a", "[]", 400, "-32600"),
    (
        "POST",
        "/acp/rpc?client_id=a",
        r#"{"method":"x"}"#,
        400,
        "2.0",
    ),
    ("GET", "/acp/rpc?client_id=a", "", 405, "POST"),
    ("DELETE", "/acp/sse?client_id=a", "", 405, "GET"),
    ("GET", "/acp/sse", "", 400, "client_id"),
];

#[test]
fn an_elephant_client_names_itself_and_has_one_stream() {
    for scheme in ["http", "elephant+http"] {
        run(async {
            let front = HttpOptions::default();
            let mut site = Site::with(How::H1, scheme, Limits::default(), front).await;
            for (method, path, body, status, words) in CASES {
                let reply = site.caller.ask(method, path, &[JSON], body).await;
                assert_eq!(
                    reply.status.as_u16(),
                    *status,
                    "{method} {path}: {}",
                    reply.body
                );
                assert!(reply.body.contains(words), "{}", reply.body);
            }
            let other = site.caller.ask("POST", "/acp", &[JSON], NOTICE).await;
            let official = if scheme == "http" { 400 } else { 404 };
            assert_eq!(other.status.as_u16(), official);
            if official == 404 {
                // The listener reports the refusal.
                let refused = site.listener.accept().await.unwrap().unwrap();
                assert!(refused.finish.await.is_err());
            }
            // A message comes before there is a stream: its answer waits for the stream.
            let caller = site.caller.clone();
            let path = "/acp/rpc?x=y&client_id=a";
            let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
            let asking = caller.ask("POST", path, &[JSON], hello);
            let (reply, mut link) = tokio::join!(asking, accept(&mut *site.listener));
            assert_eq!(reply.status.as_u16(), 202);
            assert_eq!(received(&mut *link.rx).await, Frame::from(hello));
            send(&mut *link.tx, r#"{"id":1,"result":{}}"#)
                .await
                .unwrap();
            let mut first = caller.events_at("/acp/sse?client_id=a", &[]).await;
            let connected = first.next().await.unwrap();
            assert_eq!(connected.comment.as_deref(), Some(" connected"));
            let event = first.event().await;
            assert_eq!((&*event.data, &*event.id), (r#"{"id":1,"result":{}}"#, ""));
            let mut second = caller.events_at("/acp/sse?client_id=a", &[]).await;
            assert!(first.ends().await, "the second stream takes over");
            let session = r#"{"method":"session/update","params":{"sessionId":"s"}}"#;
            send(&mut *link.tx, session).await.unwrap();
            assert_eq!(second.data().await, session);
            let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
            let reply = caller.ask("POST", path, &[JSON], answer).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (204, ""));
            assert_eq!(received(&mut *link.rx).await, Frame::from(answer));
        });
    }
}

#[test]
fn an_elephant_request_is_received_once_and_its_id_is_free_once_it_is_answered() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let caller = site.caller.clone();
        let mut events = caller.events_at("/acp/sse?client_id=a", &[]).await;
        let mut link = accept(&mut *site.listener).await;
        let path = "/acp/rpc?client_id=a";
        let post = async |body: &str| {
            let reply = caller.ask("POST", path, &[JSON], body).await;
            reply.status.as_u16()
        };
        let request = |method| format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{method}"}}"#);
        let answer = r#"{"id":3,"result":{}}"#;
        for method in ["wait", "other", "other", "wait"] {
            let request = request(method);
            assert_eq!(post(&request).await, 202);
            assert_eq!(post(&request).await, 202, "a repeat of an open request");
            let conflict = post(&request.replace(method, "third")).await;
            assert_eq!(conflict, 409, "the id of an open request");
            assert_eq!(received(&mut *link.rx).await, Frame::from(request));
            send(&mut *link.tx, answer).await.unwrap();
            assert_eq!(events.data().await, answer);
        }
    });
}
