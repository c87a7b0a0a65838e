//! What the settings add to each request.

use acp_relay::transport::{RequestHeaders, Setup};
use hyper::{Method, Version};

use crate::support::http::{INITIALIZE, INITIALIZED};
use crate::support::http_server::Server;
use crate::support::link::{run, send, setup};

const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#;
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
            ("set-cookie", "other=b; Max-Age=0"),
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
