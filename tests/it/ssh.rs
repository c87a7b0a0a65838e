//! `ssh://` endpoints, with a stand-in for ssh and the other machine (`support/ssh.py`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use acp_relay::transport::Endpoint;
use data_encoding::BASE64URL_NOPAD;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::cli::signals::{DEATHS, Death, is_gone, watchdog_of};
use crate::process::notes::{Proc, wait_until};
use crate::support::agent::{calling, scripted};
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask, command};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/ssh.py");

/// The other machine, and this one, which has the stand-in first on its PATH.
struct Machine {
    dir: TempDir,
    server: process::Child,
}

impl Machine {
    /// With these agents in its configuration file, and these variables.
    fn start(agents: &[(&str, &[String])], env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["home/.config/acp-relay", "home/.local/bin", "bin"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let relay = env!("CARGO_BIN_EXE_acp-relay");
        std::os::unix::fs::symlink(relay, at("home/.local/bin/acp-relay")).unwrap();
        let agents = agents.iter().map(|(name, words)| {
            let words = json!(words).to_string();
            format!("[agents.{name}]\ncommand = {words}\n")
        });
        let agents: String = agents.collect();
        fs::write(at("home/.config/acp-relay/acp-relay.toml"), agents).unwrap();
        let ssh = format!(
            "#!/bin/sh\nexec python3 '{SCRIPT}' ssh '{}' '{}' \"$@\"\n",
            at("socket").display(),
            at("calls").display()
        );
        fs::write(at("bin/ssh"), ssh).unwrap();
        fs::set_permissions(at("bin/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut server = process::Command::new("python3")
            .arg(SCRIPT)
            .arg("machine")
            .arg(at("socket"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", at("home"))
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = std::io::BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut ready, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { dir, server }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// `connect` on this machine.
    fn connect(&self, args: &[&str]) -> Program {
        Program::of(self.command(&[&["connect"], args].concat()))
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = command(args);
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.path("bin").display());
        command.env("PATH", path);
        command
    }

    /// The file of an agent's relay.
    fn file(&self, name: &str) -> PathBuf {
        let folder = self.path("home/.local/state/acp-relay/ssh");
        folder.join(name)
    }

    /// The process of an agent's relay.
    async fn relay(&self, agent: &str) -> Proc {
        let socket = UnixStream::connect(self.file(&format!("{agent}.link")));
        let peer = socket.await.unwrap().peer_cred().unwrap();
        Proc::of(peer.pid().unwrap().cast_unsigned()).unwrap()
    }

    /// The arguments that ssh was called with.
    fn calls(&self) -> Vec<Vec<String>> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let calls = calls
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        calls.collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

/// An agent that shows its process id and the request for each session, and asks in each prompt.
fn agent() -> Vec<String> {
    let session = json!({"sessionId": "s", "_meta": {"pid": "$pid", "asked": "$message"}});
    let question = json!({"jsonrpc": "2.0", "id": "ask", "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}});
    scripted(&[
        ("session/new", json!([{ "result": session }])),
        (
            "session/prompt",
            json!([{"keep": true}, {"send": question}]),
        ),
        ("answer", json!([{"result": {"stopReason": "end_turn"}}])),
    ])
}

/// Begins a conversation, and returns what the agent shows.
async fn begin(client: &mut Program, cwd: &str) -> Value {
    answered(client, 0, "initialize", json!({"protocolVersion": 1})).await;
    let params = json!({"cwd": cwd, "mcpServers": []});
    answered(client, 1, "session/new", params).await["_meta"].clone()
}

async fn end(mut client: Program) {
    client.end();
    assert_eq!(client.exit().await.code(), Some(0));
}

fn is_running(pid: &Value) -> bool {
    let process = Proc::of(u32::try_from(pid.as_u64().unwrap()).unwrap());
    process.is_some_and(|process| !process.is_gone())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_conversation_starts_the_relay_there_and_the_next_one_finds_it() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        let records = machine.path("records");
        let there = machine.path("home").display().to_string();
        let map = format!("/here={there}");
        let options = ["--map", &map, "--record"];
        let options = [&options[..], &[records.to_str().unwrap()]].concat();
        let to = "ssh://me@devbox:2222/test";
        let mut first = machine.connect(&[&options[..], &[to]].concat());
        let shown = begin(&mut first, "/here/.local").await;
        assert_eq!(shown["asked"]["params"]["cwd"], format!("{there}/.local"));
        ask(
            &mut first,
            2,
            "session/prompt",
            json!({"sessionId": "s", "prompt": []}),
        )
        .await;
        assert_eq!(first.json().await["id"], "ask");
        first
            .write("{\"jsonrpc\":\"2.0\",\"id\":\"ask\",\"result\":{}}\n")
            .await;
        assert_eq!(first.json().await["result"]["stopReason"], "end_turn");
        end(first).await;
        assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
        let relay = machine.relay("test").await;
        // The agent of a client that left is not kept.
        wait_until("the agent ends", || !is_running(&shown["pid"]));

        // Without a name it is the only agent of the file.
        for to in ["ssh://devbox/test", "ssh://devbox"] {
            let mut next = machine.connect(&[to]);
            let other = begin(&mut next, "/").await;
            assert_ne!(other["pid"], shown["pid"]);
            assert_eq!(machine.relay("test").await, relay);
            end(next).await;
        }
        let folder = machine.file("");
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("test.link")), 0o600);
        assert_eq!(mode(&folder.join("test.log")), 0o600);

        // The file of a relay that was killed is replaced.
        relay.kill(Signal::KILL);
        let mut next = machine.connect(&["ssh://devbox/test"]);
        begin(&mut next, "/").await;
        assert_ne!(machine.relay("test").await, relay);
        end(next).await;

        let mut calls = machine.calls();
        // The greeting of a new link has no key.
        for call in &mut calls {
            let (before, rest) = call[call.len() - 1]
                .split_once("_HELLO=")
                .expect("a greeting");
            let (greeting, after) = rest.split_once(';').expect("more words");
            let greeting = BASE64URL_NOPAD.decode(greeting.as_bytes()).expect("Base64");
            assert!(greeting.starts_with(br#"{"t":"hello","v":[1],"gen":1,"rx":1,"win":"#));
            let command = format!("{before}_HELLO=…;{after}");
            *call.last_mut().expect("a command") = command;
        }
        let command = concat!(
            "exec sh -c 'PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:",
            "/opt/homebrew/bin; export PATH; ACP_RELAY_OVER_SSH_LINK=1; ",
            "export ACP_RELAY_OVER_SSH_LINK; ACP_RELAY_OVER_SSH_HELLO=…; ",
            "export ACP_RELAY_OVER_SSH_HELLO; r=$HOME/.local/share/acp-relay/",
            env!("CARGO_PKG_VERSION"),
            "/acp-relay; [ -x \"$r\" ] || r=acp-relay; exec \"$r\" over-ssh test'"
        );
        let options = [
            ["-T", "-o"],
            ["ControlMaster=no", "-o"],
            ["ServerAliveInterval=10", "-o"],
        ];
        let options = [options.as_flattened(), &["ServerAliveCountMax=2"]].concat();
        let place = ["-p", "2222", "-l", "me", "--", "devbox", command];
        assert_eq!(calls[0], [&options[..], &place].concat());
        assert_eq!(
            calls[1],
            [&options[..], &["--", "devbox", command]].concat()
        );
        assert_eq!(calls[2][9], command.replace(" test'", "'"));
    });
}

#[test]
fn two_clients_at_the_same_moment_get_one_relay() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        let mut clients: Vec<Program> = Vec::new();
        for _ in 0..4 {
            let mut client = machine.connect(&["ssh://devbox/test"]);
            ask(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(client.json().await["id"], 0);
        }
        let relay = machine.relay("test").await;
        let is_relay = |process: &Proc| {
            let words = process.words();
            let own = format!("unix:{}", machine.file("test.link").display());
            words.get(1).is_some_and(|word| word == "serve") && words.contains(&own)
        };
        let mut relays = crate::process::notes::all();
        relays.retain(is_relay);
        assert_eq!(relays, [relay]);
    });
}

#[test]
fn an_agent_is_kept_when_the_connection_breaks() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        let mut first = machine.connect(&["ssh://devbox"]);
        let shown = begin(&mut first, "/").await;
        ask(
            &mut first,
            2,
            "session/prompt",
            json!({"sessionId": "s", "prompt": []}),
        )
        .await;
        assert_eq!(first.json().await["id"], "ask");
        // As if this machine were gone: nothing says so.
        watchdog_of(&first).await.kill(Signal::KILL);
        first.signal(Signal::KILL);
        first.exit().await;

        let mut second = machine.connect(&["ssh://devbox"]);
        answered(&mut second, 0, "initialize", json!({"protocolVersion": 1})).await;
        let params = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
        let loaded = answered(&mut second, 1, "session/load", params).await;
        assert_eq!(loaded["_meta"]["pid"], shown["pid"]);
        // The question of the turn is asked again.
        assert_eq!(second.json().await["id"], "ask");
        end(second).await;
        wait_until("the agent ends", || !is_running(&shown["pid"]));
    });
}

#[test]
fn a_message_that_takes_longer_than_the_peer_may_be_silent_arrives_on_one_attachment() {
    block_on(async {
        let ends = json!([{"result": {"stopReason": "end_turn"}}]);
        let agent = scripted(&[("session/prompt", ends)]);
        let machine = Machine::start(&[("test", &agent)], &[]);
        let config = machine.path("home/.config/acp-relay/acp-relay.toml");
        let agents = fs::read_to_string(&config).unwrap();
        let keepalive = "http-keepalive = \"5s\"";
        fs::write(&config, format!("{agents}[limits]\n{keepalive}\n")).unwrap();
        let mut client = machine.connect(&["--limit", "http-keepalive=5s", "ssh://slow"]);
        begin(&mut client, "/").await;
        // Sixteen seconds.
        let text = "x".repeat(1 << 20);
        let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
        let answer = answered(&mut client, 2, "session/prompt", params).await;
        assert_eq!(answer["stopReason"], "end_turn");
        end(client).await;
        assert_eq!(machine.calls().len(), 1, "one connection carries all");
    });
}

#[test]
fn every_signal_to_the_client_ends_the_agent() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        for death in DEATHS {
            let mut command = machine.command(&["connect", "ssh://devbox"]);
            command.process_group(0);
            let mut client = Program::of(command);
            let shown = begin(&mut client, "/").await;
            let watchdog = watchdog_of(&client).await;
            let calls = machine.calls().len();
            death.befall(&mut client).await;
            wait_until("the agent ends", || !is_running(&shown["pid"]));
            is_gone(&watchdog).await;
            let is_killed = matches!(death, Death::Group | Death::Signal(Signal::KILL));
            let later = machine.calls().split_off(calls);
            assert_eq!(later.len(), usize::from(is_killed), "{death:?}");
            for call in later {
                assert!(call.contains(&"BatchMode=yes".to_owned()), "{call:?}");
            }
        }
        // The table of the agent there may say otherwise.
        let file = machine.path("home/.config/acp-relay/acp-relay.toml");
        let agents = fs::read_to_string(&file).unwrap();
        fs::write(&file, agents + "on-disconnect = \"detach\"\n").unwrap();
        machine.relay("test").await.kill(Signal::KILL);
        let mut first = machine.connect(&["ssh://devbox"]);
        let shown = begin(&mut first, "/").await;
        let watchdog = watchdog_of(&first).await;
        first.signal(Signal::KILL);
        is_gone(&watchdog).await;
        let mut next = machine.connect(&["ssh://devbox"]);
        answered(&mut next, 0, "initialize", json!({"protocolVersion": 1})).await;
        let params = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
        let loaded = answered(&mut next, 1, "session/load", params).await;
        assert_eq!(loaded["_meta"]["pid"], shown["pid"]);
        end(next).await;
    });
}

