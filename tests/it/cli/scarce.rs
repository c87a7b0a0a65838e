//! The built program where the machine has too little of something: it says of what, and exits
//! with a code that says so, too.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output, Stdio};

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");

/// The relay with `words`, after `first` was said to the shell that starts it.
fn run(first: &str, words: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{first}; exec \"$@\""), "sh", RELAY])
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
fn too_few_files_are_an_error_and_no_panic() {
    let subcommands: [&[&str]; 5] = [
        &["connect", "--", "cat"],
        &["connect", "wss://127.0.0.1:1/acp"],
        &["serve", "--listen", "ws://127.0.0.1:0", "--", "/no/agent"],
        &["demo"],
        &["status"],
    ];
    for files in [5, 6, 7, 8, 10, 12, 16, 18, 20, 22, 24] {
        for words in subcommands {
            let done = run(&format!("ulimit -n {files}"), words);
            let said = String::from_utf8(done.stderr).unwrap();
            let case = format!("{files} {words:?}: {:?} {said}", done.status);
            // Nobody listens there, and so it goes wrong with enough, too.
            let code = done.status.code().unwrap_or(-1);
            assert!([0, 69, 71].contains(&code), "{case}");
            assert!(!said.contains("panicked"), "{case}");
            assert!(code == 0 || said.contains("acp-relay: "), "{case}");
            let told = said.contains("may have") && said.contains("ulimit -n");
            assert!(files > 16 || (code == 71 && told), "{case}");
        }
    }
}
