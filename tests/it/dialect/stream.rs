//! Whether a rule may apply to a message of a stream does not depend on the message before it.

use acp_relay::dialect::{Translator, Way};
use acp_relay::jsonrpc::{Envelope, Frame, Limits, Scanned, Side, scan};

use super::library;

/// Updates whose text is `%`.
const UPDATES: [&str; 11] = [
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%"}}"#,
    r#"{"content":{"text":"%","type":"text"},"sessionUpdate":"agent_message_chunk"}"#,
    r#"{"sessionUpdate": "agent_message_chunk", "content": {"text": "%", "type": "text"}}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"%"}}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":{"\"text":"%","type":"text"}}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":{"text":["%"],"type":"text"}}"#,
    r#"{"text":"%","sessionUpdate":"agent_message_chunk","content":"a"}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"text","text":"%"}]}"#,
    r#"{"sessionUpdate":"plan","entries":[{"text":"%"}]}"#,
    r#"{"kind":"agent_message_chunk","content":{"role":"assistant","content":[{"type":"text","text":"%"}]}}"#,
    r#"{"text":"%"}"#,
];

/// Texts, as they are spelled. Some close the string and go on.
const TEXTS: [&str; 12] = [
    "",
    "a",
    r#"\""#,
    r#"a\"b\"c"#,
    r"\\",
    r#"\\\""#,
    r"\u0022",
    r#"a","type":"image"#,
    r#"a","type":"resource_link","uri":"u"#,
    r#"a\","type":"image"#,
    r#"a"},"content":"b","x":{"y":"z"#,
    r#"a","sessionUpdate":"tool_call","x":"y"#,
];

#[test]
fn a_message_is_looked_up_as_if_it_were_the_first() {
    let messages = messages();
    assert!(messages.len() > 80, "{} messages", messages.len());
    for table in library().tables() {
        let program = library().program(&table.name).unwrap();
        let mut relay = Translator::new(Side::Agent, program.clone());
        for way in Way::BOTH {
            let first = |(frame, at): &(Frame, Envelope)| {
                Translator::new(Side::Agent, program.clone()).concerns(way, frame, at)
            };
            let expected: Vec<bool> = messages.iter().map(first).collect();
            for (before, at_before) in &messages {
                for ((frame, at), expected) in messages.iter().zip(&expected) {
                    let _ = relay.concerns(way, before, at_before);
                    assert_eq!(
                        relay.concerns(way, frame, at),
                        *expected,
                        "{}: {frame:?} after {before:?}",
                        table.name
                    );
                }
            }
        }
    }
}

/// The messages of all updates and texts that are valid together.
fn messages() -> Vec<(Frame, Envelope)> {
    let all = UPDATES.iter().flat_map(|update| {
        let text = |text: &&str| update.replace('%', text);
        TEXTS.iter().map(text).collect::<Vec<String>>()
    });
    let message = |update: String| {
        let frame = Frame::from(format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        ));
        match scan(&frame, &Limits::default()) {
            Scanned::Message(at) => Some((frame, at)),
            Scanned::Batch | Scanned::Invalid(_) => None,
        }
    };
    all.filter_map(message).collect()
}
