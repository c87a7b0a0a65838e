//! The overview of the viewer: a row for each recording, the search over all, and comparisons.

use std::fs::{self, File};
use std::io::{Read as _, repeat};
use std::time::{Duration, Instant};

use acp_relay::jsonrpc::{Kind, Side};
use acp_relay::recording::{Header, pack, write};
use serde_json::{Value, json};

use crate::viewer::{TestRecording, Viewer, recorded};

/// Longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rows of a viewer, by the name of the recording, once `done` accepts them.
fn rows(viewer: &Viewer, done: impl Fn(&dyn Fn(&str) -> Value) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let answer = viewer.json("api/recordings");
        let rows = answer["rows"].as_array().unwrap().clone();
        let named = |name: &str| row(&rows, name);
        if done(&named) {
            return rows;
        }
        assert!(begun.elapsed() < PATIENCE, "it stays at {rows:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn row(rows: &[Value], name: &str) -> Value {
    let found = rows.iter().find(|row| row["name"] == name);
    found.cloned().unwrap_or_default()
}

fn prompted(text: &str, answer: &str) -> Vec<u8> {
    let mut recording = TestRecording::new();
    let prompt = json!({"id": 7, "params": {"prompt": [{"type": "text", "text": text}]}});
    let result = json!({"id": 7, "result": {"stopReason": answer}});
    let chunk = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "well "}}}});
    let asked = (Kind::Request, "session/prompt", Some("7"));
    recording.message(Side::Client, asked.0, asked.1, asked.2, &prompt);
    recording.passed(Side::Agent, 1);
    for _ in 0..3 {
        recording.message(
            Side::Agent,
            Kind::Notification,
            "session/update",
            None,
            &chunk,
        );
    }
    recording.passed(Side::Client, 3);
    recording.message(Side::Agent, Kind::Result, asked.1, asked.2, &result);
    recording.passed(Side::Client, 1);
    recording.end(false);
    recording.text
}

