//! The sessions of one conversation, as its canonical messages show them.
//!
//! Which session has a prompt in flight, which tool calls are open, which text was streamed in this
//! turn: the actions need it, and the slot `prompting_session`. Bounded.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::pointer::JsonPointer;
use super::table::{Action, Expect, Guard, Literal};
use super::text;
use super::tree::Node;
use super::value_ref::ValueRef;
use crate::jsonrpc::{Kind, Side};

const SESSIONS: usize = 256;
const CALLS: usize = 128;
const FIELD: usize = 16 << 10;
const STREAMED: usize = 64 << 10;

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
    touched: u64,
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
            Action::RejectUnsupported
            | Action::SetModel
            | Action::ModelsOfOptions
            | Action::ModelsUpdate
            | Action::FailTurn
            | Action::AnnounceToolCall
            | Action::BeginToolCall
            | Action::AcceptUnsupported
            | Action::AbsolutePaths
            | Action::PlainPath
            | Action::AuthMethod
            | Action::SliceLines
            | Action::PlainEnvelope
            | Action::IsoTimes
            | Action::PlainCommands
            | Action::MergePlan => return,
            Action::CancelledTurn | Action::DenyWithOption => {}
            Action::FindToolCall => self.calls = true,
            Action::RebuildConfigOptions => self.config = true,
            Action::OnlyNewText => self.streamed = true,
            Action::TellPermission | Action::StopReasonOfTurn => {}
            _ => (self.calls, self.config, self.streamed) = (true, true, true),
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

    /// Calls `add` for each kind of message that must be seen: all of a method, or those that meet
    /// a guard.
    pub(super) fn require(self, mut add: impl FnMut(Side, Kind, &str, Option<Guard>)) {
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
            add(Side::Client, Kind::Request, method, None);
        }
        for method in others.iter().filter(|_| self.requests) {
            add(Side::Client, Kind::Request, method, None);
        }
        if !self.prompts {
            return;
        }
        add(Side::Client, Kind::Notification, "session/cancel", None);
        for kind in [Kind::Result, Kind::Error] {
            add(Side::Agent, kind, "session/prompt", None);
        }
        for method in [
            "session/new",
            "session/load",
            "session/resume",
            "session/set_config_option",
        ] {
            add(Side::Agent, Kind::Result, method, None);
        }
        let variants = [
            (self.calls, "\"tool_call\""),
            (self.calls, "\"tool_call_update\""),
            (self.streamed, "\"agent_message_chunk\""),
            (self.config, "\"config_option_update\""),
        ];
        let wanted = variants.iter().filter(|(wanted, _)| *wanted);
        let literals = wanted.map(|(_, variant)| Literal(variant.as_bytes().into()));
        let place = JsonPointer::parse("/update/sessionUpdate").expect("a pointer of ours parses");
        let guard = vec![(place, Expect::In(literals.collect()))];
        add(
            Side::Agent,
            Kind::Notification,
            "session/update",
            Some(guard),
        );
    }
}

impl Sessions {
    /// A session by its id; a new one is inserted.
    pub(super) fn get_or_insert(&mut self, id: &str) -> &mut Session {
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
                streamed: String::new(),
                touched: 0,
            });
            self.all.len() - 1
        });
        self.clock += 1;
        let session = &mut self.all[at];
        session.touched = self.clock;
        session
    }

    /// Notes that a message of this session was seen, of which nothing else is needed.
    pub(super) fn touch(&mut self, body: &Node<'_>) {
        let json = body.get_member("sessionId").map(ValueRef::json);
        if let Some(id) = json.as_deref().and_then(text::string) {
            self.get_or_insert(&id);
        }
    }

    /// A session by its id.
    pub(super) fn get(&self, id: &str) -> Option<&Session> {
        self.all.iter().find(|session| session.id == id)
    }

    /// The session that a message without a session id belongs to: the one with a prompt in flight,
    /// of several the one seen last; else the only one.
    pub(super) fn prompting(&self) -> Option<&str> {
        let busy = self.all.iter().filter(|session| session.prompts > 0);
        let newest = busy.max_by_key(|session| session.touched);
        let only = || (self.all.len() == 1).then(|| &self.all[0]);
        newest.or_else(only).map(|session| session.id.as_str())
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
                let session = self.get_or_insert(id);
                session.prompts += 1;
                session.cancelled = false;
                session.streamed.clear();
            }
            (Side::Agent, Kind::Result | Kind::Error, "session/prompt") => {
                let session = self.get_or_insert(id);
                session.prompts = session.prompts.saturating_sub(1);
            }
            (Side::Client, Kind::Notification, "session/cancel") => {
                self.get_or_insert(id).cancelled = true;
            }
            (Side::Agent, Kind::Notification, "session/update") => {
                let session = self.get_or_insert(id);
                if let Some(update) = body.get_member("update") {
                    session.update(tracking, update);
                }
            }
            (
                Side::Agent,
                Kind::Result,
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) => {
                let session = self.get_or_insert(id);
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
