//! What a remote agent may request of the client's machine, and which agents count as remote.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt as _, StreamExt as _};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use crate::metrics::stage::Scrape;
use crate::support::agent::calling;
use crate::support::http::Caller;
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"_meta":{"_new":true,"_done":true,"_answer":{}}}}}"#;
const CANONICAL: [&str; 4] = [
    "--client-dialect",
    "canonical",
    "--agent-dialect",
    "canonical",
];

/// `connect` with these options to an agent that makes these calls.
fn connect(options: &[&str], calls: &[(&str, Value)]) -> Program {
    let calls: Vec<Value> = (calls.iter().enumerate())
        .map(|(id, (method, params))| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        })
        .collect();
    let agent = calling(&calls);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    Program::start(&[&["connect"], &CANONICAL[..], options, &["--"], &agent].concat())
}

/// Such a call, with what some methods need.
fn call(method: &str) -> (&str, Value) {
    (
        method,
        json!({"sessionId": "s", "command": "id", "mode": "form", "message": "m"}),
    )
}

/// What a client receives that opens a session in `folder`, until the agent has made its calls and
/// has an answer to `count` of them. The client answers every request with a result.
async fn received(connect: &mut Program, folder: &str, count: usize) -> Vec<Value> {
    let params = json!({"cwd": folder, "mcpServers": []});
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    connect.write(&format!("{INITIALIZE}\n{new}\n")).await;
    let mut received = Vec::new();
    let (mut answers, mut done) = (0, false);
    while answers < count || !done {
        let message = connect.json().await;
        if message.get("method").is_some() && message.get("id").is_some() {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
            connect.write(&format!("{answer}\n")).await;
        }
        answers += usize::from(message["method"] == "_answer");
        done |= message["method"] == "_done";
        received.push(message);
    }
    received
}

/// The methods that reached the client as requests.
fn requested(received: &[Value]) -> Vec<&str> {
    let requests = received.iter().filter(|one| one.get("id").is_some());
    requests.filter_map(|one| one["method"].as_str()).collect()
}

/// The errors that the agent got, by the number of the call.
fn errors(received: &[Value]) -> Vec<(u64, &Value)> {
    let answers = received.iter().filter(|one| one["method"] == "_answer");
    let answers = answers.map(|one| &one["params"]);
    let errors = answers.filter(|one| one.get("error").is_some());
    let mut errors: Vec<_> = errors
        .map(|one| (one["id"].as_u64().unwrap(), &one["error"]))
        .collect();
    errors.sort_by_key(|(number, _)| *number);
    errors
}

#[test]
fn a_guarded_agent_makes_only_the_requests_that_acp_defines_for_clients() {
    const STRANGE: [&str; 7] = [
        "Terminal/Create",
        "terminal.create",
        "_vendor/terminal/create",
        "craft/drainMidTurnQueue",
        "FS/read_text_file",
        "session/prompt",
        "terminal/create",
    ];
    const KNOWN: [&str; 2] = ["session/request_permission", "elicitation/create"];
    // Options, and which of the strange requests are allowed.
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--guard", "always"], &[]),
        (&["--guard", "always", "--allow", "craft/drain"], &[]),
        (
            &["--guard", "always", "--allow", "craft/drainMidTurnQueue"],
            &["craft/drainMidTurnQueue"],
        ),
        (
            &["--guard", "always", "--allow", "_vendor/*"],
            &["_vendor/terminal/create"],
        ),
        (
            &[
                "--guard",
                "always",
                "--allow",
                "_vendor/*",
                "--deny",
                "_vendor/*",
            ],
            &[],
        ),
        (&[], &STRANGE),
    ];
    block_on(async {
        for (options, passes) in cases {
            let calls: Vec<_> = STRANGE.into_iter().chain(KNOWN).map(call).collect();
            let mut connect = connect(options, &calls);
            let received = received(&mut connect, "/tmp", calls.len()).await;
            let expected = [passes, &KNOWN].concat();
            assert_eq!(requested(&received), expected, "{options:?}");
            let refused: Vec<_> = (0..STRANGE.len())
                .filter(|number| !passes.contains(&STRANGE[*number]))
                .collect();
            let errors = errors(&received);
            assert_eq!(errors.len(), refused.len(), "{options:?}: {received:#?}");
            for ((number, error), expected) in errors.iter().zip(refused) {
                assert_eq!(*number, expected as u64);
                assert_eq!(error["code"], -32057);
                let stated = error["message"].as_str().unwrap();
                let denied = options.contains(&"--deny") && expected == 2;
                let hint = if denied { "--deny" } else { "--guard never" };
                assert!(stated.contains(hint), "{stated}");
            }
        }
    });
}