#[test]
fn rows_fill_in_follow_the_folder_and_show_faults() {
    let folder = recorded();
    let path = |name: &str| folder.path().join(name);
    let mut damaged = prompted("hi", "end_turn");
    damaged.extend_from_slice(b"{\"n\":3}\n");
    fs::write(path("damaged.acpr"), damaged).unwrap();
    fs::write(path("garbage.acpr"), "no recording\n").unwrap();
    let mut quiet = TestRecording::new();
    quiet.end(false);
    fs::write(path("quiet.acpr"), quiet.text).unwrap();
    fs::write(path("empty.acpr"), "").unwrap();
    fs::write(path("notes.txt"), "no recording").unwrap();
    let mut v2 = TestRecording::new();
    let info = json!({"protocolVersion": 2, "info": {"name": "ed", "version": "1"}});
    let asked = json!({"id": 0, "params": info});
    v2.message(Side::Client, Kind::Request, "initialize", Some("0"), &asked);
    v2.end(false);
    let mut header = Header::default();
    "full".clone_into(&mut header.redaction.mode);
    let mut text = Vec::new();
    write::header(&mut text, &header);
    let events = v2.text.split_inclusive(|byte| *byte == b'\n').skip(1);
    text.extend(events.flatten());
    fs::write(path("v2.acpr"), text).unwrap();
    // More bytes than are read, in a line without an end.
    let mut bomb = Vec::new();
    pack(repeat(b'x').take(70 << 20), &mut bomb, 1).unwrap();
    fs::write(path("bomb.acpr.zst"), bomb).unwrap();
    let viewer = Viewer::of(folder.path());
    let first = viewer.json("api/recordings");
    assert_eq!(first["rows"].as_array().map(Vec::len), Some(7), "{first}");
    assert_eq!(first["more"], false);
    assert!(first["folder"].as_str().unwrap().starts_with('/'));

    let names = ["a", "damaged", "garbage", "empty", "bomb", "quiet", "v2"];
    let is_read = |row: &Value| !row["fault"].is_null() || row["turns"].is_u64();
    let found = rows(&viewer, |row| names.iter().all(|name| is_read(&row(name))));
    let a = row(&found, "a");
    assert_eq!(
        (&a["turns"], &a["errors"], &a["length"]),
        (&json!(10), &json!(0), &json!(71_000))
    );
    assert!(
        a["findings"].as_u64().unwrap() > 0 && a["severity"] == "error",
        "{a}"
    );
    assert_eq!(
        (&a["client"], &a["writing"]),
        (&json!("stdio:"), &json!(false))
    );
    let quiet = row(&found, "quiet");
    assert_eq!(
        (&quiet["findings"], &quiet["severity"], &quiet["fault"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    for (name, fault) in [
        ("damaged", "1 damaged line"),
        ("garbage", "this is no recording"),
        ("empty", "it is empty"),
        ("bomb", "this is no recording"),
    ] {
        let shown = row(&found, name)["fault"].clone();
        assert!(
            shown.as_str().unwrap().starts_with(fault),
            "{name}: {shown}"
        );
    }

    // Only what has changed is sent.
    fs::write(path("b.acpr"), prompted("hi", "end_turn")).unwrap();
    fs::remove_file(path("a.000.acpr")).unwrap();
    rows(&viewer, |row| {
        row("b")["turns"] == 1 && row("a")["gone"] == true
    });
    let revision = viewer.json("api/recordings")["revision"].clone();
    let same = viewer.json(&format!("api/recordings?now&after={revision}"));
    assert_eq!(same["rows"], json!([]));
    assert_eq!(row(&found, "v2")["client"], "ed 1");
}

#[test]
fn many_rows_come_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..1_100 {
        File::create(folder.path().join(format!("{at}.acpr"))).unwrap();
    }
    let viewer = Viewer::of(folder.path());
    let first = viewer.json("api/recordings");
    assert_eq!(first["rows"].as_array().map(Vec::len), Some(1_000));
    assert_eq!(first["more"], true);
    let rest = viewer.json(&format!("api/recordings?now&after={}", first["revision"]));
    assert!(rest["rows"].as_array().unwrap().len() >= 100);
}

#[test]
fn all_recordings_are_searched_and_the_matches_counted() {
    let folder = recorded();
    fs::write(folder.path().join("b.acpr"), prompted("needle", "refusal")).unwrap();
    fs::write(folder.path().join("c.acpr"), "garbage\n").unwrap();
    let viewer = Viewer::of(folder.path());
    let listed = viewer.json("api/recordings")["rows"].clone();
    let id = |name: &str| row(listed.as_array().unwrap(), name)["id"].clone();
    let search = |filter: &str| -> Vec<Value> {
        let answer = viewer.ask(&format!("api/search?q={filter}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
        let lines = answer.body.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let hit = |name, count| json!({"id": id(name), "count": count, "partial": false});
    let end = json!({"searched": 3, "end": true, "complete": true});
    assert_eq!(search("needle"), [hit("b", 1), end.clone()]);
    assert_eq!(search("refusal+or+needle"), [hit("b", 2), end.clone()]);
    assert_eq!(search("nothing+of+it"), [end]);
    for (filter, most) in [
        ("method:session/prompt", 20),
        ("lint:*", 10),
        ("dur%3E1ms", 20),
    ] {
        let found = search(filter);
        let a = found.iter().find(|line| line["id"] == id("a"));
        let a = a.unwrap_or_else(|| panic!("{filter}: {found:?}"));
        assert!(a["count"].as_u64() >= Some(most), "{filter}: {a}");
    }
    viewer.assert_status("api/search?q=metod:x", 400);
    viewer.assert_status("api/search", 404);
}

#[test]
fn two_recordings_are_compared_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.acpr"), prompted("the red fox", "end_turn")).unwrap();
    fs::write(path("b.acpr"), prompted("the brown fox", "end_turn")).unwrap();
    File::create(path("c.acpr"))
        .unwrap()
        .set_len(65 << 20)
        .unwrap();
    let viewer = Viewer::of(folder.path());
    let listed = viewer.json("api/recordings")["rows"].clone();
    let id = |name: &str| row(listed.as_array().unwrap(), name)["id"].clone();
    let (a, b, c) = (id("a"), id("b"), id("c"));
    let compared = viewer.json(&format!("api/compare?a={a}&b={b}"));
    let counts = ["same", "changed", "only_left", "only_right", "omitted"];
    assert_eq!(
        counts.map(|name| compared[name].as_u64().unwrap()),
        [2, 1, 0, 0, 0]
    );
    let mut changed = compared["rows"].as_array().unwrap().iter();
    let changed = changed.find(|row| row["same"] == false).unwrap();
    let parts = json!([[" ", "the "], ["-", "red"], ["+", "brown"], [" ", " fox"]]);
    assert_eq!(
        changed["changes"],
        json!([{"at": "/prompt/0/text", "parts": parts}])
    );
    assert_eq!(
        (&changed["turn"], &changed["left"]["n"]),
        (&json!(1), &json!(1))
    );
    let same = viewer.json(&format!("api/compare?a={a}&b={a}"));
    assert_eq!((&same["same"], &same["changed"]), (&json!(3), &json!(0)));
    let refused = viewer.assert_status(&format!("api/compare?a={a}&b={c}"), 413);
    assert!(refused.contains("c is longer than 64 MiB"), "{refused}");
    for query in ["", "?a=0", "?a=0&b=9", "?a=../a&b=0"] {
        viewer.assert_status(&format!("api/compare{query}"), 404);
    }
}

#[test]
fn captures_that_are_opened_or_dropped_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"dir":"c2a","ts":1,"msg":{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}}"#;
    let capture = format!("{line}\n");
    let path = folder.path().join("talk.jsonl");
    fs::write(&path, &capture).unwrap();
    let viewer = Viewer::of(&path);
    let found = rows(&viewer, |row| row("talk.jsonl")["turns"] == 1);
    assert_eq!(found[0]["fault"], Value::Null, "{found:?}");
    assert_eq!(viewer.json("api/0/state")["path"], "talk.jsonl.acpr");
    let dropped = viewer.drop_files(&[], &[("b.jsonl", capture.as_bytes())]);
    assert_eq!((dropped.status.as_u16(), &*dropped.body), (200, "[1]"));
    rows(&viewer, |row| row("b.jsonl")["turns"] == 1);
    for hostile in [
        "[".repeat(100_000),
        "\u{feff}".into(),
        "{\"dir\":".into(),
        "\0".repeat(99),
    ] {
        let refused = viewer.drop_files(&[], &[("x", hostile.as_bytes())]);
        assert_eq!(refused.status, 415);
        assert!(
            refused
                .body
                .contains("this is no recording, and no capture: "),
            "{}",
            refused.body
        );
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is written beside the capture");
}