#[test]
fn messages_over_ssh_may_be_as_long_as_those_of_a_process() {
    block_on(async {
        let echo = json!([{"result": {"stopReason": "end_turn", "_meta": "$message"}}]);
        let agent = scripted(&[("session/prompt", echo)]);
        let machine = Machine::start(&[("test", &agent)], &[]);
        let config = machine.path("home/.config/acp-relay/acp-relay.toml");
        let agents = fs::read_to_string(&config).unwrap();
        let limit = "frame-from-network = \"64KiB\"";
        fs::write(&config, format!("{agents}[limits]\n{limit}\n")).unwrap();
        for link in [&["ssh://devbox"][..], &["--no-link", "ssh://devbox"]] {
            let limit = ["--limit", "frame-from-network=64KiB"];
            let mut client = machine.connect(&[&limit[..], link].concat());
            begin(&mut client, "/").await;
            let text = "x".repeat(200 << 10);
            let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
            let answer = answered(&mut client, 2, "session/prompt", params.clone()).await;
            assert_eq!(answer["_meta"]["params"], params);
            end(client).await;
        }
    });
}

#[test]
fn a_relay_stops_when_it_was_idle() {
    block_on(async {
        let idle = [("ACP_RELAY_OVER_SSH_IDLE", "2s")];
        let machine = Machine::start(&[("test", &agent())], &idle);
        let mut client = machine.connect(&["ssh://devbox"]);
        begin(&mut client, "/").await;
        let relay = machine.relay("test").await;
        end(client).await;
        wait_until("the relay ends", || relay.is_gone());
        assert!(!machine.file("test.link").exists());
    });
}

