//! The statuses of wrong and right requests, the same over HTTP/1.1, HTTP/2 in clear and HTTP/2
//! over TLS.

use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::HttpOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::site::Site;
use crate::support::http::{EVERY_WAY, How};
use crate::support::link::{received, run, send};

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const CASES: &str = include_str!("../../../vectors/http/wrong_requests.tsv");

#[test]
fn every_wrong_request_gets_its_status_and_a_hint() {
    for how in EVERY_WAY {
        run(async {
            let mut site = Site::open(how, Limits::default()).await;
            let mut open = site.initialize().await;
            for line in CASES.lines().filter(|line| !line.starts_with('#')) {
                let columns: Vec<&str> = line.split('\t').collect();
                let [method, path, fields, body, status, words] = columns[..] else {
                    panic!("{line}");
                };
                let fields = fields.replace(": C", &format!(": {}", open.id));
                let fields = fields
                    .split("; ")
                    .filter_map(|field| field.split_once(": "));
                let fields: Vec<_> = fields.collect();
                let reply = site.caller.ask(method, path, &fields, body).await;
                let case = format!("{how:?} {line}: {}", reply.body);
                assert_eq!(reply.status.as_str(), status, "{case}");
                assert!(reply.body.contains(words), "{case}");
                assert!(reply.body.len() < 400, "{case}");
                if status == "405" {
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
        for (lines, body, status) in [
            ("Transfer-Encoding: chunked\r\n", "1000\r\n", "413"),
            ("Content-Length: 20\r\n", "{", "408"),
        ] {
            let lines = format!(
                "Content-Type: application/json\r\nAcp-Connection-Id: {}\r\n{lines}",
                open.id
            );
            let mut stream = site.caller.begin_acp("POST", &lines, body).await;
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
fn an_upgrade_to_anything_else_is_ignored() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let open = site.initialize().await;
        let connection = ("connection", "upgrade");
        let name = ("acp-connection-id", &*open.id);
        let ask = async |method, upgrade, fields: &[(&str, &str)], body| {
            let fields = [&[connection, ("upgrade", upgrade)][..], fields].concat();
            site.caller.ask(method, "/acp", &fields, body).await
        };
        let reply = ask("GET", "websocket", &[EVENTS, name], "").await;
        assert_eq!(reply.status.as_u16(), 426, "no version");
        assert_eq!(reply.fields["upgrade"], "websocket");
        let reply = ask("GET", "tls/1.0", &[], "").await;
        assert_eq!(reply.status.as_u16(), 406, "it is not upgraded");
        let notice = r#"{"method":"x"}"#;
        let reply = ask("POST", "h2c", &[JSON, name], notice).await;
        assert_eq!(reply.status.as_u16(), 202);
    });
}
