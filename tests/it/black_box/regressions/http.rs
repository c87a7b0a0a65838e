//! Streamable HTTP, of `serve` and of `connect`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::{AGENT, NEW_SESSION, PROMPT, serve, serve_script};
use crate::support::http::{Caller, INITIALIZE, INITIALIZED, UPGRADE};
use crate::support::http_server::{Answer, Server};
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run_command};

const HTTP: &str = "--listen http://127.0.0.1:0";
const JSON: &str = "Content-Type: application/json\r\n";
const SESSION: (&str, &str) = ("acp-session-id", "s");

#[test]
fn a_request_without_exactly_one_host_is_a_bad_request() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let mut program = serve(state.path(), HTTP, "");
        let client = Caller::to(&program.address().await);
        let ours = format!("Host: {}\r\n", client.host);
        let twice = format!("{ours}{ours}");
        let foreign = format!("{ours}Host: evil.example\r\n");
        for (fields, status) in [
            ("", 400),
            (&*twice, 400),
            (&*foreign, 400),
            (UPGRADE, 400),
            ("Host: evil.example\r\n", 421),
        ] {
            let head = format!("GET /acp HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
            let answer = client.raw(&head).await;
            let begins = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&begins), "{head}{answer}");
        }
    });
}

#[test]
fn a_client_refused_while_it_sends_receives_the_answer() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = format!("{HTTP} --limit frame-from-network=64KiB");
        let mut program = serve(state.path(), &options, "");
        let client = Caller::to(&program.address().await);
        let size = 8 << 20;
        let post = |host: &str, fields: &str| {
            format!("POST /acp HTTP/1.1\r\nHost: {host}\r\n{fields}Content-Length: {size}\r\n\r\n")
        };
        let wrong = format!("{JSON}Authorization: Bearer wrong\r\n");
        for (head, status) in [
            (post(&client.host, JSON), 413),
            (post(&client.host, &wrong), 401),
            (post(&client.host, "Content-Type: text/plain\r\n"), 415),
            (post("evil.example", JSON), 421),
            (
                format!("GET /acp HTTP/1.1\r\nHost: {}\r\nX: ", client.host),
                431,
            ),
        ] {
            let mut request = head.clone().into_bytes();
            request.resize(request.len() + size, b'x');
            // All is sent before anything is read: a reset would lose the answer.
            let answer = client.raw(&request).await;
            let begins = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&begins), "{head}{answer}");
        }
    });
}

/// Sends the history of its session before it answers `session/load`.
const HISTORY: &str = r#"LOAD='
number=0
while [ $number -lt 300 ]; do update "part $number"; number=$((number + 1)); done
send "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"loaded\":true}}"'
"#;

#[test]
fn the_answer_to_session_load_follows_the_history_on_one_stream() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let script = format!("{HISTORY}{AGENT}");
        // A client that does not open the session's stream must not wait for that timeout.
        let options = format!("{HTTP} --limit http-stream-open=90s");
        let mut program = serve_script(state.path(), &options, &script);
        let address = program.address().await;
        let load = r#"{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#;
        for session_stream in [true, false] {
            let client = Caller::to(&address).initialize().await;
            let mut of_connection = client.events(&[]).await;
            assert_eq!(of_connection.fields["transfer-encoding"], "chunked");
            // The session is known to the server, so its messages have a stream of their own.
            assert_eq!(client.post(&[], NEW_SESSION).await.status, 202);
            of_connection.until("\"sessionId\"").await;
            let fields: &[_] = if session_stream { &[SESSION] } else { &[] };
            let mut of_session = match session_stream {
                true => Some(client.events(fields).await),
                false => None,
            };
            let reply = client.post(fields, load).await;
            assert_eq!(reply.status, 202, "{reply:?}");
            let stream = of_session.as_mut().unwrap_or(&mut of_connection);
            let received = stream.until("\"loaded\"").await;
            assert_eq!(received.len(), 301, "session stream: {session_stream}");
            for (number, message) in received[..300].iter().enumerate() {
                assert!(message.contains(&format!("\"part {number}\"")), "{message}");
            }
        }
    });
}