#[test]
fn a_guarded_agent_gets_no_commands_and_only_the_sessions_files() {
    block_on(async {
        let place = tempfile::tempdir().unwrap();
        let work = place.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(place.path().join("secret"), "x").unwrap();
        symlink("../secret", work.join("link")).unwrap();
        let read = |path: &Path| ("fs/read_text_file", json!({"sessionId": "s", "path": path}));
        let calls = [
            call("terminal/create"),
            read(&place.path().join("secret")),
            read(&work.join("link")),
            read(&work.join("new")),
        ];
        let folder = work.to_str().unwrap();
        let guard = ["--guard", "always", "--admin", "127.0.0.1:0"];
        let mut guarded = connect(&guard, &calls);
        let admin = guarded.complaint().await.unwrap();
        let received_guarded = received(&mut guarded, folder, calls.len()).await;
        assert_eq!(requested(&received_guarded), ["fs/read_text_file"]);
        let denied = errors(&received_guarded);
        assert_eq!(denied.len(), 3, "{received_guarded:#?}");
        for (number, (call, error)) in denied.iter().enumerate() {
            assert_eq!((*call, &error["code"]), (number as u64, &json!(-32057)));
        }

        let scrape = scrape(&admin).await;
        let decisions = |method| {
            let labels = [("method", method), ("outcome", "denied")];
            scrape.value("acp_relay_policy_decisions_total", &labels)
        };
        assert_eq!(decisions("terminal/create"), 1.);
        assert_eq!(decisions("fs/read_text_file"), 2.);
        let ours = [("side", "agent"), ("code", "-32057")];
        let errors = scrape.value("acp_relay_synthesised_errors_total", &ours);
        assert_eq!(errors, 3.);

        // An agent that was started here is not guarded.
        let root = ["--guard", "always", "--root", "/", "--allow", "terminal/*"];
        for options in [&[][..], &root] {
            let mut free = connect(options, &calls);
            let received = received(&mut free, folder, calls.len()).await;
            assert_eq!(requested(&received).len(), 4, "{received:#?}");
        }
    });
}

/// The metrics of the program that logged this address.
async fn scrape(admin: &str) -> Scrape {
    let (_, admin) = admin.split_once("admin at ").unwrap();
    Scrape::read(&Caller::to(admin).ask("GET", "/metrics", &[], "").await.body)
}

#[test]
fn paths_are_mapped_for_the_other_machine() {
    block_on(async {
        let calls = [(
            "fs/read_text_file",
            json!({"sessionId": "s", "path": "/srv/app/x"}),
        )];
        let mut connect = connect(&["--map", "/home/me/app=/srv/app"], &calls);
        let received = received(&mut connect, "/home/me/app", 1).await;
        let opened = received.iter().find(|one| one["method"] == "_new").unwrap();
        assert_eq!(
            opened["params"]["params"]["cwd"], "/srv/app",
            "{received:#?}"
        );
        let read = received
            .iter()
            .find(|one| one["method"] == "fs/read_text_file");
        assert_eq!(read.unwrap()["params"]["path"], "/home/me/app/x");
    });
}

#[test]
fn requested_path_mappings_are_not_warnings() {
    block_on(async {
        let agent = ["--map", "/home/me=/srv", "--", "cat"];
        let new = r#"{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/home/me/app","mcpServers":[]}}"#;
        for (log, logged) in [("warn", 0), ("info", 10)] {
            let mut args = vec!["connect", "--log", log];
            args.extend(agent);
            let outcome = run(&args, &format!("{new}\n").repeat(30)).await;
            let lines = outcome.stderr.matches("to the other machine").count();
            assert_eq!(lines, logged, "{}", outcome.stderr);
        }
    });
}

