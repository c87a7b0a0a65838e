//! Messages nested as deep as the limit allows are forwarded on a small stack.

use std::thread;
use std::time::Instant;

use acp_relay::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use acp_relay::dialect::Library;
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::recording::redact::{Mode, Redactor};

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
    let traits = LinkTraits {
        client_half_close: true,
        agent_half_close: true,
        ..LinkTraits::default()
    };
    let library = Library::builtin().into();
    let limits = Limits::default();
    let mut out = Outbox::new(&limits);
    let dialects =
        DialectOptions::new(&library, &DialectChoice::Auto, &DialectChoice::Auto).unwrap();
    // The body of the last of them begins on the fifth level.
    let depth = limits.nesting - 5;
    let mut core = Conversation::new(limits.into(), traits, dialects);
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
            core.handle_frame(Side::Agent, frame, Instant::now(), &mut out);
            let reported = out.pop(Side::Client).unwrap();
            let reported = std::str::from_utf8(reported.as_bytes()).unwrap();
            assert!(reported.contains(&value), "{}", &reported[..200]);
            assert!(text.contains("bare") || reported == text);
            // The result is not tested here.
            let _ = redactor.json(text.as_bytes(), Some(b"session/update"));
        }
    }
    let note = |out: &mut Outbox| out.pop_note().map(|note| note.name());
    let notes: Vec<_> = std::iter::from_fn(|| note(&mut out)).collect();
    assert!(notes.contains(&"translated"), "{notes:?}");
}

#[test]
fn deep_nesting_costs_no_stack() {
    let thread = thread::Builder::new().stack_size(STACK).spawn(cross);
    thread.unwrap().join().unwrap();
}
