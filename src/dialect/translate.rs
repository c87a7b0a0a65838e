//! Translates the messages of one peer, with the state of the conversation.
//!
//! `read` translates messages from the peer, `write` those to it. `step` applies one rule, and
//! `detect` finds the dialect of a peer.

use std::sync::Arc;

use smallvec::SmallVec;

use super::action::{WAITING, WAITING_BYTES};
use super::convert::text_block;
use super::message::{self, Message};
use super::methods::{MethodName, method_of};
use super::pending::{PendingRequest, Purpose, is_int32};
use super::permission;
use super::pointer::own_pointer;
use super::program::Program;
use super::table::Way;
use super::text;
use super::translation::{DialectEvent, Forward, Translation};
use super::translator::{PERMISSION, Translator};
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Limits, Scanned, Side, scan};

/// Cancels a request, which it names in its params.
const CANCEL_REQUEST: &str = "$/cancel_request";

impl Translator {
    /// From the dialect to canonical: a message the peer has sent.
    pub fn read(&mut self, frame: &Frame, at: &Envelope) -> Translation {
        let mut outcome = self.translate(Way::Read, frame, at);
        if outcome.forward == Forward::Unchanged && !at.jsonrpc {
            outcome.forward = Forward::Frames(vec![message::with_jsonrpc(frame)]);
        }
        outcome
    }

    /// From canonical to the dialect: a message to the peer.
    pub fn write(&mut self, frame: &Frame, at: &Envelope) -> Translation {
        let mut outcome = Translation::default();
        if self.queue_behind(frame, &mut outcome) {
            return outcome;
        }
        outcome = self.translate(Way::Write, frame, at);
        if at.kind == Kind::Notification && self.program.int_ids() {
            self.renumber_cancel(frame, at, &mut outcome);
        }
        self.send_stop_notice(frame, &mut outcome);
        outcome
    }