#[test]
fn updates_of_a_new_session_are_on_its_stream_behind_its_answer() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        // What waits for a session's stream goes on the connection's after this time.
        let options = format!("{HTTP} --limit http-stream-open=1ms");
        let early = r#"*'"session/new"'*) update one; update two; sleep 2; send '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;"#;
        let agent = AGENT.replacen("*'\"session/new\"'*)", &format!("{early}\n*'none'*)"), 1);
        let mut program = serve_script(state.path(), &options, &agent);
        let client = Caller::to(&program.address().await).initialize().await;
        let mut of_connection = client.events(&[]).await;
        assert_eq!(client.post(&[], NEW_SESSION).await.status, 202);
        let first = of_connection.until("\"id\":1").await;
        assert_eq!(first.len(), 1, "{first:?}");
        let rest = of_connection.until("two").await;
        assert!(rest.len() == 2 && rest[0].contains("one"), "{rest:?}");
    });
}

#[test]
fn connect_over_http_ends_as_over_a_websocket_when_the_server_is_stopped() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = format!("--listen ws://127.0.0.1:0 {HTTP}");
        let mut program = serve(state.path(), &options, "");
        let mut clients = Vec::new();
        for _ in 0..2 {
            let address = program.address().await;
            let mut connect = Program::start(&["connect", &address]);
            connect.write(&format!("{INITIALIZE}\n")).await;
            connect.json().await;
            clients.push(connect);
            if address.starts_with("http") {
                let raw = Caller::to(&address).initialize().await;
                let mut events = raw.events(&[]).await;
                program.signal(Signal::TERM);
                events.last_comment().await.expect("it has the reason");
            }
        }
        let mut codes = Vec::new();
        for client in &mut clients {
            codes.push(client.exit().await.code());
        }
        assert_eq!(codes[0], codes[1]);
        assert_eq!(codes[1], Some(0));
    });
}

#[test]
fn a_message_posted_during_the_close_is_refused_and_queued_ones_are_delivered() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = format!(
            "{HTTP} --agent-restart never --limit close-grace=20s --limit http-stream-open=60s"
        );
        let mut program = serve(state.path(), &options, "exit 3");
        let client = Caller::to(&program.address().await).initialize().await;
        let mut of_connection = client.events(&[]).await;
        assert_eq!(client.post(&[], NEW_SESSION).await.status, 202);
        of_connection.until("\"sessionId\"").await;
        // The error that answers the prompt waits on the session's stream, which is not open yet.
        assert_eq!(client.post(&[SESSION], PROMPT).await.status, 202);
        let last = of_connection.last_comment().await.unwrap();
        assert!(last.contains("1011"), "{last}");
        let reply = client
            .post(&[], r#"{"jsonrpc":"2.0","method":"_note"}"#)
            .await;
        assert_eq!(reply.status, 503, "{reply:?}");
        let mut of_session = client.events(&[SESSION]).await;
        let received = of_session.until("-32051").await;
        assert_eq!(received.len(), 1, "{received:?}");
    });
}

#[test]
fn a_wrong_token_ends_connect_with_77_over_every_transport() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = format!("{HTTP} --listen ws://127.0.0.1:0");
        let mut program = serve(state.path(), &options, "");
        for _ in 0..2 {
            let address = program.address().await;
            let mut connect = command(&["connect", &address]);
            connect.env("ACP_RELAY_BEARER", "wrong");
            let outcome = run_command(connect, &format!("{INITIALIZE}\n")).await;
            assert_eq!(outcome.code, Some(77), "{address}: {outcome:?}");
            assert!(outcome.stderr.contains("token"), "{outcome:?}");
            let answer: Value = serde_json::from_str(outcome.stdout.trim()).unwrap();
            assert!(answer["error"]["code"].is_i64(), "{answer}");
        }
    });
}

