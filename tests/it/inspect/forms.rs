//! Export and import: an exported conversation is imported as the same one.

use std::fs;

use serde_json::Value;

use super::{CAPTURES, answer, capture, import, inspect, recording};

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
        for form in ["jsons", "har", "devtools", "capture"] {
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
    for (form, kept) in [("jsons", 4), ("devtools", 5), ("har", 5), ("capture", 5)] {
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

#[test]
fn a_filter_selects_the_exported_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[4]), "x");
    let asked = answer(
        &["export", &file, "kind:request and dir:<", "--to", "ndjson"],
        0,
    );
    assert!(asked.lines().count() > 1);
    for line in asked.lines() {
        assert!(line.contains("session/request_permission"), "{line}");
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
fn exported_packets_are_consecutive() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[3]), "x");
    let bytes = inspect(&["export", &file, "--to", "pcapng"]).stdout;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut kinds) = (0, Vec::new());
    let mut streams = [Vec::new(), Vec::new()];
    while at < bytes.len() {
        let length = word(at + 4);
        assert_eq!((length % 4, word(at + length - 4)), (0, length));
        kinds.push(word(at));
        if word(at) == 6 {
            let packet = &bytes[at + 28..at + 28 + word(at + 20)];
            assert_eq!(
                usize::from(u16::from_be_bytes([packet[2], packet[3]])),
                packet.len()
            );
            let side = usize::from(packet[15] == 2);
            let number = u32::from_be_bytes(packet[24..28].try_into().unwrap()) as usize;
            assert_eq!(number, streams[side].len());
            streams[side].extend_from_slice(&packet[40..]);
        }
        at += length;
    }
    assert_eq!(kinds[..3], [0x0a0d_0d0a, 1, 6]);
    let sent = String::from_utf8_lossy(&streams[1]);
    assert!(sent.starts_with("HTTP/1.1 101") && sent.contains("session/update"));
}

#[test]
fn text_of_peers_is_escaped_in_exports() {
    let folder = tempfile::tempdir().unwrap();
    let text = r##"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"<script>x</script>\n```\n<b>\n# no"}]}}}
{"dir":"a2c","ts":0.1,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"a;b\u001b[31m#<i>\nA->>C: forged"}}}}
"##;
    let file = recording(folder.path(), "x", text);
    let page = answer(&["export", &file, "--to", "md"], 0);
    assert!(
        page.contains("&lt;script>") && !page.contains("<script>"),
        "{page}"
    );
    let drawn = answer(&["export", &file, "--to", "mermaid"], 0);
    assert_eq!(drawn.lines().count(), 5, "{drawn}");
    let arrow = drawn.lines().last().unwrap();
    assert!(
        !arrow.contains('\u{1b}') && arrow.contains("a#59;b"),
        "{arrow}"
    );
    let shown = answer(&["show", &file], 0);
    assert!(
        !shown.contains('\u{1b}') && shown.contains("\\u{1b}[31m"),
        "{shown}"
    );
}

/// The internal placeholder for half of an emoji is never printed.
#[test]
fn half_of_an_emoji_is_printed_as_its_escape() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"c2a","ts":0,"msg":{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi \ud83d x"}]}}}
{"dir":"a2c","ts":0.1,"msg":{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"say \ud83d end"}}}}}
"#;
    let file = recording(folder.path(), "x", text);
    let other = recording(folder.path(), "y", &text.replace("end", "END"));
    for (args, code, reports) in [
        (vec!["show", &file], 0, r"say \ud83d end"),
        (vec!["diff", &file, &other], 1, r"say \ud83d END"),
        (vec!["diff", "--json", &file, &other], 1, r"say \\ud83d END"),
        (vec!["export", &file, "--to", "md"], 0, r"hi \ud83d x"),
        (
            vec!["export", &file, "--to", "mermaid"],
            0,
            "hi #92;ud83d x",
        ),
    ] {
        let reported = answer(&args, code);
        assert!(reported.contains(reports), "{args:?}: {reported}");
        assert!(!reported.contains('\u{10f03d}'), "{args:?}: {reported}");
    }
}

