//! What is remembered of messages that begin alike changes nothing.

use std::sync::Arc;

use acp_relay::dialect::{Outcome, Translator};
use acp_relay::wire::{Envelope, Frame, Limits, Scanner, Shape, Side, scan};
use proptest::prelude::*;

/// How updates begin, up to a place from which they differ.
const BEGIN: [&str; 6] = [
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"agent_message_chunk","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"tool_call","toolCallId":"t","#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789","update":{"sessionUpdate":"usage_update","#,
    r#"{"jsonrpc":"2.0","method":"session\/update","params":{"sessionId":"sess_0123456789","update":{"#,
    r#"{"jsonrpc":"2.0","method":"_x/stranger_with_a_long_name","params":{"sessionId":"sess_0123456789","update":{"#,
];
/// What stands between.
const MIDDLE: [&str; 10] = [
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
];
/// How they end.
const END: [&str; 5] = [
    "}}}",
    r#"},"update":{"sessionUpdate":"current_mode_update","modeId":"m"}}}"#,
    r#"},"update":7}}"#,
    r#"}},"id":7}"#,
    r#"}},"strange":{}}"#,
];

fn message() -> impl Strategy<Value = String> {
    (0..BEGIN.len(), 0..MIDDLE.len(), 0..2 * END.len()).prop_map(|(begin, middle, end)| {
        // Most end as they should.
        let end = END.get(end).unwrap_or(&END[0]);
        [BEGIN[begin], MIDDLE[middle], end].concat()
    })
}

/// What comes of a message that an agent says, or that a client is told.
fn outcome(translator: &mut Translator, from_peer: bool, frame: &Frame, at: &Envelope) -> Outcome {
    match from_peer {
        true if translator.reads_as_is(frame, at) => Outcome::default(),
        true => translator.read(frame, at),
        false if translator.writes_as_is(frame, at) => Outcome::default(),
        false => translator.write(frame, at),
    }
}

proptest! {
    #![proptest_config(super::cases(64))]

    #[test]
    fn messages_that_begin_alike_are_translated_as_if_none_had_come_before(
        runs in proptest::collection::vec((message(), message(), 4..8_usize), 1..6),
        dialect in prop_oneof![Just("loose-v1"), Just("elephant"), Just("goref"), Just("kiro")],
        peer in prop_oneof![Just(Side::Agent), Just(Side::Client)],
    ) {
        let program = super::library().program(dialect).expect("it is built in");
        let from_peer = peer == Side::Agent;
        let mut one = Translator::new(peer, Arc::clone(&program));
        let mut other = Translator::new(peer, program);
        let mut scanner = Scanner::new(Arc::default());
        let mut stems = 0;
        for (first, second, times) in runs {
            for text in std::iter::repeat_n([&first, &first, &first, &first, &second], times).flatten() {
                let mut frame = Frame::from(text.clone());
                let Shape::One(at) = scanner.scan(&mut frame) else { continue };
                let Shape::One(alone) = scan(&frame, &Limits::default()) else {
                    panic!("the scanner has read it");
                };
                stems += usize::from(at.stem.number > 0);
                prop_assert_eq!(alone.stem.number, 0);
                let known = outcome(&mut one, from_peer, &frame, &at);
                let told = outcome(&mut other, from_peer, &frame, &alone);
                prop_assert_eq!(known.pass, told.pass, "{}", text);
                prop_assert_eq!(known.fired, told.fired, "{}", text);
                prop_assert_eq!(known.notes, told.notes, "{}", text);
                prop_assert_eq!(known.back, told.back, "{}", text);
            }
        }
        prop_assert!(stems > 0, "none of them began like the one before");
    }
}
