//! Turns: a v2 agent accepts a prompt at once and tells by its state when the work is over; a v1
//! client waits for the answer.

use std::collections::VecDeque;
use std::time::Instant;

use crate::message::Message;
use crate::object::{Json, object};
use crate::tree::Node;
use crate::versions::content::{Canonical, Repeated};
use crate::versions::methods::error_for_v1;
use crate::versions::out::{CANCELLED, INTERNAL_ERROR, Out, error, error_code, result};
use crate::versions::waiting::Waiting;
use jsonrpc::{Id, IdBuf, Kind};

/// How many ids of the user's own messages are remembered.
const OWN: usize = 64;

/// The stop reasons of v1.
const REASONS: [&str; 5] = [
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
];

/// The open prompts of a session, in the order of their requests.
#[derive(Debug, Default)]
pub(super) struct Turns {
    prompts: Vec<Prompt>,
    /// The ids of the messages that the client's prompts have become.
    own: VecDeque<String>,
    /// The agent's last state was not idle.
    is_running: bool,
}

/// What has come of an event.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Updates that were held as echoes in vain; they are shown first.
    pub(super) shown: Vec<Json>,
    /// The answers to prompts.
    pub(super) answers: Vec<Message<'static>>,
}

/// A prompt that the client waits for.
#[derive(Debug, Default)]
struct Prompt {
    id: IdBuf,
    content: Canonical,
    /// The id of the message that may be, or is, its echo, and how much of the prompt that repeats.
    echo: Option<(String, Repeated)>,
    /// The updates that were taken for the echo, until the answer confirms it.
    held: Waiting<Json, 1024, { 8 << 20 }>,
    is_echoed: bool,
    /// The agent has shown signs of work: before it accepted the prompt, or after.
    is_engaged: bool,
    is_cancelled: bool,
    /// The agent's answer.
    accepted: Option<Accepted>,
    /// An idle state that ends the turn unless the agent begins to work.
    idle: Option<Json>,
    /// When it does.
    grace: Option<Instant>,
}

#[derive(Debug)]
struct Accepted {
    /// The id of the message that the prompt has become; the first drafts have none.
    message: Option<String>,
    meta: Option<Json>,
}

