//! Agents by name in `connect`: of the configuration file, well-known, and joined with a line.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, relay, run_command};

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
    "\n"
);

/// A home with a configuration file.
fn home(file: &str) -> TempDir {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("acp-relay");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("acp-relay.toml"), file).unwrap();
    home
}

/// `connect` with these arguments and that home.
fn connect(home: &Path, args: &[&str]) -> tokio::process::Command {
    let mut connect = command(&[&["connect"], args].concat());
    connect
        .env("XDG_CONFIG_HOME", home)
        .env("ACP_RELAY_STATE_DIR", home.join("state"));
    connect
}

/// `[agents.NAME]` of an agent that introduces itself with `title`.
fn agent(name: &str, title: &str) -> String {
    let about =
        serde_json::json!([{ "result": { "protocolVersion": 1, "agentInfo": { "name": title } } }]);
    let words = scripted(&[("initialize", about)]);
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    // TOML has the escapes of Rust that these words need, except that of the apostrophe.
    let words = words.join(", ").replace("\\'", "'");
    format!("[agents.{name}]\ncommand = [{words}]\n")
}

#[test]
fn an_agent_of_the_file_is_reached_by_its_name_and_overrides_a_well_known_one() {
    block_on(async {
        let file = [agent("mine", "the file's"), agent("goose", "not goose")].concat();
        let home = home(&file);
        for (name, title) in [("mine", "the file's"), ("goose", "not goose")] {
            let outcome = run_command(connect(home.path(), &[name]), INITIALIZE).await;
            assert!(outcome.stdout.contains(title), "{name}: {outcome:?}");
        }
    });
}

