//! `acp-relay install`: an editor's entry in the editor's own settings.
//!
//! `tests/vectors/editors/EDITOR-CASE` has the settings before and after the entry [`ENTRY`].

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::agent::scripted;
use crate::support::http::INITIALIZE;
use crate::support::program::{Outcome, Program, relay};

const CASES: &str = "tests/vectors/editors";
const ENTRY: [&str; 3] = ["ws://127.0.0.1:9000", "--name", "goose over there"];
/// How the stored settings call this program.
const PROGRAM: &str = "/usr/bin/acp-relay";

/// A home directory.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With these settings of Zed.
    fn with(text: &str) -> (Self, PathBuf) {
        let home = Self::new();
        let path = home.settings("zed");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        (home, path)
    }

    fn settings(&self, editor: &str) -> PathBuf {
        self.0.path().join(match editor {
            "zed" => ".config/zed/settings.json",
            "jetbrains" => ".jetbrains/acp.json",
            _ => ".config/Code/User/settings.json",
        })
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(args, "relative, so that it is ignored".as_ref())
    }

    fn run_with(&self, args: &[&str], config: &Path) -> Outcome {
        let mut command = relay(&[&["install"], args].concat());
        command
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", config);
        let output = command.current_dir(self.0.path()).output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it prints when it succeeds.
    fn done(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        outcome.stdout
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn backup(path: &Path) -> PathBuf {
    path.with_file_name(format!(
        "{}.before-acp-relay",
        path.file_name().unwrap().to_str().unwrap()
    ))
}

#[test]
fn one_entry_is_added_and_removed_to_the_byte() {
    let mut cases = 0;
    for case in fs::read_dir(CASES).unwrap() {
        let case = case.unwrap().path();
        let name = case.file_name().unwrap().to_str().unwrap();
        let editor = name.split('-').next().unwrap();
        let before = read(&case.join("before.json"));
        let home = Home::new();
        let path = home.settings(editor);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &before).unwrap();

        home.done(&[&[editor], &ENTRY[..]].concat());
        let after = read(&path).replace(env!("CARGO_BIN_EXE_acp-relay"), PROGRAM);
        assert_eq!(after, read(&case.join("after.json")), "{name}");
        assert_eq!(read(&backup(&path)), before, "{name}");

        let listed = home.done(&["--list", "--json", editor]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let entry = json!({
            "name": "goose over there",
            "command": env!("CARGO_BIN_EXE_acp-relay"),
            "args": ["connect", "ws://127.0.0.1:9000"],
        });
        assert_eq!(listed[0]["entries"], json!([entry]), "{name}");

        // Again, without an effect.
        let again = home.done(&[&[editor], &ENTRY[..]].concat());
        assert!(again.contains("is already in"), "{name}: {again}");

        home.done(&[editor, "--undo", "goose over there"]);
        assert_eq!(read(&path), before, "{name}");
        assert!(!backup(&path).exists(), "{name}");
        cases += 1;
    }
    assert!(cases > 10);
}

#[test]
fn what_was_changed_since_stays() {
    let before = "{\n  // mine\n  \"vim_mode\": true\n}\n";
    let (home, path) = Home::with(before);
    home.done(&["zed", "ws://h/agents/goose/acp"]);
    fs::write(&path, read(&path).replace("// mine", "// still mine")).unwrap();
    let undone = home.done(&["zed", "ws://h/agents/goose/acp", "--undo"]);
    assert!(undone.starts_with("Removed \"goose at h\""), "{undone}");
    let text = read(&path);
    assert!(
        text.contains("// still mine") && !text.contains("acp-relay"),
        "{text}"
    );
    assert_eq!(read(&backup(&path)), before);
    // The next entry is added to another text, which is what may be wanted back.
    home.done(&["zed", "claude"]);
    assert_eq!(read(&backup(&path)), text);
}

#[test]
fn the_backup_is_from_before_the_first_of_several_entries() {
    let before = "// Zed\n{\"vim_mode\": true}";
    for order in [["claude", "goose"], ["goose", "claude"]] {
        let (home, path) = Home::with(before);
        home.done(&["zed", "claude"]);
        home.done(&["zed", "goose"]);
        assert_eq!(read(&backup(&path)), before);
        let listed = home.done(&["--list"]);
        assert!(listed.contains("\"claude\", \"goose\""), "{listed}");
        home.done(&["zed", order[0], "--undo"]);
        assert_eq!(read(&backup(&path)), before);
        home.done(&["zed", order[1], "--undo"]);
        assert_eq!(read(&path), before, "{order:?}");
    }
}

#[test]
fn an_entry_goes_also_when_the_backup_has_it() {
    let home = Home::new();
    let path = home.settings("zed");
    home.done(&["zed", "claude"]);
    let one = read(&path);
    home.done(&["zed", "goose"]);
    fs::write(&path, &one).unwrap();
    assert_eq!(read(&backup(&path)), one);
    home.done(&["zed", "claude", "--undo"]);
    assert!(!path.exists());
}

#[test]
fn an_entry_keeps_what_was_added_to_it() {
    let (home, path) = Home::with("");
    home.done(&["zed", "ws://a:1", "--name", "one"]);
    let text = read(&path).replace("\"args\"", "\"env\": { \"A\": \"b\" }, // ours\n\"args\"");
    fs::write(&path, &text).unwrap();
    let changed = home.done(&["zed", "ws://b:2", "--name", "one"]);
    assert!(changed.starts_with("Changed \"one\""), "{changed}");
    assert_eq!(read(&path), text.replace("ws://a:1", "ws://b:2"));
}

#[test]
fn a_file_that_was_not_there_is_removed_again() {
    let home = Home::new();
    let config = home.0.path().join("elsewhere");
    for (editor, path) in [
        ("zed", config.join("zed/settings.json")),
        ("vscode", config.join("Code/User/settings.json")),
        ("jetbrains", home.settings("jetbrains")),
    ] {
        for name in ["claude", "goose"] {
            let outcome = home.run_with(&[editor, name], &config);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        }
        assert!(path.exists(), "{editor}");
        for name in ["claude", "goose"] {
            home.run_with(&[editor, name, "--undo"], &config);
        }
        assert!(!path.exists(), "{editor}");
    }
}

#[test]
fn a_link_stays_one_and_the_mode_stays() {
    let (home, path) = Home::with("");
    let target = home.0.path().join("dotfiles.json");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    for args in [&["zed", "claude"][..], &["zed", "claude", "--undo"]] {
        home.done(args);
        assert!(path.is_symlink(), "{args:?}");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{args:?}");
    }
    fs::remove_file(&target).unwrap();
    let outcome = home.run(&["zed", "claude"]);
    assert!(
        outcome.stderr.contains("it is a link to nothing"),
        "{}",
        outcome.stderr
    );
    assert!(path.is_symlink() && !target.exists());
}

#[test]
fn settings_that_are_not_understood_are_left_alone() {
    for (text, code, reports) in [
        ("[]", 65, "it is not a JSON object"),
        ("vim_mode = true", 65, "it is not JSON"),
        ("{\"agent_servers\": {}", 65, "it is not JSON"),
        (
            "{\"agent_servers\": []}",
            65,
            "\"agent_servers\" is not an object",
        ),
        (
            "{\"agent_servers\": {}, \"agent_servers\": {}}",
            65,
            "twice",
        ),
        (
            "{\"agent_servers\": {\"claude\": {\"command\": \"claude\"}}}",
            64,
            "--name",
        ),
        ("{\"agent_servers\": {\"claude\": null}}", 64, "--name"),
    ] {
        let (home, path) = Home::with(text);
        for undo in [&[][..], &["--undo"]] {
            let outcome = home.run(&[&["zed", "claude"], undo].concat());
            assert_eq!(outcome.code, Some(code), "{text}: {}", outcome.stderr);
            assert!(
                outcome.stderr.contains(reports),
                "{text}: {}",
                outcome.stderr
            );
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
            assert_eq!(read(&path), text);
            assert!(!backup(&path).exists());
        }
        let listed = home.run(&["--list"]);
        assert_eq!(listed.code, Some(if code == 65 { 65 } else { 0 }), "{text}");
    }
}

#[test]
fn a_place_that_cannot_be_used_is_explained() {
    let (home, path) = Home::with("");
    fs::write(&path, [0xff]).unwrap();
    let is_told = |outcome: Outcome, code, reports: &str| {
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(reports), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--print"), "{}", outcome.stderr);
    };
    is_told(home.run(&["zed", "claude"]), 66, "UTF-8");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    is_told(home.run(&["zed", "claude"]), 66, "not a regular file");
    // No user may write there, also not the superuser.
    let proc = Path::new("/proc/self");
    is_told(
        home.run_with(&["zed", "claude"], proc),
        73,
        "cannot be written",
    );
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    if !rustix::process::geteuid().is_root() {
        is_told(home.run(&["zed", "claude"]), 73, "cannot be written");
        assert_eq!(read(&path), "{}");
    }
}

#[test]
fn an_entry_that_is_not_there_is_not_removed() {
    for text in [
        "",
        "{}",
        "{\"agent_servers\": {\"goose\": {\"command\": \"goose\"}}}",
    ] {
        let (home, path) = Home::with(text);
        let outcome = home.run(&["zed", "claude", "--undo"]);
        assert_eq!(outcome.code, Some(64), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("install --list"),
            "{}",
            outcome.stderr
        );
        assert_eq!(read(&path), text);
    }
}

#[test]
fn paths_in_the_entry_are_absolute() {
    let home = Home::new();
    let args = |args: &[&str]| {
        let printed = home.done(&[&["jetbrains", "--print", "--name", "x"], args].concat());
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["agent_servers"]["x"]["args"].clone()
    };
    let there = home.0.path().canonicalize().unwrap();
    let there = there.to_str().unwrap();
    assert_eq!(
        args(&["unix:a.sock"]),
        json!(["connect", format!("unix:{there}/a.sock")])
    );
    let talk = format!("replay:{there}/talk.acpr");
    assert_eq!(args(&["replay:talk.acpr"]), json!(["connect", talk]));
    assert_eq!(args(&["tcp://h:1"]), json!(["connect", "tcp://h:1"]));
    let shell = args(&["--", "sh", "-c", "echo \"$0\"\n"]);
    assert!(
        Path::new(shell[2].as_str().unwrap()).is_absolute(),
        "{shell}"
    );
    assert_eq!(shell[4], "echo \"$0\"\n");
    assert!(!home.settings("jetbrains").exists());
}

#[test]
fn an_agent_that_is_not_installed_is_told() {
    let home = Home::new();
    let mut command = relay(&["install", "zed", "goose"]);
    command
        .env("HOME", home.0.path())
        .env("XDG_CONFIG_HOME", "");
    let output = command.env("PATH", "/nowhere").output().unwrap();
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("`goose` is not installed. To install it: "),
        "{stderr}"
    );
    assert!(home.settings("zed").exists());
}

#[test]
fn an_agent_of_the_configuration_file_is_added_by_its_name() {
    let home = Home::new();
    let config = home.0.path().join("config");
    fs::create_dir_all(config.join("acp-relay")).unwrap();
    let file = config.join("acp-relay/acp-relay.toml");
    fs::write(file, "[agents.mine]\ncommand = [\"no-such-agent\"]\n").unwrap();
    let outcome = home.run_with(&["jetbrains", "mine"], &config);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("warning: exec:no-such-agent"),
        "{}",
        outcome.stderr
    );
    let settings: Value = serde_json::from_str(&read(&home.settings("jetbrains"))).unwrap();
    assert_eq!(
        settings["agent_servers"]["mine"]["args"],
        json!(["connect", "mine"])
    );
    let outcome = home.run_with(&["jetbrains", "mune"], &config);
    assert_eq!(outcome.code, Some(64));
    assert!(
        outcome.stderr.contains("did you mean `mine`?"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn editors_that_are_programs_get_lines_to_paste() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_acp-relay");
    for (editor, parts) in [
        (
            "neovim",
            [
                "relay_one__two_ = function()",
                "\"connect\", \"ws://h:1\" }",
            ],
        ),
        (
            "emacs",
            [
                ":identifier 'relay-one--two-",
                "'(\"connect\" \"ws://h:1\")",
            ],
        ),
    ] {
        let printed = home.done(&[editor, "ws://h:1", "--name", "one \"two\""]);
        for part in parts.into_iter().chain(["\"one \\\"two\\\"\"", program]) {
            assert!(printed.contains(part), "{editor}: {part}: {printed}");
        }
        let outcome = home.run(&[editor, "--undo", "--name", "one"]);
        assert_eq!(outcome.code, Some(64), "{}", outcome.stderr);
    }
    assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_command_of_the_entry_reaches_the_agent() {
    let home = Home::new();
    let rules = [("initialize", json!([{"result": {"protocolVersion": 1}}]))];
    let agent = scripted(&rules);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    home.done(&[&["vscode", "--name", "one", "--"], &agent[..]].concat());
    let settings: Value = serde_json::from_str(&read(&home.settings("vscode"))).unwrap();
    let entry = &settings["acp.agents"]["one"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_acp-relay"));
    let args = entry["args"].as_array().unwrap().iter();
    let args: Vec<&str> = args.map(|arg| arg.as_str().unwrap()).collect();
    let mut program = Program::start(&args);
    program.write(&format!("{INITIALIZE}\n")).await;
    let answer = program.json().await;
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    program.end();
    assert!(program.exit().await.success());
}

/// The walk of a member: from one line to an entry, without the token in it.
#[test]
fn a_joined_agent_is_an_entry_of_its_name() {
    let home = Home::new();
    let state = home.0.path().join("state");
    let run = |args: &[&str], input: &str| {
        let mut command = relay(args);
        command
            .env("HOME", home.0.path())
            .env("XDG_CONFIG_HOME", home.0.path().join(".config"))
            .env("ACP_RELAY_STATE_DIR", &state)
            .stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let url = "wss://agents.example/agents/mine/acp";
    let line = run(&["token", "new", "ann", "--link", url], "").stdout;
    let line = String::from_utf8(line).unwrap();
    let output = run(&["install", "zed", "--join"], &line);
    assert!(output.status.success(), "{output:?}");
    let settings: Value = serde_json::from_str(&read(&home.settings("zed"))).unwrap();
    assert_eq!(
        settings["agent_servers"]["mine"]["args"],
        json!(["connect", "mine"])
    );
    let undone = run(&["install", "zed", "mine", "--undo"], "");
    assert!(undone.status.success(), "{undone:?}");
    assert!(!home.settings("zed").exists());
    let wrong = run(&["install", "zed", "--join"], "not a line");
    assert_eq!(wrong.status.code(), Some(64), "{wrong:?}");
}

#[test]
fn an_entry_that_was_changed_by_hand_is_left_alone() {
    let home = Home::new();
    home.done(&["zed", "ws://127.0.0.1:9000", "--name", "far"]);
    let path = home.settings("zed");
    let changed = read(&path).replace(r#""ws://"#, r#""--record", "/r", "ws://"#);
    fs::write(&path, &changed).unwrap();
    let outcome = home.run(&["zed", "ws://127.0.0.1:9001", "--name", "far"]);
    assert_eq!(outcome.code, Some(64), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("changed by hand"),
        "{}",
        outcome.stderr
    );
    assert_eq!(read(&path), changed);
}

#[test]
fn an_entry_for_an_agent_elsewhere_says_whose_files_it_uses() {
    let (home, path) = Home::with("{}\n");
    let args = |path: &Path| {
        let settings: Value = serde_json::from_str(&read(path)).unwrap();
        settings["agent_servers"]["goose"]["args"].clone()
    };
    let agent = ["zed", "ssh://devbox/goose", "--name", "goose"];
    let map = ["--map", "/home/me/app=/srv/app", "--map", "/b=/c"];
    let own = home.run(&[&agent[..], &map].concat());
    assert_eq!(own.code, Some(0), "{}", own.stderr);
    let expected = [&["connect"], &map[..], &["ssh://devbox/goose"]].concat();
    assert_eq!(args(&path), json!(expected));
    for words in [
        "its own machine (ssh://devbox/goose)",
        "--map",
        "--files editor",
    ] {
        assert!(own.stderr.contains(words), "{words}: {}", own.stderr);
    }

    // The entry is one of ours, which is replaced and removed as one.
    let editors = home.run(&[&agent[..], &["--files", "editor"]].concat());
    assert!(
        editors.stdout.starts_with("Changed \"goose\""),
        "{}",
        editors.stdout
    );
    let expected = ["connect", "--files", "editor", "ssh://devbox/goose"];
    assert_eq!(args(&path), json!(expected));
    assert!(
        editors.stderr.contains("the files of this machine"),
        "{}",
        editors.stderr
    );
    home.done(&["zed", "--undo", "--name", "goose"]);
    assert_eq!(read(&path), "{}\n");

    let printed = home.done(&["zed", "wss://h/acp", "--map", "/a=/b", "--print"]);
    assert!(
        printed.contains("\"--map\"") && printed.contains("\"/a=/b\""),
        "{printed}"
    );
    for (option, value) in [("--map", "/a"), ("--files", "mine")] {
        assert_eq!(home.run(&["zed", "ssh://h", option, value]).code, Some(64));
    }
    // A command is on this machine, and what is at a loopback port may be.
    for words in [&["zed", "ws://127.0.0.1:9000"][..], &["zed", "--", "cat"]] {
        let local = home.run(words);
        assert!(!local.stderr.contains("files"), "{}", local.stderr);
    }
}
