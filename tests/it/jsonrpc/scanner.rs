//! What `scan` marks and indexes: valid UTF-8, and the session in a body of any form.

use acp_relay::jsonrpc::{Frame, Scanned, member_text, named_session, scan, scan_mut};
use serde_json::Value;

use super::limits;

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
/// What stands between: a text, an escape, a number, a container, white space, another member, too
/// much, nothing at all.
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

fn check(text: &[u8]) {
    let mut frame = Frame::new(text.to_vec());
    let scanned = scan_mut(&mut frame, &limits());
    let shown = String::from_utf8_lossy(text);
    assert_eq!(scanned, scan(&frame, &limits()), "{shown}");
    let is_message = matches!(scanned, Scanned::Message(_));
    assert_eq!(frame.is_text(), is_message, "{shown}");
    if let Scanned::Message(at) = scanned {
        assert!(std::str::from_utf8(text).is_ok(), "{shown}");
        // The index leads to the session that is there when all is read.
        let body = at.body(&frame);
        let session = body.and_then(|body| member_text(body, "sessionId"));
        assert_eq!(named_session(&frame, &at), session, "{shown}");
    }
}

#[test]
fn the_index_leads_to_the_session_of_any_body() {
    for (begin, end) in MESSAGES {
        for middle in MIDDLES {
            check([begin, middle, end].concat().as_bytes());
        }
    }
}

/// What agents and clients really say.
#[test]
fn the_index_leads_to_the_sessions_of_captured_conversations() {
    let mut scanned = 0;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/transcripts");
    for entry in std::fs::read_dir(folder).expect("the captures are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("it is text");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            check(line["msg"].to_string().as_bytes());
            scanned += 1;
        }
    }
    assert!(scanned > 100, "{scanned}");
}
