//! What the translations of a conversation remember stays within `translation-bytes`, measured by
//! what is really allocated; what cannot be forgotten ends the conversation with an error.

use std::sync::Arc;
use std::time::Instant;

use acp_relay::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use acp_relay::dialect::Library;
use acp_relay::dialect::versions::VersionPolicies;
use acp_relay::jsonrpc::{Frame, Limits, Side};
use serde_json::{Value, json};

/// The bound in these tests, and the length of a long message.
const LIMIT: usize = 2 << 20;
const LONG: usize = 1 << 20;

/// A conversation whose peers receive at once. It keeps the notes and the errors that were sent,
/// shortened.
pub(super) struct Talk {
    core: Conversation,
    out: Outbox,
    notes: Vec<String>,
    errors: Vec<String>,
    /// The last messages that each side has received, shortened.
    pub(super) received: [Vec<String>; 2],
}

impl Talk {
    /// Peers that have initialised, each in its version.
    pub(super) fn of(client: u32, agent: u32) -> Self {
        let library = Arc::new(Library::builtin());
        let limits = Arc::new(Limits {
            translation_bytes: LIMIT,
            ..Limits::default()
        });
        let auto = DialectChoice::Auto;
        let dialects = DialectOptions::new(&library, &auto, &auto)
            .unwrap()
            .with_versions(Arc::clone(&limits), VersionPolicies::default(), [None; 2]);
        let mut talk = Self {
            out: Outbox::new(&limits),
            core: Conversation::new(limits, LinkTraits::default(), dialects, Instant::now()),
            notes: Vec::new(),
            errors: Vec::new(),
            received: Default::default(),
        };
        let hello = match client {
            1 => json!({"protocolVersion": 1, "clientInfo": {"name": "c", "version": "1"}}),
            _ => json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"},
                        "capabilities": {}}),
        };
        let welcome = match agent {
            1 => json!({"protocolVersion": 1, "agentInfo": {"name": "goose", "version": "1"}}),
            _ => json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"},
                        "capabilities": {"session": {}}, "authMethods": []}),
        };
        talk.ask(Side::Client, "h", "initialize", &hello);
        talk.answer(Side::Agent, "h", &welcome);
        talk
    }

    fn send(&mut self, from: Side, message: &Value) {
        let frame = Frame::from(message.to_string());
        self.core
            .handle_frame(from, frame, Instant::now(), &mut self.out);
        while let Some(note) = self.out.pop_note() {
            self.notes.push(note.to_string());
        }
        for to in [Side::Client, Side::Agent] {
            while let Some(frame) = self.out.pop(to) {
                let text = String::from_utf8_lossy(frame.as_bytes());
                let short: String = text.chars().take(400).collect();
                if text.contains(r#""error":{"#) {
                    self.errors.push(short.clone());
                }
                self.received[to as usize].push(short);
            }
        }
    }

    pub(super) fn ask(&mut self, from: Side, id: &str, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(from, &message);
    }

    pub(super) fn answer(&mut self, from: Side, id: &str, result: &Value) {
        self.send(from, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.send(Side::Agent, &message);
    }

    /// What is allocated after a play, and was not before it.
    fn held(&mut self, play: impl FnOnce(&mut Self)) -> usize {
        let held = allocation_counter::measure(|| {
            play(self);
            self.received = Default::default();
            self.notes.dedup();
            self.notes.shrink_to_fit();
        });
        usize::try_from(held.bytes_current).unwrap_or(0)
    }

    fn has_ended(&self) -> bool {
        self.out.close_reason(Side::Agent).is_some()
    }

    /// The sessions were forgotten, and the conversation goes on.
    fn assert_forgets(&self, held: usize) {
        assert!(held < 2 * LIMIT, "{held} bytes are held");
        assert!(!self.has_ended(), "{:?}", self.notes);
        let forgets = |note: &String| note.contains("for translation-bytes");
        assert!(self.notes.iter().any(forgets), "{:?}", self.notes);
    }

    /// The conversation has ended, and an open request of the client got an error with the limit.
    fn assert_ends(&self, id: &str) {
        assert!(self.has_ended(), "{:?}", self.notes);
        let tells = |error: &&String| error.contains("translation-bytes");
        let told = self.errors.iter().find(tells);
        let told = told.unwrap_or_else(|| panic!("{:?} {:?}", self.errors, self.notes));
        assert!(told.contains(&format!("\"{id}\"")), "{told}");
    }
}

fn long() -> String {
    "x".repeat(LONG)
}

#[test]
fn the_end_of_a_streamed_text_does_not_keep_the_room_of_all_of_it() {
    let mut talk = Talk::of(1, 1);
    let text = json!({"sessionUpdate": "agent_message_chunk",
                      "content": {"type": "text", "text": long()}});
    let held = talk.held(|talk| {
        for session in 0..30 {
            talk.update(&format!("s{session}"), &text);
        }
    });
    assert!(held < 2 * LIMIT + 30 * (64 << 10), "{held} bytes are held");
    assert!(!talk.has_ended(), "{:?}", talk.notes);
}

