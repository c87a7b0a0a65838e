//! The parts that recordings and their readers are made of: the files of a recording, text
//! with lone surrogates, dates, patches.

use std::fs;
use std::path::PathBuf;

use acp_relay::recording::patch::{apply, between};
use acp_relay::recording::{
    Header, Recording, decode_bytes, encode_bytes, find_lone, join_halves, parse_json, recordings,
    show_halves, show_halves_json, write,
};
use serde_json::Value;

#[test]
fn file_number_is_a_segment_only_with_its_header() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    for (file, segment) in [
        ("copilot-1.0.102.acpr", 0),
        ("copilot-1.0.103.acpr", 0),
        ("a.000.acpr", 0),
        ("a.001.acpr", 1),
        ("a.999.acpr", 999),
        ("a.1000.acpr", 1000),
        ("b.0007.acpr", 7),
        ("plain.acpr", 0),
    ] {
        let mut line = Vec::new();
        let header = Header {
            segment,
            ..Header::default()
        };
        write::header(&mut line, &header);
        fs::write(folder.join(file), line).unwrap();
    }
    // Its header is not written yet.
    fs::write(folder.join("a.1001.acpr"), "").unwrap();
    let found = recordings(folder).unwrap();
    let of = Recording::of(&folder.join("a.001.acpr")).unwrap();
    let alone = Recording::of(&folder.join("copilot-1.0.102.acpr")).unwrap();
    let names = |recording: &Recording| -> Vec<String> {
        let file = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        recording.segments.iter().map(file).collect()
    };
    let known: Vec<&str> = found.iter().map(|known| known.name.as_str()).collect();
    let expected = ["a", "b.0007", "copilot-1.0.102", "copilot-1.0.103", "plain"];
    assert_eq!(known, expected);
    let whole = [
        "a.000.acpr",
        "a.001.acpr",
        "a.999.acpr",
        "a.1000.acpr",
        "a.1001.acpr",
    ];
    assert_eq!(names(&found[0]), whole);
    assert_eq!(of, found[0]);
    assert_eq!(
        (alone.name.as_str(), alone.segments.len()),
        ("copilot-1.0.102", 1)
    );
}

#[test]
fn lone_surrogate_is_shown_as_escape() {
    let tree = parse_json(br#"{"a":"say \ud83d end"}"#).unwrap();
    let text = tree["a"].as_str().unwrap();
    assert_eq!(show_halves(text), r"say \ud83d end");
    let shown = tree.to_string();
    assert_eq!(show_halves_json(&shown), r#"{"a":"say \\ud83d end"}"#);
    assert!(serde_json::from_str::<Value>(&show_halves_json(&shown)).is_ok());
    assert_eq!(show_halves("plain 😀"), "plain 😀");
}

#[test]
fn surrogate_halves_are_joined() {
    let half = |json: &[u8]| parse_json(json).unwrap().as_str().unwrap().to_owned();
    let (high, low) = (half(br#""a\ud83d""#), half(br#""\ude00b""#));
    assert_eq!(join_halves(&format!("{high}{low}")), "a😀b");
    assert_eq!(join_halves(&high), high);
    assert_eq!(join_halves(&format!("{low}{high}")), format!("{low}{high}"));
    assert_eq!(half(br#""\ud83d\ude00 \\ud83d""#), "😀 \\ud83d");
    assert_eq!(find_lone(br#""\ud83d\ude00 \\ud83d""#), None);
    assert_eq!(find_lone(br#""x\ude00""#), Some(2));
    assert_eq!(parse_json(br#""\ud83d"#), None);
}

#[test]
fn bytes_round_trip_as_text() {
    for bytes in [
        &b"caf\xe9 \"x\" \\ud83d"[..],
        b"\xed\xa0\xbd \xff\xfe",
        b"",
        "ü😀\u{7}\r".as_bytes(),
    ] {
        assert_eq!(
            decode_bytes(encode_bytes(bytes).as_bytes()).as_deref(),
            Some(bytes)
        );
    }
    let of = |json: &str| decode_bytes(json.as_bytes());
    assert_eq!(of(r#""a\ud83d""#).as_deref(), Some(&b"a\xed\xa0\xbd"[..]));
    assert_eq!(
        of(r#""\udcff\ud83d\ude00""#).as_deref(),
        Some(&b"\xff\xf0\x9f\x98\x80"[..])
    );
    assert_eq!(of("7"), None);
    assert_eq!(of(r#""\x""#), None);
}

/// The trees of `tests/vectors/compare/patches.json`: from, to, and the patch between them.
#[test]
fn differences_become_patch_operations() {
    let rows = include_str!("../../vectors/compare/patches.json");
    let rows: Vec<[Value; 3]> = serde_json::from_str(rows).unwrap();
    for [from, to, patch] in rows {
        assert_eq!(between(&from, &to), patch);
        assert_eq!(apply(&from, &patch), Some(to));
    }
}
