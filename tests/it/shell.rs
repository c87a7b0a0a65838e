//! What shells and packagers use: the version, completions, manual pages.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::program::relay;

fn run<S: AsRef<OsStr>>(args: &[S]) -> Output {
    relay(args).output().unwrap()
}

#[test]
fn the_version_has_the_commit_and_the_tables() {
    let output = run(&["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let name = concat!("acp-relay ", env!("CARGO_PKG_VERSION"));
    assert!(lines.next().unwrap().starts_with(name), "{text}");
    let tables = dialect::Library::builtin_files().count();
    let expected = format!("{tables} mapping tables, digest ");
    assert!(lines.next().unwrap().starts_with(&expected), "{text}");
}

#[test]
fn shells_complete_every_subcommand() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["serve", "connect", "inspect", "agent-dialect"] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
}

/// The completions of bash for the last of these words.
fn offered(words: &str) -> String {
    offered_in(&std::env::temp_dir(), words)
}

fn offered_in(place: &Path, words: &str) -> String {
    let script = String::from_utf8(run(&["completions", "bash"]).stdout).unwrap();
    let ask = r#"
        function=$(complete -p acp-relay); function=${function##*-F }; function=${function%% *}
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "$function" acp-relay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[@]}""#;
    let script = format!("{script}\nCOMP_WORDS=(acp-relay {words}){ask}");
    // The script is longer than an argument may be.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("complete.bash");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("bash")
        .arg("--norc")
        .arg(&file)
        .current_dir(place)
        .output();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

#[test]
fn bash_completes_subcommands_their_flags_and_values() {
    for (words, offers) in [
        ("ser", "serve"),
        ("inspect sh", "show"),
        (
            "serve --tls-",
            "--tls-cert --tls-key --tls-client-ca --tls-ca",
        ),
        ("serve --on-disconnect ''", "terminate detach"),
        ("serve --profile claude-a", "claude-acp claude-agent-acp"),
        ("connect --agent-dialect can", "canonical"),
        ("dialect show goos", "goose"),
        ("help insp", "inspect"),
        ("install z", "zed"),
        ("install zed goo", "goose"),
        ("connect goo", "goose"),
        ("try goo", "goose"),
    ] {
        assert_eq!(offered(words), offers, "{words}");
    }
}

#[test]
fn recordings_are_completed_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["talk.acpr", "talk.001.acpr.zst", "talk.txt"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    std::fs::create_dir(folder.path().join("talks")).unwrap();
    for (words, offers) in [
        ("inspect show ta", "talks talk.acpr talk.001.acpr.zst"),
        (
            "inspect verify --json ta",
            "talks talk.acpr talk.001.acpr.zst",
        ),
        (
            "inspect diff talk.acpr ta",
            "talks talk.acpr talk.001.acpr.zst",
        ),
        ("inspect show --js", "--json"),
        ("inspect sc", "scrub"),
    ] {
        assert_eq!(offered_in(folder.path(), words), offers, "{words}");
    }
    let script = String::from_utf8(run(&["completions", "zsh"]).stdout).unwrap();
    let action = r#"_files -g "*.acpr(|.zst)"'"#;
    for begin in [
        "':file -- The recording; ",
        "'::file -- The recording, ",
        "'*::words -- Recordings, ",
    ] {
        let mut lines = script.lines().filter(|line| line.starts_with(begin));
        assert!(lines.clone().count() > 0, "{begin}");
        assert!(lines.all(|line| line.contains(action)), "{begin}");
    }
    let mut captures = script
        .lines()
        .filter(|line| line.contains("or a capture of"));
    assert!(captures.all(|line| !line.contains(action)));
}

#[test]
fn the_manual_has_a_page_for_every_subcommand() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("man1");
    let output = run(&["man".as_ref(), "--dir".as_ref(), place.as_os_str()]);
    assert!(output.status.success());
    for page in ["acp-relay", "acp-relay-serve", "acp-relay-inspect-show"] {
        let text = std::fs::read_to_string(place.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    let output = run(&["man", "--dir", "/dev/null/man1"]);
    assert_eq!(output.status.code(), Some(73));
    for entry in std::fs::read_dir(&place).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(text.is_ascii(), "readers of manuals need not know UTF-8");
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("\\[u"), "nor roff all letters: {text}");
    }
}
