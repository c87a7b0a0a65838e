//! How a WebSocket is opened: which requests are upgraded, and what the others are answered.

use acp_relay::jsonrpc::Frame;
use acp_relay::transport::registry;
use acp_relay::transport::websocket::derive_accept_key;
use acp_relay::transport::{Endpoint, HttpEndpoint, OpenErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::dial;
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
    const UPGRADE: (&str, &str) = ("upgrade", "h2c, WebSocket");
    const CONNECTION: (&str, &str) = ("Connection", "keep-alive, upgrade");
    let many: String = request("GET", &[("A", "b"); 100]);
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let address = listener.address();
        let Endpoint::Http(HttpEndpoint { port, .. }) = address else {
            panic!("{address}");
        };
        let host = format!("127.0.0.1:{port}");
        let host = ("Host", host.as_str());
        let wrong_key = ("Sec-WebSocket-Key", "short");
        // request, status, text of the answer
        let cases = [
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION, KEY, EXTENSION]),
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
                        UPGRADE,
                        CONNECTION,
                        ("Sec-WebSocket-Version", "8"),
                        KEY,
                    ],
                ),
                "426",
                "Sec-Websocket-Version: 13",
            ),
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION]),
                "400",
                "Key",
            ),
            (
                request("GET", &[host, UPGRADE, CONNECTION, VERSION, wrong_key]),
                "400",
                "Key",
            ),
            (
                request("POST", &[host, UPGRADE, CONNECTION, VERSION, KEY]),
                "400",
                "GET",
            ),
            (
                request("GET", &[host, UPGRADE, VERSION, KEY]),
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
            let mut client = dial(&address).await;
            let answering = async {
                let link = listener.accept().await.unwrap().unwrap().finish.await;
                assert_eq!(link.is_ok(), status == "101", "{request}");
            };
            let asking = async {
                client.write_all(request.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                String::from_utf8(answer).unwrap()
            };
            let (answer, ()) = tokio::join!(asking, answering);
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
fn a_refusal_by_the_server_is_explained_with_a_remedy() {
    run(async {
        for (status, kind, remedy) in [
            ("401 Unauthorized", OpenErrorKind::Forbidden, "token"),
            ("404 Not Found", OpenErrorKind::Protocol, "path"),
            ("429 Too Many Requests", OpenErrorKind::Unavailable, "later"),
            (
                "503 Service Unavailable",
                OpenErrorKind::Unavailable,
                "later",
            ),
            ("502 Bad Gateway", OpenErrorKind::Unavailable, "later"),
            ("200 OK", OpenErrorKind::Protocol, "path"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let endpoint = format!("ws://{}/acp", listener.local_addr().unwrap());
            let answering = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(socket.read_u8().await.unwrap());
                }
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\nwhy\n");
                socket.write_all(answer.as_bytes()).await.unwrap();
                socket
            };
            let (endpoint, setup) = (endpoint.parse().unwrap(), setup());
            let (opened, _socket) = tokio::join!(registry::connect(&endpoint, &setup), answering);
            let error = opened.map(drop).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.kind, kind, "{text}");
            assert!(text.contains(status) && text.contains("why"), "{text}");
            assert!(text.contains(remedy), "{text}");
        }
    });
}

#[test]
fn a_frame_that_follows_the_request_head_is_received() {
    run(async {
        let mut listener = listen(&"ws://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let address = listener.address();
        let Endpoint::Http(HttpEndpoint { port, .. }) = address else {
            panic!("{address}");
        };
        let mut client = dial(&address).await;
        let host = format!("127.0.0.1:{port}");
        let mut bytes = request(
            "GET",
            &[
                ("Host", &host),
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ],
        )
        .into_bytes();
        bytes.extend_from_slice(b"\x81\x82\0\0\0\0{}");
        client.write_all(&bytes).await.unwrap();
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
        ("", "end of file"),
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
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let request = String::from_utf8(request).unwrap();
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
