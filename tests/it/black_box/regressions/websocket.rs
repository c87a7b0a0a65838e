//! WebSockets, of `serve` and of `connect`.

use serde_json::json;

use super::super::support_ws::WebSocket;
use super::support::{AGENT, PROMPT, bearer, serve_script};
use crate::cli::signals::is_gone;
use crate::process::notes::Proc;
use crate::support::http::INITIALIZE;
use crate::support::http_server::Server;
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run, run_in};

const LOAD: &str = r#"{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#;

#[test]
fn a_websocket_server_that_is_busy_ends_connect_with_69() {
    block_on(async {
        for (status, code, remedy) in [
            ("408 Request Timeout", 69, "later"),
            ("429 Too Many Requests", 69, "later"),
            ("500 Internal Server Error", 69, "later"),
            ("502 Bad Gateway", 69, "later"),
            ("503 Service Unavailable", 69, "later"),
            ("504 Gateway Timeout", 69, "later"),
            ("404 Not Found", 76, "path"),
            ("200 OK", 76, "path"),
            ("401 Unauthorized", 77, "token"),
        ] {
            let number = status[..3].parse().unwrap();
            let host = Server::answering(move |_| Some((number, vec![], "why".to_owned()))).await;
            let outcome = run(&["connect", &format!("ws://{host}/acp")], INITIALIZE).await;
            assert_eq!(outcome.code, Some(code), "{status}: {outcome:?}");
            for word in [status, "why", remedy] {
                assert!(outcome.stderr.contains(word), "{outcome:?}");
            }
        }
    });
}

#[test]
fn a_client_with_a_token_resumes_after_its_websocket_breaks() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let script = format!(
            "LOAD='send \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":3,\\\"result\\\":{{}}}}\"'\n{AGENT}"
        );
        let options = "--on-disconnect detach --require-token";
        let mut program = serve_script(state.path(), options, &script);
        let address = program.address().await;
        let alice = bearer(state.path(), "alice").await;
        let mut first = WebSocket::open(&address, &alice).await;
        let pid = first.begin().await;
        // No close frame.
        drop(first);
        let mut second = WebSocket::open(&address, &alice).await;
        second.send(INITIALIZE).await;
        second.answer(0).await;
        second.send(LOAD).await;
        let answer = second.answer(3).await;
        assert_eq!(answer["result"]["_meta"]["pid"], json!(pid), "{answer}");
    });
}

#[test]
fn a_paused_client_is_closed_when_its_token_is_revoked() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = "--require-token --limit credential-check=100ms";
        // An agent that reads nothing.
        let mut program = serve_script(state.path(), options, "exec sleep 1000");
        let address = program.address().await;
        let alice = bearer(state.path(), "alice").await;
        let mut client = WebSocket::open(&address, &alice).await;
        client.flood().await;
        let revoked = run_in(state.path(), &["token", "revoke", "alice"]).await;
        assert_eq!(revoked.code, Some(0), "{revoked:?}");
        assert_eq!(client.closed().await.0, 4401);
    });
}

#[test]
fn the_agent_that_waits_for_a_client_ends_when_its_token_is_revoked() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = "--on-disconnect detach --require-token --limit credential-check=100ms                        --limit reconnect-grace=1h";
        let mut program = serve_script(state.path(), options, AGENT);
        let address = program.address().await;
        let alice = bearer(state.path(), "alice").await;
        let mut client = WebSocket::open(&address, &alice).await;
        let pid = client.begin().await;
        let agent = Proc::of(pid.try_into().unwrap()).unwrap();
        // No close frame.
        drop(client);
        let revoked = run_in(state.path(), &["token", "revoke", "alice"]).await;
        assert_eq!(revoked.code, Some(0), "{revoked:?}");
        is_gone(&agent).await;
    });
}

/// Sends an update before it answers a prompt, and refuses the first `session/load` that it reads;
/// it answers the second with the history.
const FORGETFUL: &str = r#"
PROMPT='update one; send "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"stopReason\":\"end_turn\"}}"'
loads=0
LOAD='
id=${line#*\"id\":}; id=${id%%,*}; loads=$((loads + 1))
case $loads in
1) send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32603,\"message\":\"no\"}}";;
*) update one; update two; send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}";;
esac'
"#;

#[test]
fn a_history_is_complete_after_the_agent_refused_to_send_it() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let script = format!("{FORGETFUL}{AGENT}");
        let mut program = serve_script(state.path(), "--on-disconnect detach", &script);
        let address = program.address().await;
        let mut first = WebSocket::open(&address, "").await;
        first.begin().await;
        first.send(PROMPT).await;
        first.answer(2).await;
        first.send(LOAD).await;
        let refused = first.answer(3).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        drop(first);
        let mut second = WebSocket::open(&address, "").await;
        second.send(INITIALIZE).await;
        second.answer(0).await;
        second.send(LOAD).await;
        let mut texts = Vec::new();
        loop {
            let message = second.message().await;
            if message["id"] == 3 {
                assert!(message.get("error").is_none(), "{message}");
                break;
            }
            let text = &message["params"]["update"]["content"]["text"];
            texts.push(text.as_str().unwrap().to_owned());
        }
        assert_eq!(texts, ["one", "two"], "the agent replays the history");
    });
}

#[test]
fn an_unrecordable_conversation_gets_an_error_and_is_closed_with_1011() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().to_str().unwrap().to_owned();
        let relay = command(&[
            "serve",
            "--record",
            &format!("{state}/tapes"),
            "--record-strict",
            "--",
            "sh",
            "-c",
            AGENT,
        ]);
        // No file may be longer than 8 blocks of 512 bytes.
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 8; exec \"$@\"", "sh"]);
        shell.arg(relay.as_std().get_program());
        shell.args(relay.as_std().get_args());
        shell.env("ACP_RELAY_STATE_DIR", &state);
        shell.stdin(std::process::Stdio::null());
        shell.stdout(std::process::Stdio::piped());
        shell.stderr(std::process::Stdio::piped());
        shell.kill_on_drop(true);
        let mut program = Program::of(shell);
        let mut client = WebSocket::open(&program.address().await, "").await;
        client.begin().await;
        // Not answered by its agent, so it is answered by the relay.
        client.send(PROMPT).await;
        client.notify_100_kib().await;
        let answer = client.answer(2).await;
        let relay = &answer["error"]["data"]["relay"];
        assert_eq!(relay["reason"], "unrecorded", "{answer}");
        let (code, reason) = client.closed().await;
        assert_eq!(code, 1011, "{reason}");
    });
}
