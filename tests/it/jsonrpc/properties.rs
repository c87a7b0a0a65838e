//! Properties over generated and damaged JSON; serde_json is the oracle.

use acp_relay::jsonrpc::{
    Frame, FrameError, FrameFault, Id, Kind, Scanned, is_json, member, scan_head,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{limits, one, shape};

/// JSON text with every liberty the grammar has: spacing, escapes, odd numbers.
fn json() -> impl Strategy<Value = String> {
    let space = "[ \n\r\t]{0,2}";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,4})?",
        string(),
    ];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        let item = (space, inner.clone(), space).prop_map(|(a, v, b)| format!("{a}{v}{b}"));
        let member = (space, string(), space, item.clone())
            .prop_map(|(a, k, b, v)| format!("{a}{k}{b}:{v}"));
        prop_oneof![
            proptest::collection::vec(item, 0..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 0..5)
                .prop_map(|items| format!("{{{}}}", items.join(","))),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{0,12}",
        1 => "[a-z]{60,140}",
        1 => "\\\\[\"\\\\/bfnrt]",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => "[^\"\\\\\\x00-\\x1f]{0,6}",
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// Damage to a text: at a place, bytes replaced, removed, or inserted.
fn damage() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"{}[]\",:\\u0-+.eE1 \n\x00\x1f\x7f\x80\xff\xc3\xedtrfn".to_vec()),
        1 => any::<u8>(),
    ];
    (
        any::<prop::sample::Index>(),
        0_usize..3,
        proptest::collection::vec(byte, 0..3),
    )
}

fn serde_accepts(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// The text of an object with names that are alike, some of them long after the others.
fn alike() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "type",
        "typ",
        r"t\u0079pe",
        r"\u0074ype",
        "a/b",
        r"a\/b",
        "text",
    ]);
    let value = prop_oneof![
        Just("\"type\"".to_owned()),
        "\"x{0,400}\"",
        string(),
        json()
    ];
    let member = (name, value).prop_map(|(name, value)| format!("\"{name}\": {value}"));
    proptest::collection::vec(member, 0..5).prop_map(|all| format!("{{{}}}", all.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_last_member_of_a_name_is_found(object in alike()) {
        let Ok(all) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&object)
        else {
            // A string with half of a surrogate pair.
            return Ok(());
        };
        for name in ["type", "typ", "a/b"] {
            let found = member(object.as_bytes(), name);
            let found = found.and_then(|value| serde_json::from_slice(value).ok());
            prop_assert_eq!(found.as_ref(), all.get(name), "{}", name);
        }
    }

    #[test]
    fn json_is_accepted_exactly_when_serde_json_accepts_it(
        text in json(),
        damages in proptest::collection::vec(damage(), 0..4),
    ) {
        let text = text.into_bytes();
        prop_assert!(is_json(&text, &limits()));
        let mut text = text;
        for (place, gone, put) in damages {
            let start = place.index(text.len() + 1);
            let end = (start + gone).min(text.len());
            text.splice(start..end, put);
        }
        let accepted = serde_accepts(&text);
        prop_assert_eq!(is_json(&text, &limits()), accepted, "{:?}", String::from_utf8_lossy(&text));
        // The scanner decides the same, for the text alone and inside a message.
        let malformed = matches!(shape(&text), Scanned::Invalid(FrameError { fault: FrameFault::Malformed { .. }, .. }));
        prop_assert_eq!(!malformed, accepted);
        let inside = [b"{\"method\":\"m\",\"params\":[", &text[..], b"]}"].concat();
        let malformed = matches!(shape(&inside), Scanned::Invalid(FrameError { fault: FrameFault::Malformed { .. }, .. }));
        prop_assert_eq!(!malformed, serde_accepts(&inside));
    }

    #[test]
    fn any_bytes_are_scanned_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(is_json(&text, &limits()), serde_accepts(&text));
        let _ = (shape(&text), scan_head(&text, &limits()));
    }

    #[test]
    fn the_spans_of_an_envelope_hold_its_members(
        members in Just(vec![0, 1, 2, 3]).prop_shuffle(),
        id in prop_oneof![Just("null".to_owned()), "-?[1-9][0-9]{0,30}(\\.0|e5)?", "\"[a-f\u{e9}\\-]{0,40}\""],
        method in "([a-z/_\u{e9}]|\\\\/|\\\\u0061){0,30}",
        params in json(),
        space in "[ \n\r\t]{0,3}",
    ) {
        let all = [
            "\"jsonrpc\":\"2.0\"".to_owned(),
            format!("\"id\"{space}:{space}{id}{space}"),
            format!("\"method\":{space}\"{method}\""),
            format!("\"params\"{space}:{space}{params}{space}"),
        ];
        let members: Vec<_> = members.into_iter().map(|i| all[i].as_str()).collect();
        let frame = Frame::from(format!("{space}{{{space}{}}}{space}", members.join(&format!(",{space}"))));
        let envelope = one(&frame);
        prop_assert_eq!(envelope.kind, Kind::Request);
        let seen = envelope.id(&frame);
        prop_assert_eq!(seen.json(), id.as_bytes());
        prop_assert_eq!(seen == Id::Null, id == "null");
        prop_assert_eq!(matches!(seen, Id::String(_)), id.starts_with('"'));
        prop_assert_eq!(envelope.method.unwrap().of(frame.as_bytes()), method.as_bytes());
        let plain: String = serde_json::from_str(&format!("\"{method}\"")).unwrap();
        prop_assert_eq!(&*envelope.method(&frame), plain.as_str());
        prop_assert_eq!(envelope.body(&frame).unwrap(), params.as_bytes());
    }
}
