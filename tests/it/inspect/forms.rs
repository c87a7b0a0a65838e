//! Export and import: an exported conversation is imported as the same one.

use std::fs;

use serde_json::Value;

use super::{CAPTURES, answer, capture, import};

#[test]
fn every_capture_becomes_a_recording_that_is_intact() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let from = capture(name);
        let file = folder.path().join(name.replace('.', "-") + ".acpr");
        let file = file.to_str().unwrap();
        answer(
            &["import", "--redact", "full", from.to_str().unwrap(), file],
            0,
        );
        answer(&["verify", file], 0);
        let lines = fs::read_to_string(capture(name)).unwrap();
        let messages = lines
            .lines()
            .filter(|line| !line.contains(r#""dir": "note""#))
            .count();
        let shown = answer(&["export", file, "--to", "ndjson"], 0);
        assert_eq!(shown.lines().count(), messages, "{name}");
        // The message has its original bytes.
        for (line, own) in lines.lines().zip(shown.lines()) {
            assert!(line.contains(own), "{name}: {own}");
        }
    }
}

#[test]
fn an_export_is_imported_as_the_same_conversation() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let file = import(folder.path(), &capture(name), &name.replace('.', "-"));
        for form in ["jsons", "devtools", "capture"] {
            let out = folder.path().join(format!("{name}.{form}"));
            let out = out.to_str().unwrap();
            answer(&["export", &file, "--to", form, "--out", out], 0);
            let back = import(folder.path(), out.as_ref(), &format!("{name}-{form}-x"));
            answer(&["verify", &back], 0);
            answer(&["diff", &file, &back], 0);
        }
    }
}

#[test]
fn values_outside_a_json_tree_survive_export_and_import() {
    let folder = tempfile::tempdir().unwrap();
    let deep = "[".repeat(200) + &"]".repeat(200);
    let reports = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"n":1e999,"n":2}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1e999,"method":"_x"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"_n","params":{"n":123456789012345678901234567890}}"#
            .to_owned(),
        format!(r#"{{"jsonrpc":"2.0","method":"_deep","params":{deep}}}"#),
        r#"{"jsonrpc":"2.0","id":"\ud83d","method":"_half"}"#.to_owned(),
    ];
    let lines = reports.map(|message| format!("{{\"dir\":\"c2a\",\"msg\":{message}}}\n"));
    let messages = folder.path().join("messages");
    fs::write(&messages, lines.concat()).unwrap();
    let file = import(folder.path(), &messages, "x");
    for (form, kept) in [("jsons", 4), ("devtools", 5), ("capture", 5)] {
        let out = folder.path().join(form);
        let out = out.to_str().unwrap();
        answer(&["export", &file, "--to", form, "--out", out], 0);
        let back = import(folder.path(), out.as_ref(), &format!("{form}-x"));
        let plain = answer(&["export", &back, "--to", "ndjson"], 0);
        assert_eq!(plain.lines().count(), kept, "{form}: {plain}");
        for spelled in ["1e999", "123456789012345678901234567890", &deep] {
            assert!(plain.contains(spelled), "{form}: {plain}");
        }
    }
}

/// What acp-devtools' own parser requires, `parseExport` in `packages/core/src/storage/export.ts`
/// of its repository, and the result of its proxy for a line that is not JSON.
#[test]
fn an_export_is_what_acp_devtools_reads() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let file = import(folder.path(), &capture(name), &name.replace('.', "-"));
        let text = answer(&["export", &file, "--to", "devtools"], 0);
        let export: Value = serde_json::from_str(&text).unwrap();
        let session = &export["session"];
        assert_eq!(
            (&export["version"], &session["name"]),
            (&1.into(), &Value::Null)
        );
        for number in [
            &export["exportedAt"],
            &session["id"],
            &session["startedAt"],
            &session["endedAt"],
        ] {
            assert!(number.is_number(), "{number}");
        }
        let tool = &export["tool"];
        for text in [
            &tool["name"],
            &tool["version"],
            &session["agentCommand"],
            &session["clientName"],
        ] {
            assert!(text.is_string(), "{text}");
        }
        for (at, message) in export["messages"].as_array().unwrap().iter().enumerate() {
            let payload: Value =
                serde_json::from_str(message["raw"].as_str().unwrap()).unwrap_or_default();
            let kind = match (payload.get("method"), payload.get("id")) {
                (Some(_), Some(_)) => "request",
                (Some(_), None) => "notification",
                _ if payload.get("error").is_some() => "error",
                _ if payload.get("result").is_some() => "response",
                _ => "unknown",
            };
            assert!(message["timestamp"].is_number(), "{message}");
            assert!(
                message["direction"].as_str().unwrap().contains("-to-"),
                "{message}"
            );
            let own = [&message["seq"], &message["payload"], &message["kind"]];
            assert_eq!(own, [&(at + 1).into(), &payload, &kind.into()], "{message}");
            assert_eq!(message.get("method"), payload.get("method"), "{message}");
            assert_eq!(message.get("rpcId"), payload.get("id"), "{message}");
            assert_eq!(message.get("parseError").is_some(), payload.is_null());
        }
    }
}

#[test]
fn check_and_translate_read_packed_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[4]), "x");
    let packed = folder.path().join("y.acpr.zst");
    let (plain, to) = (
        fs::File::open(&file).unwrap(),
        fs::File::create(&packed).unwrap(),
    );
    recording::pack(plain, to, 3).unwrap();
    let packed = packed.to_str().unwrap();
    let output_of = |args: &[&str], path: &str| {
        let mut relay = std::process::Command::new(env!("CARGO_BIN_EXE_acp-relay"));
        let output = relay.args(args).arg(path).output().unwrap();
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{output:?}"
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .replace(path, "FILE")
    };
    for args in [
        &["check", "--json"][..],
        &["translate", "--from", "canonical", "--to", "canonical"],
    ] {
        let plain = output_of(args, &file);
        assert!(plain.lines().count() > 1, "{args:?}: {plain}");
        assert!(plain == output_of(args, packed), "{args:?}");
    }
    // A damaged file is refused with a reason, and not read as text.
    let other = folder.path().join("other.acpr.zst");
    fs::write(&other, b"\x28\xb5\x2f\xfd not a frame").unwrap();
    let relay = std::process::Command::new(env!("CARGO_BIN_EXE_acp-relay"))
        .arg("check")
        .arg(&other)
        .output()
        .unwrap();
    assert_eq!(relay.status.code(), Some(66));
    assert!(String::from_utf8_lossy(&relay.stderr).contains("torn"));
}

#[test]
fn an_export_begins_as_its_format_does_without_a_header_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[3]), "x");
    let lines = fs::read_to_string(&file).unwrap();
    fs::write(&file, lines.replacen("\"acpr\"", "\"damaged\"", 1)).unwrap();
    for (format, begin) in [("mermaid", "sequenceDiagram\n"), ("md", "# Conversation")] {
        let text = answer(&["export", &file, "--to", format], 0);
        assert!(text.starts_with(begin), "{format}");
    }
}
