//! What is remembered of messages that begin alike changes nothing.

use std::sync::Arc;

use acp_relay::dialect::{Translation, Translator};
use acp_relay::jsonrpc::{Envelope, Frame, Limits, Scanned, Scanner, Side, scan};
use proptest::prelude::*;

/// What is spoken: some change every chunk, some none.
const DIALECTS: [&str; 10] = [
    "loose-v1",
    "elephant",
    "goref",
    "kiro",
    "acpex",
    "flat-updates",
    "copilot-overseer",
    "draft-v0.0.14",
    "draft-v0.0.16",
    "draft-v0.0.17",
];
/// How updates begin, up to a place from which they differ.
const BEGIN: [&str; 11] = [
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"tool_call","toolCallId":"t","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"usage_update","#,
    r#"{"jsonrpc":"2.0","method":"session\/update","params":{"sessionId":"sess_0123456789","update":{"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"tool_call","kind":"channel","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agentMessageChunk","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"kind":"agentMessageChunk","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"kind":"agent_message_chunk"},"sessionId":"sess_0123456789","sessionUpdate":"agentMessageChunk","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"a":1},"sessionId":"sess_0123456789","type":"agent_message_chunk","#,
    r#"{"jsonrpc":"2.0","method":"_x/stranger_with_a_long_name","params":{"sessionId":"sess_0123456789","update":{"#,
];
/// What stands between.
const MIDDLE: [&str; 16] = [
    r#""content":{"type":"text","text":"one"}"#,
    r#""content":{"type":"text","text":"an \n other"}"#,
    r#""content":[{"type":"text","text":"bare"}]"#,
    r#""sessionUpdate":"current_mode_update","modeId":"m""#,
    r#""content":{"type":"text","text":"x"},"sessionUpdate":"usage_update""#,
    r#""sessionUpdate":"tool_\u0063all","content":[{"type":"text","text":"x"}]"#,
    r#""s\u0065ssionUpdate":"current_mode_update","modeId":"m""#,
    r#""used":null,"size":1"#,
    r#""kind":"channel","title":"t""#,
    r#""usage":{"used":1,"size":2}"#,
    r#""content":{"role":"assistant","content":[{"type":"text","text":"two"}]}"#,
    r#""title":"t","kind":"channel""#,
    r#""title":"t","kind":"read""#,
    r#""title":"t","kind":null"#,
    r#""title":"t","rawOutput":{"a":[1.50,"\ud800"]}"#,
    r#""title":"t","rawOutput":{"a" : 1e2} "#,
];
/// How they end.
const END: [&str; 7] = [
    "}}}",
    r#"},"update":{"sessionUpdate":"current_mode_update","modeId":"m"}}}"#,
    r#"},"update":7}}"#,
    r#"}},"id":7}"#,
    r#"}},"strange":{}}"#,
    "}}",
    " } }\t} ",
];

/// Says again what is remembered of a tool call.
const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"sess_0123456789","toolCall":{"toolCallId":"t"},"options":[]}}"#;

fn message() -> impl Strategy<Value = String> {
    let parts = (0..BEGIN.len(), 0..MIDDLE.len(), 0..2 * END.len());
    let text = parts.prop_map(|(begin, middle, end)| {
        // Most end as they should.
        let end = END.get(end).unwrap_or(&END[0]);
        [BEGIN[begin], MIDDLE[middle], end].concat()
    });
    text.prop_filter("it is no message", |text| {
        let shape = scan(&Frame::from(text.clone()), &Limits::default());
        matches!(shape, Scanned::Message(_))
    })
}

/// A member that stands last, after others.
const LAST: [&str; 9] = [
    r#""content":"#,
    r#""title":"t","kind":"#,
    r#""kind":"channel","rawOutput":"#,
    r#""kind":"channel","title":"#,
    r#""content":[{"type":"text","text":"bare"}],"status":"#,
    r#""sessionUpdate":"#,
    r#""type":"#,
    r#""sessionUpdate":"current_mode_update","modeId":"#,
    r#""sessionUpdate":"tool_call","toolCallId":"t","kind":"#,
];
/// Its values, of which rules know some.
const VALUES: [&str; 15] = [
    r#"{"type":"text","text":"one"}"#,
    r#"{"type" : "text","text":"tw\no"}"#,
    r#"{"role":"assistant","content":[{"type":"text","text":"two"}]}"#,
    r#"[{"type":"text","text":"bare"}]"#,
    r#"[{"type":"content","content":{"type":"text","text":"x"}}]"#,
    r#""channel""#,
    r#""ch\u0061nnel""#,
    r#""read""#,
    r#""inProgress""#,
    r#""agentMessageChunk""#,
    r#""tool_call""#,
    r#""\ud800""#,
    "1.50",
    "null",
    "{}",
];