impl Turns {
    /// A prompt was sent to the agent.
    pub(super) fn begin(&mut self, id: &IdBuf, blocks: &[Node<'_>]) {
        self.prompts.push(Prompt {
            id: id.clone(),
            content: Canonical::unless_long(blocks),
            ..Prompt::default()
        });
    }

    /// The memory behind them, in bytes.
    pub(super) fn weight(&self) -> usize {
        let own = self.own.iter().map(String::capacity);
        let prompts = self.prompts.iter().map(Prompt::weight);
        own.chain(prompts).sum()
    }

    /// Whether the client waits for an answer.
    pub(super) fn is_open(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// The turn was cancelled. Returns whether there is one.
    pub(super) fn cancel(&mut self) -> bool {
        for prompt in &mut self.prompts {
            prompt.is_cancelled = true;
        }
        self.is_open() || self.is_running
    }

    /// One prompt was cancelled; returns whether the agent has accepted it already.
    pub(super) fn cancel_one(&mut self, id: Id<'_>) -> bool {
        let mut prompts = self.prompts.iter_mut();
        let found = prompts.find(|prompt| prompt.id.as_id() == id);
        found.is_some_and(|prompt| {
            prompt.is_cancelled = true;
            prompt.accepted.is_some()
        })
    }

    /// When an idle state ends a turn.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.prompts.iter().filter_map(|prompt| prompt.grace).min()
    }

    /// Ends the turns whose idle state was not revoked.
    pub(super) fn expire(&mut self, out: &mut Out<'_>) -> Ended {
        let now = out.now;
        let is_due = |prompt: &Prompt| prompt.grace.is_some_and(|at| at <= now);
        self.end(is_due, None, out)
    }

    /// The agent's answer to a prompt.
    pub(super) fn answered(
        &mut self,
        answer: &Message<'_>,
        is_closed: bool,
        out: &mut Out<'_>,
    ) -> Ended {
        let mut ended = Ended::default();
        let is_it = |prompt: &Prompt| prompt.id == answer.id;
        let Some(at) = self.prompts.iter().position(is_it) else {
            return ended;
        };
        if answer.kind == Kind::Error {
            let mut prompt = self.prompts.remove(at);
            let is_cancelled = prompt.is_cancelled || error_code(answer) == Some(CANCELLED);
            ended.answers.push(match is_cancelled {
                true => prompt.stopped("cancelled"),
                false => error_for_v1(answer),
            });
            ended.shown = prompt.held.take_all();
            return ended;
        }
        let message = answer.body.id("messageId");
        let prompt = &mut self.prompts[at];
        if let (Some(own), Some((taken, _))) = (&message, &prompt.echo) {
            if own == taken {
                prompt.see_echo();
            } else {
                // The agent has another message for the prompt.
                ended.shown = prompt.held.take_all();
                prompt.echo = None;
                if std::mem::take(&mut prompt.is_echoed) {
                    prompt.is_engaged = false;
                }
            }
        }
        prompt.accepted = Some(Accepted {
            message: message.clone(),
            meta: answer.body.value("_meta"),
        });
        if prompt.idle.is_some() {
            prompt.grace = Some(out.now + out.policies.idle_grace);
        }
        // An agent that goes on in v1 sends no idle state.
        let reason = answer.body.text("stopReason").filter(|_| message.is_none());
        let reason = reason.map(|reason| REASONS.into_iter().find(|known| *known == reason));
        message.into_iter().for_each(|own| self.remember(own));
        let reason = match (is_closed, reason) {
            (true, _) => "cancelled",
            (false, Some(reason)) => reason.unwrap_or("end_turn"),
            (false, None) => return ended,
        };
        let over = self.end(is_it, Some(reason), out);
        ended.shown.extend(over.shown);
        ended.answers.extend(over.answers);
        ended
    }

    /// A state of the agent.
    pub(super) fn state(&mut self, update: &Node<'_>, out: &mut Out<'_>) -> Ended {
        out.rule("turns");
        self.is_running = !update.says("state", "idle");
        if self.is_running {
            self.prompts.iter_mut().for_each(Prompt::engage);
            return Ended::default();
        }
        for prompt in &mut self.prompts {
            if prompt.accepted.is_none() && !prompt.is_engaged {
                // A snapshot of the time before the prompt.
                continue;
            }
            prompt.idle = Some(update.to_static());
            if prompt.accepted.is_some() && !prompt.is_engaged && prompt.grace.is_none() {
                prompt.grace = Some(out.now + out.policies.idle_grace);
            }
        }
        let is_over = |prompt: &Prompt| prompt.is_engaged && prompt.accepted.is_some();
        self.end(is_over, None, out)
    }

    /// The session was closed: the prompts that the agent has accepted end, the others when it
    /// answers them.
    pub(super) fn close(&mut self, out: &mut Out<'_>) -> Ended {
        self.cancel();
        self.end(|prompt| prompt.accepted.is_some(), Some("cancelled"), out)
    }

    /// What is shown of an update of a message of the user with these blocks: it, unless it repeats
    /// or may repeat the client's prompt, after those that were held before it.
    pub(super) fn echo(&mut self, update: &Json, blocks: &[Json]) -> Vec<Json> {
        let shown = || vec![update.clone()];
        let Some(id) = update.id("messageId") else {
            return shown();
        };
        if self.own.contains(&id) {
            let mut prompts = self.prompts.iter_mut();
            if let Some(prompt) = prompts.find(|prompt| prompt.has_become(&id)) {
                prompt.see_echo();
            }
            return Vec::new();
        }
        let is_it = |prompt: &Prompt| prompt.echo.as_ref().is_some_and(|(taken, _)| *taken == id);
        let known = self.prompts.iter().position(is_it);
        if blocks.is_empty() {
            return known.map_or_else(shown, |_| Vec::new());
        }
        let is_chunk = update.says("sessionUpdate", "user_message_chunk");
        for (at, prompt) in self.prompts.iter_mut().enumerate() {
            let is_candidate = known.map_or_else(|| prompt.may_be_repeated(), |known| known == at);
            if !is_candidate {
                continue;
            }
            let before = prompt.echo.as_ref().filter(|_| is_chunk);
            let before = before.map_or_else(Repeated::default, |(_, before)| *before);
            if let Some(repeated) = prompt.content.repeated(before, blocks) {
                let is_all = prompt.content.is_all(repeated);
                let is_echo = is_all || !prompt.is_echoed;
                if is_echo && prompt.held.push(update.clone(), update.size()).is_ok() {
                    prompt.echo = Some((id, repeated));
                    if is_all {
                        prompt.see_echo();
                    }
                    if is_all && prompt.accepted.is_some() {
                        prompt.held.take_all();
                    }
                    return Vec::new();
                }
            }
            if known.is_some() && !prompt.is_echoed {
                prompt.echo = None;
                let mut held = prompt.held.take_all();
                held.push(update.clone());
                return held;
            }
        }
        shown()
    }

    /// Answers the prompts for which that holds; `reason` overrules that of the agent.
    fn end(
        &mut self,
        is_over: impl Fn(&Prompt) -> bool,
        reason: Option<&str>,
        out: &mut Out<'_>,
    ) -> Ended {
        let mut ended = Ended::default();
        let all = std::mem::take(&mut self.prompts).into_iter();
        let (over, open): (Vec<_>, Vec<_>) = all.partition(is_over);
        self.prompts = open;
        for mut prompt in over {
            match prompt.echo.take().filter(|_| prompt.is_echoed) {
                Some((id, _)) => self.remember(id),
                None => ended.shown.append(&mut prompt.held.take_all()),
            }
            ended.answers.push(match reason {
                Some(reason) => prompt.stopped(reason),
                None => prompt.ended(out),
            });
        }
        ended
    }

    /// Remembers the id of a message that a prompt has become.
    fn remember(&mut self, own: String) {
        if !self.own.contains(&own) {
            self.own.push_back(own);
        }
        if self.own.len() > OWN {
            self.own.pop_front();
        }
    }
}

impl Prompt {
    /// The memory behind it, in bytes.
    fn weight(&self) -> usize {
        let echo = self.echo.as_ref().map_or(0, |(id, _)| id.capacity());
        let meta = self.accepted.iter().filter_map(|known| known.meta.as_ref());
        let nodes = self.idle.iter().chain(meta).map(Node::size);
        let texts = self.content.bytes.capacity() + echo + self.held.bytes;
        size_of::<Self>() + texts + nodes.sum::<usize>()
    }

