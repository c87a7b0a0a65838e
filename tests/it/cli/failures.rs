//! A failure is one line with the place, the reason and the remedy, and an exit code.

use std::fs;
use std::net::TcpListener;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::link::run as block_on;
use crate::support::program::{Program, run};

/// Arguments, the code, and parts of the one line.
type Case<'a> = (&'a [&'a str], i32, &'a [&'a str]);

async fn check(cases: &[Case<'_>]) {
    for (args, code, parts) in cases {
        let outcome = run(args, "").await;
        let shown = format!("{args:?}: {outcome:?}");
        assert_eq!(outcome.code, Some(*code), "{shown}");
        assert_eq!(outcome.stdout, "", "{shown}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{shown}");
        assert!(lines[0].starts_with("acp-relay: "), "{shown}");
        for part in *parts {
            assert!(lines[0].contains(part), "`{part}` is not in {shown}");
        }
    }
}

#[test]
fn help_names_every_endpoint_and_shows_examples() {
    block_on(async {
        let help = run(&["--help"], "").await;
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
        for part in [
            "stdio:",
            "exec:",
            "-- COMMAND",
            "tcp://",
            "unix:",
            "ws://",
            "wss://",
            "Examples:",
            "acp-relay demo",
            "acp-relay serve",
            "acp-relay connect",
            "--limit",
            "Exit codes",
        ] {
            assert!(help.stdout.contains(part), "no {part}");
        }
        for short in [&["serve", "-h"], &["connect", "-h"], &["demo", "-h"]] {
            assert_eq!(run(short, "").await.code, Some(0));
        }
        let version = run(&["--version"], "").await;
        assert_eq!(version.code, Some(0));
        let expected = concat!("acp-relay ", env!("CARGO_PKG_VERSION"));
        assert!(version.stdout.starts_with(expected), "{}", version.stdout);
    });
}

#[test]
fn an_invalid_command_line_is_refused() {
    block_on(async {
        for (args, part) in [
            (&["nonsense"][..], "nonsense"),
            (&[], "Usage"),
            (&["serve"], "COMMAND"),
            (&["connect"], "ENDPOINT"),
            (&["connect", "gopher://x"], "tcp://HOST:PORT"),
            (
                &["serve", "--listen", "tcp://localhost", "--", "cat"],
                "tcp://localhost",
            ),
            (&["serve", "--limit", "speed=1", "--", "cat"], "speed"),
            (
                &["serve", "--limit", "nesting=deep", "--", "cat"],
                "nesting",
            ),
            (
                &["connect", "tcp://127.0.0.1:1", "--", "cat"],
                "cannot be used with",
            ),
            (&["connect", "--limit", "nesting", "--", "cat"], "nesting"),
            (
                &["connect", "--root", "/no/such/folder", "--", "cat"],
                "/no/such/folder",
            ),
            (
                &["connect", "--agent-framing", "ndjson", "ws://127.0.0.1:1"],
                "--agent-framing is for agents on byte streams",
            ),
            (
                &[
                    "serve",
                    "--agent-framing",
                    "auto",
                    "--agent",
                    "http://[::1]:1",
                ],
                "--agent-framing is for agents on byte streams",
            ),
            (
                &[
                    "serve",
                    "--listen",
                    "ws://[::1]:1",
                    "--listen",
                    "tcp://[::1]:1",
                    "--",
                    "cat",
                ],
                "ws://[::1]:1/acp uses the same port",
            ),
            (
                &["serve", "--client-framing", "ndjson", "--", "cat"],
                "--client-framing is for listeners on byte streams",
            ),
            (
                &["serve", "--unasked", "allow", "--", "cat"],
                "`--unasked` is now `--default-permission`",
            ),
            (
                &["config", "check", "--elsewhere=yes"],
                "`--elsewhere` is now `--other-machine`",
            ),
            (
                &["inspect", "diff", "--at", "heard", "a.acpr", "b.acpr"],
                "`heard` is now `received`",
            ),
            // An option is given, even with its default value.
            (
                &["connect", "--record-mode", "all", "--", "cat"],
                "recording options need a folder: --record DIR",
            ),
            (
                &["serve", "--record-redact", "default", "--", "cat"],
                "recording options need a folder: --record DIR",
            ),
            (
                &["serve", "--default-permission", "reject", "--", "cat"],
                "--allow-callback are for Agent Connect listeners",
            ),
        ] {
            let outcome = run(args, "").await;
            assert_eq!(outcome.code, Some(64), "{args:?}: {outcome:?}");
            assert_eq!(outcome.stdout, "");
            assert!(outcome.stderr.contains(part), "{args:?}: {outcome:?}");
        }
        check(&[
            (
                &["connect", "tcp://127.0.0.1:0"],
                64,
                &["tcp://127.0.0.1:0", "port 0"],
            ),
            (&["--log", "a=b=c", "connect", "--", "cat"], 64, &["--log"]),
            (
                &["--log", "wran", "connect", "--", "cat"],
                64,
                &["wran", "error, warn, info"],
            ),
            (
                &["--log", "agent=info,verbose", "connect", "--", "cat"],
                64,
                &["verbose"],
            ),
        ])
        .await;
    });
}

#[test]
fn missing_peers_and_files_are_named() {
    block_on(async {
        // A port without a listener: it was free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let [tcp, ws] = ["tcp", "ws"].map(|scheme| format!("{scheme}://127.0.0.1:{port}"));
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}/none", folder.path().display());
        check(&[
            (
                &["connect", "tcp://no-such-host.invalid:1"],
                68,
                &["no-such-host.invalid", "not known", "Check the name"],
            ),
            (&["connect", &tcp], 69, &[&tcp, "refused", "Start the peer"]),
            (&["connect", &ws], 69, &[&ws, "refused", "Start the peer"]),
            (&["connect", &socket], 69, &[&socket, "no such socket file"]),
            (
                &["replay", "agent", "/nonexistent/talk.acpr"],
                66,
                &["/nonexistent/talk.acpr", "No such file"],
            ),
            (
                &["connect", "replay:/nonexistent/talk.acpr"],
                66,
                &["/nonexistent/talk.acpr", "No such file"],
            ),
            (
                &["serve", "--agent", "replay:/nonexistent/talk.acpr"],
                66,
                &["/nonexistent/talk.acpr", "No such file"],
            ),
            (
                &["connect", "--", "/nonexistent/agent"],
                69,
                &["/nonexistent/agent", "Check the path"],
            ),
            (
                &["serve", "--", "/nonexistent/agent"],
                69,
                &["/nonexistent/agent", "Check the path"],
            ),
            (
                &["serve", "--", "no-such-agent-anywhere"],
                69,
                &["no-such-agent-anywhere", "PATH", "Install"],
            ),
            (
                &["connect", "--", "sh agent.sh --acp"],
                69,
                &["sh agent.sh --acp", "words of their own"],
            ),
        ])
        .await;
    });
}

#[test]
fn forbidden_operations_are_explained() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent");
        fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        let taker = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = format!("tcp://{}", taker.local_addr().unwrap());
        let in_the_way = format!("unix:{file}");
        check(&[
            (
                &["connect", "--", file],
                77,
                &[file, "not executable", "chmod +x"],
            ),
            (
                &["serve", "--", file],
                77,
                &[file, "not executable", "chmod +x"],
            ),
            (
                &["serve", "--listen", "tcp://0.0.0.0:0", "--", "cat"],
                77,
                &["tcp://0.0.0.0:0", "other machines", "--dangerously-no-auth"],
            ),
            (
                &["serve", "--listen", "ws://[::]:0", "--", "cat"],
                77,
                &["ws://[::]:0", "--dangerously-no-auth"],
            ),
            (
                &["serve", "--listen", &in_the_way, "--", "cat"],
                73,
                &[file, "not a socket", "Choose another path"],
            ),
            (
                &["serve", "--listen", "unix:/nonexistent/relay", "--", "cat"],
                73,
                &["/nonexistent/relay", "does not exist"],
            ),
            (
                &["serve", "--listen", &taken, "--", "cat"],
                69,
                &[&taken, "in use", "another port"],
            ),
        ])
        .await;
        assert!(fs::exists(file).unwrap(), "the existing file was removed");
    });
}

