//! Recordings without a folder: where they are, and the names by which a command line gives them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acp_relay::recording::recordings;

use crate::support::program::{Outcome, command, run_command, run_in};

const AGENT: &str =
    r#"read a; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'; read b; true"#;

/// A conversation of a client of that name, recorded with these options.
async fn record(state: &Path, client: &str, options: &[&str], variable: &str) -> Outcome {
    let mut connect = command(&[&["connect"], options, &["--", "sh", "-c", AGENT]].concat());
    connect.env("ACP_RELAY_STATE_DIR", state);
    connect.env("ACP_RELAY_RECORD", variable);
    let info = serde_json::json!({"name": client, "version": "1"});
    let params = serde_json::json!({"protocolVersion": 1, "clientInfo": info});
    let first =
        serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let outcome = run_command(connect, &format!("{first}\n")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome
}

/// The names of the recordings in a folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let found = recordings(folder).unwrap();
    found.into_iter().map(|recording| recording.name).collect()
}

async fn inspect(state: &Path, args: &[&str], code: i32) -> String {
    let outcome = run_in(state, &[&["inspect"], args].concat()).await;
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    outcome.stdout + &outcome.stderr
}

#[tokio::test]
async fn record_without_a_folder_is_private_and_announced() {
    let temporary = tempfile::tempdir().unwrap();
    let state = temporary.path().join("state");
    let home = state.join("recordings");
    let outcome = record(&state, "Zed", &["--record"], "").await;
    let announced = format!("acp-relay: recording into {}\n", home.display());
    assert_eq!(outcome.stderr, announced);
    record(&state, "Zed", &[], "true").await;
    record(&state, "Zed", &["--record=true"], "/nowhere").await;
    assert_eq!(names(&home).len(), 3);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&home)), (0o700, 0o700));
    for name in names(&home) {
        let file = home.join(format!("{name}.000.acpr"));
        assert_eq!(mode(&file), 0o600);
    }
}

#[tokio::test]
async fn a_file_is_named_by_the_agent_and_the_client() {
    for (client, options, middle) in [
        ("Zed", &["--record"][..], "Z-sh-zed-"),
        ("", &["--record"], "Z-sh-"),
        ("../../../A\u{0}\n日本 B", &["--record"], "Z-sh-a-b-"),
        (
            "a name that is too long for that",
            &["--record"],
            "Z-sh-a-name-that-is-too-long-",
        ),
        (
            "sk-abcdefgh0123456789abcdefgh",
            &["--record"],
            "Z-sh-redacted-",
        ),
        // No message is forwarded before the file exists.
        ("Zed", &["--record", "--record-strict"], "Z-sh-"),
        // The bodies are not kept, nor what is in them.
        ("Zed", &["--record", "--record-redact", "meta"], "Z-sh-"),
        (
            "Zed",
            &["--record", "--record-redact", "structure"],
            "Z-sh-",
        ),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        record(temporary.path(), client, options, "").await;
        let names = names(&temporary.path().join("recordings"));
        let [name] = &names[..] else {
            panic!("{names:?}")
        };
        let (date, id) = (&name[..15], &name[name.len() - 8..]);
        assert!(
            date.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'T'),
            "{name}"
        );
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        let between = &name[15..name.len() - 8];
        match between.strip_prefix("Z-sh-redacted-") {
            Some(hash) if middle.ends_with("redacted-") => assert!(!hash.contains("abcdefgh")),
            _ => assert_eq!(between, middle),
        }
    }
}

