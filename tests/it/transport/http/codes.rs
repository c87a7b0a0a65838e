//! The statuses of wrong and right requests, the same over HTTP/1.1, HTTP/2 in clear and HTTP/2
//! over TLS.

use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::HttpOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::caller::{EVERY_WAY, How, INITIALIZE, Site};
use crate::support::link::{received, run, send};

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const PROMPT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

/// method, path, headers, body, status, words of the body. `C` stands for an open connection's
/// name.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    u16,
    &'static str,
);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Paths, methods, hosts and origins.
    ("GET", "/", &[], "", 404, "only /acp is served here"),
    ("GET", "/acp/", &[], "", 404, "only /acp is served here"),
    ("POST", "/acp/other", &[JSON], INITIALIZE, 404, "only /acp is served here"),
    ("PUT", "/acp", &[], "", 405, "GET, POST, DELETE"),
    ("PATCH", "/acp", &[], "", 405, "GET, POST, DELETE"),
    ("OPTIONS", "/acp", &[], "", 405, "GET, POST, DELETE"),
    ("POST", "/acp", &[JSON, ("host", "evil.example")], INITIALIZE, 421, "Host"),
    ("GET", "/acp", &[("host", "evil.example")], "", 421, "Host"),
    ("DELETE", "/acp", &[("host", "127.0.0.1:1")], "", 421, "Host"),
    ("OPTIONS", "/acp", &[("origin", "https://evil.example")], "", 403, "origin"),
    ("POST", "/acp", &[JSON, ("origin", "null")], INITIALIZE, 403, "origin"),
    ("DELETE", "/acp", &[("origin", "https://evil.example")], "", 403, "origin"),
    ("POST", "/acp", &[JSON, ("sec-fetch-site", "cross-site")], INITIALIZE, 403, "other sites"),
    ("GET", "/nowhere", &[("sec-fetch-site", "same-site")], "", 403, "other sites"),
    // POST.
    ("POST", "/acp", &[], INITIALIZE, 415, "application/json"),
    ("POST", "/acp", &[("content-type", "text/plain")], INITIALIZE, 415, "application/json"),
    ("POST", "/acp", &[("content-type", "application/json-rpc")], INITIALIZE, 415, "application/json"),
    ("POST", "/acp", &[JSON, ("content-type", "text/plain")], INITIALIZE, 400, "twice"),
    ("POST", "/acp", &[JSON, ("content-encoding", "gzip")], INITIALIZE, 415, "Content-Encoding"),
    ("POST", "/acp", &[JSON], "", 400, "-32700"),
    ("POST", "/acp", &[JSON], "{\"jsonrpc\":", 400, "-32700"),
    ("POST", "/acp", &[JSON], "\"text\"", 400, "-32600"),
    ("POST", "/acp", &[JSON], "17", 400, "-32600"),
    ("POST", "/acp", &[JSON], "{\"jsonrpc\":\"2.0\"}", 400, "-32600"),
    ("POST", "/acp", &[JSON], "[]", 400, "\"id\":null"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C")], "[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", 400, "-32600"),
    ("POST", "/acp", &[JSON], PROMPT, 400, "Acp-Connection-Id is missing"),
    ("POST", "/acp", &[JSON], "{\"jsonrpc\":\"2.0\",\"method\":\"initialize\"}", 400, "Acp-Connection-Id is missing"),
    ("POST", "/acp", &[JSON], "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"initialize\"}", 400, "must have an id"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "unknown")], PROMPT, 404, "no open connection"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "")], PROMPT, 400, "Acp-Connection-Id is missing"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C"), ("acp-connection-id", "C")], PROMPT, 400, "twice"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C")], INITIALIZE, 400, "initialize opens"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C"), ("acp-session-id", "other")], PROMPT, 400, "differ"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C")], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{}}", 400, "needs a session"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C")], "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":7}}", 400, "needs a session"),
    ("POST", "/acp", &[JSON, ("acp-connection-id", "C")], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"sessionId\":\"a\",\"sessionId\":\"b\"}}", 400, "twice"),
    // GET.
    ("GET", "/acp", &[], "", 406, "text/event-stream"),
    ("GET", "/acp", &[("accept", "application/json"), ("acp-connection-id", "C")], "", 406, "text/event-stream"),
    ("GET", "/acp", &[EVENTS], "", 400, "Acp-Connection-Id is missing"),
    ("GET", "/acp", &[EVENTS, ("acp-connection-id", "unknown")], "", 404, "no open connection"),
    ("GET", "/acp", &[EVENTS, ("acp-connection-id", "C"), ("last-event-id", "nonsense")], "", 410, "-32052"),
    ("GET", "/acp", &[EVENTS, ("acp-connection-id", "C"), ("last-event-id", "00000000-0-7")], "", 410, "-32052"),
    // DELETE.
    ("DELETE", "/acp", &[], "", 400, "Acp-Connection-Id is missing"),
    ("DELETE", "/acp", &[("acp-connection-id", "unknown")], "", 404, "no open connection"),
];