#[test]
fn unknown_notifications_of_a_guarded_agent_are_dropped_and_counted() {
    block_on(async {
        let sent = |method: &str| json!({"jsonrpc": "2.0", "method": method});
        let names = [
            "_only/news",
            "_only/News",
            "_only/news",
            "workspace/run",
            "mcp/message",
            "_odd/'$(id)'",
            "_kiro.dev/commands/available",
            "_acp-relay/other",
            "$/cancel_request",
        ];
        let agent = calling(&names.map(sent));
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let options = ["connect", "--admin", "127.0.0.1:0", "--guard", "always"];
        let allowed = ["--allow", "_only/News"];
        let known = ["_new", "_kiro.dev/commands/available", "_acp-relay/other"];
        let known = [&known[..], &["$/cancel_request", "_done"]].concat();
        for allow in [&[][..], &allowed] {
            let args = [&options, &CANONICAL[..], allow, &["--"], &agent].concat();
            let mut connect = Program::start(&args);
            let admin = connect.complaint().await.unwrap();
            let received = received(&mut connect, "/tmp", 0).await;
            let methods = received.iter().filter_map(|one| one["method"].as_str());
            let methods: Vec<_> = methods.filter(|name| *name != "_only/News").collect();
            assert_eq!(methods, known, "{allow:?}");
            let passed = received.iter().any(|one| one["method"] == "_only/News");
            assert_eq!(passed, !allow.is_empty());
            let scrape = scrape(&admin).await;
            let dropped = ["_ext", "other"].map(|method| {
                let labels = [("method", method), ("outcome", "denied")];
                scrape.value("acp_relay_policy_decisions_total", &labels)
            });
            let count = names.len() - 3 - usize::from(passed);
            assert_eq!(dropped.iter().sum::<f64>(), count as f64, "{dropped:?}");
            connect.end();
            let mut log = String::new();
            while let Some(line) = connect.complaint().await {
                log = log + &line + "\n";
            }
            for (name, lines) in [
                ("--allow _only/news;", 1),
                ("--allow _only/News;", usize::from(!passed)),
                ("--allow workspace/run;", 1),
                ("--allow mcp/message;", 1),
                ("--allow METHOD;", 1),
            ] {
                assert_eq!(log.matches(name).count(), lines, "{name}: {log}");
            }
        }
    });
}

/// A relay with a state directory of its own, whose agent asks for a terminal.
struct Relay {
    state: TempDir,
    _serve: Program,
    addresses: Vec<String>,
}

impl Relay {
    async fn start(options: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let (method, params) = call("terminal/create");
        let create = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        let agent = calling(&[create]);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let count = options.iter().filter(|word| **word == "--listen").count();
        let mut serve = Program::start_in(
            state.path(),
            &[&["serve"], options, &["--"], &agent].concat(),
        );
        let mut addresses = Vec::new();
        for _ in 0..count {
            addresses.push(serve.address().await);
        }
        Self {
            state,
            _serve: serve,
            addresses,
        }
    }

    fn port(&self) -> u16 {
        let (_, port) = self.addresses[0].rsplit_once(':').unwrap();
        port.split('/').next().unwrap().parse().unwrap()
    }

    /// The listener file of the relay's port.
    fn file(&self) -> std::path::PathBuf {
        let port = self.port().to_string();
        self.state.path().join("relays").join(port)
    }
}

/// Whether `connect` guards the client against the agent at `to`; an automatic guard is logged.
async fn is_guarded(state: &Path, to: &str, options: &[&str]) -> bool {
    let args = [&["connect"], &CANONICAL[..], options, &[to]].concat();
    let mut connect = Program::start_in(state, &args);
    let received = received(&mut connect, "/tmp", 1).await;
    let is_guarded = match (requested(&received)[..].first(), errors(&received).first()) {
        (Some(&"terminal/create"), None) => false,
        (None, Some((_, error))) => error["code"] == -32057,
        _ => panic!("{to}: {received:#?}"),
    };
    connect.end();
    let mut log = String::new();
    while let Some(line) = connect.complaint().await {
        log = log + &line + "\n";
    }
    let explains = log.contains("is guarded") && log.contains("--guard never");
    assert_eq!(explains, is_guarded && options.is_empty(), "{to}: {log}");
    is_guarded
}

/// Forwards each connection made to `from` to `to`, as `ssh -L` does; keeps what clients send.
async fn tunnel(from: &str, to: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind(from).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (kept, far) = (Arc::clone(&kept), TcpStream::connect(("127.0.0.1", to)));
            let (mut from_client, mut to_client) = near.into_split();
            let (mut back, mut on) = far.await.unwrap().into_split();
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
                    kept.lock().unwrap().extend(&bytes[..count]);
                    if on.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut back, &mut to_client).await });
        }
    });
    (port, sent)
}

