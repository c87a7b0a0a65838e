//! The sessions of one conversation, as its canonical messages show them.
//!
//! Which session has a prompt in flight, which tool calls are open, which text was streamed in this
//! turn: the actions need it, and the slot `prompting_session`. Bounded.

use std::borrow::Cow;
use std::collections::VecDeque;

use hashlink::LinkedHashMap;

use super::memory::{Remembered, text as capacity};
use super::text;
use super::tree::{Node, ValueRef};
use jsonrpc::{Kind, Side};

const CALLS: usize = 128;
const FIELD: usize = 16 << 10;
const LIST: usize = 16 * FIELD;
const STREAMED: usize = 64 << 10;

/// Maximum number of sessions; the one that was seen first is forgotten.
const SESSIONS: usize = 256;

/// All sessions, by id; the newest is the one that was seen last.
#[derive(Debug, Default)]
pub(super) struct Sessions(pub(super) LinkedHashMap<Box<str>, Session>);

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Prompts that are not answered yet.
    pub(super) prompts: u32,
    /// Whether the turn was cancelled.
    pub(super) cancelled: bool,
    /// The newest tool calls, newest last.
    pub(super) calls: VecDeque<ToolCall>,
    /// The canonical `configOptions` sent last, as JSON.
    pub(super) config: Option<Vec<u8>>,
    /// The end of the text streamed in this turn.
    pub(super) streamed: String,
    /// The agent's `models`, as JSON; empty when they are too long to be remembered.
    pub(super) models: Option<Vec<u8>>,
    /// Whether the agent has no `session/set_model`.
    pub(super) lacks_set_model: bool,
    /// Whether its modes are in a list of options that the bridge has made.
    pub(super) with_modes: bool,
    /// Its working directory.
    pub(super) cwd: Option<String>,
    /// The entries of the plan sent last.
    pub(super) plan: Vec<u8>,
}

/// One tool call.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) command: String,
    pub(super) done: bool,
}

impl Sessions {
    /// A session by its id.
    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.0.get(id)
    }

    /// The same, and it becomes the newest; one that is not known is added.
    pub(super) fn see(&mut self, id: &str) -> &mut Session {
        if self.0.to_back(id).is_none() {
            if self.0.len() >= SESSIONS {
                self.0.pop_front();
            }
            self.0.insert(id.into(), Session::default());
        }
        self.0.get_mut(id).expect("it was inserted above")
    }

    /// The id, if there is exactly one session.
    pub(super) fn only(&self) -> Option<&str> {
        let (id, _) = self.0.front().filter(|_| self.0.len() == 1)?;
        Some(id)
    }

    /// The session that a message without a session id belongs to: the one with a prompt in flight,
    /// of several the one seen last; else the only one.
    pub(super) fn prompting(&self) -> Option<&str> {
        let mut sessions = self.0.iter().rev();
        let busy = sessions.find(|(_, session)| session.prompts > 0);
        busy.map(|(id, _)| &**id).or_else(|| self.only())
    }

    /// Tracks a canonical message. For an answer, `method` and `request_session` are those of its
    /// request.
    pub(super) fn track(
        &mut self,
        from: Side,
        kind: Kind,
        method: &str,
        request_session: Option<&str>,
        body: &Node<'_>,
    ) {
        let own = body.find("/sessionId").map(ValueRef::json);
        let own = own.as_deref().and_then(text::string);
        let Some(id) = own.as_deref().or(request_session) else {
            return;
        };
        match (from, kind, method) {
            (Side::Client, Kind::Request, "session/prompt") => {
                let session = self.see(id);
                session.prompts += 1;
                session.cancelled = false;
                session.streamed.clear();
            }
            (Side::Agent, Kind::Result | Kind::Error, "session/prompt") => {
                let session = self.see(id);
                session.prompts = session.prompts.saturating_sub(1);
            }
            (Side::Client, Kind::Notification, "session/cancel") => self.see(id).cancelled = true,
            (Side::Agent, Kind::Notification, "session/update") => {
                let session = self.see(id);
                if let Some(update) = body.find("/update") {
                    session.update(update);
                }
            }
            (
                Side::Agent,
                Kind::Result,
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) => {
                let options = body.find("/configOptions").map(ValueRef::json);
                self.see(id).set_config(options.as_deref());
            }
            _ => {}
        }
    }
}

impl Session {
    /// Remembers the agent's `models`.
    pub(super) fn set_models(&mut self, mut models: Vec<u8>) {
        if models.len() > LIST {
            models.clear();
        }
        self.models = Some(models);
    }

    /// Remembers the options sent last; a list that is too long is not remembered.
    pub(super) fn set_config(&mut self, options: Option<&[u8]>) {
        if let Some(options) = options.filter(|options| options.len() <= LIST) {
            self.config = Some(options.to_vec());
        }
    }

    fn update(&mut self, update: ValueRef<'_, '_>) {
        let field = |name| text_of(update, name);
        let Some(variant) = field("sessionUpdate") else {
            return;
        };
        match &*variant {
            "tool_call" | "tool_call_update" => {
                let Some(id) = field("toolCallId").filter(|id| id.len() <= FIELD) else {
                    return;
                };
                let found = self.calls.iter().position(|call| call.id == *id);
                let mut call = found
                    .and_then(|at| self.calls.remove(at))
                    .unwrap_or_default();
                call.id = id.into_owned();
                let command = update
                    .child("rawInput")
                    .and_then(|input| text_of(input, "command"));
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
                let content = update.child("content");
                let text = content.and_then(|content| text_of(content, "text"));
                self.streamed
                    .push_str(end(&text.unwrap_or_default(), STREAMED));
                if self.streamed.len() > STREAMED {
                    self.streamed = end(&self.streamed, STREAMED / 2).to_owned();
                }
            }
            "config_option_update" => {
                let options = update.child("configOptions").map(ValueRef::json);
                self.set_config(options.as_deref());
            }
            _ => {}
        }
    }
}

impl Remembered for Session {
    fn weight(&self) -> usize {
        let call = |call: &ToolCall| {
            let texts = [&call.id, &call.title, &call.kind, &call.command];
            size_of_val(call) + texts.map(String::capacity).iter().sum::<usize>()
        };
        let values = [&self.config, &self.models].into_iter().flatten();
        self.calls.iter().map(call).sum::<usize>()
            + values.chain([&self.plan]).map(Vec::capacity).sum::<usize>()
            + self.streamed.capacity()
            + capacity(self.cwd.as_ref())
    }

    fn forget(&mut self) {
        self.calls = VecDeque::new();
        (self.config, self.models) = (None, None);
        self.streamed = String::new();
        self.plan = Vec::new();
    }
}

/// The end of a text, of that length at most.
fn end(text: &str, longest: usize) -> &str {
    let mut cut = text.len().saturating_sub(longest);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    &text[cut..]
}

/// The text of a member that is a string.
fn text_of<'t>(look: ValueRef<'t, '_>, name: &str) -> Option<Cow<'t, str>> {
    match look.child(name)?.json() {
        Cow::Borrowed(raw) => text::string(raw),
        // A value made of parts is not a string.
        Cow::Owned(_) => None,
    }
}
