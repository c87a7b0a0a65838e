//! Translates the messages of one peer, with the state of the conversation.
//!
//! `read` translates messages from the peer, `write` those to it; `step` applies one rule. There is
//! one way through: a message that no rule may concern is left as it is, which costs a lookup, and
//! every other one is opened and passes all layers. `permission` checks what the tables have made of
//! permission requests and answers.

use std::sync::Arc;

use super::message::{self, Message};
use super::methods::{self, method_of};
use super::pending::{PendingRequest, Purpose, is_int32};
use super::permission::{self, PermissionAnswer};
use super::program::Program;
use super::table::Way;
use super::translation::{DialectEvent, Forward, Translation};
use super::translator::{PERMISSION, Translator};
use super::tree::Node;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Id, Kind, Side};

/// Cancels a request, which it names in its params.
const CANCEL_REQUEST: &str = "$/cancel_request";

/// Requests whose sessions and params actions use when they are answered.
const FOLLOWED: [&[u8]; 6] = [
    b"session/load",
    b"session/resume",
    b"session/fork",
    b"session/set_config_option",
    b"session/set_model",
    b"session/set_mode",
];

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
        self.send_stop_notice(frame, &mut outcome);
        outcome
    }

    /// Whether [`Translator::read`] or [`Translator::write`] may do anything with a message; every
    /// other one may be passed on without them.
    #[must_use]
    pub fn concerns(&mut self, way: Way, frame: &Frame, at: &Envelope) -> bool {
        at.kind != Kind::Notification
            || match way {
                Way::Read => !at.jsonrpc,
                Way::Write => !self.actions.waiting.is_empty(),
            }
            || !self.passed[way as usize].fits(frame.as_bytes(), at) && self.look_up(way, frame, at)
    }

    /// Whether a rule may apply to a notification; one to which none does is remembered.
    fn look_up(&mut self, way: Way, frame: &Frame, at: &Envelope) -> bool {
        let may_concern = self.may_concern(way, frame, at, None);
        if !may_concern && !self.program.reads_text {
            self.passed[way as usize].learn(frame.as_bytes(), at);
        }
        may_concern
    }

    pub(super) fn translate(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Translation {
        let mut out = Translation::default();
        let from = self.from(way);
        let mut request = None;
        if at.kind.is_answer() {
            request = self.requests(from.other()).remove(at.id(frame));
            if request.is_none() {
                return out;
            }
        }
        let request = request.map(|(_, request)| request);
        if let Some(request) = request.as_ref().filter(|_| at.kind == Kind::Error) {
            self.see_error(request, at.body(frame).unwrap_or_default());
        }
        if !self.may_concern(way, frame, at, request.as_ref()) {
            if at.kind == Kind::Request {
                let method = method_of(frame, at);
                let request = PendingRequest {
                    dialect: method.clone(),
                    canonical: method,
                    ..PendingRequest::default()
                };
                self.insert_request(from, at.id(frame), request);
            }
            return out;
        }
        let mut pending = request.unwrap_or_default();
        let method = match at.kind.is_answer() {
            true => way.pick(&pending.dialect, &pending.canonical).clone(),
            false => method_of(frame, at),
        };
        let mut message = Message::parse(frame, at, method);
        if let Some(id) = &pending.sender_id {
            message.id = id.clone();
            message.changed = true;
        }
        match std::mem::take(&mut pending.purpose) {
            Purpose::Forward => self.run(way, message, pending, &mut out),
            Purpose::Swallow => {
                let what = format!("answer to {}", pending.dialect);
                out.note(DialectEvent::Swallowed, None, what);
                out.forward = Forward::Frames(Vec::new());
            }
            Purpose::ToolNumber(call) => self.receive_tool_number(&call, &message, &mut out),
            Purpose::Session => self.session_opened(&message, &mut out),
        }
        out
    }

    /// The one test before a message is opened: whether a rule may apply to it, a value of it is
    /// remembered, or its envelope changes. `request` is that of an answer.
    fn may_concern(
        &self,
        way: Way,
        frame: &Frame,
        at: &Envelope,
        request: Option<&PendingRequest>,
    ) -> bool {
        let (program, from) = (&*self.program, self.from(way));
        if way == Way::Write && program.strips_jsonrpc() && at.jsonrpc {
            return true;
        }
        let has_rule = |method: &[u8]| program.may_concern((way, from), method, frame, at);
        if let Some(request) = request {
            let (dialect, canonical) = (&*request.dialect, &*request.canonical);
            return canonical == PERMISSION
                || !request.is_plain()
                || program.remembers()
                || has_rule(dialect.as_bytes())
                || dialect != canonical && has_rule(canonical.as_bytes());
        }
        let method = at.raw_method(frame);
        // A method with escapes is rare: its rules are looked up when it is opened.
        let is_escaped = || !methods::is_known_raw(method) && method.contains(&b'\\');
        if program.follows_sessions || has_rule(method) || is_escaped() {
            return true;
        }
        let is_request = at.kind == Kind::Request;
        let lacks_params = || way == Way::Write && program.requires_params() && at.body.is_none();
        program.int_ids() && (is_request || method == CANCEL_REQUEST.as_bytes())
            || is_request
                && (lacks_params()
                    || !program.memory.is_empty()
                    || method == PERMISSION.as_bytes()
                    || FOLLOWED.contains(&method))
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
        let answers = message.kind.is_answer();
        let is_permission = answers && *pending.canonical == *PERMISSION && from == Side::Client;
        let received = message.clone();
        let is_cancel = *message.method == *CANCEL_REQUEST && message.kind == Kind::Notification;
        if way == Way::Write {
            if is_cancel && program.int_ids() && !self.renumber_cancel(&mut message, out) {
                return;
            }
            if is_permission {
                check_read(&mut message, &pending, None, out);
            }
            self.track(from, &message, &mut pending);
        }
        let canonical = message.body.clone();
        let list = self.apply_layers(&program, way, message, &mut pending, out);
        let mut changed = list.len() != 1 || (way == Way::Write && program.strips_jsonrpc());
        let mut passing = Vec::with_capacity(list.len());
        for mut message in list {
            if is_permission {
                match way {
                    Way::Read => check_read(&mut message, &pending, Some(&received.body), out),
                    Way::Write => check_written(&mut message, &canonical, &pending, out),
                }
            }
            let mut own = PendingRequest {
                dialect: message.method.clone(),
                canonical: message.method.clone(),
                ..pending.clone()
            };
            match way {
                Way::Read if answers => self.track(from, &message, &mut pending),
                Way::Read => {
                    self.track(from, &message, &mut own);
                    own.dialect = received.method.clone();
                }
                Way::Write => own.canonical = received.method.clone(),
            }
            if message.kind == Kind::Request {
                if *own.canonical == *PERMISSION
                    && !permission::same_options(&received.body.json(), &message.body.json())
                {
                    let why = "the options would not mean the same to the person who chooses; the \
                               request was not passed on: offer options that the other side can \
                               show";
                    let reason = Reason::new(reply::UNTRANSLATABLE, why.to_owned());
                    out.replies.push(reply::error(received.id.as_id(), &reason));
                    out.note(DialectEvent::Permission, None, why);
                    changed = true;
                    continue;
                }
                self.track_request(way, &received, &mut message, own);
                let lacks_params = matches!(message.body, Node::Absent);
                if way == Way::Write && lacks_params && program.requires_params() {
                    message.body = Node::raw(b"{}");
                    message.changed = true;
                }
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

    /// Passes one message through the layers.
    fn apply_layers<'a>(
        &mut self,
        program: &'a Program,
        way: Way,
        message: Message<'a>,
        pending: &mut PendingRequest,
        out: &mut Translation,
    ) -> Vec<Message<'a>> {
        let mut list = vec![message];
        for at in 0..program.layers.len() {
            let layer = way.pick(at, program.layers.len() - 1 - at);
            let mut next = Vec::with_capacity(list.len());
            for message in list {
                self.apply_layer((program, layer), way, message, pending, &mut next, out);
            }
            list = next;
        }
        list
    }

    /// Remembers a request that is forwarded.
    fn track_request(
        &mut self,
        way: Way,
        received: &Message<'_>,
        message: &mut Message<'_>,
        mut pending: PendingRequest,
    ) {
        let was_request = received.kind == Kind::Request && received.id == message.id;
        let fits = is_int32(message.id.as_id().json());
        if way == Way::Write && self.program.int_ids() && !fits && was_request {
            pending.sender_id = Some(message.id.clone());
            message.id = self.new_id();
            message.changed = true;
        }
        self.insert_request(self.from(way), message.id.as_id(), pending);
    }

    /// Replaces the id in a notification that names a request by the one the peer knows. If there
    /// is none and the peer could not read the id, the notification is dropped: `false`.
    fn renumber_cancel(&mut self, message: &mut Message<'_>, out: &mut Translation) -> bool {
        let named = message.json_at("/requestId").unwrap_or_default();
        let far = self.peer.other();
        let id = Id::of_json(&named);
        let is_named = |pending: &PendingRequest| {
            let own = pending.sender_id.as_ref();
            own.is_some_and(|own| own.as_id() == id)
        };
        let mut open = self.requests(far).iter();
        if let Some((own, _)) = open.find(|(_, pending)| is_named(pending)) {
            message.set("/requestId", Node::owned(own.as_id().json().to_vec()));
        } else if !is_int32(&named) {
            let why = "it cancels a request that is not open";
            out.note(DialectEvent::Dropped, None, why);
            out.forward = Forward::Frames(Vec::new());
            return false;
        }
        true
    }
}

/// Checks a permission answer in canonical, and corrects it. `original` is what was received in the
/// dialect.
fn check_read(
    message: &mut Message<'_>,
    pending: &PendingRequest,
    original: Option<&Node<'_>>,
    out: &mut Translation,
) {
    if message.kind != Kind::Result {
        return;
    }
    let offered = pending.offered.clone().unwrap_or_default();
    let answer = PermissionAnswer::read(&message.body.json());
    let checked = match original {
        Some(original) => permission::check_read(&original.json(), &offered, &answer),
        None => offered.resolve(&answer),
    };
    if let Some(correction) = checked.correction {
        message.body = Node::owned(checked.answer.result());
        message.changed = true;
        out.note(DialectEvent::Permission, None, correction);
    }
}

/// Checks a permission answer as it is written to the dialect.
fn check_written(
    message: &mut Message<'_>,
    canonical: &Node<'_>,
    pending: &PendingRequest,
    out: &mut Translation,
) {
    if message.kind != Kind::Result {
        return;
    }
    let offered = pending.offered.clone().unwrap_or_default();
    let answer = PermissionAnswer::read(&canonical.json());
    if permission::check_write(&answer, &offered, &message.body.json()) {
        return;
    }
    let reason = "the translation would change the meaning of the answer; it failed closed";
    let code = reply::UNTRANSLATABLE;
    let error = format!("{{\"code\":{code},\"message\":{reason:?}}}");
    message.kind = Kind::Error;
    message.body = Node::owned(error.into_bytes());
    message.changed = true;
    out.note(DialectEvent::Permission, None, reason);
}
