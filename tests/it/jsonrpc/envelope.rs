//! The envelope of a message, and JSON that is refused.

use acp_relay::jsonrpc::{Frame, FrameFault, Id, IdBuf, Limits, Role, Scanned, scan, scan_head};
use serde_json::Value;

use super::{frame_error, limits, number, one};

/// Each line of `tests/vectors/jsonrpc/messages.jsonl` is a text with its kind, or with its fault.
#[test]
fn messages_are_recognised_and_other_texts_refused_with_their_id_and_role() {
    for line in include_str!("../../vectors/jsonrpc/messages.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap();
        let id = case["id"].as_str().map(|id| Id::of_json(id.as_bytes()));
        let id = id.unwrap_or(Id::Absent);
        let frame = Frame::from(text.to_owned());
        if let Some(fault) = case["fault"].as_str() {
            let error = frame_error(text);
            let role = error.role.map(|role| format!("{role:?}").to_lowercase());
            assert_eq!(error.fault.to_string(), fault, "{text}");
            assert_eq!(
                (error.id.as_id(), role.as_deref()),
                (id, case["role"].as_str()),
                "{text}"
            );
            let start = text.trim_start_matches('\u{feff}').trim_start();
            assert_eq!(error.json_like, start.starts_with(['{', '[']), "{text}");
            assert!(error.at <= text.len(), "{text}");
            continue;
        }
        let envelope = one(&frame);
        assert_eq!(envelope.kind.name(), case["kind"], "{text}");
        assert_eq!(envelope.id(&frame), id, "{text}");
        let body = case["body"].as_str().map(str::as_bytes);
        assert_eq!(envelope.body(&frame), body, "{text}");
        let method = if envelope.kind.is_answer() { "" } else { "m" };
        assert_eq!(envelope.method(&frame), method, "{text}");
    }
}

#[test]
fn an_escaped_method_is_unescaped() {
    let cases = [
        (r"session\/prompt", "session/prompt"),
        (r"\u0073ession/prompt", "session/prompt"),
        (r"\ud800", r"\ud800"),
        ("", ""),
        ("ü", "ü"),
    ];
    for (spelled, method) in cases {
        let frame = Frame::from(format!(r#"{{"method":"{spelled}","id":1}}"#));
        assert_eq!(one(&frame).method(&frame), method);
    }
}

#[test]
fn a_session_id_may_occur_twice_where_it_is_not_used() {
    for text in [
        r#"{"method":"m","params":{"sessionId":"a","x":{"sessionId":"b"}}}"#,
        r#"{"method":"m","params":[{"sessionId":"a"},{"sessionId":"b"}]}"#,
        r#"{"method":"m","params":{"a":1,"a":2}}"#,
        r#"{"id":1,"error":{"sessionId":1,"sessionId":1}}"#,
        r#"{"method":"m","x":1,"x":2}"#,
    ] {
        one(&Frame::from(text));
    }
}

#[test]
fn ids_and_methods_have_limits() {
    let limits = Limits {
        id: 6,
        method: 4,
        ..limits()
    };
    let cases = [
        (r#""abcd""#, "abcd", None),
        ("123456", "", None),
        (r#""abcde""#, "m", Some("its id is too long")),
        ("1234567", "m", Some("its id is too long")),
        ("1", "abcde", Some("its method is too long")),
    ];
    for (id, method, why) in cases {
        let text = format!(r#"{{"id":{id},"method":"{method}"}}"#);
        match (scan(&Frame::from(text), &limits), why) {
            (Scanned::Message(_), None) => {}
            (Scanned::Invalid(error), Some(why)) => {
                assert_eq!(error.fault, FrameFault::NotAMessage { why })
            }
            (shape, _) => panic!("{id} {method}: {shape:?}"),
        }
    }
}

#[test]
fn the_head_of_a_cut_message_gives_its_id_and_role() {
    let text = br#" {"jsonrpc":"2.0","id":"a-1","method":"session/prompt","params":{"prompt":[{"text":"xx"#;
    let id = Id::String(b"\"a-1\"").to_owned();
    for cut in 0..text.len() {
        let (seen, role) = scan_head(&text[..cut], &limits());
        let known = cut > text.iter().position(|&b| b == b'-').unwrap() + 3;
        assert_eq!(
            seen,
            if known { id.clone() } else { IdBuf::default() },
            "{cut}"
        );
        let method = text.windows(9).position(|w| w == b"\"method\":").unwrap();
        let known = cut >= method + 9;
        assert_eq!(role, known.then_some(Role::Call), "{cut}");
    }
    assert_eq!(scan_head(b"{\"id\":12", &limits()).0, IdBuf::default());
    assert_eq!(scan_head(b"{\"id\":12,", &limits()).0, number("12"));
    assert_eq!(
        scan_head(b"[{\"id\":12,", &limits()),
        (IdBuf::default(), None)
    );
    assert_eq!(
        scan_head(b"{\"id\":3,\"result\":\"\xff", &limits()),
        (number("3"), Some(Role::Answer))
    );
}
