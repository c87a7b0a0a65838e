//! Any text as a mapping table, in JSON or in TOML: it is read, or refused with its faults; a table that was read can
//! translate messages.

#![no_main]

use acp_relay::dialect::{Library, Translator};
use acp_relay::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use libfuzzer_sys::fuzz_target;

/// Messages that tables are for.
const MESSAGES: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"a":[{"b":null}]}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"a"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"a","kind":"allow_once"}]}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#,
];

fuzz_target!(|text: &str| {
    let mut library = Library::default();
    let name = if text.starts_with('{') { "fuzz.json" } else { "fuzz.toml" };
    let table = match library.add(name, text) {
        Ok(table) => table,
        Err(faults) => {
            assert!(!faults.0.is_empty());
            assert!(!faults.to_string().is_empty());
            return;
        }
    };
    let _ = library.check_examples(&library.sources()[0]);
    // It may extend a table that does not exist.
    let Ok(program) = library.program(&table.name) else {
        return;
    };
    for peer in [Side::Client, Side::Agent] {
        let mut relay = Translator::new(peer, program.clone());
        for message in MESSAGES {
            let frame = Frame::from(message);
            let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
                unreachable!("the messages above are messages");
            };
            for outcome in [relay.read(&frame, &at), relay.write(&frame, &at)] {
                for output in outcome.frames(&frame).iter().chain(&outcome.replies) {
                    assert!(matches!(scan(output, &Limits::default()), Scanned::Message(_)));
                }
            }
        }
    }
});
