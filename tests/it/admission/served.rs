//! Admission by the built program: its own user, tokens while it runs, unsafe listeners.

use std::path::Path;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run_command, run_in};

type Socket = WebSocketStream<TcpStream>;

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// Answers the first message.
const AGENT: [&str; 4] = [
    "--",
    "sh",
    "-c",
    r#"read line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'; cat >/dev/null"#,
];

fn serve(state: &Path, options: &[&str]) -> Program {
    Program::start_in(state, &[&["serve"], options, &AGENT].concat())
}

async fn make(state: &Path, args: &[&str]) -> String {
    let made = run_in(state, &[&["token", "new"], args].concat()).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.trim_end().to_owned()
}

/// Opens a WebSocket, or returns the status of the refusal.
async fn open(address: &str, token: Option<&str>) -> Result<Socket, u16> {
    let mut request = address.into_client_request().unwrap();
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
    }
    let authority = request.uri().authority().unwrap().to_string();
    let stream = TcpStream::connect(authority).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(fault) => panic!("{fault}"),
    }
}

async fn initialize(socket: &mut Socket) {
    socket.send(Message::text(HELLO)).await.unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    assert!(answer.to_text().unwrap().contains("result"), "{answer}");
}

#[test]
fn the_users_own_programs_need_no_token_unless_it_is_required() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut relay = serve(dir.path(), &[]);
        initialize(&mut open(&relay.address().await, None).await.unwrap()).await;
        let mut relay = serve(dir.path(), &["--require-token"]);
        let address = relay.address().await;
        assert_eq!(open(&address, None).await.err(), Some(401));
        // The user's own `connect` finds the token by itself, another user's does not.
        let mut connect = Program::start_in(dir.path(), &["connect", &address]);
        connect.write(&format!("{HELLO}\n")).await;
        assert_eq!(
            connect.json().await["result"],
            json!({"protocolVersion": 1})
        );
        let other = tempfile::tempdir().unwrap();
        // Over HTTP, the status arrives with the first message.
        let over_http = address.replacen("ws", "http", 1);
        for address in [&address, &over_http] {
            let mut other_user = command(&["connect", address]);
            other_user.env("ACP_RELAY_STATE_DIR", other.path());
            let connect = run_command(other_user, &format!("{HELLO}\n")).await;
            assert_eq!(connect.code, Some(77), "{address}: {connect:?}");
            let reported = [connect.stdout, connect.stderr].concat();
            assert!(reported.contains("--bearer-file"), "{address}: {reported}");
            assert!(reported.contains("401"), "{address}: {reported}");
        }
    });
}

#[test]
fn the_users_token_is_not_sent_to_other_servers() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        run_in(dir.path(), &["token", "show"]).await;
        // The listener is not a relay, but for example a tunnel to another machine.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("ws://{}", listener.local_addr().unwrap());
        // A relay listened at that port before, and was killed.
        let port = listener.local_addr().unwrap().port().to_string();
        std::fs::create_dir(dir.path().join("relays")).unwrap();
        std::fs::write(dir.path().join("relays").join(port), "").unwrap();
        let _connect = Program::start_in(dir.path(), &["connect", &address]);
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(
            head.starts_with("get /acp") && !head.contains("authorization"),
            "{head}"
        );
    });
}

#[test]
fn a_token_is_valid_until_it_is_revoked() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let options = ["--require-token", "--limit", "credential-check=50ms"];
        let mut relay = serve(dir.path(), &options);
        let address = relay.address().await;
        let alice = make(dir.path(), &["alice"]).await;
        let other = make(dir.path(), &["bob", "--agents", "another"]).await;
        // It is valid at once, though the relay itself reads the file only once a second.
        let mut socket = open(&address, Some(&alice)).await.unwrap();
        initialize(&mut socket).await;
        assert_eq!(open(&address, Some(&other)).await.err(), Some(403));
        let revoked = run_in(dir.path(), &["token", "revoke", "alice"]).await;
        assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
        let Some(Ok(Message::Close(Some(close)))) = socket.next().await else {
            panic!("no close frame");
        };
        assert_eq!(u16::from(close.code), 4401);
        let again = open(&address, Some(&alice)).await.err();
        assert!(matches!(again, Some(401 | 429)), "{again:?}");
    });
}