#[test]
fn import_formats_are_distinguished_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}
not json
"#;
    let file = recording(folder.path(), "bare", bare);
    let back = answer(&["export", &file, "--to", "capture"], 0);
    let dirs: Vec<_> = back.lines().map(|line| &line[8..11]).collect();
    assert_eq!(dirs[..2], ["c2a", "a2c"]);
    let proxied = r#"{"type":"request","ts":0.1,"protocol":"acp","from":"Client","to":"Proxy(0)","id":"a","method":"initialize","params":{}}
{"type":"request","ts":0.2,"protocol":"acp","from":"Proxy(0)","to":"Agent","id":"b","method":"initialize","params":{}}
{"type":"request","ts":0.3,"protocol":"mcp","from":"Proxy(0)","to":"Agent","id":"c","method":"tools/list","params":{}}
{"type":"response","ts":0.4,"from":"Agent","to":"Proxy(0)","id":"c","is_error":false,"payload":{}}
{"type":"response","ts":0.5,"from":"Agent","to":"Proxy(0)","id":"b","is_error":false,"payload":{"protocolVersion":1}}
"#;
    let file = recording(folder.path(), "proxied", proxied);
    for (at, count) in [("received", 2), ("client", 1), ("agent", 2)] {
        let reported = answer(&["export", &file, "--to", "ndjson", "--at", at], 0);
        assert_eq!(reported.lines().count(), count, "{at}: {reported}");
    }
    for (text, why) in [
        ("", "nothing in it"),
        (
            "root:x:0:0\n[package]\n\n",
            "no message in it; expected bare messages",
        ),
        ("\u{7f}ELF\u{2}{\"dir\":\"c2a\",", "no message in it"),
        ("{\"name\":\"acp\"}", "no message in it"),
        ("[{\"name\":\"acp\"},7]", "no message in it"),
        (
            "{\"dir\":\"c2a\",\"msg\":{\"id\":1,\"method\":\"x\"}}\n{\"dir\":\"up\",\"msg\":{}}\n",
            "line 2: \"up\" is no direction",
        ),
        (r#"{"log":{"entries":[]}}"#, "_webSocketMessages"),
        (r#"{"version":9,"session":{},"messages":[]}"#, "version 9"),
    ] {
        let from = folder.path().join("bad");
        fs::write(&from, text).unwrap();
        let to = folder.path().join("bad.acpr");
        let output = inspect(&["import", from.to_str().unwrap(), to.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(65));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(why),
            "{text}"
        );
        assert!(!to.exists());
    }
}

#[test]
fn an_export_format_skips_and_reports_what_it_cannot_represent() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"a2c","ts":0,"raw":"booting…"}
{"dir":"a2c","ts":0,"raw":"{\"id\":1,"}
{"dir":"a2c","ts":0,"raw":"[{\"id\":1,\n\"method\":\"x\"}]"}
{"dir":"a2c","ts":0,"msg":{"method":"x"}}
"#;
    let file = recording(folder.path(), "x", text);
    let output = inspect(&["export", &file, "--to", "ndjson"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        lines,
        "[{\"id\":1, \"method\":\"x\"}]\n{\"method\":\"x\"}\n"
    );
    let reported = String::from_utf8(output.stderr).unwrap();
    let expected = "2 messages were left out: this format cannot represent them";
    assert!(reported.contains(expected), "{reported}");
    assert_eq!(
        answer(&["export", &file, "--to", "capture"], 0)
            .lines()
            .count(),
        4
    );
    let bare = folder.path().join("bare.acpr");
    let bare = bare.to_str().unwrap();
    answer(&["scrub", &file, bare, "--redact", "meta"], 0);
    let output = inspect(&["export", bare, "--to", "ndjson"]);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        reported,
        "acp-relay: 4 messages were left out: their bodies were not recorded\n"
    );
    let output = inspect(&["export", bare, "--to", "md", "--json"]);
    let reported: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&reported["left_out"], &reported["bodiless"]),
        (&0.into(), &4.into())
    );
}

