//! Whose files an agent on another machine uses, and the folders that its sessions are opened in. A
//! relay with another state directory counts as one on another machine.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask};

/// How one client reaches the relay: the options before the address, and its scheme.
const WAYS: [(&[&str], &str); 5] = [
    (&[], "ws"),
    (&["--no-link"], "ws"),
    (&[], "http"),
    (&[], "elephant+http"),
    (&[], "tcp"),
];

/// A relay, its agent, and two state directories.
struct Stage {
    own: TempDir,
    other: TempDir,
    _serve: Program,
    addresses: Vec<String>,
}

impl Stage {
    /// `serve` with these words before its listeners.
    async fn start(options: &[&str], agent: &[String]) -> Self {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let listen = ["http://127.0.0.1:0", "tcp://127.0.0.1:0"];
        let listen = listen.map(|at| ["--listen", at]);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let words = [&["serve"], options, listen.as_flattened(), &agent].concat();
        let mut serve = Program::start_in(own.path(), &words);
        let mut addresses = Vec::new();
        for _ in 0..listen.len() {
            addresses.push(serve.address().await);
        }
        Self {
            own,
            other,
            _serve: serve,
            addresses,
        }
    }

    fn address(&self, scheme: &str) -> String {
        let find = |scheme: &str| {
            let mut all = self.addresses.iter();
            all.find(|one| one.starts_with(scheme)).unwrap().clone()
        };
        match scheme {
            "tcp" => find("tcp:"),
            scheme => find("http:").replacen("http", scheme, 1),
        }
    }

    /// `connect` from another machine.
    fn connect(&self, options: &[&str], scheme: &str) -> Program {
        connect(self.other.path(), options, &self.address(scheme))
    }
}

fn connect(state: &Path, options: &[&str], to: &str) -> Program {
    Program::start_in(
        state,
        &[&["connect", "--allow", "_answer"], options, &[to]].concat(),
    )
}

/// An agent that shows the `initialize` it got and makes these calls in its session.
fn agent(calls: &[(&str, Value)]) -> Vec<String> {
    let mut steps = vec![json!({"result": {"sessionId": "s"}})];
    for (id, (method, params)) in calls.iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        steps.push(json!({ "send": call }));
    }
    let able = json!({"loadSession": true, "sessionCapabilities": {"resume": {}, "fork": {}}});
    let shown =
        json!({"protocolVersion": 1, "agentCapabilities": able, "_meta": {"asked": "$message"}});
    let answered = json!([{"send": {"jsonrpc": "2.0", "method": "_answer", "params": "$message"}}]);
    let rules = scripted(&[
        ("initialize", json!([{ "result": shown }])),
        ("session/new", steps.into()),
        ("session/load", json!([{"result": {}}])),
        ("answer", answered),
    ]);
    [vec!["--".to_owned()], rules].concat()
}

/// The params of `initialize` that reached the agent, and the methods that reached the client. What
/// did not was refused with the reason.
async fn seen(mut client: Program, cwd: &Path, count: usize) -> (Value, Vec<String>) {
    let stated = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    let params = json!({"protocolVersion": 1, "clientCapabilities": stated});
    let shown = answered(&mut client, 0, "initialize", params).await;
    let params = json!({"cwd": cwd, "mcpServers": []});
    ask(&mut client, 1, "session/new", params).await;
    let (mut requested, mut answers) = (Vec::new(), 0);
    while answers < count {
        let message = client.json().await;
        if message["method"] == "_answer" {
            answers += 1;
            if let Some(error) = message["params"].get("error") {
                assert_eq!(error["code"], -32057);
            }
        } else if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            requested.push(method.to_owned());
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
            client.write(&format!("{answer}\n")).await;
        } else {
            assert!(message.get("error").is_none(), "{message}");
        }
    }
    (shown["_meta"]["asked"]["params"].clone(), requested)
}

