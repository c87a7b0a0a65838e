//! The messages that are measured.

use std::sync::Arc;

use acp_relay::dialect::{Library, Translator};
use acp_relay::jsonrpc::{Envelope, Frame, Limits, Scanned, Side, scan};

/// A message with its envelope.
pub(super) struct Sample {
    pub(super) frame: Frame,
    pub(super) at: Envelope,
}

impl Sample {
    pub(super) fn new(text: String) -> Self {
        let frame = Frame::from(text);
        let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
            panic!("it is a message")
        };
        Self { frame, at }
    }
}

/// A canonical update of `size` bytes: a chunk of an agent's message.
pub(super) fn chunk(size: usize) -> Sample {
    let frame = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let text = "word ".repeat(size.saturating_sub(frame("").len()) / 5);
    Sample::new(frame(&text))
}

/// A canonical update of 100 bytes.
pub(super) fn tiny() -> Sample {
    Sample::new(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"abcdefg"}}}"#.to_owned(),
    )
}

/// A tool call whose kind is not in v1, with an output of `size` bytes: lines of a program.
pub(super) fn elephant(size: usize) -> Sample {
    let line = r#"    let value = table.get(\"name\").map(|found| found.len());\n"#;
    let output = line.repeat(size / line.len());
    Sample::new(format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"sess_1","update":{{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"Send","kind":"channel","status":"pending","rawOutput":{{"text":"{output}"}}}}}}}}"#
    ))
}

/// A tool call in the form of the Go reference.
pub(super) fn goref() -> Sample {
    Sample::new(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"kind":"tool_call","toolCallId":"call_1","title":"Read","toolKind":"read","status":"pending","input":{"path":"/a"}}}}"#.to_owned(),
    )
}

/// A tool call with bare content, which `loose-v1` repairs.
pub(super) fn bare() -> Sample {
    Sample::new(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","content":[{"type":"text","text":"a file has been written, and all is well"}]}}}"#.to_owned(),
    )
}

/// A tool call with content in the form of v1.
pub(super) fn wrapped() -> Sample {
    Sample::new(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a file has been written"}}]}}}"#.to_owned(),
    )
}

/// The translation of an agent that speaks `dialect`.
pub(super) fn agent(dialect: &str) -> Translator {
    let library = Library::builtin();
    let program = library.program(dialect).expect("it is built in");
    Translator::new(Side::Agent, program)
}

/// The built-in tables and copies of them, `count` in all.
pub(super) fn library(count: usize) -> Arc<Library> {
    let mut library = Library::builtin();
    let (_, text) = Library::builtin_files()
        .find(|(_, text)| text.contains(r#""dialect": "elephant""#))
        .expect("elephant is built in");
    for number in library.tables().len()..count {
        let copy = text.replacen(
            r#""dialect": "elephant""#,
            &format!(r#""dialect": "copy-{number}""#),
            1,
        );
        let copy = copy.replace(r#""alex""#, &format!(r#""alex-{number}""#));
        library
            .add("copy.json", &copy)
            .expect("a copy has no faults");
    }
    Arc::new(library)
}
