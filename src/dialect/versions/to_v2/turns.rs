//! Turns: in v1 the answer to a prompt ends a turn, in v2 it begins one and an update ends it.

use std::time::Instant;

use super::messages::Messages;
use crate::message::Message;
use crate::object::{Json, object};
use crate::recent::Recent;
use crate::translation::DialectEvent;
use crate::tree::Node;
use crate::versions::content::{self, Canonical, Repeated};
use crate::versions::out::{
    CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, Out, error, error_code, result,
};
use crate::versions::waiting::Waiting;
use jsonrpc::{IdBuf, Kind};

/// The longest key of a prompt, in characters.
const MAX_KEY: usize = 255;

/// The turns of a session.
#[derive(Debug, Default)]
pub(super) struct Turns {
    session: Box<str>,
    pub(super) messages: Messages,
    /// The prompt, which the agent may repeat in parts, and how much it has repeated.
    repeats: (Canonical, Repeated),
    turn: Option<Turn>,
    /// The prompts that wait for the end of the turn.
    queue: Waiting<Prompt, 64, { 16 << 20 }>,
    /// The ids of the messages that prompts with a key have become.
    inserted: Recent<String, 4096, { 1 << 20 }>,
    /// The requests that repeat a prompt which is not acknowledged, with its key.
    retries: Waiting<(String, IdBuf), 64, { 64 << 10 }>,
    /// How many turns have ended.
    ended: u64,
    /// How many questions of this turn the user has to answer.
    questions: usize,
    /// The requests that wait for the end of the turn to close the session.
    closing: Vec<IdBuf>,
    closed: bool,
}

/// A prompt that has not been sent to the agent.
#[derive(Debug)]
pub(super) struct Prompt {
    /// The request.
    message: Message<'static>,
    /// Its content as the client has sent it.
    content: Vec<Json>,
    /// Its `idempotencyKey`: the same one marks the same prompt.
    key: Option<String>,
}

/// The turn that the agent is in.
#[derive(Debug)]
struct Turn {
    id: IdBuf,
    key: Option<String>,
    /// What the client is shown as the user's message; none once it was.
    content: Option<Vec<Json>>,
    /// When the prompt is acknowledged at the latest.
    due: Option<Instant>,
    cancelled: bool,
}

impl Prompt {
    /// Reads a request.
    ///
    /// # Errors
    /// Why v1 does not have such a prompt.
    pub(super) fn read(mut message: Message<'_>) -> Result<Self, String> {
        let content = message.body.list("prompt");
        if content.is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        let convert = |block: &Json| {
            let kind = || block.word("type");
            let unknown = || format!("the agent speaks v1, which has no content `{}`", kind());
            content::to_v1(block).ok_or_else(unknown)
        };
        let blocks: Vec<_> = content.iter().map(convert).collect::<Result<_, _>>()?;
        message.body.set("prompt", blocks);
        let key = message.body.text("idempotencyKey");
        let is_key = |key: &String| (1..=MAX_KEY).contains(&key.chars().count());
        if message.body.value("idempotencyKey").is_some() && !key.as_ref().is_some_and(is_key) {
            let why = format!("idempotencyKey is a string of 1 to {MAX_KEY} characters");
            return Err(why);
        }
        message.body.remove("idempotencyKey");
        let message = message.to_static();
        Ok(Self {
            message,
            content,
            key,
        })
    }
}