#[test]
fn an_agent_elsewhere_uses_its_own_files_unless_an_option_opens_those_here() {
    block_on(async {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("a");
        fs::write(&file, "a").unwrap();
        let calls = [
            ("fs/read_text_file", json!({"sessionId": "s", "path": file})),
            (
                "fs/write_text_file",
                json!({"sessionId": "s", "path": file, "content": ""}),
            ),
            (
                "terminal/create",
                json!({"sessionId": "s", "command": "id"}),
            ),
        ];
        let stage = Stage::start(&[], &agent(&calls)).await;
        let (read, write, terminal) = (calls[0].0, calls[1].0, calls[2].0);
        let files = json!({"readTextFile": true, "writeTextFile": true});
        let all = json!({"fs": files, "terminal": true});
        // The options, what is announced, and the calls that pass.
        let cases: [(&[&str], Value, &[&str]); 8] = [
            (&[], json!({}), &[]),
            (&["--guard", "never"], json!({}), &[]),
            (&["--allow", "fs/*"], json!({"fs": files}), &[read, write]),
            (
                &["--allow", read],
                json!({"fs": {"readTextFile": true}}),
                &[read],
            ),
            (
                &["--allow", "terminal/*"],
                json!({"terminal": true}),
                &[terminal],
            ),
            (
                &["--allow", "fs/*", "--deny", write],
                json!({"fs": {"readTextFile": true}}),
                &[read],
            ),
            (&["--files", "editor"], json!({"fs": files}), &[read, write]),
            (
                &["--files", "editor", "--guard", "never"],
                all.clone(),
                &[read, write, terminal],
            ),
        ];
        for (options, announced, passed) in &cases {
            let client = stage.connect(options, "ws");
            let (asked, requested) = seen(client, here.path(), calls.len()).await;
            assert_eq!(asked["clientCapabilities"], *announced, "{options:?}");
            assert_eq!(requested, *passed, "{options:?}");
            // The word to the relay there does not reach the agent.
            assert!(asked.get("_meta").is_none(), "{asked}");
        }
        for (way, scheme) in WAYS {
            for (options, announced, passed) in [&cases[0], &cases[6]] {
                let client = stage.connect(&[way, options].concat(), scheme);
                let (asked, requested) = seen(client, here.path(), calls.len()).await;
                assert_eq!(
                    asked["clientCapabilities"], *announced,
                    "{scheme} {options:?}"
                );
                assert_eq!(requested, *passed, "{scheme} {options:?}");
            }
        }

        // A relay of this user on this machine is not elsewhere.
        let own = |options: &[&str]| connect(stage.own.path(), options, &stage.address("ws"));
        let (asked, requested) = seen(own(&[]), here.path(), calls.len()).await;
        assert_eq!((&asked["clientCapabilities"], requested.len()), (&all, 3));
        let options = ["--files", "agent"];
        let (asked, requested) = seen(own(&options), here.path(), calls.len()).await;
        assert_eq!(
            (&asked["clientCapabilities"], requested.len()),
            (&json!({}), 0)
        );
    });
}