#[test]
fn a_connection_that_is_lost_while_the_link_opens_is_tried_again() {
    block_on(async {
        for host in ["flaky", "cut"] {
            let machine = Machine::start(&[("test", &agent())], &[]);
            let mut client = machine.connect(&[&format!("ssh://{host}/test")]);
            begin(&mut client, "/").await;
            end(client).await;
        }
        let machine = Machine::start(&[("test", &agent())], &[]);
        let mut client = machine.connect(&["ssh://reset"]);
        ask(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
        let error = client.json().await["error"].take();
        assert_eq!(error["code"], -32050, "{error}");
        assert_eq!(error["data"]["relay"]["retryable"], true, "{error}");
    });
}

#[test]
fn each_failure_says_what_to_do() {
    // endpoint, exit code, words of the error
    let cases: [(&str, i32, &[&str]); 12] = [
        (
            "ssh://closed",
            69,
            &["Connection refused", "make `ssh closed true` work"],
        ),
        ("ssh://unknown", 68, &["Could not resolve hostname"]),
        (
            "ssh://me@denied:7",
            77,
            &["me@denied: Permission denied", "`ssh -p 7 me@denied true`"],
        ),
        ("ssh://changed", 77, &["Host key verification failed"]),
        (
            "ssh://bare",
            69,
            &[
                "not installed on bare",
                // What anybody could publish is not named.
                "a package made by `.release/build`",
                "`cargo install --locked --path .` in a clone",
            ],
        ),
        ("ssh://old", 69, &["on old is too old", "`.release/build`"]),
        ("ssh://silent", 69, &["no acp-relay on silent"]),
        (
            "ssh://flood",
            76,
            &["shell profile on flood", "make it silent"],
        ),
        (
            "ssh://devbox",
            69,
            &["acp-relay on devbox", "ssh://HOST/AGENT", "`default-agent`"],
        ),
        (
            "ssh://devbox/tset",
            69,
            &["no agent `tset`", "[agents.tset]", "did you mean `test`"],
        ),
        (
            "ssh://devbox/absent",
            69,
            &["`no-such-program` is not an executable", "Install"],
        ),
        (
            "ssh://devbox/goose",
            69,
            &[
                "`goose` is not an executable on PATH, nor on that of the login shell (",
                "To install it",
            ],
        ),
    ];
    block_on(async {
        let absent = ["no-such-program".to_owned()];
        let machine = Machine::start(&[("test", &agent()), ("absent", &absent)], &[]);
        for (to, code, words) in cases {
            let mut client = machine.connect(&[to]);
            ask(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
            let answer = client.json().await;
            let error = answer["error"]["message"].as_str().expect(to).to_owned();
            assert!(error.contains(&format!("{to}: ")), "{error}");
            let line = client.complaint().await.unwrap();
            assert!(line.starts_with(&format!("acp-relay: {to}: ")), "{line}");
            for text in [&error, &line] {
                for word in words {
                    assert!(text.contains(word), "{to}: {word:?} is not in: {text}");
                }
            }
            client.end();
            assert_eq!(client.exit().await.code(), Some(code), "{to}");
            assert_eq!(client.complaint().await, None, "{to}");
        }
        // Nothing is left of what has failed.
        assert!(!machine.file("absent.link").exists());

        let mut without = command(&["connect", "ssh://devbox"]);
        without.env("PATH", machine.path("home"));
        let without = crate::support::program::run_command(without, "").await;
        assert_eq!(without.code, Some(69));
        assert!(
            without
                .stderr
                .contains("ssh is not installed on this machine")
        );
    });
}

#[test]
fn a_long_path_of_the_socket_is_a_clear_error() {
    block_on(async {
        let long = tempfile::tempdir().unwrap();
        let long = long.path().join("x".repeat(100));
        let env = [("ACP_RELAY_STATE_DIR", long.to_str().unwrap())];
        let machine = Machine::start(&[("test", &agent())], &env);
        let mut client = machine.connect(&["ssh://devbox"]);
        let line = client.complaint().await.unwrap();
        assert!(
            line.contains("too long for a socket") && line.contains("ACP_RELAY_STATE_DIR"),
            "{line}"
        );
    });
}

#[test]
fn nothing_in_an_address_becomes_an_option_or_a_command() {
    // What follows `ssh://`.
    let bad = [
        "-oProxyCommand=x",
        "-l",
        "me@-oProxyCommand=x",
        "-l@h",
        "@h",
        "me@",
        "",
        "/x",
        "h/-x",
        "h/x;y",
        "h/x y",
        "h/$(x)",
        "h/`x`",
        "h/x'",
        "h/../x",
        "h/x/y",
        "h/x?y",
        "h/x\ny",
        "h;x",
        "h x",
        "h\tx",
        "h\nx",
        "h|x",
        "h&x",
        "$(x)",
        "`x`",
        "h'x",
        "h\"x",
        "h\\x",
        "m e@h",
        "m'e@h",
        "$me@h",
        "me:secret@h",
        "a@b@h",
        "h:",
        "h:x",
        "h:0",
        "h:65536",
        "h:22x",
        "::1",
        "[::1",
        "[x]",
        "[::1%-x]",
        "h%20x",
        "é",
        "h/é",
    ];
    for text in bad {
        let text = format!("ssh://{text}");
        let fault = text.parse::<Endpoint>().expect_err(&text).to_string();
        assert!(!fault.contains('\n'), "{fault}");
    }
    assert!("ssh:h".parse::<Endpoint>().is_err());
    for good in [
        "ssh://h",
        "ssh://H_1.example",
        "ssh://me@h",
        "ssh://m.e-_+1@h:22/a.b-c_1",
        "ssh://[::1]:22/x",
        "ssh://[fe80::1]",
    ] {
        let read: Endpoint = good.parse().expect(good);
        assert_eq!(read.to_string(), good);
        assert!(!read.is_loopback() && read.is_socket(), "{good}");
    }
    assert_eq!(
        "ssh://h/".parse::<Endpoint>().unwrap().to_string(),
        "ssh://h"
    );
    block_on(async {
        let machine = Machine::start(&[], &[]);
        for args in [&["ssh://-oProxyCommand=x"][..], &["ssh://h/$(x)"]] {
            let outcome = machine.command(&[&["connect"], args].concat());
            let outcome = crate::support::program::run_command(outcome, "").await;
            assert_eq!(outcome.code, Some(64), "{}", outcome.stderr);
        }
        let listen = machine.command(&["serve", "--listen", "ssh://devbox", "--", "cat"]);
        let listen = crate::support::program::run_command(listen, "").await;
        assert_eq!(listen.code, Some(64), "{}", listen.stderr);
        assert!(
            listen.stderr.contains("ssh leads to an agent"),
            "{}",
            listen.stderr
        );
        assert!(machine.calls().is_empty());
    });
}

#[test]
fn an_agent_behind_ssh_is_remote() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("here/a"), folder.path().join("b"));
        fs::create_dir(folder.path().join("here")).unwrap();
        fs::write(&inside, "a").unwrap();
        fs::write(&outside, "b").unwrap();
        let calls = [
            (
                "fs/read_text_file",
                json!({"sessionId": "s", "path": outside}),
            ),
            (
                "terminal/create",
                json!({"sessionId": "s", "command": "id"}),
            ),
            (
                "fs/read_text_file",
                json!({"sessionId": "s", "path": inside}),
            ),
        ];
        let calls = calls.into_iter().enumerate().map(|(id, (method, params))| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        });
        let calls: Vec<Value> = calls.collect();
        let machine = Machine::start(&[("test", &calling(&calls))], &[]);
        // Whatever the host is called.
        let mut client =
            machine.connect(&["--files", "editor", "--allow", "_answer", "ssh://localhost"]);
        let terminal = json!({"protocolVersion": 1, "clientCapabilities": {"terminal": true}});
        answered(&mut client, 0, "initialize", terminal).await;
        let params = json!({"cwd": folder.path().join("here"), "mcpServers": []});
        ask(&mut client, 1, "session/new", params).await;
        let (mut requested, mut answers) = (Vec::new(), Vec::new());
        while answers.len() < 3 {
            let message = client.json().await;
            if message["method"] == "_answer" {
                answers.push(message["params"].clone());
            } else if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                client.write(&format!("{answer}\n")).await;
                requested.push(message["params"]["path"].clone());
            }
        }
        assert_eq!(requested, [json!(inside)]);
        answers.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!(answers[0]["error"]["code"], -32057, "{answers:?}");
        assert_eq!(answers[1]["error"]["code"], -32057, "{answers:?}");
        assert!(answers[2].get("result").is_some(), "{answers:?}");
    });
}

