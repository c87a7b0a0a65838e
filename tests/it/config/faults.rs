//! All errors of a file are reported at once, with their places; the example has none.
//!
//! A case is a file in tests/vectors/config: a configuration, and at its end the expected errors, a
//! line `#= LINE:COLUMN: …` each. A file without such lines is valid.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::manual::help::{COMMANDS, flags};
use crate::support::link::run as block_on;
use crate::support::program::{command, run, run_command, run_in};

#[test]
fn all_errors_are_reported_at_once_with_their_places() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/config");
    let mut cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#= "))
            .collect();
        let shown = path.to_str().unwrap();
        let outcome = block_on(run(&["config", "check", "--other-machine", shown], ""));
        let prefix = format!("{shown}:");
        let reported: Vec<&str> = outcome
            .stderr
            .lines()
            .map(|line| line.trim_start_matches(&prefix))
            .collect();
        assert_eq!(reported, expected, "{shown}");
        let code = if expected.is_empty() { 0 } else { 78 };
        assert_eq!(outcome.code, Some(code), "{shown}");
        cases += 1;
    }
    assert!(cases >= 7, "only {cases} cases");
}

#[test]
fn the_example_is_valid_and_has_every_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.toml");
    let example = block_on(run(&["config", "example"], "")).stdout;
    fs::write(&path, &example).unwrap();
    let check = |text: &str| {
        fs::write(&path, text).unwrap();
        let args = ["config", "check", "--other-machine", path.to_str().unwrap()];
        block_on(run(&args, ""))
    };
    let outcome = check(&example);
    assert_eq!((outcome.code, &*outcome.stderr), (Some(0), ""));
    // An unknown key is answered with all known ones of its table.
    let mut keys = 0;
    let tables = [
        "agents.x",
        "record",
        "auth",
        "auth.certificates.x",
        "admin",
        "agent-connect",
        "dialects",
        "log",
    ];
    let tables = tables.map(|table| format!("[{table}]\n"));
    let others = [String::new(), "[[listeners]]\n".to_owned()];
    for table in tables.into_iter().chain(others) {
        let reported = check(&format!("{table}zzzzzz = 1\n")).stderr;
        let (_, known) = reported
            .split_once("; expected one of ")
            .unwrap_or_else(|| panic!("{reported}"));
        for key in known.lines().next().unwrap().split(", ") {
            assert!(example.contains(key), "{key} is not in the example");
            keys += 1;
        }
    }
    assert!(keys > 50, "{keys}");
}

/// Flags of `serve` whose key has another name, `FLAG:KEY`; nothing where there is none.
const KEYS: &str = "agent:endpoint agent-dialect:dialect agent-framing:framing \
    client-dialect:dialect client-framing:framing client-protocol:dialect agent-protocol:dialect \
    cluster:servers cluster-label:labels version-policy: config: dialect-dir:folders header:headers \
    limit:[limits] listen:endpoint log:level log-format:format record:dir table:tables \
    admin:[admin]";

#[test]
fn every_flag_of_serve_has_its_key() {
    let serve = COMMANDS.iter().find(|(path, _)| path == "serve");
    let flags = flags(&serve.unwrap().1);
    let example = block_on(run(&["config", "example"], "")).stdout;
    for flag in &flags {
        let flag = flag.name.trim_start_matches("--");
        let mut keys = KEYS
            .split_whitespace()
            .filter_map(|key| key.split_once(':'));
        let other = keys.find_map(|(name, key)| (name == flag).then_some(key));
        let mut tables = ["record-", "cluster-"].into_iter();
        let own = tables.find_map(|table| flag.strip_prefix(table));
        let key = other.or(own).unwrap_or(flag);
        assert!(example.contains(key), "--{flag}: no `{key}` in the example");
    }
    assert!(flags.len() > 33, "{}", flags.len());
}

#[test]
fn missing_files_and_programs_are_reported_with_the_other_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("cert.pem"), "no certificate").unwrap();
    fs::write(path("open"), "a-token-that-everybody-can-read-0123456789").unwrap();
    fs::write(path("table.json"), "{}").unwrap();
    let text = r#"