#[test]
fn every_wrong_request_gets_its_status_and_a_hint() {
    for how in EVERY_WAY {
        run(async {
            let mut site = Site::open(how, Limits::default()).await;
            let mut open = site.initialize().await;
            for (method, path, fields, body, status, words) in CASES {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| (*name, if *value == "C" { &*open.id } else { value }))
                    .collect();
                let reply = site.caller.ask(method, path, &fields, body).await;
                let case = format!("{how:?} {method} {path} {fields:?} {body}");
                assert_eq!(reply.status.as_u16(), *status, "{case}: {}", reply.body);
                assert!(reply.body.contains(words), "{case}: {}", reply.body);
                assert!(reply.body.len() < 400, "{case}: {}", reply.body);
                if *status == 405 {
                    assert_eq!(reply.fields["allow"], "GET, POST, DELETE");
                }
            }
            // None of them reached the link.
            let name = [("acp-connection-id", &*open.id)];
            let last = r#"{"jsonrpc":"2.0","method":"last"}"#;
            let reply = site.caller.post(&name, last).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (202, ""));
            assert_eq!(received(&mut *open.link.rx).await, Frame::from(last));
        });
    }
}

#[test]
fn a_connection_is_opened_used_and_closed() {
    for how in EVERY_WAY {
        run(async {
            let mut site = Site::open(how, Limits::default()).await;
            let mut open = site.initialize().await;
            let name = [("acp-connection-id", &*open.id)];
            let mut events = site.caller.events(&name).await;
            assert_eq!(events.fields["content-type"], "text/event-stream");
            assert_eq!(events.fields["cache-control"], "no-cache, no-transform");
            assert_eq!(events.fields["x-accel-buffering"], "no");
            let again = site.caller.no_events(&name).await;
            assert_eq!(again.status.as_u16(), 409);
            let first = events.next().await.unwrap();
            assert_eq!(
                (&*first.retry, first.comment.as_deref()),
                ("1000", Some(""))
            );
            // With a parameter, and in bytes that are not how we would write them.
            let typed = [("content-type", "Application/JSON; charset=utf-8"), name[0]];
            let body = "{ \"jsonrpc\" : \"2.0\",\n\"id\":1e0, \"method\":\"session\\/new\" }";
            let reply = site.caller.ask("POST", "/acp", &typed, body).await;
            assert_eq!(reply.status.as_u16(), 202);
            assert_eq!(received(&mut *open.link.rx).await, Frame::from(body));
            let answer = "{\"id\":1e0,\r\n\"result\":{}}";
            send(&mut *open.link.tx, answer).await.unwrap();
            let event = events.event().await;
            assert_eq!(event.data, answer.replace("\r\n", "  "));
            assert!(!event.id.is_empty());
            let reply = site.caller.ask("DELETE", "/acp", &name, "").await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (202, ""));
            assert!(
                crate::support::link::next(&mut *open.link.rx)
                    .await
                    .is_none()
            );
            assert!(events.ends().await);
            let reply = site.caller.ask("DELETE", "/acp", &name, "").await;
            assert_eq!(reply.status.as_u16(), 404);
        });
    }
}

