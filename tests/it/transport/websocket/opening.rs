//! How a WebSocket is opened: which requests are upgraded, and what the others are answered.

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::registry;
use acp_relay::transport::websocket::derive_accept_key;
use acp_relay::transport::{Endpoint, OpenErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::http::{Caller, UPGRADE, read_head};
use crate::support::link::{accept, listen, received, run, setup};

#[test]
fn a_client_states_why_its_request_was_refused() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0/here".parse().unwrap(), &setup()).await;
        let there = listener.address().to_string().replace("/here", "/there");
        let (there, setup) = (there.parse().unwrap(), setup());
        let connecting = registry::connect(&there, &setup);
        let accepting = async { listener.accept().await.unwrap().unwrap().finish.await };
        let (client, server) = tokio::join!(connecting, accepting);
        let fault = client.unwrap_err();
        assert_eq!(fault.kind, OpenErrorKind::Protocol);
        let text = fault.to_string();
        assert!(
            text.contains("404") && text.contains("only /here is served"),
            "{text}"
        );
        assert!(server.unwrap_err().to_string().contains("404"));
    });
}

/// A request for `/acp` with these headers.
fn request(method: &str, headers: &[(&str, &str)]) -> String {
    let mut request = format!("{method} /acp HTTP/1.1\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + "\r\n"
}

#[test]
fn other_requests_are_answered_with_an_http_error() {
    const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("Sec-WebSocket-Version", "13");
    const EXTENSION: (&str, &str) = ("Sec-WebSocket-Extensions", "permessage-deflate");
    const LISTED: (&str, &str) = ("upgrade", "h2c, WebSocket");
    const CONNECTION: (&str, &str) = ("Connection", "keep-alive, upgrade");
    let many: String = request("GET", &[("A", "b"); 100]);
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let caller = Caller::to(&listener.address().to_string());
        let host = ("Host", &*caller.host);
        let wrong_key = ("Sec-WebSocket-Key", "short");
        // request, status, text of the answer
        let cases = [
            (
                request("GET", &[host, LISTED, CONNECTION, VERSION, KEY, EXTENSION]),
                "101",
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            ),
            (request("GET", &[host]), "426", "Upgrade: websocket"),
            (
                request("POST", &[host]) + "{\"jsonrpc\":\"2.0\"}",
                "426",
                "WebSocket endpoint",
            ),
            (
                request(
                    "GET",
                    &[
                        host,
                        LISTED,
                        CONNECTION,
                        ("Sec-WebSocket-Version", "8"),
                        KEY,
                    ],
                ),
                "426",
                "Sec-Websocket-Version: 13",
            ),
            (
                request("GET", &[host, LISTED, CONNECTION, VERSION]),
                "400",
                "Key",
            ),
            (
                request("GET", &[host, LISTED, CONNECTION, VERSION, wrong_key]),
                "400",
                "Key",
            ),
            (
                request("POST", &[host, LISTED, CONNECTION, VERSION, KEY]),
                "400",
                "GET",
            ),
            (
                request("GET", &[host, LISTED, VERSION, KEY]),
                "400",
                "Connection",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n".to_owned(),
                "400",
                "Bad Request",
            ),
            (many.clone(), "431", "Too Large"),
            (
                request("GET", &[("A", &"b".repeat(40_000))]),
                "431",
                "Too Large",
            ),
        ];
        for (request, status, word) in cases {
            let answering = async {
                let link = listener.accept().await.unwrap().unwrap().finish.await;
                assert_eq!(link.is_ok(), status == "101", "{request}");
            };
            let (answer, ()) = tokio::join!(caller.raw(&request), answering);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}{answer}"
            );
            assert!(answer.contains(word), "{request}{answer}");
            assert!(!answer.contains("deflate"), "{answer}");
        }
    });
}

#[test]
fn a_frame_that_follows_the_request_head_is_received() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let caller = Caller::to(&listener.address().to_string());
        let head = format!(
            "GET /acp HTTP/1.1\r\nHost: {}\r\n{UPGRADE}\r\n",
            caller.host
        );
        let bytes = [head.as_bytes(), b"\x81\x82\0\0\0\0{}"].concat();
        let _client = caller.begin(bytes).await;
        let mut server = accept(&mut *listener).await;
        assert_eq!(received(&mut *server.rx).await, Frame::from("{}"));
    });
}

#[test]
fn a_wrong_answer_to_the_upgrade_is_an_error() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK"),
        (
            "HTTP/1.1 101 Whatever\r\n\r\n",
            "upgrades to something else",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "not to our request",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n", "not HTTP/1.1"),
    ];
    for (answer, word) in cases {
        run(async {
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = socket.local_addr().unwrap().port();
            let to: Endpoint = format!("ws://127.0.0.1:{port}").parse().unwrap();
            let setup = setup();
            let serving = async {
                let (mut stream, _) = socket.accept().await.unwrap();
                let mut asked = [0; 1024];
                let _ = stream.read(&mut asked).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (opened, ()) = tokio::join!(registry::connect(&to, &setup), serving);
            let fault = opened.unwrap_err();
            assert_eq!(fault.kind, OpenErrorKind::Protocol);
            assert!(fault.to_string().contains(word), "{word}: {fault}");
        });
    }
}

#[test]
fn a_server_may_list_several_connection_options() {
    run(async {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let to: Endpoint = format!("ws://127.0.0.1:{port}").parse().unwrap();
        let setup = setup();
        let serving = async {
            let (mut stream, _) = socket.accept().await.unwrap();
            let request = read_head(&mut stream).await;
            let (_, key) = request.split_once("sec-websocket-key: ").unwrap();
            let accept = derive_accept_key(key.lines().next().unwrap().as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\
                 Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            // A frame comes with the head.
            let bytes = [answer.as_bytes(), b"\x81\x02{}"].concat();
            stream.write_all(&bytes).await.unwrap();
            stream
        };
        let (opened, _stream) = tokio::join!(registry::connect(&to, &setup), serving);
        let mut link = opened.unwrap();
        assert_eq!(received(&mut *link.rx).await, Frame::from("{}"));
    });
}