/// Messages that differ in their last value, and few of them behind it.
fn likes() -> impl Strategy<Value = Vec<String>> {
    let values = proptest::collection::vec((0..VALUES.len(), 0..4 * END.len()), 2..24);
    let parts = (0..BEGIN.len(), 0..LAST.len(), 0..END.len(), values);
    parts.prop_map(|(begin, last, end, values)| {
        let text = |(value, other)| {
            let end = END.get(other).unwrap_or(&END[end]);
            [BEGIN[begin], LAST[last], VALUES[value], end].concat()
        };
        values.into_iter().map(text).collect()
    })
}

/// What comes of a message that an agent says, or that a client is told.
fn outcome(
    translator: &mut Translator,
    from_peer: bool,
    frame: &Frame,
    at: &Envelope,
) -> Translation {
    match from_peer {
        true if translator.reads_as_is(frame, at) => Translation::default(),
        true => translator.read(frame, at),
        false if translator.writes_as_is(frame, at) => Translation::default(),
        false => translator.write(frame, at),
    }
}

/// Has two translators take messages, one of which hears which of them begin alike; says how many do.
fn agree(
    dialect: &str,
    peer: Side,
    texts: impl IntoIterator<Item = String>,
) -> Result<usize, TestCaseError> {
    let program = super::library().program(dialect).expect("it is built in");
    let from_peer = peer == Side::Agent;
    let mut one = Translator::new(peer, Arc::clone(&program));
    let mut other = Translator::new(peer, program);
    let mut scanner = Scanner::new(Arc::default());
    let mut stems = 0;
    for text in texts.into_iter().chain([ASKS.to_owned()]) {
        let mut frame = Frame::from(text.clone());
        let Scanned::Message(at) = scanner.scan(&mut frame) else {
            continue;
        };
        let Scanned::Message(alone) = scan(&frame, &Limits::default()) else {
            panic!("the scanner has read it");
        };
        stems += usize::from(at.prefix.number > 0);
        prop_assert_eq!(alone.prefix.number, 0);
        let known = outcome(&mut one, from_peer, &frame, &at);
        let told = outcome(&mut other, from_peer, &frame, &alone);
        prop_assert_eq!(known.forward, told.forward, "{}", text);
        prop_assert_eq!(known.fired, told.fired, "{}", text);
        prop_assert_eq!(known.method, told.method, "{}", text);
        prop_assert_eq!(known.notes, told.notes, "{}", text);
        prop_assert_eq!(known.replies, told.replies, "{}", text);
    }
    Ok(stems)
}

proptest! {
    #![proptest_config(super::cases(64))]

    #[test]
    fn messages_that_begin_alike_are_translated_as_if_none_had_come_before(
        runs in proptest::collection::vec((message(), message(), 4..8_usize), 1..6),
        dialect in proptest::sample::select(&DIALECTS[..]),
        peer in prop_oneof![Just(Side::Agent), Just(Side::Client)],
    ) {
        let texts = runs.iter().flat_map(|(first, second, times)| {
            std::iter::repeat_n([first, first, first, first, second], *times).flatten().cloned()
        });
        prop_assert!(agree(dialect, peer, texts)? > 0, "none of them began like the one before");
    }

    #[test]
    fn messages_that_differ_in_one_value_are_translated_as_if_none_had_come_before(
        runs in proptest::collection::vec(likes(), 24),
        dialect in proptest::sample::select(&DIALECTS[..]),
        peer in prop_oneof![4 => Just(Side::Agent), 1 => Just(Side::Client)],
    ) {
        agree(dialect, peer, runs.into_iter().flatten())?;
    }
}