#[test]
fn without_an_agent_a_program_gets_the_default_one_of_the_file() {
    block_on(async {
        let both = [agent("one", "first"), agent("two", "second")].concat();
        let files = [
            (agent("one", "first"), Some("first")),
            (format!("default-agent = \"two\"\n{both}"), Some("second")),
            (both, None),
        ];
        for (file, title) in files {
            let home = home(&file);
            let outcome = run_command(connect(home.path(), &[]), INITIALIZE).await;
            match title {
                Some(title) => assert!(outcome.stdout.contains(title), "{outcome:?}"),
                None => assert_eq!(outcome.code, Some(64), "{outcome:?}"),
            }
        }
    });
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_one() {
    block_on(async {
        let home = home(&agent("my-agent", "mine"));
        for (name, near) in [("my-agnet", "`my-agent`"), ("clude", "`claude`")] {
            let outcome = run_command(connect(home.path(), &[name]), "").await;
            assert_eq!(outcome.code, Some(64), "{outcome:?}");
            assert!(outcome.stderr.contains(near), "{outcome:?}");
            assert!(
                outcome.stderr.contains(&format!("-- {name}")),
                "{outcome:?}"
            );
        }
    });
}

#[test]
fn a_well_known_agent_that_is_missing_is_named_with_its_installation() {
    block_on(async {
        let home = home("");
        let mut missing = connect(home.path(), &["claude"]);
        missing.env("PATH", "/nonexistent");
        let outcome = run_command(missing, INITIALIZE).await;
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        for text in [&outcome.stderr, &outcome.stdout] {
            assert!(
                text.contains("npm i -g @agentclientprotocol/claude-agent-acp"),
                "{outcome:?}"
            );
        }
    });
}

/// Runs the program with `home` as its state directory, and `input` on its stdin.
async fn with_state(home: &Path, args: &[&str], input: &str) -> crate::support::program::Outcome {
    let mut command = command(args);
    command.env("ACP_RELAY_STATE_DIR", home);
    run_command(command, input).await
}

#[test]
fn a_member_joins_with_one_line_and_then_needs_only_a_name() {
    block_on(async {
        let (host, member) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let words = scripted(&[]);
        // A token is required where the client's user is not known to be the relay's.
        let mut args = vec![
            "serve",
            "--listen",
            "ws://127.0.0.1:0/acp",
            "--require-token",
            "--",
        ];
        args.extend(words.iter().map(String::as_str));
        let mut serve = Program::start_in(host.path(), &args);
        let address = serve.address().await;
        let line = with_state(
            host.path(),
            &["token", "new", "ann", "--link", &address],
            "",
        )
        .await;
        assert_eq!(line.code, Some(0), "{line:?}");
        assert_eq!(line.stdout.lines().count(), 1, "{line:?}");
        let joined = with_state(member.path(), &["connect", "--join", "far"], &line.stdout).await;
        assert_eq!(joined.code, Some(0), "{joined:?}");
        assert!(
            joined.stdout.contains("acp-relay connect far"),
            "{joined:?}"
        );
        for entry in fs::read_dir(member.path()).unwrap() {
            let about = entry.unwrap().metadata().unwrap();
            assert_eq!(about.permissions().mode() & 0o777, 0o600);
        }
        let outcome = with_state(member.path(), &["connect", "far"], INITIALIZE).await;
        assert!(outcome.stdout.contains("protocolVersion"), "{outcome:?}");
        // Another address does not replace it, and the same one does.
        let other = ["token", "new", "bob", "--link", "ws://127.0.0.1:9/acp"];
        let other = with_state(host.path(), &other, "").await.stdout;
        let refused = with_state(member.path(), &["connect", "--join", "far"], &other).await;
        assert_eq!(refused.code, Some(77), "{refused:?}");
        let again = with_state(member.path(), &["connect", "--join", "far"], &line.stdout).await;
        assert_eq!(again.code, Some(0), "{again:?}");
        // A token that is no longer valid is refused with exit code 77.
        with_state(host.path(), &["token", "revoke", "ann"], "").await;
        let mut refused = with_state(member.path(), &["connect", "far"], INITIALIZE).await;
        while refused.code == Some(0) {
            // A running relay notices within a second.
            refused = with_state(member.path(), &["connect", "far"], INITIALIZE).await;
        }
        assert_eq!(refused.code, Some(77), "{refused:?}");
    });
}

#[test]
fn a_join_line_that_is_an_argument_or_damaged_is_refused_without_being_repeated() {
    block_on(async {
        let state = TempDir::new().unwrap();
        let line = [
            "token",
            "new",
            "ann",
            "--link",
            "wss://h.example/agents/goose/acp",
        ];
        let line = with_state(state.path(), &line, "").await.stdout;
        let line = line.trim();
        let outcome = with_state(state.path(), &["connect", line], "").await;
        assert_eq!(outcome.code, Some(64), "{outcome:?}");
        assert!(
            outcome.stderr.contains("acp-relay connect --join"),
            "{outcome:?}"
        );
        assert!(!outcome.stderr.contains(&line[10..40]), "{outcome:?}");
        for damaged in ["", "hello", "acpr_join_", &line[..line.len() - 9]] {
            let outcome = with_state(state.path(), &["connect", "--join"], damaged).await;
            assert_eq!(outcome.code, Some(64), "{damaged}: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{damaged}: {outcome:?}");
        }
        // The name is that of the agent and the host, because goose is also a well-known agent.
        let joined = with_state(state.path(), &["connect", "--join"], line).await;
        assert!(joined.stdout.contains("connect goose-h"), "{joined:?}");
    });
}

#[test]
fn a_joined_agent_gets_no_name_of_the_configuration_file() {
    block_on(async {
        let home = home(&agent("mine", "the file's"));
        let state = home.path().join("state");
        let line = [
            "token",
            "new",
            "ann",
            "--link",
            "wss://h.example/agents/mine/acp",
        ];
        let line = with_state(&state, &line, "").await.stdout;
        let joined = run_command(connect(home.path(), &["--join"]), &line).await;
        assert!(joined.stdout.contains("connect mine-h"), "{joined:?}");
        let refused = run_command(connect(home.path(), &["--join", "mine"]), &line).await;
        assert_eq!(refused.code, Some(64), "{refused:?}");
    });
}

#[test]
fn a_link_is_for_an_address_with_tokens() {
    for url in ["unix:/tmp/x", "agents.example", "tcp://h:1"] {
        let output: Command = relay(&["token", "new", "ann", "--link", url]);
        let output = { output }.output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{url}: {output:?}");
    }
}
