//! A scanner finds in each message of a side what `scan` finds, whatever messages came before.

use std::sync::Arc;

use acp_relay::jsonrpc::{Frame, Limits, Scanned, Scanner, member_text, named_session, scan};
use proptest::prelude::*;
use serde_json::Value;

/// How messages of one side begin and end.
const MESSAGES: [(&str, &str); 8] = [
    (
        r#"{"jsonrpc":"2.0","method":"m","params":{"sessionId":"sess_0123456789","padding":"0123456789","last":"#,
        r#"}}"#,
    ),
    (
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#,
        r#"}}}}"#,
    ),
    (
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"plan","entries":[{"a":[[{"content":"#,
        r#"}]]}]}}}"#,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"result":{"padding":"0123456789012345678901234567890123456789","list":[1,[{"x":"#,
        r#"}]]}}"#,
    ),
    (
        r#" { "method" : "session/update" , "params" : { "sessionId" : "sess_0123456789", "sessionUpdate": { "deep" : "#,
        r#" } } }"#,
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"padding":"0123456789 zażółć 0123456789012345678","list":[1,"#,
        r#"]},"extra":[]}"#,
    ),
    (
        r#"{"params":{"a1":0,"a2":0,"a3":0,"a4":0,"a5":0,"a6":0,"a7":0,"a8":0,"a9":0,"b1":0,"b2":0,"b3":0,"b4":0,"b5":0,"b6":0,"b7":"#,
        r#"},"method":"m"}"#,
    ),
    (
        r#"[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,"#,
        r#"]"#,
    ),
];
/// What is between the two: a text, an escape, a number, a container, white space, another member,
/// too much, nothing.
const MIDDLES: [&str; 14] = [
    r#""word""#,
    r#""another \n \u017c \"text\"""#,
    r#""zażółć""#,
    " \n17",
    "-0.5e+3",
    "01",
    "null",
    "{}",
    r#"{"sessionId":"x","y":[]}"#,
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    r#""cut"#,
    r#"1,"more":2"#,
    r#"1,"sessionId":"again""#,
    "",
];
/// Ends that do not fit.
const ODD_ENDS: [&str; 4] = ["", "}", r#"}}}},"method":"twice"}"#, "}}}} trailing"];

/// Scans all messages with one scanner, and compares the results with those of `scan`.
fn assert_agrees<'a>(messages: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) {
    let mut scanner = Scanner::new(Arc::new(limits.clone()));
    for text in messages {
        let mut frame = Frame::new(text.to_vec());
        let shape = scanner.scan(&mut frame);
        let shown = String::from_utf8_lossy(text);
        assert_eq!(shape, scan(&frame, limits), "{shown}");
        assert!(
            !frame.is_text() || std::str::from_utf8(text).is_ok(),
            "{shown}"
        );
        assert_eq!(
            frame.is_text(),
            matches!(shape, Scanned::Message(_)),
            "{shown}"
        );
        if let Scanned::Message(at) = shape {
            // The member index leads to the same session as reading the whole body.
            let session = at
                .body(&frame)
                .and_then(|body| member_text(body, "sessionId"));
            assert_eq!(named_session(&frame, &at), session, "{shown}");
        }
    }
}

/// A stream of similar messages, some with a fault.
fn stream() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let fault = (0..30_u8, any::<prop::sample::Index>());
    let choices = proptest::collection::vec((0..MIDDLES.len(), fault), 1..40);
    (0..MESSAGES.len(), choices).prop_map(|(kind, choices)| {
        let (begin, end) = MESSAGES[kind];
        let message = |(middle, (fault, place)): (usize, (u8, prop::sample::Index))| {
            let end = match fault {
                0 => place.get(&ODD_ENDS),
                _ => end,
            };
            let mut text = [begin, MIDDLES[middle], end].concat().into_bytes();
            let at = place.index(text.len());
            match fault {
                1 => text.truncate(at),
                2 => text[at] = 0xFF,
                3 => text[at] = b'"',
                4 => text[at] = b' ',
                5 => text[at] = b'{',
                _ => {}
            }
            text
        };
        choices.into_iter().map(message).collect()
    })
}

proptest! {
    #[test]
    fn earlier_messages_make_no_difference(
        streams in proptest::collection::vec(stream(), 1..8),
        nesting in prop_oneof![Just(64_usize), Just(30), Just(5)],
    ) {
        let messages = streams.iter().flatten().map(Vec::as_slice);
        assert_agrees(messages, &Limits { nesting, ..Limits::default() });
    }
}

/// The messages of real agents and clients, in their order.
#[test]
fn captured_messages_are_scanned_the_same() {
    let mut scanned = 0;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/transcripts");
    for entry in std::fs::read_dir(folder).expect("the captures are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("it is text");
        let mut sides: [Vec<Vec<u8>>; 2] = Default::default();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            let from = usize::from(line["dir"] == "a2c");
            sides[from].push(line["msg"].to_string().into_bytes());
        }
        for side in sides {
            scanned += side.len();
            assert_agrees(side.iter().map(Vec::as_slice), &Limits::default());
        }
    }
    assert!(scanned > 100, "{scanned}");
}
