//! Any lines between a v1 and a v2 peer, in both topologies, and any text as a patch of git: what
//! is sent are messages, and no request is answered twice.
//!
//! The first byte of each line selects who sends it, or how much time passes before.

#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use acp_relay::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use acp_relay::dialect::Library;
use acp_relay::dialect::versions::VersionPolicies;
use acp_relay::jsonrpc::{Frame, IdBuf, Kind, Limits, Scanned, Side, scan};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| Arc::new(Library::builtin()));

/// The `initialize` of a client and the result of an agent, by the client's version.
const OPENINGS: [[&str; 2]; 2] = [
    [
        r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"terminal_output":true}}}}"#,
        r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}"#,
    ],
    [
        r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#,
    ],
];

struct World {
    relay: Conversation,
    out: Outbox,
    now: Instant,
    limits: Arc<Limits>,
    /// How often each side may get an answer with an id.
    open: [HashMap<IdBuf, usize>; 2],
}

impl World {
    fn new(opening: [&str; 2]) -> Self {
        let limits = Arc::new(Limits::default());
        let plain = DialectChoice::Canonical;
        let dialects = DialectOptions::new(&LIBRARY, &plain, &plain)
            .expect("it is built in")
            .with_versions(Arc::clone(&limits), VersionPolicies::default(), [None; 2]);
        let mut world = Self {
            relay: Conversation::new(Arc::clone(&limits), LinkTraits::default(), dialects, Instant::now()),
            out: Outbox::new(&limits),
            now: Instant::now(),
            limits,
            open: [HashMap::new(), HashMap::new()],
        };
        for (side, text) in [Side::Client, Side::Agent].into_iter().zip(opening) {
            world.send(side, text.as_bytes());
        }
        world
    }

    fn send(&mut self, from: Side, text: &[u8]) {
        let frame = Frame::new(text.to_vec());
        match scan(&frame, &self.limits) {
            Scanned::Message(at) if at.kind == Kind::Request => {
                let id = at.id(&frame).to_owned();
                *self.open[from as usize].entry(id).or_default() += 1;
            }
            // The answers to a batch are one array.
            Scanned::Batch => return,
            _ => {}
        }
        self.relay
            .handle_frame(from, frame, self.now, &mut self.out);
        self.deliver();
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.relay.handle_timeout(self.now, &mut self.out);
        self.deliver();
    }

    fn deliver(&mut self) {
        while self.out.pop_note().is_some() {}
        while self.out.pop_command().is_some() {}
        for side in [Side::Client, Side::Agent] {
            while let Some(frame) = self.out.pop(side) {
                let Scanned::Message(at) = scan(&frame, &self.limits) else {
                    panic!("the {side} gets no message: {frame:?}");
                };
                let id = at.id(&frame);
                if at.kind.is_answer() && id.is_value() {
                    let open = self.open[side as usize].get_mut(&id.to_owned());
                    let open = open.filter(|open| **open > 0);
                    *open.unwrap_or_else(|| panic!("answered twice: {frame:?}")) -= 1;
                }
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    for opening in OPENINGS {
        let mut world = World::new(opening);
        for line in bytes.split(|byte| *byte == b'\n') {
            match line.split_first() {
                Some((b'0'..=b'9', _)) => {
                    let time = u64::from(line[0] - b'0') * 100;
                    world.wait(Duration::from_millis(time));
                }
                Some((way, text)) if way & 1 == 0 => world.send(Side::Client, text),
                Some((_, text)) => world.send(Side::Agent, text),
                None => {}
            }
        }
        let patch = String::from_utf8_lossy(bytes);
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s", "update": {
                "sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [{
                    "type": "diff",
                    "changes": [{"operation": "modify", "path": "/a"}],
                    "patch": {"format": "git_patch", "text": patch},
                }],
            },
        }});
        world.send(Side::Agent, update.to_string().as_bytes());
    }
});