#[test]
fn an_array_of_messages_is_imported_and_invalid_lines_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
    ];
    let whole: Value = serde_json::from_str(&format!("[{}]", lines.join(","))).unwrap();
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    for (name, text, count) in [
        ("one", whole.to_string(), 2),
        ("pretty", pretty, 2),
        ("alone", serde_json::to_string_pretty(&whole[0]).unwrap(), 1),
    ] {
        let file = recording(folder.path(), name, &text);
        let back = answer(&["export", &file, "--to", "ndjson"], 0);
        let same = |(line, own): (&str, &Value)| {
            let line: Value = serde_json::from_str(line).unwrap();
            line == *own
        };
        let all = whole.as_array().unwrap();
        assert_eq!(back.lines().count(), count, "{back}");
        assert!(back.lines().zip(all).all(same), "{back}");
    }
    let from = folder.path().join("odd.jsonl");
    fs::write(&from, format!("{}\nhello\n\n{{}}\n", lines.join("\n"))).unwrap();
    let from = from.to_str().unwrap();
    let to = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let reported = answer(&["import", from, &to("odd.acpr")], 0);
    assert!(reported.contains("2 of them are no messages"), "{reported}");
    let reported = answer(&["import", "--json", from, &to("json.acpr")], 0);
    let reported: Value = serde_json::from_str(&reported).unwrap();
    assert_eq!(reported["odd"], 2);
}

#[test]
fn secrets_are_redacted_on_import() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"x","command":"y","args":[],"env":[{"name":"KEY","value":"canary-4711"}]}]}}}"#;
    let file = recording(folder.path(), "x", text);
    let kept = fs::read_to_string(file).unwrap();
    assert!(
        kept.contains("redacted:") && !kept.contains("canary-4711"),
        "{kept}"
    );
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
    acp_relay::recording::pack(plain, to, 3).unwrap();
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
fn imported_peers_have_the_names_they_sent() {
    let messages = r#"{"method":"initialize","id":0,"params":{"protocolVersion":1,"clientInfo":{"name":"zed","version":"1.2"}}}
{"id":0,"result":{"protocolVersion":1,"agentInfo":{"title":"The Goose","name":"goose"}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let listed = |file: &str| -> [String; 2] {
        let line: Value = serde_json::from_str(&answer(&["ls", "--json", file], 0)).unwrap();
        ["client", "agent"].map(|side| line[side].as_str().unwrap().to_owned())
    };
    let file = recording(folder.path(), "bare", messages);
    assert_eq!(listed(&file), ["zed 1.2", "goose"]);
    for form in ["jsons", "har", "capture"] {
        let out = folder.path().join(format!("it.{form}"));
        let out = out.to_str().unwrap();
        answer(&["export", &file, "--to", form, "--out", out], 0);
        let back = import(folder.path(), out.as_ref(), form);
        assert_eq!(listed(&back), ["zed 1.2", "goose"], "{form}");
    }
    // A format with names of its own overrides them.
    let own = r#"{"version":1,"session":{"clientName":"an editor of mine","agentCommand":"goose acp"},
        "messages":[{"direction":"editor-to-agent","timestamp":1,"raw":"{\"method\":\"initialize\",\"id\":0,\"params\":{\"clientInfo\":{\"name\":\"zed\"}}}"}]}"#;
    let own = recording(folder.path(), "own", own);
    assert_eq!(listed(&own), ["an editor of mine", "goose acp"]);
    // No message has a name, or names are not recorded.
    let unnamed = recording(
        folder.path(),
        "nobody",
        r#"{"id":0,"result":{"agentInfo":{"name":7,"version":"x"}}}"#,
    );
    assert_eq!(listed(&unnamed), ["a client", "an agent"]);
    let to = folder.path().join("structure.acpr");
    let to = to.to_str().unwrap();
    let from = folder.path().join("bare.jsonl");
    let from = from.to_str().unwrap();
    answer(&["import", "--redact", "structure", from, to], 0);
    assert_eq!(listed(to), ["a client", "an agent"]);
}