#[test]
fn an_agent_at_a_loopback_port_is_guarded_unless_it_is_this_users_relay() {
    block_on(async {
        let place = tempfile::tempdir().unwrap();
        let unix = format!("unix:{}", place.path().join("s").display());
        let options = ["--listen", "http://127.0.0.1:0", "--listen", &unix];
        let relay =
            Relay::start(&[&options[..], &["--listen", "tcp://127.0.0.1:0"]].concat()).await;
        let find = |scheme: &str| {
            let address = relay.addresses.iter().find(|one| one.starts_with(scheme));
            address.unwrap().clone()
        };
        let (http, tcp) = (find("http:"), find("tcp:"));
        let other = tempfile::tempdir().unwrap();
        let (own, other) = (relay.state.path(), other.path());
        let over = |scheme: &str| http.replacen("http", scheme, 1);
        let cases: [(&Path, &str, &[&str], bool); 10] = [
            (own, &http, &[], false),
            (own, &over("ws"), &[], false),
            (own, &over("elephant+http"), &[], false),
            (
                own,
                &over("ws").replacen("127.0.0.1", "localhost", 1),
                &[],
                false,
            ),
            (own, &unix, &[], false),
            (own, &tcp, &[], true),
            (own, &tcp, &["--guard", "never", "--files", "editor"], false),
            // The relay of another user, or of another machine.
            (other, &http, &[], true),
            (other, &over("ws"), &[], true),
            (
                other,
                &over("ws"),
                &["--guard", "never", "--files", "editor"],
                false,
            ),
        ];
        for (state, to, options, guarded) in cases {
            let found = is_guarded(state, to, options).await;
            assert_eq!(found, guarded, "{to} {options:?} own: {}", state == own);
        }
    });
}

#[test]
fn a_key_that_other_users_may_read_is_not_accepted() {
    block_on(async {
        let relay = Relay::start(&["--listen", "ws://127.0.0.1:0"]).await;
        let mode = fs::metadata(relay.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(relay.file(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(is_guarded(relay.state.path(), &relay.addresses[0], &[]).await);
    });
}

#[test]
fn an_agent_behind_a_tunnel_is_remote_and_gets_no_user_token() {
    block_on(async {
        // The address that the client dials has another port than the relay, then another host.
        for from in ["127.0.0.1:0", "127.0.0.2:PORT"] {
            let options = [
                "--listen",
                "http://127.0.0.1:0",
                "--allow-host",
                "127.0.0.1",
            ];
            let relay = Relay::start(&options).await;
            let from = from.replace("PORT", &relay.port().to_string());
            let (port, sent) = tunnel(&from, relay.port()).await;
            let host = from.split(':').next().unwrap();
            for scheme in ["ws", "http"] {
                let to = format!("{scheme}://{host}:{port}/acp");
                assert!(is_guarded(relay.state.path(), &to, &[]).await, "{to}");
            }
            let sent = String::from_utf8_lossy(&sent.lock().unwrap()).to_ascii_lowercase();
            assert!(sent.contains("initialize"), "{sent}");
            assert!(!sent.contains("authorization"), "{sent}");
        }
    });
}

#[test]
fn an_agent_without_a_valid_proof_is_remote() {
    block_on(async {
        let wrong = format!(
            "HTTP/1.1 204 No Content\r\nacp-relay-proof: {}\r\n\r\n",
            "0".repeat(64)
        );
        for answer in [
            &wrong,
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "",
        ] {
            let state = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            // As if a relay of this user were there.
            let relays = state.path().join("relays");
            fs::create_dir(&relays).unwrap();
            let file = relays.join(at.port().to_string());
            fs::write(&file, "0".repeat(64)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let file = fs::File::open(&file).unwrap();
            flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
            let mut connect =
                command(&["connect", "--limit", "handshake=2", &format!("ws://{at}")]);
            connect.env("ACP_RELAY_STATE_DIR", state.path());
            let mut connect = Program::of(connect);
            connect.write(&format!("{INITIALIZE}\n")).await;
            let (mut challenge, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(challenge.read_buf(&mut head).await.unwrap(), 0);
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            assert!(head.contains("acp-relay-challenge: "), "{head}");
            assert!(!head.contains("authorization"), "{head}");
            challenge.write_all(answer.as_bytes()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = accept_async(stream).await.unwrap();
            let initialize = socket.next().await.unwrap().unwrap().into_text().unwrap();
            let initialize: Value = serde_json::from_str(&initialize).unwrap();
            let announced = &initialize["params"]["clientCapabilities"];
            assert!(announced.get("terminal").is_none(), "{initialize}");
            let result = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
            socket.send(Message::text(result)).await.unwrap();
            assert_eq!(connect.json().await["id"], 0);
            let reported = connect.complaint().await.unwrap();
            assert!(reported.contains("--guard never"), "{reported}");
            drop(challenge);
        }
    });
}

#[test]
fn a_wrong_host_at_a_tunnel_is_refused_with_the_option_that_allows_it() {
    block_on(async {
        let relay = Relay::start(&["--listen", "http://127.0.0.1:0"]).await;
        let (port, _) = tunnel("127.0.0.1:0", relay.port()).await;
        for scheme in ["ws", "http"] {
            let to = format!("{scheme}://127.0.0.1:{port}");
            let mut connect = Program::start(&["connect", to.as_str()]);
            connect.write(&format!("{INITIALIZE}\n")).await;
            let error = connect.json().await["error"].to_string();
            assert!(error.contains("--allow-host"), "{to}: {error}");
        }
    });
}