#[test]
fn a_refused_file_says_whose_files_are_used_and_which_option_opens_them() {
    block_on(async {
        let calls = [("fs/read_text_file", json!({"sessionId": "s", "path": "/a"}))];
        let stage = Stage::start(&[], &agent(&calls)).await;
        let mut client = stage.connect(&[], "ws");
        answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
        ask(
            &mut client,
            1,
            "session/new",
            json!({"cwd": "/", "mcpServers": []}),
        )
        .await;
        let mut message = client.json().await;
        while message["method"] != "_answer" {
            message = client.json().await;
        }
        let error = &message["params"]["error"];
        assert_eq!(error["code"], -32057);
        for words in [
            "files and commands of its own machine",
            "--files editor",
            "--allow",
        ] {
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    });
}

/// The calls that open a session in a folder.
fn openings(cwd: &str) -> [(&'static str, Value); 4] {
    let with = json!({"sessionId": "s", "cwd": cwd, "mcpServers": []});
    let new = json!({"cwd": cwd, "mcpServers": []});
    [
        ("session/new", new),
        ("session/load", with.clone()),
        ("session/resume", with.clone()),
        ("session/fork", with),
    ]
}

/// The answer to one request of a client that has begun a conversation.
async fn opened(client: &mut Program, id: u32, method: &str, params: Value) -> Value {
    ask(client, id, method, params).await;
    client.json().await
}

#[test]
fn a_session_is_refused_whose_folder_is_not_on_the_agents_machine() {
    block_on(async {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let missing = place.path().join("missing");
        let (there, file) = (place.path().to_str().unwrap(), file.to_str().unwrap());
        let missing = missing.to_str().unwrap();
        let stage = Stage::start(&[], &agent(&[])).await;
        let host = rustix::system::uname();
        let host = host.nodename().to_str().unwrap();
        let versions = [
            json!({"protocolVersion": 1}),
            json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}}),
        ];
        for (way, scheme) in WAYS {
            for initialize in &versions {
                let mut client = stage.connect(way, scheme);
                answered(&mut client, 0, "initialize", initialize.clone()).await;
                let mut id = 0;
                for cwd in [missing, file, "C:\\missing"] {
                    for (method, params) in openings(cwd) {
                        if method == "session/load" && initialize["protocolVersion"] == 2 {
                            continue;
                        }
                        id += 1;
                        let answer = opened(&mut client, id, method, params).await;
                        let error = &answer["error"];
                        assert_eq!(error["code"], -32057, "{scheme} {method}: {answer}");
                        let text = error["message"].as_str().unwrap();
                        for part in [cwd, host, "--map HERE=THERE", "--files editor"] {
                            assert!(text.contains(part), "{part} is not in: {text}");
                        }
                    }
                }
                let params = json!({"cwd": there, "mcpServers": []});
                let answer = opened(&mut client, 100, "session/new", params).await;
                assert_eq!(answer["result"]["sessionId"], "s", "{answer}");
            }
            let open = |options: Vec<&str>| {
                let mut client = stage.connect(&[way, &options].concat(), scheme);
                async move {
                    answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})).await;
                    let [(method, params), ..] = openings(missing);
                    opened(&mut client, 1, method, params).await
                }
            };
            let mapped = format!("{missing}={there}");
            for options in [vec!["--map", &mapped], vec!["--files", "editor"]] {
                let answer = open(options).await;
                assert_eq!(answer["result"]["sessionId"], "s", "{scheme}: {answer}");
            }
        }
    });
}

#[test]
fn folders_are_checked_only_where_the_agent_is_started_for_clients_elsewhere() {
    block_on(async {
        let [(new, missing), ..] = openings("/no/such/folder");
        let initialize = json!({"protocolVersion": 1});
        let agent = agent(&[]);
        // The relay in between does not have the agent's disk.
        let inner = Stage::start(&[], &agent).await;
        let outer = Stage::start(&["--agent", &inner.address("ws")], &[]).await;
        let inside = tempfile::tempdir().unwrap();
        let config = inside.path().join("relay.toml");
        let command = json!(agent[1..]).to_string();
        let checks = "check-folder = false\n";
        fs::write(
            &config,
            format!("[agents.test]\ncommand = {command}\n{checks}"),
        )
        .unwrap();
        let unchecked = Stage::start(&["--config", config.to_str().unwrap()], &[]).await;
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let plain = Program::start(&[&["connect"], &agent[..]].concat());
        let cases = [
            (outer.connect(&[], "ws"), false),
            (outer.connect(&["--files", "editor"], "ws"), true),
            (unchecked.connect(&[], "ws"), true),
            (plain, true),
        ];
        for (number, (mut client, passes)) in cases.into_iter().enumerate() {
            answered(&mut client, 0, "initialize", initialize.clone()).await;
            let answer = opened(&mut client, 1, new, missing.clone()).await;
            assert_eq!(answer.get("result").is_some(), passes, "{number}: {answer}");
        }
    });
}
