//! Actions for the original protocol (0.0.x), in which everything is a request and one session is
//! all there is (dialects.md §10).
//!
//! - `number_tool_call`: tool calls get numbers. Read, the bridge counts and answers the number;
//!   written, the client counts, and updates wait until it has told.
//! - `open_session`: a client that knows no sessions gets one: the bridge opens it after
//!   `initialize`, and prompts wait for it.
//!
//! Not here: confirmations (see `confirm`).

use std::collections::HashMap;

use super::run::{Scene, place, set};
use crate::dialect::asked::{Asked, Purpose};
use crate::dialect::message::{self, Message};
use crate::dialect::outcome::{Happened, Outcome, Pass};
use crate::dialect::table::Way;
use crate::dialect::text;
use crate::dialect::translate::Translator;
use crate::dialect::tree::Node;
use crate::wire::{Frame, Kind, Limits, Shape, scan};

/// Most tool calls that are numbered, and most messages that wait for something.
const NUMBERED: usize = 4096;
const WAITING: usize = 1024;

/// What the actions of the original protocol remember.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Legacy {
    /// The last number given to a tool call by the bridge.
    pub(super) last: u32,
    /// The numbers of canonical tool calls; `None` while the client has not told.
    pub(super) numbers: HashMap<String, Option<String>>,
    /// Updates that wait for a number, by tool call.
    waiting: Vec<(String, Frame)>,
    /// Whether a session was asked for.
    asked_session: bool,
    /// Whether there is one.
    has_session: bool,
    /// Prompts that wait for it.
    prompts: Vec<Frame>,
}

impl Translator {
    pub(super) fn number_tool_call<'a>(
        &mut self,
        message: &mut Message<'a>,
        asked: &mut Asked,
        scene: &mut Scene<'_, 'a>,
        out: &mut Outcome,
    ) {
        if scene.way == Way::Read {
            self.legacy.last += 1;
            let number = self.legacy.last.to_string();
            set(message, "/update/toolCallId", Node::string(&number));
            let value = format!("{{\"id\":{number}}}");
            let jsonrpc = self.answers_jsonrpc(Way::Read) && self.peer_says_jsonrpc();
            let id = scene.original.id.as_id();
            out.back
                .push(message::answer(id, "result", value.as_bytes(), jsonrpc));
            return;
        }
        let at = place("/update/toolCallId");
        let Some(call) = message.body.text_at(&at) else {
            return;
        };
        let first = message
            .body
            .text_at(&place("/update/sessionUpdate"))
            .as_deref()
            == Some("tool_call");
        match self.legacy.numbers.get(&call) {
            Some(Some(number)) => {
                let number = Node::string(number);
                set(message, "/update/toolCallId", number);
            }
            Some(None) if !first => {
                if self.legacy.waiting.len() < WAITING {
                    self.legacy.waiting.push((call, scene.original.frame(true)));
                }
                scene.hold = Some("an update waits for the number of its tool call".into());
            }
            _ => {
                if first && self.legacy.numbers.len() < NUMBERED {
                    self.legacy.numbers.insert(call.clone(), None);
                    asked.purpose = Purpose::ToolNumber(call);
                }
            }
        }
    }

    /// The peer has told the number of a tool call: what waited for it goes to the peer.
    pub(in crate::dialect) fn tool_number(
        &mut self,
        call: &str,
        message: &Message<'_>,
        out: &mut Outcome,
    ) {
        let json = message.body.json();
        let number = text::member(&json, "id").map(|id| String::from_utf8_lossy(id).into_owned());
        match number {
            Some(number) => {
                self.legacy.numbers.insert(call.to_owned(), Some(number));
            }
            None => {
                self.legacy.numbers.remove(call);
            }
        }
        out.note(Happened::Swallowed, None, "the number of a tool call");
        out.pass = Pass::Frames(Vec::new());
        let waiting = std::mem::take(&mut self.legacy.waiting);
        let (ready, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(waiting, _)| waiting == call);
        self.legacy.waiting = rest;
        for (_, frame) in ready {
            if let Shape::One(at) = scan(&frame, &Limits::default()) {
                let done = self.write(&frame, &at);
                out.back.extend(done.frames(&frame));
                out.fired.extend(done.fired);
                out.notes.extend(done.notes);
            }
        }
    }

    pub(super) fn open_session<'a>(
        &mut self,
        message: &mut Message<'a>,
        scene: &mut Scene<'_, 'a>,
        out: &mut Outcome,
    ) {
        match (scene.way, message.kind) {
            // The agent has answered `initialize` or `authenticate` of a client without sessions.
            (Way::Write, Kind::Result) if !self.legacy.asked_session => {
                self.legacy.asked_session = true;
                let id = self.mint();
                let asked = Asked {
                    dialect: "session/new".into(),
                    canonical: "session/new".into(),
                    purpose: Purpose::Session,
                    ..Asked::default()
                };
                self.requests(self.peer).ask(id.clone(), asked);
                let body = Node::raw(b"{\"cwd\":\"/\",\"mcpServers\":[]}");
                let made = Message::made(Kind::Request, id, "session/new", body);
                out.back.push(made.frame(true));
            }
            (Way::Read, Kind::Request) if self.legacy.asked_session && !self.legacy.has_session => {
                if self.legacy.prompts.len() < WAITING {
                    self.legacy.prompts.push(scene.original.frame(true));
                }
                scene.hold = Some("a prompt waits for its session".into());
            }
            _ => {}
        }
    }

    /// The agent has answered the bridge's own `session/new`.
    pub(in crate::dialect) fn session_opened(&mut self, message: &Message<'_>, out: &mut Outcome) {
        out.note(
            Happened::Swallowed,
            None,
            "the session of a client without sessions",
        );
        out.pass = Pass::Frames(Vec::new());
        if message.kind == Kind::Error {
            // Asked again after `authenticate`.
            self.legacy.asked_session = false;
        } else {
            self.legacy.has_session = true;
            self.sessions.see(
                self.peer.other(),
                Kind::Result,
                "session/new",
                None,
                &message.body,
            );
        }
        for frame in std::mem::take(&mut self.legacy.prompts) {
            if let Shape::One(at) = scan(&frame, &Limits::default()) {
                let done = self.read(&frame, &at);
                out.back.extend(done.frames(&frame));
                out.notes.extend(done.notes);
            }
        }
    }

    /// Whether the peer has to have `jsonrpc` in what it is answered.
    pub(super) const fn peer_says_jsonrpc(&self) -> bool {
        true
    }
}