#[test]
fn a_principal_is_limited_in_connections_and_agent_starts() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let alice = make(dir.path(), &["alice"]).await;
        let mut relay = serve(dir.path(), &["--limit", "per-principal=1"]);
        let address = relay.address().await;
        let mut first = open(&address, Some(&alice)).await.unwrap();
        initialize(&mut first).await;
        let mut second = open(&address, Some(&alice)).await.unwrap();
        second.send(Message::text(HELLO)).await.unwrap();
        let answer = second.next().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], json!(-32053), "{answer}");
        // The relay's own user has no such limit.
        for _ in 0..3 {
            initialize(&mut open(&address, None).await.unwrap()).await;
        }
        // The number of agent starts is limited, too.
        let mut relay = serve(dir.path(), &["--limit", "agent-starts=1"]);
        let address = relay.address().await;
        initialize(&mut open(&address, Some(&alice)).await.unwrap()).await;
        let mut second = open(&address, Some(&alice)).await.unwrap();
        second.send(Message::text(HELLO)).await.unwrap();
        let answer = second.next().await.unwrap().unwrap();
        assert!(
            answer
                .to_text()
                .unwrap()
                .contains("too many agents were started for token alice")
        );
    });
}

#[test]
fn a_client_above_its_rate_limit_is_delayed_and_loses_nothing() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let options = ["serve", "--limit", "client-messages=50", "--", "cat"];
        let mut relay = Program::start_in(dir.path(), &options);
        let mut socket = open(&relay.address().await, None).await.unwrap();
        // A burst of five seconds is allowed.
        let start = std::time::Instant::now();
        for number in 0..300 {
            let note = format!(r#"{{"jsonrpc":"2.0","method":"n","params":[{number}]}}"#);
            socket.send(Message::text(note)).await.unwrap();
        }
        for number in 0..300 {
            let received = socket.next().await.unwrap().unwrap();
            let received: Value = serde_json::from_str(received.to_text().unwrap()).unwrap();
            assert_eq!(received["params"], json!([number]));
        }
        assert!(start.elapsed().as_millis() >= 900, "{:?}", start.elapsed());
    });
}

#[test]
fn byte_streams_admit_the_users_own_programs() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let unix = format!("unix:{}", socket.display());
        let listen = ["--listen", "tcp://127.0.0.1:0", "--listen", &unix];
        let mut relay = serve(dir.path(), &listen);
        let (first, second) = (relay.address().await, relay.address().await);
        let tcp = [&first, &second]
            .into_iter()
            .find_map(|at| at.strip_prefix("tcp://"));
        let mut tcp = TcpStream::connect(tcp.unwrap()).await.unwrap();
        let mut unix = UnixStream::connect(&socket).await.unwrap();
        let mut answer = [0; 8];
        tcp.write_all(format!("{HELLO}\n").as_bytes())
            .await
            .unwrap();
        tcp.read_exact(&mut answer).await.unwrap();
        unix.write_all(format!("{HELLO}\n").as_bytes())
            .await
            .unwrap();
        unix.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"{\"jsonrp");
    });
}

#[test]
fn unprotected_listeners_are_not_opened() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let cases: [(&[&str], &[&str]); 6] = [
            (
                &["--listen", "ws://0.0.0.0:0"],
                &["without TLS", "--dangerously-plaintext", "--tls-cert"],
            ),
            (
                &["--listen", "agent-connect+http://0.0.0.0:0"],
                &["without TLS", "--dangerously-plaintext"],
            ),
            (
                &["--listen", "tcp://0.0.0.0:0", "--dangerously-plaintext"],
                &["other machines", "--dangerously-no-auth"],
            ),
            (
                &["--listen", "tcp://127.0.0.1:0", "--require-token"],
                &["has no token", "ws://"],
            ),
            (
                &["--listen", "http://[::]:0", "--require-token"],
                &["without TLS"],
            ),
            (
                &["--listen", "http://[::]:0", "--no-auth-loopback"],
                &["without TLS"],
            ),
        ];
        for (options, reports) in cases {
            let args = [&["serve"], options, &["--", "cat"]].concat();
            let refused = run_in(dir.path(), &args).await;
            assert_eq!(refused.code, Some(77), "{options:?}: {}", refused.stderr);
            for words in reports {
                assert!(
                    refused.stderr.contains(words),
                    "{words}: {}",
                    refused.stderr
                );
            }
        }
        // With the override it warns; a token is required nevertheless.
        let options = ["--listen", "ws://0.0.0.0:0", "--dangerously-plaintext"];
        let mut relay = serve(dir.path(), &options);
        let reported = [
            relay.complaint().await.unwrap(),
            relay.complaint().await.unwrap(),
        ];
        let warned = reported
            .iter()
            .any(|line| line.contains("tokens can be read"));
        assert!(warned, "{reported:?}");
        let at = reported
            .iter()
            .find_map(|line| line.strip_prefix("acp-relay: listening on "));
        let at = at.unwrap().replace("0.0.0.0", "127.0.0.1");
        assert_eq!(open(&at, None).await.err(), Some(401));
        let own = run_in(dir.path(), &["token", "show"]).await.stdout;
        initialize(&mut open(&at, Some(own.trim_end())).await.unwrap()).await;
    });
}
