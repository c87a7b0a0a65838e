//! `config show`: the effective values, their sources, and no secrets.

use super::stage::Stage;
use crate::support::link::run as block_on;
use crate::support::program::{command, run, run_command};

const FILE: &str = r#"
default-agent = "one"
on-disconnect = "detach"
[agents.one]
command = ["cat", "--api-key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"]
env = { API_KEY = "planted-in-env" }
[agents.one.limits]
connections = 3
in-flight = 4
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
dir = "/tapes"
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

/// The output of `config show` with these arguments and variables.
async fn shown(stage: &Stage, args: &[&str], env: &[(&str, &str)]) -> String {
    let file = stage.file();
    let show = ["config", "show", "--config", file.to_str().unwrap()];
    let mut show = command(&[&show[..], args].concat());
    show.envs(env.iter().copied());
    let outcome = run_command(show, "").await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout
}

#[test]
fn each_value_has_its_source_and_no_secret_is_shown() {
    block_on(async {
        let stage = Stage::with(FILE);
        let env = [
            ("ACP_RELAY_ADMIN", "127.0.0.1:9464"),
            ("ACP_RELAY_LOG_FORMAT", "json"),
            ("ACP_RELAY_RECORD", "/var/tapes"),
            ("ACP_RELAY_BEARER", "planted-in-our-env"),
        ];
        let args = "--no-auth-loopback --limit connections=9 --on-disconnect terminate \
                    --trace-context insert --log-format human";
        let args: Vec<&str> = args.split_whitespace().collect();
        let shown = shown(&stage, &args, &env).await;
        assert!(!shown.contains("planted"), "{shown}");
        // Without the name of the file, and without limits that are not set.
        let (text, limits) = shown.split_once("[limits]\n").unwrap();
        let set = limits.lines().filter(|line| !line.ends_with("# default"));
        let lines = text.lines().skip(1).chain(set);
        let lines = lines.map(|line| match line.split_once("‹redacted:") {
            Some((before, _)) => format!("{before}‹redacted›…"),
            None => line.to_owned(),
        });
        insta::assert_snapshot!("show", lines.collect::<Vec<_>>().join("\n"));
    });
}

#[test]
fn the_output_is_an_equivalent_file() {
    block_on(async {
        let certificates = "[auth.certificates.\"ci.example\"]\nagents = [\"one\"]\n";
        let stage = Stage::with(&FILE.replace(certificates, ""));
        let first = shown(&stage, &[], &[]).await;
        stage.write(&first);
        let second = shown(&stage, &[], &[]).await;
        let values = |shown: &str| -> Vec<String> {
            let lines = shown.lines().filter(|line| !line.starts_with('#'));
            let lines = lines.map(|line| line.split("  # ").next().unwrap_or_default());
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        assert_eq!(values(&first), values(&second));
    });
}

/// The value of `key` and its source.
fn line<'s>(shown: &'s str, key: &str) -> (&'s str, &'s str) {
    let mut lines = shown.lines();
    let line = lines.find_map(|line| line.strip_prefix(&format!("{key} = ")));
    let (value, from) = line.expect(key).rsplit_once("  # ").expect(key);
    (value.trim_end(), from)
}

#[test]
fn the_command_line_alone_is_shown_in_the_same_form() {
    for (given, address) in [
        ("127.0.0.1:9100", "\"http://127.0.0.1:9100\""),
        ("localhost:0", "\"http://127.0.0.1:0\""),
        ("[::1]:9100", "\"http://[::1]:9100\""),
        ("http://127.0.0.1:9100/", "\"http://127.0.0.1:9100\""),
        ("unix:/run/admin.sock", "\"unix:/run/admin.sock\""),
    ] {
        let show = ["config", "show", "--admin", given, "--", "cat", "a b"];
        let shown = block_on(run(&show, "")).stdout;
        assert_eq!(line(&shown, "listen"), (address, "--admin"), "{shown}");
        let command = line(&shown, "command");
        assert_eq!(command, ("[\"cat\", \"a b\"]", "command line"), "{shown}");
        let endpoint = line(&shown, "endpoint");
        assert_eq!(endpoint, ("\"ws://127.0.0.1:0/acp\"", "default"), "{shown}");
    }
}
