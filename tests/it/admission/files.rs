//! Tokens as files: made once, kept as digests, and refused when other users could read them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::link::run as block_on;
use crate::support::program::{Outcome, Program, command, run_in};

async fn token(state: &Path, args: &[&str]) -> Outcome {
    run_in(state, &[&["token"], args].concat()).await
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_users_token_is_made_once_and_private() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("deep/state");
        let first = token(&state, &["show"]).await;
        assert_eq!(first.code, Some(0), "{}", first.stderr);
        let text = first.stdout.trim_end();
        assert!(text.starts_with("acpr_") && text.len() == 61, "{text}");
        assert_eq!(token(&state, &["show"]).await.stdout, first.stdout);
        assert_eq!(mode(&state), 0o700);
        assert_eq!(mode(&state.join("token")), 0o600);
        assert_eq!(
            fs::read_to_string(state.join("token")).unwrap(),
            first.stdout
        );
        // A listener creates it as well, and prints it nowhere.
        fs::remove_file(state.join("token")).unwrap();
        let args = ["--log", "trace", "serve", "--", "cat"];
        let mut relay = Program::start_in(&state, &args);
        let mut reported = String::new();
        while !reported.contains("listening on") {
            reported += &relay.complaint().await.unwrap();
        }
        let made = fs::read_to_string(state.join("token")).unwrap();
        assert_ne!(made, first.stdout);
        assert!(!reported.contains(made.trim_end()), "{reported}");
    });
}

#[test]
fn tokens_of_others_are_stored_as_digests() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        let none = token(state, &["list"]).await;
        assert_eq!((none.code, &*none.stdout), (Some(0), ""));
        let args = [
            "new",
            "alice",
            "--expires",
            "30d",
            "--agents",
            "goose,gemini",
        ];
        let alice = token(state, &args).await;
        assert_eq!(alice.code, Some(0), "{}", alice.stderr);
        let secret = alice
            .stdout
            .trim_end()
            .rsplit_once('_')
            .unwrap()
            .1
            .to_owned();
        assert_eq!(
            token(state, &["new", "root", "--admin"]).await.code,
            Some(0)
        );
        let kept = fs::read_to_string(state.join("tokens")).unwrap();
        assert!(kept.contains("alice") && !kept.contains(&secret), "{kept}");
        assert_eq!(mode(&state.join("tokens")), 0o600);
        let again = token(state, &["new", "alice"]).await;
        assert_eq!(again.code, Some(64));
        assert!(again.stderr.contains("already") && again.stdout.is_empty());
        let listed = token(state, &["list"]).await.stdout;
        assert!(listed.contains("alice  goose,gemini, until "), "{listed}");
        assert!(
            listed.contains("root  all agents, admin, for good"),
            "{listed}"
        );
        assert!(!listed.contains(&secret));
        let listed = token(state, &["list", "--json"]).await.stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["agents"], json!(["goose", "gemini"]));
        assert_eq!(listed[0]["expired"], json!(false));
        assert_eq!(listed[1]["agents"], Value::Null);
        assert_eq!(listed[1]["admin"], json!(true));
        assert_eq!(token(state, &["revoke", "alice"]).await.code, Some(0));
        let gone = token(state, &["revoke", "alice"]).await;
        assert_eq!(gone.code, Some(64));
        assert!(
            gone.stderr.contains("no token called \"alice\""),
            "{}",
            gone.stderr
        );
        for bad in [
            &["new", "../x"][..],
            &["new", "a b"],
            &["new", "x", "--expires", "soon"],
            &["new", "x", "--expires", "30"],
            &["new", "x", "--expires", "0d"],
            &["new", "x", "--expires", "59s"],
            &["new", "x", "--expires", "400000d"],
            &["new", "x", "--expires", "99999999999999999999d"],
            &["new", "x", "--agents", "a,,b"],
        ] {
            assert_eq!(token(state, bad).await.code, Some(64), "{bad:?}");
        }
    });
}

#[test]
fn a_token_may_be_written_to_a_private_file() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let file = dir.path().join("alice.token");
        let out = ["new", "alice", "--out", file.to_str().unwrap()];
        let made = token(&state, &out).await;
        assert_eq!((made.code, &*made.stdout), (Some(0), ""), "{}", made.stderr);
        assert_eq!(mode(&file), 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("acpr_") && text.ends_with('\n'), "{text}");
        // An existing file is not overwritten, and then no token is made.
        let bob = ["new", "bob", "--out", file.to_str().unwrap()];
        assert_ne!(token(&state, &bob).await.code, Some(0));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let list = token(&state, &["list"]).await.stdout;
        assert!(list.contains("alice") && !list.contains("bob"), "{list}");
        // A token that is not made leaves no file.
        let again = dir.path().join("again.token");
        let twice = ["new", "alice", "--out", again.to_str().unwrap()];
        assert_ne!(token(&state, &twice).await.code, Some(0));
        assert!(!again.exists());
        // A token that could not be printed does not take a name.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut carl = command(&["token", "new", "carl"]);
        carl.env("ACP_RELAY_STATE_DIR", &state).stdout(full);
        assert_eq!(carl.status().await.unwrap().code(), Some(71));
        let list = token(&state, &["list"]).await.stdout;
        assert!(!list.contains("carl"), "{list}");
    });
}

