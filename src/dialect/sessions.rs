//! The sessions of one conversation, seen through its canonical messages.
//!
//! Which session has a prompt in flight, which tool calls are open, what was said in this turn:
//! the actions need it, and the slot `prompting_session`. Bounded. Not here: what is done with it
//! (see `action`).

use std::collections::VecDeque;

use super::text;
use super::tree::Node;
use crate::wire::{Kind, Side};

const SESSIONS: usize = 256;
const CALLS: usize = 128;
const FIELD: usize = 16 << 10;
const SAID: usize = 64 << 10;

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: VecDeque<Session>,
    clock: u64,
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    /// Prompts that await their result.
    pub(super) prompts: u32,
    /// Whether the turn was cancelled.
    pub(super) cancelled: bool,
    /// The newest tool calls, newest last.
    pub(super) calls: VecDeque<Call>,
    /// The last `configOptions`, as JSON.
    pub(super) config: Option<Vec<u8>>,
    /// The end of the text streamed in this turn.
    pub(super) said: String,
    touched: u64,
}

/// One tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) command: String,
    pub(super) done: bool,
}

impl Sessions {
    /// A session by its id, made when it is new.
    pub(super) fn enter(&mut self, id: &str) -> &mut Session {
        let found = self.all.iter().position(|session| session.id == id);
        let at = found.unwrap_or_else(|| {
            if self.all.len() >= SESSIONS {
                self.all.pop_front();
            }
            self.all.push_back(Session {
                id: id.to_owned(),
                prompts: 0,
                cancelled: false,
                calls: VecDeque::new(),
                config: None,
                said: String::new(),
                touched: 0,
            });
            self.all.len() - 1
        });
        self.clock += 1;
        let session = &mut self.all[at];
        session.touched = self.clock;
        session
    }

    /// A session by its id.
    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.all.iter().find(|session| session.id == id)
    }

    /// The session that a message without one belongs to: the one with a prompt in flight, of
    /// several the one heard of last; else the only one (dialects.md §6.2).
    pub(super) fn prompting(&self) -> Option<&str> {
        let busy = self.all.iter().filter(|session| session.prompts > 0);
        let newest = busy.max_by_key(|session| session.touched);
        let only = || (self.all.len() == 1).then(|| &self.all[0]);
        newest.or_else(only).map(|session| session.id.as_str())
    }

    /// Sees a canonical message. `asked` is the method that a result answers, with the session it
    /// was asked for.
    pub(super) fn see(
        &mut self,
        from: Side,
        kind: Kind,
        method: &str,
        asked_session: Option<&str>,
        body: &Node<'_>,
    ) {
        let json = body.json();
        let own = text::member(&json, "sessionId").and_then(text::string);
        let Some(id) = own.as_deref().or(asked_session) else {
            return;
        };
        match (from, kind, method) {
            (Side::Client, Kind::Request, "session/prompt") => {
                let session = self.enter(id);
                session.prompts += 1;
                session.cancelled = false;
                session.said.clear();
            }
            (Side::Agent, Kind::Result | Kind::Error, "session/prompt") => {
                let session = self.enter(id);
                session.prompts = session.prompts.saturating_sub(1);
            }
            (Side::Client, Kind::Notification, "session/cancel") => {
                self.enter(id).cancelled = true;
            }
            (Side::Agent, Kind::Notification, "session/update") => {
                if let Some(update) = text::member(&json, "update") {
                    self.enter(id).update(update);
                }
            }
            (
                Side::Agent,
                Kind::Result,
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) => {
                let session = self.enter(id);
                session.options(text::member(&json, "configOptions"));
            }
            _ => {}
        }
    }
}

impl Session {
    fn options(&mut self, options: Option<&[u8]>) {
        if let Some(options) = options.filter(|options| options.len() <= 16 * FIELD) {
            self.config = Some(options.to_vec());
        }
    }

    fn update(&mut self, update: &[u8]) {
        let field = |name| text::member(update, name).and_then(text::string);
        let Some(variant) = field("sessionUpdate") else {
            return;
        };
        match &*variant {
            "tool_call" | "tool_call_update" => {
                let Some(id) = field("toolCallId").filter(|id| id.len() <= FIELD) else {
                    return;
                };
                let found = self.calls.iter().position(|call| call.id == id);
                let mut call = found
                    .and_then(|at| self.calls.remove(at))
                    .unwrap_or_default();
                call.id = id.into_owned();
                let command = text::member(update, "rawInput")
                    .and_then(|input| text::member(input, "command"))
                    .and_then(text::string);
                for (own, new) in [
                    (&mut call.title, field("title")),
                    (&mut call.kind, field("kind")),
                    (&mut call.command, command),
                ] {
                    if let Some(new) = new.filter(|new| new.len() <= FIELD) {
                        *own = new.into_owned();
                    }
                }
                if let Some(status) = field("status") {
                    call.done = matches!(&*status, "completed" | "failed");
                }
                match found.filter(|_| variant != "tool_call") {
                    Some(at) => self.calls.insert(at.min(self.calls.len()), call),
                    None => self.calls.push_back(call),
                }
                if self.calls.len() > CALLS {
                    self.calls.pop_front();
                }
            }
            "agent_message_chunk" => {
                let content = text::member(update, "content");
                let said = content.and_then(|content| text::member(content, "text"));
                self.said
                    .push_str(&said.and_then(text::string).unwrap_or_default());
                if self.said.len() > SAID {
                    let mut cut = self.said.len() - SAID / 2;
                    while !self.said.is_char_boundary(cut) {
                        cut += 1;
                    }
                    self.said.drain(..cut);
                }
            }
            "config_option_update" => self.options(text::member(update, "configOptions")),
            _ => {}
        }
    }
}
