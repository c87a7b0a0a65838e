//! Agents by name: those that `acp-relay agents import` takes from a registry.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::config::stage::Stage;
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::{Outcome, Program, command, run_command, run_in};

const REGISTRY: &str = "tests/vectors/registry/registry.json";

/// Imports a registry with this text.
async fn import(state: &Path, text: &str) -> Outcome {
    let mut command = command(&["agents", "import", "-"]);
    command.env("ACP_RELAY_STATE_DIR", state);
    run_command(command, text).await
}

/// What is listed besides the agents that the program knows.
async fn imported(state: &Path) -> Vec<Value> {
    let list = |outcome: Outcome| -> Vec<Value> { serde_json::from_str(&outcome.stdout).unwrap() };
    let nowhere = tempfile::tempdir().unwrap();
    let known = list(run_in(nowhere.path(), &["agents", "list", "--json"]).await);
    let all = list(run_in(state, &["agents", "list", "--json"]).await);
    assert_eq!(all[..known.len()], known);
    all[known.len()..].to_vec()
}

#[tokio::test]
async fn the_agents_of_a_registry_are_listed_with_what_their_installation_leaves() {
    let state = tempfile::tempdir().unwrap();
    let outcome = run_in(state.path(), &["agents", "import", REGISTRY]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stdout.starts_with("Imported 4 agents,"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("the other 2 are"),
        "{}",
        outcome.stdout
    );
    let file = state.path().join("imported-agents.json");
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let all = imported(state.path()).await;
    let rows: Vec<Value> = all
        .iter()
        .map(|one| json!([one["name"], one["command"]]))
        .collect();
    assert_eq!(
        Value::from(rows),
        json!([
            ["by-binary", ["acp-by-binary", "acp"]],
            ["by-uvx", ["by-uvx-acp", "-x"]],
            ["by-npx", []],
            ["by-npx-and-binary", ["elsewhere", "acp"]],
        ])
    );
    let installs: Vec<&str> = all
        .iter()
        .map(|one| one["install"].as_str().unwrap())
        .collect();
    assert!(
        installs[0].starts_with("https://agents.example/dl/"),
        "{installs:?}"
    );
    assert_eq!(
        installs[1..],
        [
            "uv tool install by-uvx-acp==1.2.3",
            "npm i -g @example/by-npx@1.2.3",
            "npm i -g elsewhere-cli"
        ]
    );
    let listed = run_in(state.path(), &["agents", "list"]).await.stdout;
    let unknown = "command not known; to install: npm i -g @example/by-npx@1.2.3\n";
    assert!(listed.contains(unknown), "{listed}");

    for args in [
        &["serve", "--listen", "stdio:", "--profile", "by-npx"][..],
        &["connect", "by-npx"],
        &["install", "zed", "by-npx"],
    ] {
        let outcome = run_in(state.path(), args).await;
        assert_eq!(outcome.code, Some(64), "{args:?}");
        let reports = "the command of `by-npx` is not known; install it (npm i -g @example/by-npx";
        assert!(outcome.stderr.contains(reports), "{}", outcome.stderr);
    }
}

#[tokio::test]
async fn an_imported_agent_is_started_by_its_name() {
    let state = tempfile::tempdir().unwrap();
    let outcome = run_in(state.path(), &["agents", "import", REGISTRY]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join("acp-by-binary");
    let script = r#"#!/bin/sh
read -r line
printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":"%s %s"}}\n' "$BY_BINARY_GREETING" "$*"
read -r line"#;
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(&["serve", "--listen", "stdio:", "--profile", "by-binary"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.path().display()));
    command.env("ACP_RELAY_STATE_DIR", state.path());
    let mut relay = Program::of(command);
    relay.write(&format!("{INITIALIZE}\n")).await;
    assert_eq!(relay.json().await["result"]["_meta"], "hello acp");
    relay.end();
    relay.exit().await;
}

#[tokio::test]
async fn an_import_takes_the_place_of_the_one_before() {
    let state = tempfile::tempdir().unwrap();
    run_in(state.path(), &["agents", "import", REGISTRY]).await;
    let registry: Value = serde_json::from_str(&fs::read_to_string(REGISTRY).unwrap()).unwrap();
    // Its entry alone, as it is submitted to the registry.
    let outcome = import(state.path(), &registry["agents"][2].to_string()).await;
    assert!(
        outcome.stdout.starts_with("Imported 1 agent,"),
        "{}",
        outcome.stderr
    );
    assert_eq!(imported(state.path()).await[0]["name"], "by-uvx");
    let outcome = import(state.path(), r#"{"agents": []}"#).await;
    assert!(
        outcome.stdout.starts_with("Imported 0 agents,"),
        "{}",
        outcome.stderr
    );
    assert_eq!(imported(state.path()).await, [] as [Value; 0]);
}

#[tokio::test]
async fn what_is_no_registry_is_refused_with_its_place() {
    let state = tempfile::tempdir().unwrap();
    let agent = |id: &str, distribution: Value| {
        json!({"agents": [{"id": id, "name": "A", "distribution": distribution}]}).to_string()
    };
    let uvx = |args: Value, env: Value| json!({"uvx": {"package": "a", "args": args, "env": env}});
    for (text, reports) in [
        ("agents:".to_owned(), "not JSON"),
        ("[]".to_owned(), "agents[0]"),
        (
            r#"{"agents": {}}"#.to_owned(),
            "agents: invalid type: map, expected a sequence",
        ),
        (
            r#"{"agents": [{"id": "a"}]}"#.to_owned(),
            "agents[0]: missing field `name`",
        ),
        (agent("a", json!({"npx": {}})), "agents[0].distribution.npx"),
        (agent("a/../b", json!({})), "cannot be a name"),
        (
            agent("a", uvx(json!(["\u{1b}[2J"]), json!({}))),
            "not a line of text",
        ),
        (
            agent("a", uvx(json!([]), json!({"A=B": "c"}))),
            "not a line of text",
        ),
        (
            agent("a", uvx(json!([]), json!({"A": "\0"}))),
            "not a line of text",
        ),
        (" ".repeat((1 << 20) + 1), "longer than 1 MiB"),
    ] {
        let outcome = import(state.path(), &text).await;
        let code = if text.starts_with(' ') { 66 } else { 65 };
        assert_eq!(outcome.code, Some(code), "{reports}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(reports),
            "{reports}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    assert!(!state.path().join("imported-agents.json").exists());
    let outcome = run_in(state.path(), &["agents", "import", "/nowhere.json"]).await;
    assert_eq!(outcome.code, Some(66), "{}", outcome.stderr);
}

#[tokio::test]
async fn a_file_of_imports_that_others_can_read_is_left_out() {
    let state = tempfile::tempdir().unwrap();
    run_in(state.path(), &["agents", "import", REGISTRY]).await;
    let file = state.path().join("imported-agents.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let outcome = run_in(state.path(), &["agents", "list"]).await;
    assert_eq!(outcome.code, Some(0));
    assert!(!outcome.stdout.contains("by-uvx"), "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("is open to others"),
        "{}",
        outcome.stderr
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "[{").unwrap();
    let outcome = run_in(state.path(), &["agents", "list"]).await;
    assert!(outcome.stderr.contains("is damaged"), "{}", outcome.stderr);
}

/// A team's registry: what a listener answers can be imported, and its names then reach its agents.
#[test]
fn the_registry_of_a_listener_is_imported_and_reaches_its_agents() {
    block_on(async {
        let file = r#"
            [agents.one]
            command = ["AGENT", "first"]
            [agents.two]
            command = ["AGENT", "second"]
            [[listeners]]
            endpoint = "http://127.0.0.1:0"
        "#;
        let stage = Stage::with(file);
        let (_serve, caller) = stage.start().await;
        let answer = caller.ask("GET", "/registry.json", &[], "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let registry = &answer.body;
        // Before it is published, anybody could publish a package of that name.
        for word in ["distribution", "npx", "uvx", "package"] {
            assert!(!registry.contains(word), "{word} in {registry}");
        }
        let state = tempfile::tempdir().unwrap();
        let done = import(state.path(), registry).await;
        assert_eq!(done.code, Some(0), "{registry}: {done:?}");
        // The program is on PATH here.
        let programs = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_acp-relay"),
            programs.path().join("acp-relay"),
        )
        .unwrap();
        for (name, word) in [("one", "first"), ("two", "second")] {
            let mut connect = command(&["connect", name]);
            connect
                .env("ACP_RELAY_STATE_DIR", state.path())
                .env("PATH", programs.path());
            let outcome = run_command(connect, &format!("{INITIALIZE}\n")).await;
            assert!(outcome.stdout.contains(word), "{name}: {outcome:?}");
        }
    });
}
