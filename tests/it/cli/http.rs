//! `serve` over HTTP: agents, the connection limit and the shutdown, as clients see them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::config::stage::Client;
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::{Program, ask, run};

/// Answers `initialize` with its process id; on `flood`, sends 500 messages and fails.
const AGENT: &str = r#"read line
echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"pid\":$$}}"
while read line; do
    case $line in *flood*)
        number=0
        while [ $number -lt 500 ]; do
            echo "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":$number}"
            number=$((number + 1))
        done
        echo gone >&2
        exit 3
    esac
done"#;

fn serve(options: &[&str]) -> Program {
    let listen = ["serve", "--listen", "http://127.0.0.1:0"];
    let agent = ["--", "sh", "-c", AGENT];
    Program::start(&[&listen[..], options, &agent].concat())
}

async fn open(address: &str) -> Client {
    Client::open(&Caller::to(address), "/acp").await
}

#[test]
fn the_last_messages_of_an_agent_precede_its_exit_notice() {
    block_on(async {
        let mut serve = serve(&[]);
        let client = open(&serve.address().await).await;
        let mut events = client.events().await;
        let flood = r#"{"jsonrpc":"2.0","id":1,"method":"flood"}"#;
        assert_eq!(client.post(flood).await, 202);
        for number in 0..500 {
            let expected = format!(r#"{{"jsonrpc":"2.0","method":"n","params":{number}}}"#);
            assert_eq!(events.data().await, expected);
        }
        let answer = events.data().await;
        assert!(
            answer.contains("-32051") && answer.contains("\"id\":1"),
            "{answer}"
        );
        let notice = events.data().await;
        assert!(notice.contains("_acp-relay/agent_exited"), "{notice}");
        assert!(events.ends().await);
        // The stream ends shortly before the conversation does.
        let mut status = 503;
        while status == 503 {
            status = client.post(flood).await;
        }
        assert_eq!(status, 404);
    });
}

#[test]
fn sigterm_ends_streams_and_agents() {
    block_on(async {
        let mut serve = serve(&[]);
        let client = open(&serve.address().await).await;
        let mut events = client.events().await;
        serve.signal(Signal::TERM);
        // Whatever is sent before it, the stream ends.
        while events.next().await.is_some() {}
        assert_eq!(serve.exit().await.code(), Some(0));
        assert!(!client.agent_runs());
    });
}

#[test]
fn the_agent_of_a_vanished_client_ends() {
    block_on(async {
        let mut serve = serve(&["--limit", "http-grace=300ms"]);
        let address = serve.address().await;
        let client = open(&address).await;
        drop(client.events().await);
        while client.agent_runs() {
            tokio::task::yield_now().await;
        }
        // Other clients are served.
        let other = open(&address).await;
        assert!(other.agent_runs());
    });
}

#[test]
fn an_affinity_cookie_is_set_and_any_cookie_is_accepted() {
    block_on(async {
        let mut serve = serve(&["--affinity-cookie", "route=one"]);
        let caller = Caller::to(&serve.address().await);
        let other = [("cookie", "route=two; more=x")];
        let reply = caller.post(&other, INITIALIZE).await;
        let cookie = reply.fields["set-cookie"].to_str().unwrap();
        assert!(
            cookie.starts_with("route=one; Path=/acp; HttpOnly"),
            "{cookie}"
        );
        let id = reply.fields["acp-connection-id"].to_str().unwrap();
        let fields = [other[0], ("acp-connection-id", id)];
        let reply = caller.post(&fields, r#"{"method":"x"}"#).await;
        assert_eq!(reply.status.as_u16(), 202);
        assert!(!reply.fields.contains_key("set-cookie"));
    });
}

/// The error of the other relay is no answer of the agent to the offered version.
#[test]
fn an_agent_that_crashes_at_initialize_is_started_once_behind_a_relay() {
    block_on(async {
        for scheme in ["ws", "http"] {
            let folder = tempfile::tempdir().unwrap();
            let starts = folder.path().join("starts");
            let crash = format!("echo started >> '{}'; read line; exit 3", starts.display());
            let listen = format!("{scheme}://127.0.0.1:0");
            let mut serve =
                Program::start(&["serve", "--listen", &listen, "--", "sh", "-c", &crash]);
            let mut connect = Program::start(&["connect", &serve.address().await]);
            let initialize = json!({"protocolVersion": 1, "clientCapabilities": {}});
            ask(&mut connect, 1, "initialize", initialize).await;
            let answer = connect.json().await;
            assert_eq!(answer["error"]["code"], -32051, "{scheme}: {answer}");
            let started = std::fs::read_to_string(&starts).unwrap();
            assert_eq!(started, "started\n", "{scheme}");
        }
    });
}

/// What follows a refused `initialize` is told the reason.
#[test]
fn requests_after_a_refused_initialize_are_told_its_error() {
    block_on(async {
        let agent = r#"while read line; do
            echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no licence"}}'
        done"#;
        let listen = ["serve", "--listen", "http://127.0.0.1:0", "--", "sh", "-c"];
        let mut serve = Program::start(&[&listen[..], &[agent]].concat());
        let address = serve.address().await;
        // Without the negotiation the agent is asked once.
        let options = ["connect", "--agent-protocol", "1", "--no-link", &address];
        let mut connect = Program::start(&options);
        ask(&mut connect, 1, "initialize", json!({"protocolVersion": 1})).await;
        assert_eq!(connect.json().await["error"]["code"], -32000);
        ask(
            &mut connect,
            2,
            "session/new",
            json!({"cwd": "/", "mcpServers": []}),
        )
        .await;
        let answer = connect.json().await;
        assert_eq!(answer["error"]["code"], -32050, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("no licence"), "{message}");
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