/// A server that opens a connection and answers `session/new` in this way.
async fn server(status: u16, kind: &'static str, body: &'static str) -> String {
    let host = Server::answering(move |asked| -> Answer {
        let json = ("content-type", "application/json");
        if asked.method == "GET" {
            None
        } else if asked.body.contains("\"initialize\"") {
            let fields = vec![json, ("acp-connection-id", "c")];
            Some((200, fields, INITIALIZED.to_owned()))
        } else if asked.body.contains("\"session/new\"") {
            Some((status, vec![("content-type", kind)], body.to_owned()))
        } else {
            Some((202, vec![], String::new()))
        }
    })
    .await;
    format!("http://{host}/acp")
}

#[test]
fn connect_reads_an_answer_in_the_response_to_the_post() {
    block_on(async {
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#;
        let cases = [
            ("application/json", result, "yes"),
            // The client does not read a stream there.
            ("text/event-stream", "data: {}\n\n", "no"),
        ];
        for (kind, body, accepted) in cases {
            let mut connect = Program::start(&["connect", &server(200, kind, body).await]);
            connect
                .write(&format!("{INITIALIZE}\n{NEW_SESSION}\n"))
                .await;
            connect.json().await;
            let answer = connect.json().await;
            assert_eq!(answer["id"], 1, "{answer}");
            if accepted == "yes" {
                assert_eq!(answer["result"]["sessionId"], "s", "{answer}");
            } else {
                let relay = &answer["error"]["data"]["relay"];
                assert_eq!(relay["delivered"], "yes", "{answer}");
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains("stream"), "{message}");
            }
        }
    });
}

#[test]
fn a_request_refused_by_an_http_server_is_reported_as_not_delivered() {
    block_on(async {
        for (status, code) in [
            ("401 Unauthorized", 77),
            ("403 Forbidden", 77),
            ("404 Not Found", 76),
            ("410 Gone", 76),
        ] {
            let server = server(status[..3].parse().unwrap(), "text/plain", "because").await;
            let mut connect = Program::start(&["connect", &server]);
            connect
                .write(&format!("{INITIALIZE}\n{NEW_SESSION}\n"))
                .await;
            connect.json().await;
            let answer = connect.json().await;
            let relay = &answer["error"]["data"]["relay"];
            assert_eq!(
                (&answer["id"], &relay["delivered"]),
                (&json!(1), &json!("no")),
                "{answer}"
            );
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(status), "{message}");
            assert_eq!(connect.exit().await.code(), Some(code), "{status}");
        }
    });
}

/// A frame of HTTP/2: its kind, flags and stream, and its payload.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn a_client_refused_over_http_2_loses_its_socket() {
    block_on(async {
        for listen in ["http://127.0.0.1:0", "agent-connect+http://127.0.0.1:0/acp"] {
            let state = tempfile::tempdir().unwrap();
            let options = format!("--listen {listen} --require-token --limit handshake=500ms");
            let mut program = serve(state.path(), &options, "");
            let host = Caller::to(&program.address().await).host;
            let mut stream = TcpStream::connect(&host).await.unwrap();
            // GET http /acp, in HPACK.
            let mut head = vec![0x82, 0x86, 0x04, 4];
            head.extend(b"/acp");
            head.extend([0x41, u8::try_from(host.len()).unwrap()]);
            head.extend(host.bytes());
            let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
            opening.extend(frame(4, 0, 0, &[]));
            opening.extend(frame(1, 5, 1, &head));
            stream.write_all(&opening).await.unwrap();
            // It answers every ping; the socket is closed nevertheless.
            let mut answered = false;
            let mut frame_head = [0; 9];
            while stream.read_exact(&mut frame_head).await.is_ok() {
                let length = usize::from(frame_head[1]) << 8 | usize::from(frame_head[2]);
                let mut payload = vec![0; length];
                stream.read_exact(&mut payload).await.unwrap();
                answered |= frame_head[3] == 1;
                let pong = match (frame_head[3], frame_head[4] & 1) {
                    (4, 0) => frame(4, 1, 0, &[]),
                    (6, 0) => frame(6, 1, 0, &payload),
                    _ => continue,
                };
                let _ = stream.write_all(&pong).await;
            }
            assert!(answered, "{listen}");
        }
    });
}
