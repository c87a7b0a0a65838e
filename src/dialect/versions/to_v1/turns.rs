//! Turns: a v2 agent accepts a prompt at once and tells by its state when the work is over; a v1
//! client waits for the answer.

use std::collections::VecDeque;
use std::time::Instant;

use super::answers::{error_for_v1, has_code};
use super::content::Canonical;
use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{CANCELLED, Exchange, INTERNAL_ERROR, error, result};
use crate::dialect::versions::json::{add_meta, array, report, set, text, value};
use crate::jsonrpc::{Id, IdBuf, Kind};

/// How many ids of the user's own messages are remembered.
const OWN: usize = 64;
/// How many updates of a message are held that may be the echo of a prompt.
const HELD: usize = 1024;

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
}

/// What has come of an event.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Updates that were held as echoes in vain; they are shown first.
    pub(super) shown: Vec<Node<'static>>,
    /// The answers to prompts.
    pub(super) answers: Vec<Message<'static>>,
}

/// What becomes of an update of a message of the user.
pub(super) enum Echo {
    /// It is shown.
    Show,
    /// It repeats, or may repeat, the client's prompt.
    Hide,
    /// It, and these that were held before it, are shown.
    ShowAfter(Vec<Node<'static>>),
}

/// A prompt that the client waits for.
#[derive(Debug)]
struct Prompt {
    id: IdBuf,
    /// The prompt, as it is compared with what may be its echo.
    content: Vec<u8>,
    /// The id of the message that may be, or is, its echo, and what has come of it.
    echo: Option<(String, Canonical)>,
    /// The updates that were taken for the echo, until the answer confirms it.
    held: Vec<Node<'static>>,
    is_echoed: bool,
    /// The agent has shown signs of work: before it accepted the prompt, or after.
    is_engaged: bool,
    is_cancelled: bool,
    /// The agent's answer.
    accepted: Option<Accepted>,
    /// An idle state that ends the turn unless the agent begins to work.
    idle: Option<Node<'static>>,
    /// When it does.
    grace: Option<Instant>,
}

#[derive(Debug)]
struct Accepted {
    /// The id of the message that the prompt has become; the first drafts have none.
    message: Option<String>,
    meta: Option<Node<'static>>,
}

impl Turns {
    /// A prompt was sent to the agent.
    pub(super) fn begin(&mut self, request: &Message<'_>) {
        let prompt = array(&request.body, "prompt").unwrap_or_default();
        self.prompts.push(Prompt {
            id: request.id.clone(),
            content: Canonical::of(&prompt).bytes,
            echo: None,
            held: Vec::new(),
            is_echoed: false,
            is_engaged: false,
            is_cancelled: false,
            accepted: None,
            idle: None,
            grace: None,
        });
    }

