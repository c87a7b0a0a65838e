//! The sessions of one conversation, as its canonical messages show them.
//!
//! Which session has a prompt in flight, which tool calls are open, which text was streamed in this
//! turn: the actions need it, and the slot `prompting_session`. Bounded.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::pointer::own_pointer;
use super::recent::Recent;
use super::table::{Action, Expect, Guard, Literal};
use super::text;
use super::tree::{Node, ValueRef};
use crate::jsonrpc::{Kind, Side};

const CALLS: usize = 128;
const FIELD: usize = 16 << 10;
const STREAMED: usize = 64 << 10;

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// By id; the newest is the one that was seen last.
    all: Recent<Session, 256, { usize::MAX }>,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Prompts that are not answered yet.
    pub(super) prompts: u32,
    /// Whether the turn was cancelled.
    pub(super) cancelled: bool,
    /// The newest tool calls, newest last.
    pub(super) calls: VecDeque<ToolCall>,
    /// The last `configOptions`, as JSON.
    pub(super) config: Option<Vec<u8>>,
    /// The end of the text streamed in this turn.
    pub(super) streamed: String,
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

/// What is tracked of sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tracking {
    /// Which session has a prompt in flight.
    prompts: bool,
    calls: bool,
    config: bool,
    streamed: bool,
    /// The sessions of requests that concern models.
    models: bool,
    /// The sessions of all requests.
    requests: bool,
}

impl Tracking {
    /// Adds what an action needs.
    pub(super) fn add(&mut self, action: Action) {
        match action {
            Action::ModelOption | Action::ModeOption | Action::ChooseMode => {
                self.models = true;
                return;
            }
            Action::MissingSession => {
                self.requests = true;
                return;
            }
            Action::FindToolCall => self.calls = true,
            Action::RebuildConfigOptions => self.config = true,
            Action::OnlyNewText => self.streamed = true,
            Action::CancelledTurn
            | Action::DenyWithOption
            | Action::JoinPermissionTitle
            | Action::StopReasonOfTurn => {}
            Action::NumberToolCall
            | Action::NumberUpdate
            | Action::AskConfirmation
            | Action::OpenSession => {
                (self.calls, self.config, self.streamed) = (true, true, true);
            }
            _ => return,
        }
        self.prompts = true;
    }

    /// Adds what the slot `prompting_session` needs.
    pub(super) fn add_prompts(&mut self) {
        self.prompts = true;
    }

    pub(super) fn any(self) -> bool {
        self.prompts
    }

    /// Whether the sessions of requests are tracked.
    pub(super) fn requests(self) -> bool {
        self.requests || self.models
    }

    /// Calls `add` for each kind of message that must be seen: those of a method that meet a
    /// guard.
    pub(super) fn require(self, mut add: impl FnMut(Side, Kind, &str, Guard)) {
        let models = [
            "session/load",
            "session/resume",
            "session/set_config_option",
            "session/set_model",
            "session/set_mode",
        ];
        let others = [
            "session/prompt",
            "session/fork",
            "session/close",
            "session/delete",
        ];
        for method in models.iter().filter(|_| self.requests()) {
            add(Side::Client, Kind::Request, method, Guard::new());
        }
        for method in others.iter().filter(|_| self.requests) {
            add(Side::Client, Kind::Request, method, Guard::new());
        }
        if !self.prompts {
            return;
        }
        add(
            Side::Client,
            Kind::Notification,
            "session/cancel",
            Guard::new(),
        );
        for kind in [Kind::Result, Kind::Error] {
            add(Side::Agent, kind, "session/prompt", Guard::new());
        }
        for method in [
            "session/new",
            "session/load",
            "session/resume",
            "session/set_config_option",
        ] {
            add(Side::Agent, Kind::Result, method, Guard::new());
        }
        let variants = [
            (self.calls, "\"tool_call\""),
            (self.calls, "\"tool_call_update\""),
            (self.streamed, "\"agent_message_chunk\""),
            (self.config, "\"config_option_update\""),
        ];
        let wanted = variants.iter().filter(|(wanted, _)| *wanted);
        let literals = wanted.map(|(_, variant)| Literal(variant.as_bytes().into()));
        let place = own_pointer("/update/sessionUpdate");
        let guard = vec![(place, Expect::In(literals.collect()))];
        add(Side::Agent, Kind::Notification, "session/update", guard);
    }
}

