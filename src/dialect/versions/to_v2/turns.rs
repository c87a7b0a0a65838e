//! Turns: in v1 the answer to a prompt ends a turn, in v2 it begins one and an update ends it.

use std::collections::VecDeque;
use std::time::Instant;

use super::content;
use super::echo::Echo;
use super::messages::Messages;
use crate::dialect::message::Message;
use crate::dialect::text;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    CANCELLED, Exchange, INTERNAL_ERROR, INVALID_REQUEST, error, result,
};
use crate::dialect::versions::json::{array, set, text as text_of, value};
use crate::jsonrpc::{IdBuf, Kind};

/// How many prompts of a session wait for the end of its turn, and how many bytes.
const MAX_QUEUED: (usize, usize) = (64, 16 << 20);

/// The turns of a session.
#[derive(Debug, Default)]
pub(super) struct Turns {
    session: Box<str>,
    pub(super) messages: Messages,
    /// What is left of the prompt for the agent to repeat.
    pub(super) echo: Echo,
    turn: Option<Turn>,
    queue: VecDeque<Prompt>,
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
    pub(super) message: Message<'static>,
    /// Its content as the client has sent it.
    pub(super) content: Node<'static>,
}

/// The turn that the agent is in.
#[derive(Debug)]
struct Turn {
    id: IdBuf,
    /// What the client is shown as the user's message; none once it was.
    content: Option<Node<'static>>,
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
        let Some(mut blocks) = array(&message.body, "prompt").filter(|all| !all.is_empty()) else {
            return Err("acp-relay: the prompt is empty".to_owned());
        };
        let content = Node::Array(blocks.clone());
        if let Some(kind) = blocks
            .iter_mut()
            .find_map(|block| content::to_v1(block).err())
        {
            return Err(format!(
                "acp-relay: the agent speaks v1, which has no content `{kind}`"
            ));
        }
        set(&mut message.body, "prompt", Node::Array(blocks));
        let message = message.to_static();
        Ok(Self { message, content })
    }
}

