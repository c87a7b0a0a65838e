//! What the program forwards between an editor on its stdio and an agent, local or behind a server.

use serde_json::json;

use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::{Program, run};

/// Answers each request with its line.
pub(super) fn echo() -> Vec<String> {
    scripted(&[("*", json!([{"result": {"line": "$line"}}]))])
}

fn ask(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ask\"}}\n")
}

fn connect_to<S: AsRef<str>>(agent: &[S]) -> Vec<String> {
    let words = ["connect", "--"]
        .into_iter()
        .chain(agent.iter().map(AsRef::as_ref));
    words.map(str::to_owned).collect()
}

#[test]
fn connect_exits_with_the_code_of_the_agent() {
    block_on(async {
        for (script, code) in [
            ("cat > /dev/null; exit 0", 0),
            ("exit 3", 3),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            let outcome = run(&connect_to(&["sh", "-c", script]), "").await;
            assert_eq!(outcome.code, Some(code), "{script}: {outcome:?}");
            assert_eq!(outcome.stdout, "", "{script}");
        }
    });
}

#[test]
fn connect_exits_with_the_code_of_an_agent_behind_a_server() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}/relay", folder.path().display());
        let listen = ["tcp://127.0.0.1:0", &socket, "ws://127.0.0.1:0"];
        let options = listen.iter().flat_map(|at| ["--listen", at]);
        // Its exit code is the params.
        let script = r#"read line; code=${line##*:}; exit "${code%\}}""#;
        let agent = ["--", "sh", "-c", script];
        let args: Vec<&str> = ["serve"].into_iter().chain(options).chain(agent).collect();
        let mut serve = Program::start(&args);
        for scheme in ["tcp://127.0.0.1:", "unix:/", "ws://127.0.0.1:"] {
            let address = serve.address().await;
            assert!(address.starts_with(scheme), "{address}");
            assert!(!address.ends_with(":0"), "{address}");
            for code in [0, 3] {
                let mut connect = Program::start(&["connect", &address]);
                let text =
                    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"exit\",\"params\":{code}}}\n");
                connect.write(&text).await;
                assert_eq!(
                    connect.line().await,
                    None,
                    "the notice is not for the editor"
                );
                assert_eq!(connect.exit().await.code(), Some(code), "{address}");
            }
        }
    });
}

#[test]
fn an_agent_exit_during_a_request_is_reported() {
    block_on(async {
        let script = "read line; echo 'out of memory' >&2; exit 3";
        let mut serve = Program::start(&[
            "serve",
            "--listen",
            "ws://127.0.0.1:0",
            "--",
            "sh",
            "-c",
            script,
        ]);
        let address = serve.address().await;
        let mut connect = Program::start(&["connect", &address]);
        connect.write(&ask(1)).await;
        let answer = connect.json().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(-32051))
        );
        let relay = &answer["error"]["data"]["relay"];
        assert_eq!(relay["exit"], json!({ "code": 3 }));
        let tail = relay["stderrTail"].as_str().unwrap();
        assert!(tail.contains("out of memory"), "{tail}");
        assert_eq!(connect.line().await, None);
        assert_eq!(connect.exit().await.code(), Some(3));
    });
}

#[test]
fn the_output_of_an_agent_without_answers_is_quoted_without_secrets() {
    block_on(async {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let script = format!("read line; echo '{key} is no longer maintained'; exit 0");
        let mut connect = Program::start(&["connect", "--", "sh", "-c", &script]);
        connect.write(&ask(1)).await;
        let error = connect.json().await["error"].clone();
        let printed = error["data"]["relay"]["stdoutTail"].as_str().unwrap();
        for text in [printed, error["message"].as_str().unwrap()] {
            assert!(text.ends_with(" is no longer maintained"), "{error}");
        }
        assert!(!error.to_string().contains(&key), "{error}");
    });
}

#[test]
fn input_that_has_already_ended_is_answered() {
    block_on(async {
        let near = run(&connect_to(&echo()), &ask(1)).await;
        assert_eq!(near.code, Some(0), "{near:?}");
        for listen in ["tcp://127.0.0.1:0", "ws://127.0.0.1:0"] {
            let echo = echo();
            let echo: Vec<&str> = echo.iter().map(String::as_str).collect();
            let args = [&["serve", "--listen", listen, "--"], &echo[..]].concat();
            let mut serve = Program::start(&args);
            let far = run(&["connect", &serve.address().await], &ask(1)).await;
            assert_eq!((far.code, far.stdout), (Some(0), near.stdout.clone()));
        }
        assert!(near.stdout.contains(r#""id": 1"#), "{near:?}");
        assert_eq!(near.stdout.lines().count(), 1);
    });
}

#[test]
fn a_client_with_header_framing_works_with_an_agent_with_lines() {
    block_on(async {
        let mut connect = Program::start(&connect_to(&echo()));
        let body = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"method\": \"ask\"\n}";
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        connect.write(&message).await;
        let head = connect.line().await.unwrap();
        let length: usize = head
            .strip_prefix("Content-Length: ")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(connect.line().await.unwrap(), "");
        let answer: serde_json::Value = serde_json::from_str(&connect.bytes(length).await).unwrap();
        assert_eq!(answer["id"], 1);
        // A line break between tokens became a space: one message, one line.
        assert_eq!(
            answer["result"]["line"],
            format!("{}\n", body.replace('\n', " "))
        );
    });
}

#[test]
fn the_demo_runs_to_its_end() {
    block_on(async {
        for (args, word) in [
            (&["demo"][..], "warm welcome"),
            (&["demo", "--deny"], "stays"),
        ] {
            let outcome = run(args, "").await;
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            assert!(outcome.stdout.contains(word), "{outcome:?}");
            assert_eq!(outcome.stderr, "", "{outcome:?}");
        }
    });
}
