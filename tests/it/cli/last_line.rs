//! The last line on stderr of a `connect` that fails: many editors show nothing else.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::link::run as block_on;
use crate::support::program::{Program, ask};

/// A server that reads something, sends `answer` to each client, and closes or resets.
async fn server(answer: &'static str, resets: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let _ = client.read(&mut [0; 4096]).await;
            let _ = client.write_all(answer.as_bytes()).await;
            if resets {
                client.set_zero_linger().unwrap();
            }
        }
    });
    host
}

/// A port at which nothing listens.
async fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Checks how `connect` with these arguments ends. The last line begins with `address` and contains
/// `words`, and the error of `initialize` has `named` and the first of them.
async fn check(args: &[&str], code: i32, address: &str, named: &str, words: &[&str]) {
    let mut client = Program::start(&[&["connect"], args].concat());
    ask(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
    let answer = client.json().await;
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    for word in [named, words[0]] {
        assert!(error.contains(word), "{args:?}: no {word:?} in {answer}");
    }
    client.end();
    assert_eq!(client.exit().await.code(), Some(code), "{args:?}: {answer}");
    let mut last = String::new();
    while let Some(line) = client.complaint().await {
        last = line;
    }
    let begins = last.starts_with(&format!("acp-relay: {address}"));
    assert!(begins, "{args:?}: no {address:?} begins {last:?}");
    for word in words {
        assert!(last.contains(word), "{args:?}: no {word:?} in {last:?}");
    }
}

#[test]
fn the_last_line_says_what_failed_where_and_what_to_do() {
    block_on(async {
        let closed = closed().await;
        let not_known = server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false).await;
        let denied = server(
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            false,
        )
        .await;
        let forbidden = server("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", false).await;
        let busy = "HTTP/1.1 503 Unavailable\r\nRetry-After: 900\r\nContent-Length: 0\r\n\r\n";
        let busy = server(busy, false).await;
        let (silent, resetting) = (server("", false).await, server("", true).await);
        // host and port, exit code, words
        let cases: [(&str, i32, &[&str]); 6] = [
            (
                "no-such-host.invalid:1",
                68,
                &["is not known", "Check the name"],
            ),
            (
                closed.as_str(),
                69,
                &["nothing listens there", "Start the peer first"],
            ),
            (not_known.as_str(), 76, &["404 Not Found", "path"]),
            (denied.as_str(), 77, &["401 Unauthorized", "--bearer-file"]),
            (forbidden.as_str(), 77, &["403 Forbidden", "--bearer-file"]),
            (busy.as_str(), 69, &["503", "again later"]),
        ];
        for (host, code, words) in cases {
            for scheme in ["ws", "http"] {
                let to = format!("{scheme}://{host}/acp");
                check(&[&to], code, &to, &to, words).await;
            }
        }
        for (host, code, words) in &cases[..2] {
            let to = format!("tcp://{host}");
            check(&[&to], *code, &to, &to, words).await;
        }
        let to = format!("wss://{not_known}/acp");
        check(&[&to], 76, &to, &to, &["TLS handshake failed", "--tls-ca"]).await;
        for host in [silent, resetting] {
            let to = format!("tcp://{host}");
            let words = ["", "Check that an ACP agent listens there"];
            check(&[&to], 69, &to, &to, &words).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let to = format!("unix:{}", folder.path().join("none").display());
        let words = ["no such socket file", "check the path"];
        check(&[&to], 69, &to, &to, &words).await;
    });
}

#[test]
fn the_last_line_names_the_command_and_how_it_has_ended() {
    block_on(async {
        // script, exit code, words
        let cases: [(&str, i32, &[&str]); 3] = [
            (
                "read l; echo broken >&2\necho 'no key' >&2; exit 3",
                3,
                &["exit code 3", "broken / no key", "acp-relay try"],
            ),
            ("read l", 76, &["exit code 0", "such as `acp`"]),
            ("read l; kill -9 $$", 137, &["signal 9", "acp-relay try"]),
        ];
        for (script, code, words) in cases {
            let args = ["--", "sh", "-c", script];
            check(&args, code, "exec:sh -c ", "(sh)", words).await;
        }
        let words = ["is not an executable on PATH", "Install"];
        let none = "no-such-program";
        check(&["--", none], 69, "exec:no-such-program", none, &words).await;
    });
}

#[test]
fn a_client_of_a_served_relay_does_not_learn_where_the_agent_is() {
    block_on(async {
        let closed = closed().await;
        let denied = server(
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            false,
        )
        .await;
        let broken = server("", true).await;
        for to in [
            format!("tcp://{closed}"),
            format!("ws://{denied}/acp"),
            format!("http://{denied}/acp"),
            format!("tcp://{broken}"),
        ] {
            let listen = ["serve", "--listen", "tcp://127.0.0.1:0", "--agent", &to];
            let mut serve = Program::start(&listen);
            let at = serve.address().await;
            let mut client = Program::start(&["connect", &at]);
            ask(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
            let answer = client.line().await.unwrap();
            let host = to.split("//").nth(1).unwrap().trim_end_matches("/acp");
            assert!(answer.contains("\"error\""), "{answer}");
            assert!(!answer.contains(host), "{to}: {answer}");
        }
    });
}

#[test]
fn an_editor_gets_an_answer_when_the_agent_has_ended_before_its_first_request() {
    block_on(async {
        let place = tempfile::tempdir().unwrap();
        let unix = format!("unix:{}", place.path().join("s").display());
        let listen = ["--listen", "http://127.0.0.1:0", "--listen", &unix];
        let agent = ["sh", "-c", "exit 3"];
        let serve = [&["serve"], &listen[..], &["--"], &agent].concat();
        let mut serve = Program::start_in(place.path(), &serve);
        let (one, two) = (serve.address().await, serve.address().await);
        let http = if one.starts_with("http") { one } else { two };
        let ws = http.replacen("http", "ws", 1);
        let ways: [&[&str]; 6] = [
            &[&ws],
            &["--no-link", &ws],
            &[&http],
            &["--no-link", &http],
            &[&unix],
            &["--", "sh", "-c", "exit 3"],
        ];
        for way in ways {
            // Without a link, Streamable HTTP reaches the agent with the first request.
            let is_late = way[0] != "--no-link" || way[1] != http;
            for round in 0..10 {
                let args = [&["connect", "--log", "info"], way].concat();
                let mut client = Program::start_in(place.path(), &args);
                if is_late && round % 2 == 1 {
                    // The end of the agent.
                    while !client
                        .complaint()
                        .await
                        .unwrap()
                        .contains("the agent ended")
                    {}
                }
                let requests = [(0, "initialize"), (1, "session/new")].map(|(id, method)| {
                    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
                });
                let [one, two] = requests;
                client.write(&format!("{one}\n{two}\n")).await;
                for id in 0..2 {
                    let answer = client.json().await;
                    assert_eq!(answer["id"], id, "{way:?} {round}: {answer}");
                    let error = answer["error"]["message"].as_str().unwrap();
                    assert!(error.contains("agent"), "{way:?}: {answer}");
                }
                client.end();
                client.exit().await;
            }
        }
    });
}