    pub(super) fn translate(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Translation {
        let from = self.from(way);
        let mut out = Translation::default();
        let body = &message::body(frame, at);
        let strips = way == Way::Write && self.program.strips_jsonrpc() && at.jsonrpc;
        let lacks_params = way == Way::Write && self.program.requires_params() && at.body.is_none();
        match at.kind {
            Kind::Notification => {
                if !self.is_untouched(way, frame, at) {
                    let message = Message::parse(frame, at, method_of(frame, at));
                    self.run(way, message, PendingRequest::default(), &mut out);
                }
            }
            Kind::Request => {
                let method = method_of(frame, at);
                let looked_at = strips
                    || lacks_params
                    || *method == *PERMISSION
                    || self.program.remembers()
                    || self.program.tracking.follows(&method)
                    || self.program.int_ids()
                    || self.may_match(way, at.kind, &method, body);
                if looked_at {
                    let message = Message::parse(frame, at, method);
                    self.run(way, message, PendingRequest::default(), &mut out);
                } else {
                    let id = at.id(frame).to_owned();
                    self.requests(from)
                        .insert(id, PendingRequest::of(&method, &method));
                }
            }
            Kind::Result | Kind::Error => {
                let id = at.id(frame).to_owned();
                let Some(pending) = self.requests(from.other()).remove(&id) else {
                    return out;
                };
                let looked_at = strips
                    || *pending.canonical == *PERMISSION
                    || !pending.is_plain()
                    || self.program.remembers()
                    || self.may_match(way, at.kind, &pending.dialect, body)
                    || pending.dialect != pending.canonical
                        && self.may_match(way, at.kind, &pending.canonical, body);
                if looked_at {
                    let method = match way {
                        Way::Read => pending.dialect.clone(),
                        Way::Write => pending.canonical.clone(),
                    };
                    let message = Message::parse(frame, at, method);
                    self.handle_answer(way, message, pending, &mut out);
                }
            }
        }
        out
    }

    fn handle_answer(
        &mut self,
        way: Way,
        mut message: Message<'_>,
        pending: PendingRequest,
        out: &mut Translation,
    ) {
        if let Some(id) = &pending.sender_id {
            message.id = id.clone();
            message.changed = true;
        }
        match &pending.purpose {
            Purpose::Forward => {}
            Purpose::Swallow => {
                out.note(
                    DialectEvent::Swallowed,
                    None,
                    format!("answer to {}", pending.dialect),
                );
                out.forward = Forward::Frames(Vec::new());
                return;
            }
            Purpose::ToolNumber(call) => {
                let call = call.clone();
                self.receive_tool_number(&call, &message, out);
                return;
            }
            Purpose::Session => {
                self.session_opened(&message, out);
                return;
            }
        }
        self.run(way, message, pending, out);
    }

    /// Passes one message through the layers and adds the result to the translation.
    fn run(
        &mut self,
        way: Way,
        mut message: Message<'_>,
        mut pending: PendingRequest,
        out: &mut Translation,
    ) {
        let program = Arc::clone(&self.program);
        let from = self.from(way);
        let before = (message.kind, message.id.clone(), message.method.clone());
        let original = message.body.clone();
        let answers = message.kind.is_answer();
        let is_permission = answers && *pending.canonical == *PERMISSION && from == Side::Client;
        if way == Way::Write {
            if is_permission {
                self.check_read(&mut message, &pending, None, out);
            }
            self.track(from, &message, &mut pending);
        }
        let canonical = (way == Way::Write && is_permission).then(|| message.body.clone());
        let list = self.apply_layers(&program, way, message, &mut pending, out);
        let mut passing: SmallVec<[Message<'_>; 1]> = SmallVec::new();
        let mut changed = list.len() != 1 || (way == Way::Write && program.strips_jsonrpc());
        for mut message in list {
            if is_permission {
                match &canonical {
                    None => self.check_read(&mut message, &pending, Some(&original), out),
                    Some(canonical) => Self::check_written(&mut message, canonical, &pending, out),
                }
            }
            if answers && way == Way::Read {
                self.track(from, &message, &mut pending);
            }
            if message.kind == Kind::Request || (!answers && program.remembers()) {
                let mut own = PendingRequest {
                    dialect: message.method.clone(),
                    canonical: message.method.clone(),
                    ..pending.clone()
                };
                match way {
                    Way::Read => {
                        if !answers {
                            self.track(from, &message, &mut own);
                        }
                        own.dialect = before.2.clone();
                    }
                    Way::Write => own.canonical = before.2.clone(),
                }
                if message.kind == Kind::Request {
                    if *own.canonical == *PERMISSION
                        && !permission::same_options(&original.json(), &message.body.json())
                    {
                        let why = "the options would not mean the same to the person who \
                                   chooses; the request was not passed on: offer options \
                                   that the other side can show";
                        self.refuse(&before.1, why, out);
                        out.note(DialectEvent::Permission, None, why);
                        changed = true;
                        continue;
                    }
                    self.track_request(way, from, &before, &mut message, own);
                }
            }
            let lacks_params =
                message.kind == Kind::Request && matches!(message.body, Node::Absent);
            if way == Way::Write && lacks_params && program.requires_params() {
                message.body = Node::raw(b"{}");
                message.changed = true;
            }
            changed |= message.changed;
            passing.push(message);
        }
        if changed {
            let frame =
                |message: &Message<'_>| message.frame(self.writes_jsonrpc(way, message, &pending));
            out.forward = Forward::Frames(passing.iter().map(frame).collect());
        }
    }

    /// Passes one message through the layers that have a rule for its method.
    fn apply_layers<'a>(
        &mut self,
        program: &'a Program,
        way: Way,
        message: Message<'a>,
        pending: &mut PendingRequest,
        out: &mut Translation,
    ) -> Vec<Message<'a>> {
        let from = self.from(way);
        let mut list = vec![message];
        for at in 0..program.layers.len() {
            let layer = match way {
                Way::Read => &program.layers[at],
                Way::Write => &program.layers[program.layers.len() - 1 - at],
            };
            let met = |message: &Message<'_>| layer.has_rules(way, from, message, pending);
            if !list.iter().any(met) {
                continue;
            }
            let mut next = Vec::with_capacity(list.len());
            for message in list {
                self.apply_layer(layer, way, message, pending, &mut next, out);
            }
            list = next;
        }
        list
    }

    /// Remembers a request that is forwarded.
    fn track_request(
        &mut self,
        way: Way,
        from: Side,
        before: &(Kind, IdBuf, MethodName),
        message: &mut Message<'_>,
        mut pending: PendingRequest,
    ) {
        let was_request = before.0 == Kind::Request && before.1 == message.id;
        let fits = is_int32(message.id.as_id().json());
        if way == Way::Write && self.program.int_ids() && !fits && was_request {
            pending.sender_id = Some(message.id.clone());
            message.id = self.new_id();
            message.changed = true;
        }
        self.requests(from).insert(message.id.clone(), pending);
    }

