//! `dialect new`: tables that are drafted from recordings.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{answer, relay};
use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::program::{Program, answered, ask};

/// An agent without a table: it replies, thinks and plans in words of its own.
fn acme() -> Vec<String> {
    let update = |update: Value| {
        let params = json!({"sessionId": "s", "update": update});
        json!({"send": {"jsonrpc": "2.0", "method": "session/update", "params": params}})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let steps = json!([
        {"text": "Look", "importance": "high", "state": "done"},
        {"text": "It's \"odd\"", "importance": "normal", "state": "doing"},
        {"text": "Rest", "importance": "low", "state": "zzz"},
    ]);
    let info = json!({"protocolVersion": 1, "agentInfo": {"name": "Acme Coder", "version": "1.2"}});
    scripted(&[
        ("initialize", json!([{"result": info}])),
        (
            "session/prompt",
            json!([
                update(json!({"sessionUpdate": "thinking", "content": text("Hm")})),
                update(json!({"sessionUpdate": "steps", "steps": steps})),
                update(json!({"sessionUpdate": "telemetry", "cpu": 3})),
                update(json!({"sessionUpdate": "reply", "content": text("Yes")})),
                {"result": {"stopReason": "finished"}},
            ]),
        ),
    ])
}

/// One turn of an editor with the agent behind a relay: what the editor receives.
fn turn(args: &[&str]) -> Vec<Value> {
    let mut received = Vec::new();
    block_on(async {
        let args = args.iter().map(|arg| (*arg).to_owned());
        let args: Vec<String> = args.chain(["--".to_owned()]).chain(acme()).collect();
        let mut editor = Program::start(&args);
        let able = json!({"protocolVersion": 1, "clientCapabilities": {}});
        answered(&mut editor, 1, "initialize", able).await;
        let session = json!({"cwd": "/", "mcpServers": []});
        answered(&mut editor, 2, "session/new", session).await;
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
        ask(&mut editor, 3, "session/prompt", prompt).await;
        while received.last().is_none_or(|last: &Value| last["id"] != 3) {
            received.push(editor.json().await);
        }
        editor.end();
        editor.exit().await;
    });
    received
}

fn only_file(folder: &Path) -> String {
    let mut files = fs::read_dir(folder).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_table_for_an_unknown_agent_takes_two_commands_and_three_edits() {
    let folder = tempfile::tempdir().unwrap();
    let tapes = folder.path().join("tapes");
    let table = folder.path().join("acme.toml");
    let table = table.to_str().unwrap();
    turn(&["connect", "--record", tapes.to_str().unwrap()]);
    let recording = only_file(&tapes);
    let found = relay(&["check", &recording], "");
    let hint = "acp-relay dialect new --from ";
    assert!(found.stderr.contains(hint), "{found:?}");
    let found = relay(&["inspect", "lint", &recording], "");
    assert!(found.stderr.contains(hint), "{found:?}");

    let drafted = relay(
        &["dialect", "new", "--from", &recording, "--out", table],
        "",
    );
    assert_eq!(drafted.code, Some(0), "{drafted:?}");
    let mut text = fs::read_to_string(table).unwrap();
    for (draft, edited) in [
        ("# [update.telemetry]", "[update.telemetry]"),
        ("# drop = \"…\"", "drop = \"It says nothing new.\""),
        (
            "doing = \"in_progress\"",
            "doing = \"in_progress\", zzz = \"pending\"",
        ),
    ] {
        assert!(text.contains(draft), "{draft}\n{text}");
        text = text.replace(draft, edited);
    }
    fs::write(table, text).unwrap();
    let checked = answer(&["dialect", "check", "--json", table], 0);
    assert_eq!(checked["files"][0]["dialect"], "acme-coder");
    assert_eq!(checked["files"][0]["examples"], 4);
    assert_eq!(checked["faults"], 0);

    let received = turn(&["connect", "--table", table]);
    let updates = received.iter().map(|message| &message["params"]["update"]);
    let kinds: Vec<&Value> = updates.map(|update| &update["sessionUpdate"]).collect();
    let expected = ["agent_thought_chunk", "plan", "agent_message_chunk"];
    assert_eq!(kinds[..3], expected.map(|kind| json!(kind)).each_ref()[..]);
    assert_eq!(
        received[1]["params"]["update"]["entries"],
        json!([
            {"content": "Look", "priority": "high", "status": "completed"},
            {"content": "It's \"odd\"", "priority": "medium", "status": "in_progress"},
            {"content": "Rest", "priority": "low", "status": "pending"},
        ])
    );
    assert_eq!(received[3]["result"]["stopReason"], "end_turn");
    assert_eq!(received.len(), 4);
    let messages: String = received
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let checked = relay(&["check", "--from", "agent", "-"], &messages);
    assert_eq!(checked.code, Some(0), "{checked:?}");

    let again = ["dialect", "new", "--from", &recording, "--out", table];
    assert_eq!(relay(&again, "").code, Some(73), "it would be replaced");
    assert_eq!(
        relay(&[&again[..], &["--force"]].concat(), "").code,
        Some(0)
    );
}

/// Whatever is in a recording, the table has no faults, and its comments stay comments.
#[test]
fn hostile_recordings_give_sound_tables() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let table = folder.path().join("t.toml");
    let (tape, table) = (tape.to_str().unwrap(), table.to_str().unwrap());
    let deep = |levels: usize| {
        (0..levels).fold(json!({"text": "x"}), |inner, _| json!({"steps": [inner]}))
    };
    let many: Value = (0..3000)
        .map(|n| json!({format!("k{n}"): {"state": "done"}}))
        .collect();
    let nasty = "a\u{1b}[2J\n\"'''\\\u{7f}\u{202e}]\r\u{85}=…";
    let kinds = [
        nasty.to_owned(),
        "'''".to_owned(),
        "a.b".to_owned(),
        "~1/~0".to_owned(),
        "x".repeat(5000),
        "…\"]\n[update.reply]\nis = \"plan".to_owned(),
        "reply".to_owned(),
        "plan".to_owned(),
        "update-reply".to_owned(),
    ];
    let bodies = [
        json!({"content": {"type": "text", "text": nasty}}),
        json!({"steps": [{"text": nasty, "state": nasty, nasty: 1, "": 2, "a.b": 3}]}),
        json!({"steps": many}),
        json!({"steps": [[["text"]]], "content": null}),
        json!({"entries": [{"content": "x", "priority": nasty, "status": "done"}]}),
        deep(60),
    ];
    let asked = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    let mut text = format!("{}\n", json!({"dir": "c2a", "msg": asked}));
    let mut line =
        |message: &Value| text += &format!("{}\n", json!({"dir": "a2c", "msg": message}));
    line(
        &json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": nasty, "version": ""}}}),
    );
    for kind in &kinds {
        for body in &bodies {
            let mut update = body.clone();
            update["sessionUpdate"] = kind.as_str().into();
            let params = json!({"sessionId": nasty, "update": update});
            line(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
        }
        line(
            &json!({"jsonrpc": "2.0", "id": kind, "method": kind, "params": {"path": nasty, kind.as_str(): 1}}),
        );
        line(
            &json!({"jsonrpc": "2.0", "method": "update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind}}}),
        );
    }
    text +=
        "{\"dir\":\"a2c\",\"msg\":{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":[";
    text += &"[".repeat(100_000);
    text += "\n\u{0}\u{1}not JSON\n";
    fs::write(tape, &text).unwrap();
    let new = ["dialect", "new", "hostile", "--from", tape, "--out", table];
    let drafted = relay(&new, "");
    assert_eq!(drafted.code, Some(0), "{drafted:?}");
    let written = fs::read_to_string(table).unwrap();
    let is_safe = |letter: char| letter == '\n' || !letter.is_control();
    assert!(written.chars().all(is_safe), "{written:?}");
    let checked = answer(&["dialect", "check", "--json", table], 0);
    assert!(checked["files"][0]["rules"].as_u64() > Some(0), "{written}");
    let shown = relay(&["dialect", "list", "--json", "--table", table], "");
    let all: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(all.as_array().unwrap().last().unwrap()["title"], nasty);
}

#[test]
fn what_cannot_be_drafted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, odd] = ["_x", "session/update"].map(|method| {
        let update = json!({"sessionUpdate": "reply", "content": {"type": "text", "text": "Yes"}});
        let params = json!({"sessionId": "s", "update": update});
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let file = folder.path().join(method.replace('/', "-"));
        fs::write(&file, format!("{message}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let bare = folder.path().join("bare.acpr");
    let bare = bare.to_str().unwrap();
    let imported = relay(&["inspect", "import", "--redact", "meta", &odd, bare], "");
    assert_eq!(imported.code, Some(0), "{imported:?}");
    for (args, code, why) in [
        (&["--from", &plain][..], 65, "no deviation"),
        (&["--from", bare], 66, "without --record-redact meta"),
        (&["--from", "/nowhere"], 66, "no such file"),
        (&["--from", &odd], 64, "add one: acp-relay dialect new NAME"),
        (&["x", "--from", &odd, "--out", "x.json"], 64, "with .toml"),
        (&["elephant", "--from", &odd], 64, "choose another name"),
        (&["../x", "--from", &odd], 64, "small letters"),
        (
            &["x", "--from", &odd, "--out", "/nowhere/x.toml"],
            73,
            "no such file",
        ),
        (&["x"], 64, "--from"),
    ] {
        let outcome = relay(&[&["dialect", "new"][..], args].concat(), "");
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{outcome:?}");
    }
}

#[test]
fn the_next_command_is_one_for_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let update = json!({"sessionUpdate": "reply", "content": {"type": "text", "text": "Yes"}});
    let params = json!({"sessionId": "s", "update": update});
    let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    let tape = folder.path().join("tape");
    fs::write(&tape, format!("{message}\n")).unwrap();
    let table = folder.path().join("my table.toml");
    let [tape, table] = [&tape, &table].map(|path| path.to_str().unwrap());
    let drafted = relay(&["dialect", "new", "x", "--from", tape, "--out", table], "");
    let next = format!("acp-relay dialect check '{table}'\n");
    assert!(drafted.stdout.contains(&next), "{drafted:?}");
    assert!(fs::read_to_string(table).unwrap().contains(&next));
}