#[test]
fn what_a_named_dialect_knows_of_many_sessions_is_forgotten() {
    let mut talk = Talk::of(1, 1);
    let title = "t".repeat(16 << 10);
    let held = talk.held(|talk| {
        for session in 0..40 {
            for call in 0..16 {
                let update = json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{call}"),
                                    "title": title, "kind": "execute",
                                    "rawInput": {"command": title}});
                talk.update(&format!("s{session}"), &update);
            }
        }
    });
    talk.assert_forgets(held);
}

#[test]
fn the_end_of_a_terminal_does_not_keep_the_room_of_all_of_it() {
    let mut talk = Talk::of(1, 2);
    let data = data_encoding::BASE64.encode(long().as_bytes());
    let held = talk.held(|talk| {
        for terminal in 0..24 {
            let id = format!("t{terminal}");
            let chunk = json!({"sessionUpdate": "terminal_output_chunk", "terminalId": id,
                               "data": data});
            talk.update("s", &chunk);
        }
    });
    assert!(held < 2 * LIMIT, "{held} bytes are held");
    assert!(!talk.has_ended(), "{:?}", talk.notes);
}

#[test]
fn what_is_known_of_many_sessions_of_a_v2_agent_is_forgotten() {
    let mut talk = Talk::of(1, 2);
    let small = json!([{"type": "content", "content": {"type": "text", "text": "x"}}]);
    let items: Vec<Value> = (0..100).map(|_| small[0].clone()).collect();
    let entry = json!({"content": "x", "priority": "low", "status": "pending"});
    let entries = vec![entry; 100];
    let held = talk.held(|talk| {
        for session in 0..64 {
            let id = format!("s{session}");
            for part in 0..8 {
                let call = json!({"sessionUpdate": "tool_call_update",
                                  "toolCallId": format!("c{part}"), "content": items});
                talk.update(&id, &call);
                let plan = json!({"type": "items", "planId": format!("p{part}"),
                                  "entries": entries});
                talk.update(&id, &json!({"sessionUpdate": "plan_update", "plan": plan}));
                let said = json!({"sessionUpdate": "agent_message_chunk",
                                  "messageId": format!("m{part}{}", "i".repeat(4000)),
                                  "content": {"type": "text", "text": "x"}});
                talk.update(&id, &said);
            }
        }
    });
    talk.assert_forgets(held);
    // What comes later is translated.
    talk.update(
        "s1",
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "again"}),
    );
    let last = talk.received[Side::Client as usize].last().unwrap();
    assert!(
        last.contains("again") && last.contains(r#""tool_call""#),
        "{last}"
    );
}

#[test]
fn open_permissions_with_long_options_end_the_conversation() {
    let asked = |id: &str| {
        let option =
            json!({"optionId": format!("{id}{}", long()), "name": "n", "kind": "allow_once"});
        json!({"sessionId": "s", "title": "t", "toolCall": {"toolCallId": "c", "title": "t"},
               "options": [option]})
    };
    for agent in [1, 2] {
        let mut talk = Talk::of(1, agent);
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]});
        talk.ask(Side::Client, "prompt", "session/prompt", &prompt);
        for request in 0..8 {
            let id = format!("p{request}");
            talk.ask(Side::Agent, &id, "session/request_permission", &asked(&id));
        }
        talk.assert_ends("prompt");
    }
}

#[test]
fn long_options_of_many_sessions_end_the_conversation() {
    for (client, agent) in [(1, 2), (2, 1)] {
        let mut talk = Talk::of(client, agent);
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]});
        talk.ask(Side::Client, "prompt", "session/prompt", &prompt);
        for session in 0..8 {
            let options = json!([{"id": "o", "name": long(), "type": "select",
                                  "currentValue": "x", "options": []}]);
            let update = json!({"sessionUpdate": "config_option_update", "configOptions": options});
            talk.update(&format!("s{session}"), &update);
        }
        talk.assert_ends("prompt");
    }
}

#[test]
fn a_prompt_that_cannot_be_kept_is_refused() {
    for (client, agent) in [(1, 2), (2, 1)] {
        let mut talk = Talk::of(client, agent);
        let text = "x".repeat(LIMIT / 2);
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
        talk.ask(Side::Client, "long", "session/prompt", &prompt);
        let [error] = &talk.errors[..] else {
            panic!("{:?}", talk.errors);
        };
        assert!(
            error.contains("translation-bytes") && error.contains("long"),
            "{error}"
        );
        assert!(!talk.has_ended(), "{:?}", talk.notes);
    }
}

#[test]
fn answers_to_batches_that_wait_too_long_come_alone() {
    let mut talk = Talk::of(2, 1);
    let ask =
        |id: usize| json!({"jsonrpc": "2.0", "id": format!("b{id}"), "method": "session/list"});
    let batch: Vec<Value> = (0..9).map(ask).collect();
    talk.send(Side::Client, &Value::from(batch));
    let held = talk.held(|talk| {
        for id in 0..8 {
            let sessions = json!({"sessions": [{"sessionId": "s", "cwd": "/", "title": long()}]});
            talk.answer(Side::Agent, &format!("b{id}"), &sessions);
        }
    });
    assert!(held < LIMIT + (2 * LONG), "{held} bytes are held");
}