    /// The agent has begun to work.
    fn engage(&mut self) {
        self.is_engaged = true;
        self.idle = None;
        self.grace = None;
    }

    /// The agent has repeated the prompt.
    fn see_echo(&mut self) {
        // Later parts of the same message say nothing new.
        if !std::mem::replace(&mut self.is_echoed, true) {
            self.engage();
        }
    }

    /// Whether the agent has said that the prompt has become that message.
    fn has_become(&self, id: &str) -> bool {
        let accepted = self.accepted.as_ref();
        accepted.is_some_and(|accepted| accepted.message.as_deref() == Some(id))
    }

    /// Whether a message of the user may be the prompt.
    fn may_be_repeated(&self) -> bool {
        let accepted = self.accepted.as_ref();
        self.echo.is_none() && accepted.is_none_or(|accepted| accepted.message.is_none())
    }

    /// The answer with that stop reason.
    fn stopped(&self, reason: &str) -> Message<'static> {
        let mut body = object! { "stopReason": reason };
        let accepted = self.accepted.as_ref();
        body.add_meta(accepted.and_then(|accepted| accepted.meta.clone()));
        result(&self.id, body)
    }

    /// The answer when the agent is idle.
    fn ended(&self, out: &mut Out<'_>) -> Message<'static> {
        let nothing = Node::Absent;
        let idle = self.idle.as_ref().unwrap_or(&nothing);
        let reason = idle.text("stopReason");
        if reason.as_deref() == Some("error") {
            let Some(fault) = idle.value("error") else {
                return error(&self.id, INTERNAL_ERROR, "the agent reported an error");
            };
            return error_for_v1(&Message::new(Kind::Error, self.id.clone(), "", fault));
        }
        let known = reason.as_deref().filter(|reason| REASONS.contains(reason));
        let is_cancelled = self.is_cancelled && reason.is_none();
        let default = if is_cancelled {
            "cancelled"
        } else {
            "end_turn"
        };
        let mut made = self.stopped(known.unwrap_or(default));
        made.body.set("usage", idle.value("usage"));
        made.body.add_meta(idle.value("_meta"));
        if let (Some(reason), None) = (&reason, known) {
            made.body.report("stopReason", &**reason);
            out.emulated("turns", "a stop reason that v1 lacks is end_turn");
        }
        made
    }
}