#[test]
fn a_body_is_bounded_in_size_and_in_time() {
    run(async {
        let limits = Limits {
            frame_from_network: 2000,
            http_body: Duration::from_secs(2),
            ..Limits::default()
        };
        let mut site = Site::open(How::H1, limits).await;
        let open = site.initialize().await;
        let name = [("acp-connection-id", &*open.id)];
        let padded = |size: usize| format!("{{\"method\":\"{}\"}}", "x".repeat(size - 13));
        let reply = site.caller.post(&name, &padded(2001)).await;
        assert_eq!(reply.status.as_u16(), 413);
        assert!(reply.body.contains("2000 bytes"), "{}", reply.body);
        let reply = site.caller.post(&name, &padded(1000)).await;
        assert_eq!(reply.status.as_u16(), 202);
        // Without a length, and without an end.
        for (head, status) in [
            ("Transfer-Encoding: chunked\r\n\r\n1000\r\n", "413"),
            ("Content-Length: 20\r\n\r\n{", "408"),
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", site.caller.port))
                .await
                .unwrap();
            let request = format!(
                "POST /acp HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n\
                 Acp-Connection-Id: {}\r\n{head}",
                site.caller.port, open.id
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            if status == "413" {
                stream.write_all(&[b' '; 0x1000]).await.unwrap();
            }
            let mut answer = vec![0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert_eq!(answer, format!("HTTP/1.1 {status}"));
        }
    });
}

/// The answer to `bytes`, which are all sent before anything is read.
async fn answer_to(site: &Site, bytes: &[u8]) -> String {
    let at = ("127.0.0.1", site.caller.port);
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn a_request_head_must_name_one_host() {
    run(async {
        let site = Site::open(How::H1, Limits::default()).await;
        let ours = format!("Host: localhost:{}\r\n", site.caller.port);
        let twice = format!("{ours}{ours}");
        let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        let absolute = format!("http://localhost:{}/acp", site.caller.port);
        for (target, version, fields, status) in [
            ("/acp", "1.1", &*ours, 406),
            ("/acp", "1.1", "", 400),
            ("/acp", "1.1", &twice, 400),
            ("/acp", "1.0", &twice, 400),
            ("/acp", "1.1", socket, 400),
            (&absolute, "1.1", "", 400),
            // HTTP/1.0 needs no Host, but then the request names no allowed host.
            ("/acp", "1.0", "", 421),
            ("/acp", "1.1", "Host: evil.example\r\n", 421),
            ("/acp", "1.1", "Host:\r\n", 421),
        ] {
            let head = format!("GET {target} HTTP/{version}\r\n{fields}Connection: close\r\n\r\n");
            let answer = answer_to(&site, head.as_bytes()).await;
            let begins = format!("HTTP/{version} {status} ");
            assert!(answer.starts_with(&begins), "{head}: {answer}");
        }
    });
}

#[test]
fn a_client_refused_in_the_middle_of_its_request_receives_the_answer() {
    run(async {
        let limits = Limits {
            frame_from_network: 2000,
            ..Limits::default()
        };
        let site = Site::open(How::H1, limits).await;
        let head = |kind: &str, host: &str| {
            format!(
                "POST /acp HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n\
                 Content-Length: {}\r\n\r\n",
                8 << 20
            )
        };
        let host = format!("localhost:{}", site.caller.port);
        for (head, status) in [
            (head("application/json", &host), 413),
            (head("text/plain", &host), 415),
            (head("application/json", "evil.example"), 421),
            ("GET /acp HTTP/1.1\r\nX: ".to_owned(), 431),
            ("no HTTP at all\r\n\r\n".to_owned(), 400),
        ] {
            let mut request = head.into_bytes();
            request.resize(request.len() + (8 << 20), b'x');
            let answer = answer_to(&site, &request).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{status}: {answer}"
            );
        }
    });
}

#[test]
fn pages_of_a_listed_origin_may_send_requests_and_read_answers() {
    run(async {
        let front = HttpOptions {
            origins: vec!["https://editor.example".to_owned()],
            hosts: vec!["relay.example".to_owned()],
            affinity_cookie: Some("route=one".to_owned()),
            no_elephant: true,
            ..HttpOptions::default()
        };
        let mut site = Site::with(How::H2, "http", Limits::default(), front).await;
        let page = [
            ("origin", "https://editor.example"),
            ("sec-fetch-site", "cross-site"),
            ("access-control-request-method", "POST"),
            ("host", "relay.example"),
        ];
        let reply = site.caller.ask("OPTIONS", "/acp", &page, "").await;
        assert_eq!(reply.status.as_u16(), 204);
        assert_eq!(
            reply.fields["access-control-allow-origin"],
            "https://editor.example"
        );
        let allowed = reply.fields["access-control-allow-headers"]
            .to_str()
            .unwrap();
        assert!(allowed.contains("acp-connection-id"), "{allowed}");
        assert!(
            !reply
                .fields
                .contains_key("access-control-allow-credentials")
        );
        let opened = site.initialize().await;
        let name = ("acp-connection-id", &*opened.id);
        let reply = site
            .caller
            .ask("DELETE", "/acp", &[page[0], page[1], name], "")
            .await;
        assert_eq!(reply.status.as_u16(), 202);
        assert_eq!(
            reply.fields["access-control-allow-origin"],
            "https://editor.example"
        );
        let exposed = reply.fields["access-control-expose-headers"]
            .to_str()
            .unwrap();
        assert!(exposed.contains("acp-connection-id"), "{exposed}");
        assert_eq!(reply.fields["vary"], "Origin");
        let reply = site
            .caller
            .ask("POST", "/acp/rpc?client_id=x", &[JSON], "{}")
            .await;
        assert_eq!(
            reply.status.as_u16(),
            404,
            "elephant.ai's routes are switched off"
        );
    });
}

#[test]
fn an_upgrade_to_anything_else_is_refused_or_ignored() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let open = site.initialize().await;
        let connection = ("connection", "upgrade");
        let name = ("acp-connection-id", &*open.id);
        let ask = async |method, upgrade, fields: &[(&str, &str)], body| {
            let fields = [&[connection, ("upgrade", upgrade)][..], fields].concat();
            site.caller.ask(method, "/acp", &fields, body).await
        };
        let reply = ask("GET", "tls/1.0", &[EVENTS, name], "").await;
        assert_eq!(reply.status.as_u16(), 426);
        assert_eq!(reply.fields["upgrade"], "websocket");
        let reply = ask("GET", "websocket", &[EVENTS, name], "").await;
        assert_eq!(reply.status.as_u16(), 426, "no version");
        let notice = r#"{"method":"x"}"#;
        let reply = ask("POST", "h2c", &[JSON, name], notice).await;
        assert_eq!(reply.status.as_u16(), 202);
    });
}