    /// Whether the client waits for an answer.
    pub(super) fn is_open(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// The turn was cancelled.
    pub(super) fn cancel(&mut self) {
        for prompt in &mut self.prompts {
            prompt.is_cancelled = true;
        }
    }

    /// One prompt was cancelled; returns whether the agent has accepted it already.
    pub(super) fn cancel_one(&mut self, id: Id<'_>) -> bool {
        let found = self
            .prompts
            .iter_mut()
            .find(|prompt| prompt.id.as_id() == id);
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
    pub(super) fn expire(&mut self, out: &mut Exchange<'_>) -> Ended {
        let now = out.now;
        let is_due = |prompt: &Prompt| prompt.grace.is_some_and(|at| at <= now);
        self.end(is_due, None, out)
    }

    /// The agent's answer to a prompt.
    pub(super) fn answered(
        &mut self,
        answer: &Message<'_>,
        is_closed: bool,
        out: &mut Exchange<'_>,
    ) -> Ended {
        let mut ended = Ended::default();
        let is_it = |prompt: &Prompt| prompt.id == answer.id;
        let Some(at) = self.prompts.iter().position(is_it) else {
            return ended;
        };
        if answer.kind == Kind::Error {
            let prompt = self.prompts.remove(at);
            let is_cancelled = prompt.is_cancelled || has_code(answer, CANCELLED);
            ended.answers.push(match is_cancelled {
                true => prompt.stopped("cancelled"),
                false => error_for_v1(answer),
            });
            ended.shown = prompt.held;
            return ended;
        }
        let message = text(&answer.body, "messageId");
        let prompt = &mut self.prompts[at];
        if let (Some(own), Some((taken, _))) = (&message, &prompt.echo) {
            if own == taken {
                prompt.see_echo();
            } else {
                // The agent has another message for the prompt.
                ended.shown = std::mem::take(&mut prompt.held);
                prompt.echo = None;
                if std::mem::take(&mut prompt.is_echoed) {
                    prompt.is_engaged = false;
                }
            }
        }
        prompt.accepted = Some(Accepted {
            message: message.clone(),
            meta: value(&answer.body, "_meta"),
        });
        if prompt.idle.is_some() {
            prompt.grace = Some(out.now + out.policies.idle_grace);
        }
        // An agent that goes on in v1 sends no idle state.
        let reason = text(&answer.body, "stopReason").filter(|_| message.is_none());
        let reason = reason.map(|reason| REASONS.into_iter().find(|known| *known == reason));
        message.into_iter().for_each(|own| self.remember(own));
        let over = match (is_closed, reason) {
            (true, _) => self.end(is_it, Some("cancelled"), out),
            (false, Some(reason)) => self.end(is_it, reason.or(Some("end_turn")), out),
            (false, None) => return ended,
        };
        ended.shown.extend(over.shown);
        ended.answers.extend(over.answers);
        ended
    }

    /// A state of the agent.
    pub(super) fn state(&mut self, update: &Node<'_>, out: &mut Exchange<'_>) -> Ended {
        out.rule("turns");
        if text(update, "state").as_deref() != Some("idle") {
            for prompt in &mut self.prompts {
                prompt.engage();
            }
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
    pub(super) fn close(&mut self, out: &mut Exchange<'_>) -> Ended {
        self.cancel();
        self.end(|prompt| prompt.accepted.is_some(), Some("cancelled"), out)
    }

    /// What becomes of an update of a message of the user.
    pub(super) fn echo(&mut self, update: &Node<'_>, blocks: &[Node<'static>]) -> Echo {
        let Some(id) = text(update, "messageId") else {
            return Echo::Show;
        };
        if self.own.contains(&id) {
            let is_it = |prompt: &Prompt| {
                let accepted = prompt.accepted.as_ref();
                accepted.is_some_and(|accepted| accepted.message.as_deref() == Some(&id))
            };
            if let Some(prompt) = self.prompts.iter_mut().find(|prompt| is_it(prompt)) {
                prompt.see_echo();
            }
            return Echo::Hide;
        }
        let is_it = |prompt: &Prompt| prompt.echo.as_ref().is_some_and(|(taken, _)| *taken == id);
        let may_be = |prompt: &Prompt| {
            let accepted = prompt.accepted.as_ref();
            prompt.echo.is_none() && accepted.is_none_or(|accepted| accepted.message.is_none())
        };
        let prompts = &mut self.prompts;
        let known = prompts.iter().position(is_it);
        let candidates = match known {
            Some(_) if blocks.is_empty() => return Echo::Hide,
            Some(at) => vec![at],
            None if blocks.is_empty() => Vec::new(),
            None => (0..prompts.len())
                .filter(|at| may_be(&prompts[*at]))
                .collect(),
        };
        let is_chunk = text(update, "sessionUpdate").as_deref() == Some("user_message_chunk");
        for at in candidates {
            let prompt = &mut prompts[at];
            let mut content = Canonical::default();
            if let Some((_, before)) = prompt.echo.as_ref().filter(|_| is_chunk) {
                content = before.clone();
            }
            for block in blocks {
                content.push(block);
            }
            let is_all = content.bytes == prompt.content;
            let fits = prompt.content.starts_with(&content.bytes) && prompt.held.len() < HELD;
            if is_all || fits && !prompt.is_echoed {
                prompt.echo = Some((id, content));
                prompt.held.push(update.to_static());
                if is_all {
                    prompt.see_echo();
                }
                if is_all && prompt.accepted.is_some() {
                    prompt.held.clear();
                }
                return Echo::Hide;
            }
            if known.is_some() && !prompt.is_echoed {
                prompt.echo = None;
                return Echo::ShowAfter(std::mem::take(&mut prompt.held));
            }
        }
        Echo::Show
    }

    /// Answers the prompts for which that holds; `reason` overrules that of the agent.
    fn end(
        &mut self,
        is_over: impl Fn(&Prompt) -> bool,
        reason: Option<&str>,
        out: &mut Exchange<'_>,
    ) -> Ended {
        let mut ended = Ended::default();
        for mut prompt in std::mem::take(&mut self.prompts) {
            if !is_over(&prompt) {
                self.prompts.push(prompt);
                continue;
            }
            match prompt.echo.take().filter(|_| prompt.is_echoed) {
                Some((id, _)) => self.remember(id),
                None => ended.shown.append(&mut prompt.held),
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

    /// The answer with that stop reason.
    fn stopped(&self, reason: &str) -> Message<'static> {
        let body = Node::object(vec![("stopReason", Node::string(reason))]);
        let mut made = result(&self.id, body);
        if let Some(meta) = self
            .accepted
            .as_ref()
            .and_then(|accepted| accepted.meta.clone())
        {
            add_meta(&mut made.body, meta);
        }
        made
    }

    /// The answer when the agent is idle.
    fn ended(&self, out: &mut Exchange<'_>) -> Message<'static> {
        let nothing = Node::Absent;
        let idle = self.idle.as_ref().unwrap_or(&nothing);
        let reason = text(idle, "stopReason");
        if reason.as_deref() == Some("error") {
            let Some(fault) = value(idle, "error") else {
                return error(&self.id, INTERNAL_ERROR, "the agent reported an error");
            };
            return error_for_v1(&Message::new(Kind::Error, self.id.clone(), "", fault));
        }
        let known = reason.as_deref().filter(|reason| REASONS.contains(reason));
        let cancelled = self.is_cancelled && reason.is_none();
        let mut made =
            self.stopped(known.unwrap_or(if cancelled { "cancelled" } else { "end_turn" }));
        if let Some(usage) = value(idle, "usage") {
            set(&mut made.body, "usage", usage);
        }
        if let Some(meta) = value(idle, "_meta") {
            add_meta(&mut made.body, meta);
        }
        if let (Some(reason), None) = (&reason, known) {
            report(&mut made.body, "stopReason", Node::string(reason));
            out.note(
                DialectEvent::Emulated,
                "turns",
                "a stop reason that v1 lacks is end_turn",
            );
        }
        made
    }
}
