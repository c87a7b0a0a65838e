//! The sessions of one conversation, as its canonical messages show them.
//!
//! Which session has a prompt in flight, which tool calls are open, which text was streamed in this
//! turn: the actions need it, and the slot `prompting_session`. Bounded.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::look::Look;
use super::pointer::Place;
use super::table::{Action, Expect, Guard, Literal};
use super::text;
use super::tree::Node;
use crate::jsonrpc::{Kind, Side};

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
    /// Prompts that are not answered yet.
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

/// What is tracked of sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// Which session has a prompt in flight.
    prompts: bool,
    calls: bool,
    config: bool,
    said: bool,
    /// The sessions of requests that concern models.
    models: bool,
    /// The sessions of all requests.
    requests: bool,
}

impl Watch {
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
            Action::OnlyNewText => self.said = true,
            Action::TellPermission | Action::StopReasonOfTurn => {}
            _ => (self.calls, self.config, self.said) = (true, true, true),
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
    pub(super) fn demand(self, mut tell: impl FnMut(Side, Kind, &str, Option<Guard>)) {
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
            tell(Side::Client, Kind::Request, method, None);
        }
        for method in others.iter().filter(|_| self.requests) {
            tell(Side::Client, Kind::Request, method, None);
        }
        if !self.prompts {
            return;
        }
        tell(Side::Client, Kind::Notification, "session/cancel", None);
        for kind in [Kind::Result, Kind::Error] {
            tell(Side::Agent, kind, "session/prompt", None);
        }
        for method in [
            "session/new",
            "session/load",
            "session/resume",
            "session/set_config_option",
        ] {
            tell(Side::Agent, Kind::Result, method, None);
        }
        let variants = [
            (self.calls, "\"tool_call\""),
            (self.calls, "\"tool_call_update\""),
            (self.said, "\"agent_message_chunk\""),
            (self.config, "\"config_option_update\""),
        ];
        let wanted = variants.iter().filter(|(wanted, _)| *wanted);
        let literals = wanted.map(|(_, variant)| Literal(variant.as_bytes().into()));
        let place = Place::parse("/update/sessionUpdate").expect("a pointer of ours parses");
        let guard = vec![(place, Expect::In(literals.collect()))];
        tell(
            Side::Agent,
            Kind::Notification,
            "session/update",
            Some(guard),
        );
    }
}

impl Sessions {
    /// A session by its id; a new one is inserted.
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

    /// Notes that a message of this session was seen, of which nothing else is needed.
    pub(super) fn touch(&mut self, body: &Node<'_>) {
        let json = body.look_at("sessionId").map(Look::json);
        if let Some(id) = json.as_deref().and_then(text::string) {
            self.enter(&id);
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

    /// Tracks a canonical message. For an answer, `method` and `asked_session` are those of its
    /// request.
    pub(super) fn see(
        &mut self,
        watch: Watch,
        from: Side,
        kind: Kind,
        method: &str,
        asked_session: Option<&str>,
        body: &Node<'_>,
    ) {
        let json = body.look_at("sessionId").map(Look::json);
        let own = json.as_deref().and_then(text::string);
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
                let session = self.enter(id);
                if let Some(update) = body.look_at("update") {
                    session.update(watch, update);
                }
            }
            (
                Side::Agent,
                Kind::Result,
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) => {
                let session = self.enter(id);
                if watch.config {
                    let options = body.look_at("configOptions").map(Look::json);
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

    fn update(&mut self, watch: Watch, update: Look<'_, '_>) {
        if !(watch.calls || watch.said || watch.config) {
            return;
        }
        let field = |name| text_of(update, name);
        let Some(variant) = field("sessionUpdate") else {
            return;
        };
        match &*variant {
            "tool_call" | "tool_call_update" if watch.calls => {
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
            "agent_message_chunk" if watch.said => {
                let content = update.child("content");
                let said = content.and_then(|content| text_of(content, "text"));
                self.said.push_str(&said.unwrap_or_default());
                if self.said.len() > SAID {
                    let mut cut = self.said.len() - SAID / 2;
                    while !self.said.is_char_boundary(cut) {
                        cut += 1;
                    }
                    self.said.drain(..cut);
                }
            }
            "config_option_update" if watch.config => {
                let options = update.child("configOptions").map(Look::json);
                self.options(options.as_deref());
            }
            _ => {}
        }
    }
}

/// The text of a member that is a string.
fn text_of<'t>(look: Look<'t, '_>, name: &str) -> Option<Cow<'t, str>> {
    match look.child(name)?.json() {
        Cow::Borrowed(raw) => text::string(raw),
        // A value made of parts is not a string.
        Cow::Owned(_) => None,
    }
}
