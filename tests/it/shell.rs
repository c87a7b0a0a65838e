//! What a shell and a packager want: the version, completions, manual pages.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

fn run<S: AsRef<OsStr>>(args: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-relay"));
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_version_tells_the_commit_and_the_tables() {
    let output = run(&["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let name = concat!("acp-relay ", env!("CARGO_PKG_VERSION"));
    assert!(lines.next().unwrap().starts_with(name), "{text}");
    let tables = acp_relay::dialect::Library::builtin_files().count();
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
}