impl Turns {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.into(),
            ..Self::default()
        }
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

    /// When [`Turns::expire`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.turn.as_ref()?.due
    }

    /// Acknowledges a prompt that was not for too long.
    pub(super) fn expire(&mut self, out: &mut Exchange<'_>) {
        if self.due().is_some_and(|due| due <= out.now) {
            self.work(out);
        }
    }

    /// Sends a prompt to the agent, or keeps it until the turn has ended.
    pub(super) fn prompt(&mut self, prompt: Prompt, out: &mut Exchange<'_>) {
        if self.is_idle() {
            return self.forward(prompt, out);
        }
        let id = &prompt.message.id;
        let bytes: usize = self.queue.iter().map(|prompt| prompt.message.size).sum();
        let is_full = self.queue.len() >= MAX_QUEUED.0 || bytes > MAX_QUEUED.1;
        if out.policies.refuse_second_prompt || is_full {
            let what = "acp-relay: the session has prompts that the agent has not finished";
            out.rule("prompt");
            out.peer(error(id, INVALID_REQUEST, what));
        } else {
            out.note(
                DialectEvent::Held,
                "prompt",
                "a prompt waits for the end of the turn",
            );
            self.queue.push_back(prompt);
        }
    }

    fn forward(&mut self, prompt: Prompt, out: &mut Exchange<'_>) {
        let Prompt { message, content } = prompt;
        self.messages.split();
        self.echo = Echo::of(&content);
        self.turn = Some(Turn {
            id: message.id.clone(),
            content: Some(content),
            due: out.now.checked_add(out.policies.ack_after),
            cancelled: false,
        });
        out.other(message);
        self.expire(out);
    }

    /// The agent works: the prompt is acknowledged, unless it was.
    pub(super) fn work(&mut self, out: &mut Exchange<'_>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let Some(content) = turn.content.take() else {
            return;
        };
        turn.due = None;
        let id = self.messages.mint();
        let made = Node::object(vec![("messageId", Node::string(&id))]);
        out.rule("prompt");
        out.peer(result(&turn.id, made));
        let update = Node::object(vec![
            ("sessionUpdate", Node::string("user_message")),
            ("messageId", Node::string(&id)),
            ("content", content),
        ]);
        out.peer(Message::update(Node::string(&self.session), update));
        self.announce("running", Vec::new(), out);
    }

    /// Ends the turn with the agent's answer to its prompt.
    pub(super) fn answered(&mut self, mut message: Message<'_>, out: &mut Exchange<'_>) {
        let Some(turn) = &self.turn else {
            return;
        };
        message.id = turn.id.clone();
        let (cancelled, acknowledged) = (turn.cancelled, turn.content.is_none());
        let body = &message.body;
        if message.kind == Kind::Error {
            let is_cancelled = cancelled || code(body) == Some(CANCELLED);
            match (acknowledged, is_cancelled) {
                (true, true) => self.idle("cancelled", Vec::new(), out),
                (true, false) => {
                    let error = shown_error(body);
                    self.idle("error", vec![("error", error)], out);
                }
                (false, true) if code(body) != Some(CANCELLED) => {
                    self.refuse("the prompt was cancelled", out);
                }
                (false, _) => out.peer(message.to_static()),
            }
            return self.finish(out);
        }
        self.work(out);
        let reason = text_of(body, "stopReason");
        let reason = reason.unwrap_or_else(|| match cancelled {
            true => "cancelled".to_owned(),
            false => "end_turn".to_owned(),
        });
        let more = ["usage", "_meta"].into_iter();
        let more = more.filter_map(|name| Some((name, value(body, name)?)));
        self.idle(&reason, more.collect(), out);
        self.finish(out);
    }

    /// Marks the turn as cancelled; prompts that wait are refused. Returns whether the agent has to
    /// be told.
    pub(super) fn cancel(&mut self, out: &mut Exchange<'_>) -> bool {
        if let Some(turn) = &mut self.turn {
            turn.cancelled = true;
        }
        self.refuse_queue(out);
        !self.closed
    }

    /// Refuses the prompts that wait.
    pub(super) fn refuse_queue(&mut self, out: &mut Exchange<'_>) {
        for prompt in self.queue.drain(..) {
            out.rule("prompt");
            out.peer(cancelled(&prompt.message.id));
        }
    }

    /// Cancels one prompt. Returns whether the agent has to be told; none when no prompt of the
    /// session has that id.
    pub(super) fn cancel_prompt(&mut self, id: &IdBuf, out: &mut Exchange<'_>) -> Option<bool> {
        if let Some(turn) = self.turn.as_ref().filter(|turn| same(&turn.id, id)) {
            return Some(turn.content.is_some());
        }
        let mut waiting = self.queue.iter();
        let at = waiting.position(|prompt| same(&prompt.message.id, id))?;
        let prompt = self.queue.remove(at)?;
        out.peer(cancelled(&prompt.message.id));
        Some(false)
    }

    /// Whether the turn is that of this prompt.
    pub(super) fn is_turn_of(&self, id: &IdBuf) -> bool {
        self.turn.as_ref().is_some_and(|turn| same(&turn.id, id))
    }

    /// The user has got a question; returns the turn that it belongs to.
    pub(super) fn asked(&mut self, out: &mut Exchange<'_>) -> Option<u64> {
        self.turn.as_ref()?;
        self.questions += 1;
        if self.questions == 1 {
            self.announce("requires_action", Vec::new(), out);
        }
        Some(self.ended)
    }

    /// A question of that turn was answered.
    pub(super) fn replied(&mut self, turn: u64, out: &mut Exchange<'_>) {
        if turn != self.ended || self.turn.is_none() {
            return;
        }
        self.questions = self.questions.saturating_sub(1);
        if self.questions == 0 {
            self.announce("running", Vec::new(), out);
        }
    }

    /// Tells the client the state of the session.
    pub(super) fn snapshot(&self, out: &mut Exchange<'_>) {
        let is_running = self
            .turn
            .as_ref()
            .is_some_and(|turn| turn.content.is_none());
        let state = match is_running {
            false => "idle",
            true if self.questions > 0 => "requires_action",
            true => "running",
        };
        self.announce(state, Vec::new(), out);
    }

    /// Closes the session in place of the agent, after the turn.
    pub(super) fn close_for(&mut self, id: IdBuf, out: &mut Exchange<'_>) {
        self.refuse_queue(out);
        self.closing.push(id);
        let Some(turn) = &mut self.turn else {
            return self.finish(out);
        };
        if !std::mem::replace(&mut turn.cancelled, true) {
            let params = Node::object(vec![("sessionId", Node::string(&self.session))]);
            let kind = Kind::Notification;
            out.other(Message::new(
                kind,
                IdBuf::default(),
                "session/cancel",
                params,
            ));
        }
    }

    /// The agent has closed the session: its turn has ended.
    pub(super) fn end(&mut self, out: &mut Exchange<'_>) {
        self.refuse_queue(out);
        match &self.turn {
            Some(turn) if turn.content.is_none() => self.idle("cancelled", Vec::new(), out),
            Some(_) => self.refuse("the session was closed", out),
            None => {}
        }
        self.finish(out);
    }

    /// Answers the prompt of the turn, which was not acknowledged.
    fn refuse(&self, why: &str, out: &mut Exchange<'_>) {
        if let Some(turn) = &self.turn {
            out.rule("prompt");
            out.peer(error(&turn.id, CANCELLED, &format!("acp-relay: {why}")));
        }
    }

    /// Begins the next turn, or closes the session.
    fn finish(&mut self, out: &mut Exchange<'_>) {
        self.turn = None;
        self.echo = Echo::default();
        self.questions = 0;
        self.ended += 1;
        self.messages.split();
        for id in self.closing.drain(..) {
            self.closed = true;
            out.peer(result(&id, Node::raw(b"{}")));
        }
        if let Some(prompt) = self.queue.pop_front() {
            self.forward(prompt, out);
        }
    }

    fn idle(&self, reason: &str, more: Vec<(&'static str, Node<'static>)>, out: &mut Exchange<'_>) {
        let mut members = vec![("stopReason", Node::string(reason))];
        members.extend(more);
        self.announce("idle", members, out);
    }

    fn announce(
        &self,
        state: &str,
        more: Vec<(&'static str, Node<'static>)>,
        out: &mut Exchange<'_>,
    ) {
        let mut members = vec![
            ("sessionUpdate", Node::string("state_update")),
            ("state", Node::string(state)),
        ];
        members.extend(more);
        out.rule("state");
        out.peer(Message::update(
            Node::string(&self.session),
            Node::object(members),
        ));
    }
}

/// Whether two ids are the same, for a program that converts numbers to doubles as well.
fn same(one: &IdBuf, other: &IdBuf) -> bool {
    one == other || one.as_id().same_double(&other.as_id())
}

/// The error for a prompt that the agent never got.
fn cancelled(id: &IdBuf) -> Message<'static> {
    error(
        id,
        CANCELLED,
        "acp-relay: the prompt was cancelled before the agent got it",
    )
}

fn code(error: &Node<'_>) -> Option<i32> {
    let code = value(error, "code")?;
    text::integer(&code.json())?.parse().ok()
}

/// An error as a member of a state.
fn shown_error(body: &Node<'_>) -> Node<'static> {
    let message = text_of(body, "message");
    let message = message.as_deref().unwrap_or("the agent reported an error");
    let code = code(body).unwrap_or(INTERNAL_ERROR).to_string();
    let mut made = vec![
        ("code", Node::owned(code.into_bytes())),
        ("message", Node::string(message)),
    ];
    made.extend(value(body, "data").map(|data| ("data", data)));
    Node::object(made)
}
