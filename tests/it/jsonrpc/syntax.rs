//! What is JSON and what is not, how deep, and in which encoding.

use std::path::Path;

use acp_relay::jsonrpc::{Frame, FrameFault, IdBuf, Limits, Role, Scanned, is_json, scan};

use super::{frame_error, limits, number, shape};

#[test]
fn the_json_test_suite_is_accepted_and_refused_as_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/json");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in folder.read_dir().expect("the vectors are there") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let text = std::fs::read(&path).unwrap();
        let whole = is_json(&text, &limits());
        let request = [
            br#"{"jsonrpc":"2.0","id":1,"method":"m","params":"#,
            &text[..],
            b"}",
        ]
        .concat();
        let as_params = match shape(&request) {
            Scanned::Message(envelope) => {
                let params = envelope.body.expect("params are there").of(&request);
                assert_eq!(params.trim_ascii(), text.trim_ascii(), "{name}");
                true
            }
            Scanned::Batch => panic!("{name}: a request is no batch"),
            Scanned::Invalid(_) => false,
        };
        let expected = match &name[..2] {
            "y_" => true,
            "n_" => false,
            _ => whole,
        };
        if whole != expected || as_params != expected {
            wrong.push((name, whole, as_params));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "(case, whole, as params): {wrong:#?}");
    assert!(seen > 300, "only {seen} cases were found");
}

#[test]
fn invalid_utf8_is_refused_at_every_place() {
    let cases: &[(&[u8], usize)] = &[
        (b"{\"id\":1,\"method\":\"\xff\"}", 18),
        (b"{\"id\":1,\"method\":\"m\"}\x80", 21),
        (b"\xed\xa0\x80", 0),
        (b"[\"\xc3\"]", 2),
        (b"{\"id\":1,\"method\":\"m\",\"p\":\"\xf0\x9f\x98\"}", 26),
    ];
    for (text, at) in cases {
        let error = frame_error(text);
        let expected = "valid UTF-8";
        assert_eq!(
            (error.fault, error.at),
            (FrameFault::Malformed { expected }, *at)
        );
        assert_eq!(error.id != IdBuf::default(), text.starts_with(b"{"));
        assert!(!is_json(text, &limits()));
    }
}

#[test]
fn a_batch_is_an_array_that_is_json() {
    for text in ["[]", " [1] ", r#"[{"id":1,"method":"m"}]"#] {
        assert_eq!(shape(text), Scanned::Batch, "{text}");
    }
    for text in ["[", "[1,]", "[]]", "[1}"] {
        assert!(
            matches!(frame_error(text).fault, FrameFault::Malformed { .. }),
            "{text}"
        );
    }
}

#[test]
fn nesting_is_counted_to_the_limit_and_not_beyond() {
    for nesting in [1, 2, 63, 64, 65, 128, 1024, 5000] {
        let limits = Limits {
            nesting,
            ..limits()
        };
        let most = nesting.min(1024);
        for (depth, fits) in [(most, true), (most + 1, false), (100_000, false)] {
            let inner = depth - 1;
            for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
                let value = format!("{}0{}", open.repeat(inner), close.repeat(inner));
                let text = format!(r#"{{"id":1,"method":"m","params":{value}}}"#);
                assert_eq!(is_json(text.as_bytes(), &limits), fits, "{nesting} {depth}");
                match scan(&Frame::from(text), &limits) {
                    Scanned::Message(_) => assert!(fits, "{nesting} {depth}"),
                    Scanned::Invalid(error) => {
                        assert!(!fits, "{nesting} {depth}");
                        assert_eq!(error.fault, FrameFault::TooDeep { limit: most });
                        assert_eq!((error.id, error.role), (number("1"), Some(Role::Call)));
                    }
                    Scanned::Batch => panic!("an object is no batch"),
                }
            }
        }
    }
}

#[test]
fn brackets_must_match_at_every_depth() {
    // Alternating kinds, so that the kind of every level must be remembered.
    let open = |depth: usize| {
        if depth.is_multiple_of(3) {
            "["
        } else {
            "{\"k\":"
        }
    };
    let close = |depth: usize| if depth.is_multiple_of(3) { "]" } else { "}" };
    let text: String = (0..128)
        .map(open)
        .chain(["1"])
        .chain((0..128).rev().map(close))
        .collect();
    assert!(is_json(text.as_bytes(), &limits()));
    for at in text.rfind('1').unwrap() + 1..text.len() {
        let mut wrong = text.clone().into_bytes();
        wrong[at] = if wrong[at] == b']' { b'}' } else { b']' };
        assert!(!is_json(&wrong, &limits()), "closing bracket at {at}");
    }
}
