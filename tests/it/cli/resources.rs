//! The built program on a machine with too few resources: it names the resource, and exits with its
//! code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output, Stdio};

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

/// The relay with `words`, run by a shell with `script`.
fn run(script: &str, words: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", script, "sh", RELAY])
        .args(words)
        .env(
            "ACP_RELAY_STATE_DIR",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/scarce"),
        )
        .env_remove("ACP_RELAY_LOG")
        .env_remove("ACP_RELAY_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn too_few_descriptors_are_an_error_and_no_panic() {
    let subcommands: [&[&str]; 5] = [
        &["connect", "--", "cat"],
        &["connect", "wss://127.0.0.1:1/acp"],
        &["serve", "--listen", "ws://127.0.0.1:0", "--", "/no/agent"],
        &["demo"],
        &["status"],
    ];
    for files in [5, 6, 7, 8, 10, 12, 16, 18, 20, 22, 24] {
        for words in subcommands {
            let done = run(&format!("ulimit -n {files}; exec \"$@\""), words);
            let reported = String::from_utf8(done.stderr).unwrap();
            let case = format!("{files} {words:?}: {:?} {reported}", done.status);
            // There is no listener, so it fails with enough files, too.
            let code = done.status.code().unwrap_or(-1);
            assert!([0, 69, 71].contains(&code), "{case}");
            assert!(!reported.contains("panicked"), "{case}");
            assert!(code == 0 || reported.contains("acp-relay: "), "{case}");
            let explained = reported.contains("may have") && reported.contains("ulimit -n");
            assert!(files > 16 || (code == 71 && explained), "{case}");
        }
    }
}

#[test]
fn a_failed_write_to_stdout_is_an_error_unless_its_reader_left() {
    let recording = "tests/vectors/recordings/v1.000.acpr";
    let subcommands: [&[&str]; 14] = [
        &["--help"],
        &["--version"],
        &["help", "serve"],
        &["demo"],
        &["man"],
        &["completions", "bash"],
        &["agents", "list"],
        &["config", "example"],
        &["dialect", "list"],
        &["dialect", "schema"],
        &["check", recording],
        &["inspect", "ls", recording],
        &["inspect", "verify", recording],
        &["inspect", "lint", recording],
    ];
    for words in subcommands {
        let full = run("exec \"$@\" >/dev/full", words);
        let reported = String::from_utf8(full.stderr).unwrap();
        let case = format!("{words:?}: {:?} {reported}", full.status);
        assert_eq!(full.status.code(), Some(71), "{case}");
        assert_eq!(reported.lines().count(), 1, "{case}");
        assert!(reported.starts_with("acp-relay: cannot print: "), "{case}");

        // The shell prints the code after the reader has exited.
        let left = run("{ \"$@\"; echo $? >&2; } | :", words);
        let reported = String::from_utf8(left.stderr).unwrap();
        assert!(
            ["0\n", "1\n"].contains(&&*reported),
            "{words:?}: {reported}"
        );
    }
}

#[test]
fn a_full_stdout_file_is_an_error() {
    let agent = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; cat >/dev/null"#;
    let ask = r#"printf '{"jsonrpc":"2.0","id":1,"method":"initialize"}\n'"#;
    let words = ["connect", "--", "sh", "-c", agent];
    let full = run(&format!("{ask} | \"$@\" >/dev/full"), &words);
    let reported = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(71), "{reported}");
    assert!(reported.contains("cannot be forwarded: "), "{reported}");
    let read = run(&format!("{ask} | \"$@\""), &words);
    assert_eq!(read.status.code(), Some(0), "{read:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn without_proc_remote_agents_work_and_none_is_started() {
    let hidden = |words: &[&str]| {
        let script = "exec unshare -rm sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh \"$@\"";
        run(script, words)
    };
    let tried = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/proc"])
        .stderr(Stdio::null())
        .status();
    if !tried.is_ok_and(|tried| tried.success()) {
        // Only some users may hide it.
        eprintln!("not tried: /proc cannot be hidden here");
        return;
    }
    for (words, code, reports) in [
        (&["connect", "ws://127.0.0.1:1"][..], 69, "nothing listens"),
        (&["connect", "--", "cat"], 71, "where /proc is mounted"),
        (&["serve", "--", "cat"], 71, "where /proc is mounted"),
    ] {
        let done = hidden(words);
        let reported = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{words:?}: {reported}");
        assert!(reported.contains(reports), "{words:?}: {reported}");
    }
}