    /// Replaces the id in a notification that names a request by the one the peer knows. If there
    /// is none and the peer could not read the id, the notification is dropped.
    pub(super) fn renumber_cancel(&mut self, frame: &Frame, at: &Envelope, out: &mut Translation) {
        if at.method(frame) != CANCEL_REQUEST {
            return;
        }
        let place = own_pointer("/requestId");
        let far = self.peer.other();
        let mut frames = Vec::new();
        for frame in out.frames(frame) {
            let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
                continue;
            };
            let mut message = Message::parse(&frame, &at, CANCEL_REQUEST.into());
            let named = message
                .body
                .get(&place)
                .map(|look| look.json().into_owned());
            let named = named.unwrap_or_default();
            let own = match self.requests(far).replaced_id(Id::of_json(&named)) {
                Some(own) => own.as_id().json().to_vec(),
                None if is_int32(&named) => named,
                None => {
                    out.note(
                        DialectEvent::Dropped,
                        None,
                        "it cancels a request that is not open",
                    );
                    continue;
                }
            };
            // The params of a notification that names a request are an object.
            let _ = message.body.put(place.names(), Node::owned(own));
            frames.push(message.frame(true));
        }
        out.forward = Forward::Frames(frames);
    }

    /// The peer has answered with the number of a tool call: what waited for it is written.
    fn receive_tool_number(&mut self, call: &str, message: &Message<'_>, out: &mut Translation) {
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
        out.note(DialectEvent::Swallowed, None, "the number of a tool call");
        self.release(out);
    }

    /// Queues a frame behind an update that waits; `false` when nothing waits.
    fn queue_behind(&mut self, frame: &Frame, out: &mut Translation) -> bool {
        let legacy = &mut self.legacy;
        let has_room = legacy.waiting_bytes < WAITING_BYTES && legacy.waiting.len() < WAITING;
        if legacy.waiting.is_empty() || !has_room {
            return false;
        }
        legacy.queue(frame.clone());
        out.note(
            DialectEvent::Held,
            None,
            "it is queued behind a waiting message",
        );
        out.forward = Forward::Frames(Vec::new());
        true
    }

    /// The agent has answered the bridge's own `session/new`.
    fn session_opened(&mut self, message: &Message<'_>, out: &mut Translation) {
        out.note(
            DialectEvent::Swallowed,
            None,
            "the session of a client without sessions",
        );
        if message.kind == Kind::Error {
            // It is requested again after `authenticate`.
            self.legacy.session_requested = false;
            self.legacy.session_error = Some(message.body.json().into());
        } else {
            self.legacy.has_session = true;
            self.sessions.track(
                self.program.tracking,
                self.peer.other(),
                Kind::Result,
                "session/new",
                None,
                &message.body,
            );
        }
        let mut replies = Vec::new();
        for frame in std::mem::take(&mut self.legacy.prompts) {
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let done = self.read(&frame, &at);
                out.replies.extend(done.frames(&frame));
                replies.extend(done.replies);
                out.notes.extend(done.notes);
            }
        }
        out.forward = Forward::Frames(replies);
    }

    /// Writes the queued frames, in order, until one of them has to wait again.
    fn release(&mut self, out: &mut Translation) {
        let mut waiting = std::mem::take(&mut self.legacy.waiting);
        self.legacy.waiting_bytes = 0;
        let mut replies = Vec::new();
        while self.legacy.waiting.is_empty() {
            let Some(frame) = waiting.pop_front() else {
                break;
            };
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let done = self.write(&frame, &at);
                out.replies.extend(done.frames(&frame));
                replies.extend(done.replies);
                out.fired.extend(done.fired);
                out.notes.extend(done.notes);
            }
        }
        for frame in waiting {
            self.legacy.queue(frame);
        }
        out.forward = Forward::Frames(replies);
    }

    /// Sends the notice of `explain_stop` before the answer that was written.
    fn send_stop_notice(&mut self, frame: &Frame, out: &mut Translation) {
        let Some((session, words)) = self.legacy.stop_notice.take() else {
            return;
        };
        let update = vec![
            ("sessionUpdate", Node::string("agent_message_chunk")),
            ("content", text_block(words)),
        ];
        let made = Message::update(Node::string(&session), Node::object(update));
        let made = made.frame(true);
        if let Scanned::Message(at) = scan(&made, &Limits::default()) {
            let notice = self.translate(Way::Write, &made, &at);
            let mut frames = notice.frames(&made);
            frames.extend(out.frames(frame));
            out.forward = Forward::Frames(frames);
            out.fired.extend(notice.fired);
            out.notes.extend(notice.notes);
        }
    }
}
