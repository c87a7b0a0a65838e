//! Import of hand-made files: messages over several lines, and copies from editors.
//!
//! Not here: round trips of exports (see `forms`).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use acp_relay::jsonrpc::Side;
use acp_relay::recording::capture::{LineContent, Lines, expanded};
use acp_relay::replay::Script;
use serde_json::{Value, json};

use super::{CAPTURES, answer, capture, import, recording, vectors};

#[test]
fn messages_over_several_lines_are_expanded_with_their_line_number() {
    let vectors = fs::read_to_string(vectors().join("inspect/unfold.jsonl")).unwrap();
    for case in vectors.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let (name, text) = (&case["name"], case["text"].as_str().unwrap());
        let mut bytes: Vec<u8> = match case["encoding"].as_str() {
            Some("utf-16le") => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Some("utf-16be") => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Some(_) => text
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect(),
            None => text.into(),
        };
        let cut = case["cut"].as_u64().unwrap_or(0);
        bytes.truncate(bytes.len() - usize::try_from(cut).unwrap());
        let read = expanded(&bytes[..]);
        if let Some(why) = case["error"].as_str() {
            let error = read.err().unwrap().to_string();
            assert!(error.contains(why), "{name}: {error}");
            continue;
        }
        let lines = Lines::new(read.unwrap()).map(Result::unwrap);
        let found: Vec<_> = lines
            .filter_map(|line| match line.content {
                LineContent::Message { message, .. } => {
                    let text = String::from_utf8(message.as_bytes().to_vec()).unwrap();
                    Some(json!([line.number, text]))
                }
                LineContent::Empty => None,
            })
            .collect();
        let expected = case["lines"].as_array().unwrap();
        if case["some"].is_null() {
            assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
        }
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn expanded_messages_are_imported_checked_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let lines = fs::read_to_string(capture("gemini-cli-0.61.0")).unwrap();
    let messages: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let pretty = |value| serde_json::to_string_pretty(value).unwrap();
    let several: Vec<_> = messages.iter().map(pretty).collect();
    let below = |text: &String| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let wide = |text: &str| {
        let units = format!("\u{feff}{text}");
        units.encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    let plain = import(folder.path(), &capture("gemini-cli-0.61.0"), "plain");
    let back = |file: &str| -> Vec<Value> {
        let reported = answer(&["export", file, "--to", "capture"], 0);
        let lines = reported.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let checked = |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_acp-relay"))
            .args(["check", "--json"])
            .arg(file)
            .output()
            .unwrap();
        let reported = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(reported.lines().last().unwrap()).unwrap();
        last
    };
    let expected = (back(&plain), checked(&capture("gemini-cli-0.61.0")));
    let forms: [(&str, Vec<u8>); 4] = [
        ("several", several.join("\n").into()),
        ("array", pretty(&Value::from(messages.clone())).into()),
        (
            "below",
            several.iter().map(below).collect::<String>().into(),
        ),
        ("wide", wide(&lines)),
    ];
    for (name, text) in forms {
        let file = folder.path().join(format!("{name}.txt"));
        fs::write(&file, text).unwrap();
        let found = (back(&import(folder.path(), &file, name)), checked(&file));
        assert_eq!(found, expected, "{name}");
        let script = Script::open(&file, Side::Client).unwrap();
        assert_eq!(script.steps.len(), expected.0.len(), "{name}");
    }
}

/// The editor's log of a capture: it has only messages that its library could parse, and the method
/// of each answer's request.
fn zed_log(lines: &[Value]) -> Value {
    let mut open = HashMap::new();
    let log = lines.iter().map(|line| {
        let (out, message) = (line["dir"] == "c2a", &line["msg"]);
        let key = |out: bool| (out, message["id"].to_string());
        let (kind, method, params) = match (&message["method"], message["id"].is_null()) {
            (Value::Null, _) => {
                let method = open
                    .remove(&key(!out))
                    .unwrap_or_else(|| json!("[unrecognized response]"));
                let body = message.get("error").unwrap_or_else(|| &message["result"]);
                ("response", method, body)
            }
            (method, true) => ("notification", method.clone(), &message["params"]),
            (method, false) => {
                open.insert(key(out), method.clone());
                ("request", method.clone(), &message["params"])
            }
        };
        json!({"_direction": if out { "outgoing" } else { "incoming" }, "_type": kind,
            "id": message["id"], "method": method, "params": params})
    });
    log.collect()
}

#[test]
fn a_log_copied_from_zed_is_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let text = fs::read_to_string(capture(name)).unwrap();
        let parsed = text
            .lines()
            .map(|line| (line, serde_json::from_str::<Value>(line).unwrap()));
        let is_message = |(_, line): &(_, Value)| {
            line["msg"]["method"].is_string() || !line["msg"]["id"].is_null()
        };
        let (kept, lines): (Vec<&str>, Vec<Value>) = parsed.filter(is_message).unzip();
        let plain = recording(folder.path(), name, &kept.join("\n"));
        let copied = zed_log(&lines);
        for (form, text) in [
            ("pretty", serde_json::to_string_pretty(&copied).unwrap()),
            ("line", copied.to_string()),
        ] {
            let file = folder.path().join(format!("{name}.{form}.json"));
            fs::write(&file, text).unwrap();
            let copy = import(folder.path(), &file, &format!("{name}.{form}"));
            let same = answer(&["diff", &plain, &copy], 0);
            assert!(
                same.contains("the same conversation"),
                "{name} {form}: {same}"
            );
        }
    }
}