#[test]
fn an_agent_behind_ssh_uses_the_files_of_its_machine() {
    block_on(async {
        let call = json!({"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file",
            "params": {"sessionId": "s", "path": "/etc/hostname"}});
        let machine = Machine::start(&[("test", &calling(&[call]))], &[]);
        let missing = machine.path("missing");
        for (options, is_opened) in [(&[][..], false), (&["--files", "editor"], true)] {
            let reports = ["--allow", "_new", "--allow", "_answer", "ssh://devbox"];
            let mut client = machine.connect(&[options, &reports].concat());
            answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
            let params = json!({"cwd": missing, "mcpServers": []});
            ask(&mut client, 1, "session/new", params).await;
            let answer = client.json().await;
            if is_opened {
                assert_eq!(answer["method"], "_new", "{answer}");
                continue;
            }
            let error = &answer["error"];
            assert_eq!(error["code"], -32057);
            let path = missing.to_str().unwrap();
            for part in [path, "--map HERE=THERE", "--files editor"] {
                assert!(error.to_string().contains(part), "{part}: {error}");
            }
            // A folder that is there, and no file of this machine.
            let there = machine.path("home");
            ask(
                &mut client,
                2,
                "session/new",
                json!({"cwd": there, "mcpServers": []}),
            )
            .await;
            let mut message = client.json().await;
            while message["method"] != "_answer" {
                assert_ne!(message["method"], "fs/read_text_file");
                message = client.json().await;
            }
            assert_eq!(message["params"]["error"]["code"], -32057, "{message}");
        }
    });
}

#[test]
fn what_a_shell_profile_prints_is_no_message() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        let mut client = machine.connect(&["ssh://chatty"]);
        begin(&mut client, "/").await;
        end(client).await;
    });
}

#[test]
fn serve_reaches_an_agent_by_ssh_too() {
    block_on(async {
        let machine = Machine::start(&[("test", &agent())], &[]);
        let socket = format!("unix:{}", machine.path("local").display());
        let serve = machine.command(&["serve", "--listen", &socket, "--agent", "ssh://devbox"]);
        let mut serve = Program::of(serve);
        assert_eq!(serve.address().await, socket);
        let mut client = machine.connect(&[&socket]);
        begin(&mut client, "/").await;
        end(client).await;
    });
}
