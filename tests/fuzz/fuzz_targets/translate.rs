//! Any lines as a conversation in any built-in dialect: each output is a message.
//!
//! The first byte selects the dialect and the peer's side; the first byte of each line that follows
//! selects its direction.

#![no_main]

use std::sync::LazyLock;

use acp_relay::dialect::{Library, Forward, Translator};
use acp_relay::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use libfuzzer_sys::fuzz_target;

static LIBRARY: LazyLock<Library> =
    LazyLock::new(|| Library::builtin());

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let tables = LIBRARY.tables();
    let table = &tables[usize::from(first >> 1) % tables.len()];
    let peer = if first & 1 == 0 {
        Side::Client
    } else {
        Side::Agent
    };
    let program = LIBRARY.program(&table.name).expect("it is built in");
    let mut relay = Translator::new(peer, program);
    for line in rest.split(|byte| *byte == b'\n') {
        let Some((way, text)) = line.split_first() else {
            continue;
        };
        let frame = Frame::new(text.to_vec());
        let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
            continue;
        };
        let outcome = if way & 1 == 0 {
            relay.read(&frame, &at)
        } else {
            relay.write(&frame, &at)
        };
        if let Forward::Frames(frames) = &outcome.forward {
            for output in frames {
                assert!(matches!(scan(output, &Limits::default()), Scanned::Message(_)));
            }
        }
        for output in &outcome.replies {
            assert!(matches!(scan(output, &Limits::default()), Scanned::Message(_)));
        }
    }
});