impl Sessions {
    /// Notes that a message of this session was seen, of which nothing else is needed.
    pub(super) fn touch(&mut self, body: &Node<'_>) {
        let json = body.get_member("sessionId").map(ValueRef::json);
        if let Some(id) = json.as_deref().and_then(text::string) {
            self.all.get_or_default(&id);
        }
    }

    /// A session by its id.
    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.all.get(id)
    }

    /// The session that a message without a session id belongs to: the one with a prompt in flight,
    /// of several the one seen last; else the only one.
    pub(super) fn prompting(&self) -> Option<&str> {
        let mut sessions = self.all.newest_first();
        let busy = sessions.find(|(_, session)| session.prompts > 0);
        busy.map(|(id, _)| id).or_else(|| self.all.only())
    }

    /// Tracks a canonical message. For an answer, `method` and `request_session` are those of its
    /// request.
    pub(super) fn track(
        &mut self,
        tracking: Tracking,
        from: Side,
        kind: Kind,
        method: &str,
        request_session: Option<&str>,
        body: &Node<'_>,
    ) {
        let json = body.get_member("sessionId").map(ValueRef::json);
        let own = json.as_deref().and_then(text::string);
        let Some(id) = own.as_deref().or(request_session) else {
            return;
        };
        match (from, kind, method) {
            (Side::Client, Kind::Request, "session/prompt") => {
                let session = self.all.get_or_default(id);
                session.prompts += 1;
                session.cancelled = false;
                session.streamed.clear();
            }
            (Side::Agent, Kind::Result | Kind::Error, "session/prompt") => {
                let session = self.all.get_or_default(id);
                session.prompts = session.prompts.saturating_sub(1);
            }
            (Side::Client, Kind::Notification, "session/cancel") => {
                self.all.get_or_default(id).cancelled = true;
            }
            (Side::Agent, Kind::Notification, "session/update") => {
                let session = self.all.get_or_default(id);
                if let Some(update) = body.get_member("update") {
                    session.update(tracking, update);
                }
            }
            (
                Side::Agent,
                Kind::Result,
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) => {
                let session = self.all.get_or_default(id);
                if tracking.config {
                    let options = body.get_member("configOptions").map(ValueRef::json);
                    session.options(options.as_deref());
                }
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

    fn update(&mut self, tracking: Tracking, update: ValueRef<'_, '_>) {
        if !(tracking.calls || tracking.streamed || tracking.config) {
            return;
        }
        let field = |name| text_of(update, name);
        let Some(variant) = field("sessionUpdate") else {
            return;
        };
        match &*variant {
            "tool_call" | "tool_call_update" if tracking.calls => {
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
            "agent_message_chunk" if tracking.streamed => {
                let content = update.child("content");
                let text = content.and_then(|content| text_of(content, "text"));
                self.streamed.push_str(&text.unwrap_or_default());
                if self.streamed.len() > STREAMED {
                    let mut cut = self.streamed.len() - STREAMED / 2;
                    while !self.streamed.is_char_boundary(cut) {
                        cut += 1;
                    }
                    self.streamed.drain(..cut);
                }
            }
            "config_option_update" if tracking.config => {
                let options = update.child("configOptions").map(ValueRef::json);
                self.options(options.as_deref());
            }
            _ => {}
        }
    }
}

/// The text of a member that is a string.
fn text_of<'t>(look: ValueRef<'t, '_>, name: &str) -> Option<Cow<'t, str>> {
    match look.child(name)?.json() {
        Cow::Borrowed(raw) => text::string(raw),
        // A value made of parts is not a string.
        Cow::Owned(_) => None,
    }
}
