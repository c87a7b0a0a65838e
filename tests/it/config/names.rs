//! Clients select agents by name, and only programs of the file are started, whatever clients send.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::stage::{Client, JSON, Stage};
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::Program;

const TWO: &str = r#"
default-agent = "one"
[agents.one]
command = ["AGENT", "first words", "--x"]
[agents.two]
command = ["AGENT", "second"]
env = { SAY = "hello" }
cwd = "sub"
[agents.three]
command = ["AGENT", "third"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
agents = ["one", "two"]
[[listeners]]
endpoint = "unix:s"
default-agent = "three"
"#;

fn two() -> Stage {
    let stage = Stage::with(&TWO.replace("unix:s", "unix:SOCKET"));
    let socket = stage.path("s");
    stage.write(&TWO.replace("unix:s", &format!("unix:{}", socket.display())));
    std::fs::create_dir(stage.path("sub")).unwrap();
    stage
}

#[test]
fn each_path_has_its_agent() {
    block_on(async {
        let stage = two();
        let (_serve, caller) = stage.start().await;
        let one = Client::open(&caller, "/acp").await;
        assert_eq!(one.words(), ["first words", "--x"]);
        let named = Client::open(&caller, "/agents/one/acp").await;
        assert_eq!(named.words(), ["first words", "--x"]);
        assert_ne!(one.about["pid"], named.about["pid"]);
        let two = Client::open(&caller, "/agents/two/acp").await;
        assert_eq!(two.words(), ["second"]);
        assert_eq!(two.about["say"], "hello");
        let dir = stage.path("sub").canonicalize().unwrap();
        assert_eq!(two.about["dir"], dir.to_str().unwrap());
        assert_eq!(
            two.post(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).await,
            202
        );
    });
}

#[test]
fn websocket_paths_and_sockets_have_their_agents() {
    block_on(async {
        let stage = two();
        let mut serve = stage.serve();
        let http = serve.address().await;
        let unix = serve.address().await;
        let ws = http.replace("http://", "ws://");
        let named = ws.replace("/acp", "/agents/two/acp");
        for (address, words) in [
            (ws, json!(["first words", "--x"])),
            (named, json!(["second"])),
            (unix, json!(["third"])),
        ] {
            let mut client = Program::start(&["connect", &address]);
            client.write(&format!("{INITIALIZE}\n")).await;
            assert_eq!(client.json().await["result"]["words"], words, "{address}");
        }
    });
}

#[test]
fn a_404_does_not_list_the_agents() {
    block_on(async {
        let stage = two();
        let (_serve, caller) = stage.start().await;
        for path in [
            "/agents/three/acp",
            "/agents/four/acp",
            "/agents/../acp",
            "/agents//acp",
            "/agents/one%2f/acp",
            "/agents/%6fne/acp",
            "/agents/One/acp",
            "/agents/one/acp/",
            "/agents/one",
            "/agents/-one/acp",
            "/acp/agents/one",
        ] {
            let reply = caller.ask("POST", path, &[JSON], INITIALIZE).await;
            assert_eq!(reply.status.as_u16(), 404, "{path}");
            for name in ["one ", "two", "three"] {
                assert!(!reply.body.contains(name), "{path}: {}", reply.body);
            }
            let upgrade = [("upgrade", "websocket"), ("connection", "upgrade")];
            assert_eq!(
                caller.ask("GET", path, &upgrade, "").await.status,
                404,
                "{path}"
            );
        }
    });
}

#[test]
fn without_a_default_an_agent_has_to_be_named() {
    block_on(async {
        let config = TWO.replace("default-agent = \"one\"", "");
        let config = config.replace("agents = [\"one\", \"two\"]", "");
        let (config, _) = config
            .split_once("[[listeners]]\nendpoint = \"unix")
            .unwrap();
        let stage = Stage::with(&config.replace("cwd = \"sub\"", ""));
        let (_serve, caller) = stage.start().await;
        let reply = caller.ask("POST", "/acp", &[JSON], INITIALIZE).await;
        assert_eq!(reply.status.as_u16(), 404);
        assert!(reply.body.contains("/agents/NAME/acp"), "{}", reply.body);
        Client::open(&caller, "/agents/three/acp").await;
    });
}

#[test]
fn only_programs_of_the_file_are_started() {
    let runtime = Runtime::new().unwrap();
    let stage = two();
    let (serve, caller) = runtime.block_on(stage.start());
    let path = prop_oneof![
        "/(agents/)?(one|two|three)?(/acp)?",
        "/agents/[a-zA-Z0-9._%~;:@&=+$,!*'()/-]{0,24}/acp",
        "/agents/(one|two)(/acp|;x|%20-c|/\\.\\./two/acp|\\?command=sh&args=-c)",
    ];
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let asks = (path, ".{0,40}", proptest::collection::vec(".{0,12}", 0..4));
    let tried = TestRunner::new(config).run(&asks, |(path, text, words)| {
        let ask = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": 1, "agent": text, "command": words, "args": words, "cwd": text,
            "env": {"SAY": text}, "_meta": {"agent": "two", "argv": words},
        }});
        // Some paths cannot be in a request's head; another test has those.
        if path.parse::<hyper::Uri>().is_err() {
            return Ok(());
        }
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let fields = [
            JSON,
            ("x-agent-command", if plain { &*text } else { "sh -c true" }),
        ];
        let reply = runtime.block_on(caller.ask("POST", &path, &fields, &ask.to_string()));
        let place = path.split('?').next().unwrap_or_default();
        let (words, send) = match place {
            "/acp" | "/agents/one/acp" => (json!(["first words", "--x"]), ""),
            "/agents/two/acp" => (json!(["second"]), "hello"),
            _ => {
                prop_assert_eq!(reply.status.as_u16(), 404);
                return Ok(());
            }
        };
        prop_assert_eq!(reply.status.as_u16(), 200);
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        prop_assert_eq!(&answer["result"]["words"], &words);
        prop_assert_eq!(&answer["result"]["say"], send);
        Ok(())
    });
    tried.unwrap();
    drop(serve);
}