/// Answers every request with `answer`.
async fn server(answer: String) -> String {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}/acp", server.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = server.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                while socket.read(&mut asked).await.is_ok_and(|read| read > 0) {
                    let _ = socket.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    to
}

#[test]
fn an_http_server_that_refuses_initialize_sets_the_exit_code_of_connect() {
    block_on(async {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        for (status, code) in [
            ("500 Internal Server Error", 69),
            ("503 Service Unavailable\r\nRetry-After: 3600", 69),
            ("404 Not Found", 76),
            ("405 Method Not Allowed", 76),
            ("426 Upgrade Required", 76),
            ("401 Unauthorized", 77),
        ] {
            let no = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let to = server(no).await;
            let mut connect = Program::start(&["connect", to.as_str()]);
            connect.write(&format!("{initialize}\n")).await;
            let answer = connect.json().await;
            assert!(answer["error"]["code"].is_i64(), "{status}: {answer}");
            // Its stdin is still open.
            assert_eq!(connect.exit().await.code(), Some(code), "{status}");
            let outcome = run(&["connect", to.as_str()], &format!("{initialize}\n")).await;
            let reports = format!("its server answered {}", &status[..3]);
            assert!(outcome.stderr.contains(&reports), "{outcome:?}");
        }
        // An error from the agent itself is an answer, and the client may retry otherwise.
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no version"}}"#;
        let no = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{error}",
            error.len()
        );
        let to = server(no).await;
        let outcome = run(&["connect", to.as_str()], &format!("{initialize}\n")).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stdout.trim_end(), error);
        assert!(outcome.stderr.contains("answered 400"), "{outcome:?}");
    });
}
