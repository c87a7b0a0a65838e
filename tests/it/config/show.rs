//! `config show`: the effective values, their sources, and no secrets.

use super::stage::Stage;
use crate::support::link::run as block_on;
use crate::support::program::{command, run_command};

const FILE: &str = r#"
default-agent = "one"
on-disconnect = "detach"
[agents.one]
command = ["AGENT", "--api-key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"]
env = { API_KEY = "planted-in-env" }
[agents.far]
endpoint = "https://agents.example/acp"
headers = ["X-Key: planted-in-header"]
on-disconnect = "terminate"
[[listeners]]
endpoint = "http://127.0.0.1:0"
allow-host = ["agents.example"]
[auth]
require-token = true
[auth.certificates."ci.example"]
agents = ["one"]
[record]
dir = "tapes"
policy = "lossy"
[admin]
listen = "127.0.0.1:0"
[limits]
connections = 7
handshake = 3
[drain]
max = 30
[traces]
otlp-endpoint = "http://127.0.0.1:4318"
[log]
level = "info"
format = "json"
"#;

/// The output of `config show` with these arguments.
async fn shown(stage: &Stage, args: &[&str], env: &[(&str, &str)]) -> String {
    let file = stage.file();
    let show = ["config", "show", "--config", file.to_str().unwrap()];
    let mut show = command(&[&show[..], args].concat());
    show.envs(env.iter().copied());
    let outcome = run_command(show, "").await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout
}

/// The value of `key` in the table under `heading`, and its source.
fn line<'s>(shown: &'s str, heading: &str, key: &str) -> (&'s str, &'s str) {
    let table = match heading {
        "" => shown,
        _ => {
            shown
                .split_once(&format!("\n{heading}\n"))
                .expect(heading)
                .1
        }
    };
    let mut lines = table.lines().take_while(|line| !line.starts_with('['));
    let start = format!("{key} = ");
    let line = lines.find_map(|line| line.strip_prefix(&start));
    let (value, from) = line.expect(key).rsplit_once("  # ").expect(key);
    (value.trim_end(), from)
}

#[test]
fn each_value_has_its_source() {
    block_on(async {
        let stage = Stage::with(FILE);
        let env = [
            ("ACP_RELAY_ADMIN", "127.0.0.1:9464"),
            ("ACP_RELAY_LOG_FORMAT", "json"),
            ("ACP_RELAY_RECORD", "/var/tapes"),
        ];
        let args = [
            "--no-auth-loopback",
            "--limit",
            "connections=9",
            "--on-disconnect",
            "terminate",
            "--trace-context",
            "insert",
            "--log-format",
            "human",
        ];
        let shown = shown(&stage, &args, &env).await;
        for (heading, key, value, from) in [
            ("", "default-agent", "\"one\"", "line 2"),
            ("", "on-disconnect", "\"terminate\"", "--on-disconnect"),
            (
                "[[listeners]]",
                "endpoint",
                "\"http://127.0.0.1:0/acp\"",
                "line 12",
            ),
            (
                "[[listeners]]",
                "allow-host",
                "[\"agents.example\"]",
                "line 13",
            ),
            ("[agents.one]", "record", "true", "default"),
            (
                "[agents.far]",
                "endpoint",
                "\"https://agents.example/acp\"",
                "line 8",
            ),
            (
                "[agents.far]",
                "on-disconnect",
                "\"terminate\"",
                "--on-disconnect",
            ),
            (
                "[auth]",
                "require-token",
                "false",
                "the command line, overriding line 15",
            ),
            ("[auth]", "no-auth-loopback", "true", "--no-auth-loopback"),
            (
                "[auth.certificates.\"ci.example\"]",
                "agents",
                "[\"one\"]",
                "line 17",
            ),
            ("[record]", "dir", "\"/var/tapes\"", "$ACP_RELAY_RECORD"),
            ("[record]", "policy", "\"lossy\"", "line 20"),
            ("[record]", "mode", "\"all\"", "default"),
            (
                "[admin]",
                "listen",
                "\"http://127.0.0.1:9464\"",
                "$ACP_RELAY_ADMIN",
            ),
            ("[limits]", "connections", "9", "--limit"),
            ("[limits]", "handshake", "\"3s\"", "line 25"),
            ("[limits]", "drain", "\"30s\"", "line 27"),
            ("[limits]", "in-flight", "16384", "default"),
            (
                "[traces]",
                "otlp-endpoint",
                "\"http://127.0.0.1:4318\"",
                "line 29",
            ),
            ("[traces]", "trace-context", "\"insert\"", "--trace-context"),
            ("[log]", "level", "\"info\"", "line 31"),
            ("[log]", "format", "\"human\"", "--log-format"),
        ] {
            assert_eq!(
                line(&shown, heading, key),
                (value, from),
                "{heading}\n{shown}"
            );
        }
    });
}

#[test]
fn no_secret_is_shown() {
    block_on(async {
        let stage = Stage::with(FILE);
        let shown = shown(&stage, &[], &[("ACP_RELAY_BEARER", "planted-in-our-env")]).await;
        for secret in [
            "planted",
            "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF",
        ] {
            assert!(!shown.contains(secret), "{shown}");
        }
        for name in ["API_KEY", "X-Key"] {
            assert!(shown.contains(name), "{shown}");
        }
    });
}

#[test]
fn the_output_is_an_equivalent_file() {
    block_on(async {
        let stage = Stage::with(&FILE.replace(
            "[auth.certificates.\"ci.example\"]\nagents = [\"one\"]\n",
            "",
        ));
        let first = shown(&stage, &[], &[]).await;
        stage.write(&first);
        let second = shown(&stage, &[], &[]).await;
        let values = |shown: &str| -> Vec<String> {
            let lines = shown.lines().filter(|line| !line.starts_with('#'));
            let lines = lines.map(|line| line.split("  # ").next().unwrap_or_default());
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        assert_eq!(values(&first), values(&second));
        // Without a file, and with a command, the command line sets it.
        let none = run_command(command(&["config", "show", "--", "cat", "a b"]), "").await;
        assert_eq!(
            line(&none.stdout, "[agents.default]", "command"),
            ("[\"cat\", \"a b\"]", "command line"),
            "{none:?}"
        );
        assert_eq!(
            line(&none.stdout, "[[listeners]]", "endpoint"),
            ("\"ws://127.0.0.1:0/acp\"", "default")
        );
    });
}

#[test]
fn an_address_for_monitoring_has_several_forms() {
    block_on(async {
        for (given, shown) in [
            ("127.0.0.1:9100", "http://127.0.0.1:9100"),
            ("localhost:0", "http://127.0.0.1:0"),
            ("[::1]:9100", "http://[::1]:9100"),
            ("http://127.0.0.1:9100/", "http://127.0.0.1:9100"),
            ("unix:/run/admin.sock", "unix:/run/admin.sock"),
        ] {
            let show = command(&["config", "show", "--admin", given, "--", "cat"]);
            let outcome = run_command(show, "").await;
            let expected = format!("{shown:?}");
            assert_eq!(
                line(&outcome.stdout, "[admin]", "listen"),
                (expected.as_str(), "--admin"),
                "{outcome:?}"
            );
        }
    });
}
