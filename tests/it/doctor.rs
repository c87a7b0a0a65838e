//! `acp-relay doctor` and `agents list --probe`: each fault of a machine is found, with its fix.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::agent::{scripted, with_headers};
use crate::support::program::relay;

/// A home directory with its state directory, and a folder of programs.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", ".config/acp-relay", ".config/zed"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A program of a well-known agent that runs this command.
    fn agent(&self, name: &str, command: &[String]) {
        let words = command
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
        let words: Vec<String> = words.collect();
        let path = std::env::var("PATH").unwrap();
        let script = format!("#!/bin/sh\nPATH='{path}' exec {}\n", words.join(" "));
        self.write(&format!("bin/{name}"), &script, 0o755);
    }

    /// The exit code, and what is found: area, state and text.
    fn doctor(&self) -> (Option<i32>, Vec<[String; 3]>) {
        let output = self.run(&["doctor", "--json"]);
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |one: &Value, member: &str| one[member].as_str().unwrap().to_owned();
        let found = found
            .iter()
            .map(|one| ["area", "state", "text"].map(|name| text(one, name)));
        (output.status.code(), found.collect())
    }

    fn run(&self, args: &[&str]) -> std::process::Output {
        let mut command = relay(args);
        command
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("ACP_RELAY_STATE_DIR", self.path("state"))
            .env("PATH", self.path("bin"));
        command.output().unwrap()
    }
}

#[test]
fn a_machine_without_faults_has_nothing_to_fix() {
    let home = Home::new();
    home.agent("goose", &scripted(&[]));
    let added = home.run(&["install", "zed", "goose"]);
    assert!(added.status.success(), "{added:?}");
    let (code, found) = home.doctor();
    assert_eq!(code, Some(0), "{found:?}");
    assert!(
        found.iter().all(|[_, state, _]| state != "bad"),
        "{found:?}"
    );
    for (area, text) in [("editors", "\"goose\""), ("agents", "goose answers")] {
        let mut of_area = found.iter().filter(|[own, ..]| own == area);
        assert!(
            of_area.any(|[.., own]| own.contains(text)),
            "{area}: {found:?}"
        );
    }
}

#[test]
fn each_fault_is_found_with_its_fix() {
    let home = Home::new();
    assert!(home.run(&["token", "show"]).status.success());
    home.write(
        "state/token",
        &fs::read_to_string(home.path("state/token")).unwrap(),
        0o644,
    );
    home.write("state/joined-far.json", "{", 0o600);
    home.write(
        ".config/acp-relay/acp-relay.toml",
        "[agents.mine]\ncommand = [\"no-such-program\"]\ncomand = 1\n",
        0o600,
    );
    let servers = json!({ "agent_servers": {
        "gone": { "type": "custom", "command": "/nowhere/acp-relay", "args": ["connect", "goose"] },
        "typo": {
            "type": "custom", "command": env!("CARGO_BIN_EXE_acp-relay"), "args": ["connect", "gose"],
        },
        "other": { "type": "custom", "command": "/nowhere/other", "args": [] },
    } });
    home.write(".config/zed/settings.json", &servers.to_string(), 0o644);
    home.agent(
        "goose",
        &["sh".into(), "-c".into(), "echo no model >&2; exit 3".into()],
    );
    let (code, found) = home.doctor();
    assert_eq!(code, Some(1), "{found:?}");
    let expected = [
        ("tokens", "chmod go-rwx"),
        ("joined agents", "acp-relay connect --join far"),
        ("configuration", "`no-such-program`"),
        ("configuration", "did you mean `command`?"),
        ("editors", "/nowhere/acp-relay"),
        ("editors", "did you mean `goose`?"),
        // The file may redefine the agent, so it has to be read first.
        ("agents", "acp-relay.toml:3:1"),
    ];
    let bad: Vec<_> = found
        .iter()
        .filter(|[_, state, _]| state == "bad")
        .collect();
    for (area, text) in expected {
        let is = |one: &&&[String; 3]| one[0] == area && one[2].contains(text);
        assert!(bad.iter().any(|one| is(&one)), "{area} {text}: {bad:?}");
    }
    assert!(
        !found
            .iter()
            .any(|[.., text]| text.contains("/nowhere/other")),
        "{found:?}"
    );
}

#[test]
fn a_state_directory_that_cannot_be_used_is_named() {
    let home = Home::new();
    fs::write(home.path("state"), "a file").unwrap();
    let (code, found) = home.doctor();
    assert_eq!(code, Some(1), "{found:?}");
    let state = found.iter().find(|[area, ..]| area == "state").unwrap();
    assert!(state[2].contains("ACP_RELAY_STATE_DIR"), "{state:?}");
}

#[test]
fn the_list_of_agents_says_which_answer() {
    let home = Home::new();
    let about = json!([{ "result": { "protocolVersion": 1, "agentInfo": { "name": "g", "version": "7" } } }]);
    home.agent("goose", &scripted(&[("initialize", about)]));
    home.agent("claude-agent-acp", &["false".into()]);
    let output = home.run(&["agents", "list", "--probe", "--json"]);
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let one = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(one("goose")["answers"], "g 7");
    let error = one("claude")["error"].as_str().unwrap();
    assert!(error.contains("exit code 1"), "{error}");
    assert_eq!(one("gemini")["answers"], Value::Null);
}

#[test]
fn an_agent_that_waits_for_a_header_answers_with_the_option_it_needs() {
    let home = Home::new();
    home.agent("goose", &with_headers(""));
    let (_, found) = home.doctor();
    let goose = found.iter().find(|[area, ..]| area == "agents").unwrap();
    let text = "goose answers: headers 3; it needs `--agent-framing content-length`";
    assert_eq!(goose[2], text);
    let output = home.run(&["agents", "list", "--probe"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let text = "answers: headers 3; it needs `--agent-framing content-length`";
    assert!(printed.contains(text), "{printed}");
}