#[tokio::test]
async fn an_agent_is_named_by_its_program_and_not_by_what_runs_it() {
    let temporary = tempfile::tempdir().unwrap();
    let runner = |name: &str| {
        let path = temporary.path().join(name);
        fs::write(&path, "#!/bin/sh\nexec cat\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (program, args, middle) in [
        ("goose", &["acp"][..], "Z-goose-"),
        ("npx", &["-y", "@google/gemini-cli@0.17"], "Z-gemini-cli-"),
        ("node", &["dist/agent.js"], "Z-agent-"),
        ("python3", &["-m", "my_agent"], "Z-my-agent-"),
        ("node", &["--version"], "Z-node-"),
        // The values of variables may be secret.
        ("env", &["KEY=secret", "goose", "acp"], "Z-goose-"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let program = runner(program);
        let command = [&["connect", "--record", "--", &program][..], args].concat();
        run_in(state.path(), &command).await;
        let names = names(&state.path().join("recordings"));
        let [name] = &names[..] else {
            panic!("{names:?}")
        };
        assert_eq!(&name[15..name.len() - 8], middle);
    }
}

#[tokio::test]
async fn recordings_are_named_by_their_order_their_file_and_their_id() {
    let temporary = tempfile::tempdir().unwrap();
    let state = temporary.path();
    let home = state.join("recordings");
    let none = inspect(state, &["show"], 66).await;
    assert!(none.contains("there is no recording in"), "{none}");
    let none = inspect(state, &[], 0).await;
    assert!(none.contains("nothing was recorded into"), "{none}");
    for client in ["first", "second", "third"] {
        record(state, client, &["--record"], "").await;
    }
    let of = |client: &str| {
        let mut known = names(&home).into_iter();
        known.find(|name| name.contains(client)).unwrap()
    };
    let verified = |name: String| format!("{name}: ");
    for (word, client) in [("@last", "third"), ("@-1", "third"), ("@-3", "first")] {
        let found = inspect(state, &["verify", word], 0).await;
        assert!(found.starts_with(&verified(of(client))), "{word}: {found}");
    }
    let whole = of("second");
    let id = whole.rsplit('-').next().unwrap();
    let long_id = recordings(&home).unwrap().iter().find_map(|one| {
        let id = one.header()?.id;
        (one.name == whole).then_some(id)
    });
    let file = format!("{whole}.000.acpr");
    for word in [&whole, &file, id, &id[..6], &long_id.unwrap()] {
        let found = inspect(state, &["verify", word], 0).await;
        assert!(
            found.starts_with(&verified(whole.clone())),
            "{word}: {found}"
        );
    }
    // Several, without a word, and none.
    let found = inspect(state, &["verify", "@-2", "@last", "@-2"], 0).await;
    assert_eq!(found.lines().count(), 2, "{found}");
    let counted = inspect(state, &["stats", "@-2", "@last"], 0).await;
    assert!(
        counted.contains(&whole) && counted.contains(&of("third")),
        "{counted}"
    );
    for args in [
        &["show"][..],
        &["stats"],
        &["lint"],
        &["verify"],
        &["export", "--to", "ndjson"],
    ] {
        assert!(!inspect(state, args, 0).await.is_empty());
    }
    let listed = inspect(state, &["ls"], 0).await;
    assert_eq!(listed, inspect(state, &[], 0).await);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    inspect(state, &["mark", "@last", "here"], 0).await;
    inspect(state, &["diff", "@last", "@-1"], 0).await;
    let pruned = inspect(state, &["prune", "--max-age", "1d"], 0).await;
    assert!(pruned.starts_with("0 recordings"), "{pruned}");
    let missing = inspect(state, &["show", "@-4"], 66).await;
    assert!(missing.contains("has 3 recordings"), "{missing}");
    let ambiguous = inspect(state, &["show", "2"], 66).await;
    let listed = ["first", "second", "third"]
        .iter()
        .all(|name| ambiguous.contains(&of(name)));
    assert!(
        ambiguous.contains("the beginning of 3 recordings") && listed,
        "{ambiguous}"
    );
    let unknown = inspect(state, &["show", "deadbeef"], 66).await;
    assert!(
        unknown.contains("deadbeef: there is no such file"),
        "{unknown}"
    );
    // At most ten candidates are listed.
    let text = fs::read(home.join(&file)).unwrap();
    for copy in 0..12 {
        fs::write(home.join(format!("copy-{copy}.acpr")), &text).unwrap();
    }
    let many = inspect(state, &["show", "copy"], 66).await;
    assert!(
        many.contains("12 recordings") && many.contains(", …"),
        "{many}"
    );
    assert_eq!(many.matches("copy-").count(), 10, "{many}");
    let replayed = run_in(
        state,
        &["replay", "client", "@last", "--agent", "replay:@last"],
    )
    .await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    // A file of this name is meant first; `/` makes a path of any name.
    let mut show = command(&["inspect", "verify", "2"]);
    fs::write(temporary.path().join("2"), &text).unwrap();
    show.env("ACP_RELAY_STATE_DIR", state)
        .current_dir(temporary.path());
    assert_eq!(run_command(show, "").await.code, Some(0));
}
