//! Messages nested as deep as the limit allows are forwarded on a small stack.

use std::thread;

use acp_relay::conversation::{DialectChoice, Note};
use acp_relay::dialect::Library;
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::recording::redact::{Mode, Redactor};

use crate::dialect::Exchange;

/// A thread's stack, far below the default of 2 MiB; a debug build needs most of it to begin. It
/// has no room for a stack frame per level.
const STACK: usize = 160 << 10;

/// Messages of an agent that contain `value`, with and without a matching rule.
fn messages(value: &str) -> [String; 3] {
    [
        format!(r#"{{"jsonrpc":"2.0","method":"_x","params":{value}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"a","content":[{{"type":"text","text":"bare"}}],"rawInput":{value}}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"a","content":{value}}}}}}}"#
        ),
    ]
}

fn cross() {
    // The body of the last of them begins on the fifth level.
    let depth = Limits::default().nesting - 5;
    let auto = DialectChoice::Auto;
    let mut exchange = Exchange::new(&Library::builtin().into(), &auto, &auto);
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    for (open, close) in [("[", "]"), (r#"{"token":"#, "}"), (r#"[{"a":"#, "}]")] {
        let levels = depth / open.matches(['[', '{']).count();
        let value = format!(
            "{}{}{}",
            open.repeat(levels),
            r#""sk-ant-api03-secret""#,
            close.repeat(levels)
        );
        for text in messages(&value) {
            let frame = Frame::from(text.clone());
            let [reported, _] = exchange.send_frame(Side::Agent, frame);
            let reported = std::str::from_utf8(reported[0].as_bytes()).unwrap();
            assert!(reported.contains(&value), "{}", &reported[..200]);
            // An object in the place of a list becomes its element.
            let is_repaired = text.contains("bare") || open.starts_with('{');
            assert!(is_repaired || reported == text);
            // The result is not tested here.
            let _ = redactor.json(text.as_bytes(), Some(b"session/update"));
        }
    }
    let notes: Vec<_> = exchange.notes.iter().map(Note::name).collect();
    assert!(notes.contains(&"translated"), "{notes:?}");
}

#[test]
fn deep_nesting_costs_no_stack() {
    let thread = thread::Builder::new().stack_size(STACK).spawn(cross);
    thread.unwrap().join().unwrap();
}