listen = "x"
[agents.a]
command = ["acp-relay-no-such-program"]
[agents.b]
profile = "gemini"
[agents.c]
command = ["cat"]
cwd = "nowhere"
[agents.d]
endpoint = "https://agents.example/acp"
bearer-file = "nowhere.token"
[[listeners]]
endpoint = "wss://127.0.0.1:1"
tls-cert = "cert.pem"
tls-key = "key.pem"
[auth]
token-file = "open"
[record]
dir = "cert.pem/recordings"
[dialects]
tables = ["table.json"]
[admin]
listen = "unix:nowhere/admin.sock"
[agents.e]
endpoint = "wss://agents.example/acp"
tls-ca = "cert.pem"
header-file = "nowhere.headers"
[[listeners]]
endpoint = "unix:nowhere/acp.sock"
[[listeners]]
endpoint = "unix:cert.pem"
[[listeners]]
endpoint = "tcp://192.0.2.1:9000"
"#;
    let file = path("x.toml");
    fs::write(&file, text).unwrap();
    let mut check = command(&["config", "check", &file]);
    // No agent is installed there.
    check.env("PATH", "/usr/bin:/bin");
    let outcome = block_on(run_command(check, ""));
    assert_eq!(outcome.code, Some(78), "{outcome:?}");
    for (place, reports) in [
        (":2:1:", "`listen` is not known"),
        (":4:11:", "acp-relay-no-such-program"),
        (":6:11:", "npm i -g @google/gemini-cli"),
        (":9:7:", "there is no folder"),
        (":12:15:", "nowhere.token"),
        (":15:12:", "holds no certificate"),
        (":16:11:", "key.pem cannot be read"),
        (":18:14:", "is open to others"),
        (":20:7:", "is not a folder"),
        (":22:10:", "mapping tables have faults"),
        (":24:10:", "the directory of the socket file does not exist"),
        (":27:10:", "holds no certificate"),
        (":28:15:", "nowhere.headers"),
        (":30:12:", "the directory of the socket file does not exist"),
        (":32:12:", "a file that is not a socket exists there"),
        (":34:12:", "this machine has no such address"),
    ] {
        let mut lines = outcome.stderr.lines();
        let is_reported = lines.any(|line| line.contains(place) && line.contains(reports));
        assert!(is_reported, "{place} {reports}: {outcome:?}");
    }
    // The file itself has two errors.
    let elsewhere = block_on(run(&["config", "check", "--other-machine", &file], ""));
    assert_eq!(elsewhere.stderr.lines().count(), 2, "{}", elsewhere.stderr);
}

#[test]
fn a_port_in_use_is_a_note_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml").display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = format!(
        "[agents.a]\ncommand = [\"cat\"]\n[[listeners]]\nendpoint = \"ws://127.0.0.1:{port}\"\n"
    );
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = block_on(run(&["config", "check", &file], ""));
    let note = format!("{file}:4:12: note: listeners.endpoint: the port is in use now;");
    assert!(outcome.stderr.starts_with(&note), "{outcome:?}");
    let all_is_well = outcome.stdout.contains("no faults; 1 agent, 1 listener");
    assert!(outcome.code == Some(0) && all_is_well, "{outcome:?}");
    // It was checked and not occupied.
    drop(taken);
    let outcome = block_on(run(&["config", "check", &file], ""));
    assert_eq!((outcome.code, &*outcome.stderr), (Some(0), ""));
}

#[test]
fn invalid_utf8_is_reported_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml").display().to_string();
    fs::write(&file, b"# \xc3\xa4\n# \xc3\xa4\xff\n").unwrap();
    let (check, serve) = (["config", "check", &file], ["serve", "--config", &file]);
    for args in [&check[..], &serve] {
        let outcome = block_on(run(args, ""));
        let reports = format!("{file}:2:4: byte 9 (0xff) is not UTF-8");
        assert!(outcome.stderr.contains(&reports), "{outcome:?}");
        assert_eq!(outcome.code, Some(78), "{outcome:?}");
    }
}

#[test]
fn a_token_file_readable_by_others_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml").display().to_string();
    fs::write(&file, "[agents.a]\ncommand = [\"cat\"]\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("tokens"), "").unwrap();
    for (mode, code) in [(0o600, 0), (0o644, 78)] {
        fs::set_permissions(state.join("tokens"), fs::Permissions::from_mode(mode)).unwrap();
        let outcome = block_on(run_in(&state, &["config", "check", &file]));
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert_eq!(outcome.stderr.contains("is open to others"), code > 0);
    }
}