#[test]
fn a_token_file_made_readable_for_others_is_reported() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(token(dir.path(), &["new", "alice"]).await.code, Some(0));
        let args = ["serve", "--log", "info", "--", "cat"];
        let mut relay = Program::start_in(dir.path(), &args);
        relay.address().await;
        // The first reload shows that it has read the file once; earlier changes are not detected.
        let mut names = 0..;
        loop {
            let name = format!("bob-{}", names.next().unwrap());
            assert_eq!(token(dir.path(), &["new", &name]).await.code, Some(0));
            let seen = timeout(Duration::from_secs(3), relay.complaint()).await;
            if seen.is_ok_and(|line| line.unwrap().contains("were reloaded")) {
                break;
            }
        }
        set_mode(&dir.path().join("tokens"), 0o644);
        let reported = relay.complaint().await.unwrap();
        assert!(
            reported.contains("the previous ones stay valid"),
            "{reported}"
        );
        assert!(reported.contains("mode 0644"), "{reported}");
    });
}

/// Makes a state directory invalid.
type Spoil = fn(&Path);

#[test]
fn files_that_others_could_read_are_refused_and_not_changed() {
    let cases: [(Spoil, &str); 8] = [
        (|state| set_mode(&state.join("token"), 0o644), "mode 0644"),
        (
            |state| set_mode(&state.join("token"), 0o620),
            "chmod go-rwx",
        ),
        (|state| set_mode(&state.join("tokens"), 0o640), "mode 0640"),
        (
            |state| {
                fs::rename(state.join("token"), state.join("other")).unwrap();
                symlink("other", state.join("token")).unwrap();
            },
            "symbolic link",
        ),
        (
            |state| {
                fs::remove_file(state.join("token")).unwrap();
                fs::create_dir(state.join("token")).unwrap();
            },
            "is not a regular file",
        ),
        (
            |state| fs::write(state.join("token"), "short\n").unwrap(),
            "32 characters",
        ),
        (
            |state| fs::write(state.join("tokens"), "x y z\n").unwrap(),
            "line 1",
        ),
        (
            |state| {
                fs::remove_file(state.join("token")).unwrap();
                set_mode(state, 0o770);
            },
            "mode 0770",
        ),
    ];
    block_on(async {
        for (spoil, reports) in cases {
            let dir = tempfile::tempdir().unwrap();
            let state = dir.path().join("state");
            assert_eq!(token(&state, &["new", "alice"]).await.code, Some(0));
            assert_eq!(token(&state, &["show"]).await.code, Some(0));
            spoil(&state);
            let served = run_in(&state, &["serve", "--", "cat"]).await;
            assert_eq!(served.code, Some(77), "{reports}: {}", served.stderr);
            assert!(
                served.stderr.contains(reports),
                "{reports}: {}",
                served.stderr
            );
        }
        if geteuid().is_root() {
            let dir = tempfile::tempdir().unwrap();
            let state = dir.path().join("state");
            token(&state, &["show"]).await;
            chown(state.join("token"), Some(65_534), None).unwrap();
            let served = run_in(&state, &["serve", "--", "cat"]).await;
            assert_eq!(served.code, Some(77), "{}", served.stderr);
            assert!(served.stderr.contains("another user"), "{}", served.stderr);
        }
    });
}

#[test]
fn a_token_may_come_from_a_file_of_its_own() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let file = dir.path().join("secret");
        let path = file.to_str().unwrap();
        let args = ["serve", "--token-file", path, "--", "cat"];
        let missing = run_in(&state, &args).await;
        assert_eq!(missing.code, Some(77), "{}", missing.stderr);
        fs::write(&file, "correct-horse-battery-staple-0123456789\n").unwrap();
        set_mode(&file, 0o644);
        assert_eq!(run_in(&state, &args).await.code, Some(77));
        set_mode(&file, 0o600);
        let mut relay = Program::start_in(&state, &args);
        relay.address().await;
        assert!(!state.join("token").exists());
    });
}

#[test]
fn a_relay_without_a_state_directory_serves_its_own_user() {
    block_on(async {
        let nowhere = Path::new("/proc/nowhere");
        let mut relay = Program::start_in(nowhere, &["serve", "--", "cat"]);
        let reported = relay.complaint().await.unwrap();
        assert!(reported.contains("no token will be accepted"), "{reported}");
        relay.address().await;
        let strict = run_in(nowhere, &["serve", "--require-token", "--", "cat"]).await;
        assert_eq!(strict.code, Some(73), "{}", strict.stderr);
    });
}

#[test]
fn secrets_for_an_agent_are_read_only_from_private_files() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("secret"), dir.path().join("link"));
        symlink(&path, &link).unwrap();
        let long = "x".repeat(20_000);
        for (option, text, mode, fault) in [
            ("--bearer-file", "secret", 0o600, "nothing listens"),
            ("--bearer-file", "secret", 0o400, "nothing listens"),
            ("--bearer-file", "secret", 0o644, "chmod go-rwx"),
            ("--bearer-file", "secret", 0o640, "chmod go-rwx"),
            ("--bearer-file", &*long, 0o600, "longer than 16 KiB"),
            (
                "--header-file",
                "X-Api-Key: k\nx-team: a\n",
                0o600,
                "nothing listens",
            ),
            (
                "--header-file",
                "x-team: a\nX-Api-Key k\n",
                0o600,
                "--header-file: ",
            ),
        ] {
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            set_mode(&path, mode);
            for file in [&path, &link] {
                let file = file.to_str().unwrap();
                let args = ["connect", option, file, "http://127.0.0.1:1"];
                let outcome = run_in(dir.path(), &args).await;
                let explained = outcome.stderr.contains(fault) && !outcome.stderr.contains("Key k");
                assert!(explained, "{option} {mode:o} {outcome:?}");
            }
        }
    });
}