impl Turns {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.into(),
            ..Self::default()
        }
    }

    /// The memory behind them, in bytes.
    pub(super) fn weight(&self) -> usize {
        let content = self.turn.as_ref().and_then(|turn| turn.content.as_ref());
        let content: usize = content.into_iter().flatten().map(Node::size).sum();
        let ids = self.messages.weight() + self.inserted.bytes + self.retries.bytes;
        content + ids + self.repeats.0.bytes.capacity() + self.queue.bytes
    }

    /// Whether the bridge has closed the session in place of the agent.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether it is about to.
    pub(super) fn is_closing(&self) -> bool {
        self.closed || !self.closing.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.queue.is_empty()
    }

    /// Whether a block of the user's message repeats the prompt.
    pub(super) fn repeats(&mut self, block: &Node<'_>) -> bool {
        let (prompt, repeated) = &mut self.repeats;
        let is_left = !prompt.is_all(*repeated);
        let next = prompt.repeated(*repeated, std::slice::from_ref(block));
        *repeated = next.unwrap_or(*repeated);
        is_left && next.is_some()
    }

    /// When [`Turns::expire`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.turn.as_ref()?.due
    }

    /// Acknowledges a prompt that was not for too long.
    pub(super) fn expire(&mut self, out: &mut Out<'_>) {
        if self.due().is_some_and(|due| due <= out.now) {
            self.work(out);
        }
    }

    /// Sends a prompt to the agent, or keeps it until the turn has ended. One that repeats another is
    /// answered as that one.
    pub(super) fn prompt(&mut self, prompt: Prompt, out: &mut Out<'_>) {
        if self.is_retry(&prompt, out) {
            return;
        }
        if self.is_idle() {
            return self.forward(prompt, out);
        }
        let size = prompt.message.size;
        let queued = match out.policies.refuse_second_prompt {
            true => Err(prompt),
            false => self.queue.push(prompt, size),
        };
        match queued {
            Ok(()) => out.note(
                DialectEvent::Held,
                "prompt",
                "it waits for the end of the turn",
            ),
            Err(prompt) => {
                let why = "the session has prompts that the agent has not finished";
                out.refuse("prompt", &prompt.message.id, INVALID_REQUEST, why);
            }
        }
    }

    /// Whether a prompt repeats another; it is answered, or waits with that one.
    fn is_retry(&mut self, prompt: &Prompt, out: &mut Out<'_>) -> bool {
        let (Some(key), id) = (&prompt.key, &prompt.message.id) else {
            return false;
        };
        let is_it = |other: &Option<String>| other.as_ref() == Some(key);
        if let Some(message) = self.inserted.get(key) {
            out.peer(result(id, object! { "messageId": &**message }));
        } else if self.turn.as_ref().is_some_and(|turn| is_it(&turn.key))
            || self.queue.iter().any(|prompt| is_it(&prompt.key))
        {
            if self
                .retries
                .push((key.clone(), id.clone()), key.len())
                .is_err()
            {
                let why = "too many requests repeat the prompt";
                out.refuse("prompt", id, INVALID_REQUEST, why);
            }
        } else {
            return false;
        }
        let what = "the agent has the prompt with that idempotencyKey already";
        out.note(DialectEvent::Swallowed, "prompt", what);
        true
    }

    /// Answers a prompt, and those that repeat it.
    fn answer(&mut self, key: Option<&String>, answer: Message<'static>, out: &mut Out<'_>) {
        let retries = self.retries.take(|(of, _)| Some(of) == key);
        let again = retries.into_iter().map(|(_, id)| Message {
            id,
            ..answer.clone()
        });
        let again: Vec<_> = again.collect();
        out.peer(answer);
        again.into_iter().for_each(|answer| out.peer(answer));
    }

    fn forward(&mut self, prompt: Prompt, out: &mut Out<'_>) {
        let Prompt {
            message,
            content,
            key,
        } = prompt;
        self.messages.split();
        self.repeats = (Canonical::unless_long(&content), Repeated::default());
        self.turn = Some(Turn {
            id: message.id.clone(),
            key,
            content: Some(content),
            due: out.now.checked_add(out.policies.ack_after),
            cancelled: false,
        });
        out.other(message);
        self.expire(out);
    }

    /// The agent works: the prompt is acknowledged, unless it was.
    pub(super) fn work(&mut self, out: &mut Out<'_>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let Some(content) = turn.content.take() else {
            return;
        };
        turn.due = None;
        let id = self.messages.mint();
        out.rule("prompt");
        let answer = result(&turn.id, object! { "messageId": &*id });
        let key = turn.key.take();
        if let Some(key) = &key {
            self.inserted.insert(key, id.clone(), id.len());
        }
        self.answer(key.as_ref(), answer, out);
        let update = object! {
            "sessionUpdate": "user_message",
            "messageId": id,
            "content": content,
        };
        out.peer(Message::update(Node::string(&self.session), update));
        self.announce("running", object! {}, out);
    }

    /// Ends the turn with the agent's answer to its prompt.
    pub(super) fn answered(&mut self, mut message: Message<'_>, out: &mut Out<'_>) {
        let Some(turn) = &self.turn else {
            return;
        };
        message.id = turn.id.clone();
        let (cancelled, acknowledged) = (turn.cancelled, turn.content.is_none());
        let body = &message.body;
        if message.kind == Kind::Error {
            let code = error_code(&message);
            let is_cancelled = cancelled || code == Some(CANCELLED);
            match (acknowledged, is_cancelled) {
                (true, true) => self.idle("cancelled", out),
                (true, false) => {
                    let text = body.text("message");
                    let error = object! {
                        "code": code.unwrap_or(INTERNAL_ERROR),
                        "message": text.as_deref().unwrap_or("the agent reported an error"),
                        "data": body.value("data"),
                    };
                    let more = object! { "stopReason": "error", "error": error };
                    self.announce("idle", more, out);
                }
                (false, true) if code != Some(CANCELLED) => {
                    self.refuse("the prompt was cancelled", out);
                }
                (false, _) => {
                    let key = turn.key.clone();
                    self.answer(key.as_ref(), message.to_static(), out);
                }
            }
            return self.finish(out);
        }
        self.work(out);
        let default = if cancelled { "cancelled" } else { "end_turn" };
        let reason = body.text("stopReason");
        let more = object! {
            "stopReason": reason.as_deref().unwrap_or(default),
            "usage": body.value("usage"),
            "_meta": body.value("_meta"),
        };
        self.announce("idle", more, out);
        self.finish(out);
    }

    /// Marks the turn as cancelled; prompts that wait are refused. Returns whether the agent has to
    /// be told.
    pub(super) fn cancel(&mut self, out: &mut Out<'_>) -> bool {
        if let Some(turn) = &mut self.turn {
            turn.cancelled = true;
        }
        self.refuse_queue(out);
        !self.closed
    }

    /// Refuses the prompts that wait.
    pub(super) fn refuse_queue(&mut self, out: &mut Out<'_>) {
        while let Some(prompt) = self.queue.pop() {
            out.rule("prompt");
            self.answer(prompt.key.as_ref(), cancelled(&prompt.message.id), out);
        }
    }

    /// Cancels one prompt. Returns whether the agent has to be told; none when no prompt of the
    /// session has that id.
    pub(super) fn cancel_prompt(&mut self, id: &IdBuf, out: &mut Out<'_>) -> Option<bool> {
        if let Some(turn) = self.turn.as_ref().filter(|turn| same(&turn.id, id)) {
            return Some(turn.content.is_some());
        }
        if let Some((_, id)) = self.retries.take(|(_, retry)| same(retry, id)).first() {
            out.peer(cancelled(id));
            return Some(false);
        }
        let waiting = self.queue.take(|prompt| same(&prompt.message.id, id));
        let prompt = waiting.first()?;
        self.answer(prompt.key.as_ref(), cancelled(&prompt.message.id), out);
        Some(false)
    }

    /// Whether the turn is that of this prompt.
    pub(super) fn is_turn_of(&self, id: &IdBuf) -> bool {
        self.turn.as_ref().is_some_and(|turn| same(&turn.id, id))
    }

    /// The user has got a question; returns the turn that it belongs to.
    pub(super) fn asked(&mut self, out: &mut Out<'_>) -> Option<u64> {
        self.turn.as_ref()?;
        self.questions += 1;
        if self.questions == 1 {
            self.announce("requires_action", object! {}, out);
        }
        Some(self.ended)
    }

    /// A question of that turn was answered.
    pub(super) fn replied(&mut self, turn: u64, out: &mut Out<'_>) {
        if turn != self.ended || self.turn.is_none() {
            return;
        }
        self.questions = self.questions.saturating_sub(1);
        if self.questions == 0 {
            self.announce("running", object! {}, out);
        }
    }

    /// Tells the client the state of the session.
    pub(super) fn snapshot(&self, out: &mut Out<'_>) {
        let state = match &self.turn {
            Some(turn) if turn.content.is_some() => "idle",
            Some(_) if self.questions > 0 => "requires_action",
            Some(_) => "running",
            None => "idle",
        };
        self.announce(state, object! {}, out);
    }

    /// Closes the session in place of the agent, after the turn.
    pub(super) fn close_for(&mut self, id: IdBuf, out: &mut Out<'_>) {
        self.refuse_queue(out);
        self.closing.push(id);
        let Some(turn) = &mut self.turn else {
            return self.finish(out);
        };
        if !std::mem::replace(&mut turn.cancelled, true) {
            out.other(Message::cancel(&self.session));
        }
    }

    /// The agent has closed the session: its turn has ended.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.refuse_queue(out);
        match &self.turn {
            Some(turn) if turn.content.is_none() => self.idle("cancelled", out),
            Some(_) => self.refuse("the session was closed", out),
            None => {}
        }
        self.finish(out);
    }

    /// Answers the prompt of the turn, which was not acknowledged.
    fn refuse(&mut self, why: &str, out: &mut Out<'_>) {
        if let Some(turn) = &mut self.turn {
            out.rule("prompt");
            let (key, answer) = (turn.key.take(), error(&turn.id, CANCELLED, why));
            self.answer(key.as_ref(), answer, out);
        }
    }

    /// Begins the next turn, or closes the session.
    fn finish(&mut self, out: &mut Out<'_>) {
        self.turn = None;
        self.repeats = Default::default();
        self.questions = 0;
        self.ended += 1;
        self.messages.split();
        for id in self.closing.drain(..) {
            self.closed = true;
            out.peer(result(&id, object! {}));
        }
        if let Some(prompt) = self.queue.pop() {
            self.forward(prompt, out);
        }
    }

    fn idle(&self, reason: &str, out: &mut Out<'_>) {
        self.announce("idle", object! { "stopReason": reason }, out);
    }

    /// Tells the client a state of the session, and more about it.
    fn announce(&self, state: &str, more: Json, out: &mut Out<'_>) {
        let mut update = object! { "sessionUpdate": "state_update", "state": state };
        if let (Some(members), Node::Object(more)) = (update.members(), more) {
            members.extend(more);
        }
        out.rule("state");
        out.peer(Message::update(Node::string(&self.session), update));
    }
}

/// Whether two ids are the same, for a program that converts numbers to doubles as well.
fn same(one: &IdBuf, other: &IdBuf) -> bool {
    one == other || one.as_id().same_double(&other.as_id())
}

/// The error for a prompt that the agent never got.
fn cancelled(id: &IdBuf) -> Message<'static> {
    let why = "the prompt was cancelled before the agent got it";
    error(id, CANCELLED, why)
}
