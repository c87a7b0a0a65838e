//! How a conversation ends: who left first, what is still owed, and how the agent is stopped.
//!
//! The steps of stopping an agent are: close its stdin, wait, SIGTERM, wait, SIGKILL. Whatever
//! happens, each request still open is answered once before its asker's link is closed. Not here:
//! what is done with messages while both sides are well (see `mind`).

use std::collections::HashSet;
use std::time::Instant;

use super::mind::Core;
use super::{Note, Order, Outbox, excuse};
use crate::wire::reply::{self, Delivered, Reason};
use crate::wire::{Envelope, Exit, Farewell, Flaw, Frame, IdBuf, Kind, Shape, Side, scan};

/// Why a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The client ended its stream or vanished.
    ClientLeft,
    /// The agent's process ended by itself.
    AgentExited,
    /// The agent's link ended or failed.
    AgentLeft,
    /// The relay was told to stop.
    Stopped,
    /// A side broke the rules once too often.
    Expelled(Side),
}

/// Where a conversation stands on its way out.
#[derive(Debug)]
pub(super) struct Ending {
    /// Which sides may still say something.
    speaks: [bool; 2],
    /// Which sides can still be told something.
    hears: [bool; 2],
    step: Step,
    deadline: Option<Instant>,
    cause: Option<Cause>,
    /// What an expelled agent did, for those who wait for its answers.
    blame: Option<&'static str>,
    exit: Option<Exit>,
    stderr_tail: String,
    /// Requests that never left for the agent.
    unsent: HashSet<IdBuf>,
}

/// How far the agent has been asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Not at all.
    None,
    /// The client has ended its stream; the agent may finish its answers first, because its link
    /// cannot be half-closed.
    Finishing,
    /// Our stream to it is ended.
    Closed,
    /// SIGTERM is sent.
    Terminated,
    /// SIGKILL is sent.
    Killed,
    /// It has exited; its pipes may still deliver.
    Exited,
    /// All is said.
    Over,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            speaks: [true; 2],
            hears: [true; 2],
            step: Step::None,
            deadline: None,
            cause: None,
            blame: None,
            exit: None,
            stderr_tail: String::new(),
            unsent: HashSet::new(),
        }
    }
}

impl Ending {
    pub(super) fn hears(&self, side: Side) -> bool {
        self.hears[side as usize]
    }
}

impl Core {
    /// Whether `side` is still to be read.
    #[must_use]
    pub fn listens_to(&self, side: Side) -> bool {
        self.ending.speaks[side as usize] && self.ending.step != Step::Over
    }

    /// Why the conversation is over: nothing more will be said, only what waits is to be delivered.
    #[must_use]
    pub fn over(&self) -> Option<&Cause> {
        self.ending
            .cause
            .as_ref()
            .filter(|_| self.ending.step == Step::Over)
    }

    /// Whether the conversation is on its way out: there is a reason for it to end.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.cause.is_some()
    }

    /// How the agent's process ended, if that is known.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.ending.exit
    }

    /// When [`Core::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ending.deadline
    }

    /// `side` has ended its stream, or reading from it failed; `how` says it for a person.
    pub fn handle_eof(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        out.note(Note::Ended { side, how });
        self.ending.speaks[side as usize] = false;
        match side {
            Side::Client => {
                self.client_left(self.manners.client_half_close, Cause::ClientLeft, now, out)
            }
            Side::Agent if self.ending.exit.is_some() || !self.manners.agent_is_child => {
                self.finish(Cause::AgentLeft, out)
            }
            Side::Agent => {
                self.ending.cause.get_or_insert(Cause::AgentExited);
                self.close_agent(Farewell::Done, now, out);
            }
        }
    }

    /// What `side` sends cannot be followed any more; `flaw` is what it is told about it.
    pub fn handle_broken(
        &mut self,
        side: Side,
        how: String,
        flaw: Option<Flaw>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if let Some(flaw) = flaw {
            self.say(side, reply::flaw(&flaw), out);
            out.close(side, Farewell::Violation);
        }
        out.note(Note::Ended { side, how });
        self.ending.speaks[side as usize] = false;
        match side {
            Side::Client => self.client_left(false, Cause::ClientLeft, now, out),
            Side::Agent if self.manners.agent_is_child => {
                self.ending.cause.get_or_insert(Cause::AgentLeft);
                self.close_agent(Farewell::Violation, now, out);
            }
            Side::Agent => self.finish(Cause::AgentLeft, out),
        }
    }

    /// Nothing can be said to `side` any more: its link failed, or it takes nothing.
    pub fn handle_deaf(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        self.take_back(side, out);
        if !self.ending.hears(side) {
            return;
        }
        out.note(Note::Ended { side, how });
        match side {
            Side::Client => {
                self.ending.speaks[Side::Client as usize] = false;
                self.client_left(false, Cause::ClientLeft, now, out);
            }
            // Its last words and its exit are still to come.
            Side::Agent => {
                let cause = self.agent_cause();
                self.ending.cause.get_or_insert(cause);
                self.close_agent(Farewell::Done, now, out);
            }
        }
    }

    /// The agent's process has ended; its pipes may still deliver.
    pub fn handle_exit(&mut self, exit: Exit, stderr_tail: String, now: Instant, out: &mut Outbox) {
        out.note(Note::AgentExited { exit });
        let ending = &mut self.ending;
        ending.exit = Some(exit);
        ending.stderr_tail = stderr_tail;
        if ending.step == Step::Over {
            return;
        }
        ending.cause.get_or_insert(Cause::AgentExited);
        ending.hears[Side::Agent as usize] = false;
        if ending.speaks[Side::Agent as usize] {
            ending.step = Step::Exited;
            ending.deadline = Some(now + self.limits.drain);
            self.take_back(Side::Agent, out);
        } else {
            self.finish(Cause::AgentExited, out);
        }
    }

    /// The relay is told to stop: new requests are refused, the agent is asked to end. A second
    /// call does not wait.
    pub fn handle_stop(&mut self, now: Instant, out: &mut Outbox) {
        if self.ending.step == Step::Over {
            return;
        }
        if self.ending.cause == Some(Cause::Stopped) {
            if self.ending.step == Step::Exited {
                self.finish(Cause::Stopped, out);
                return;
            }
            self.ending.step = Step::Terminated;
            self.handle_timeout(now, out);
            return;
        }
        self.ending.cause = Some(Cause::Stopped);
        self.answer_agent(&excuse::draining(Delivered::Unknown), out);
        self.close_agent(Farewell::Shutdown, now, out);
    }

    /// A deadline may have passed.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let grace = self.limits.stop_grace;
        let client_is_slow = self.ending.hears(Side::Client) && !out.has_room(Side::Client);
        if client_is_slow && (self.ending.step == Step::Exited || self.owes_answers()) {
            // The agent cannot be heard, which is not its fault.
            self.ending.deadline = Some(now + self.limits.drain.max(grace));
            return;
        }
        let child = self.manners.agent_is_child;
        match self.ending.step {
            Step::None | Step::Over => self.ending.deadline = None,
            Step::Finishing => self.close_agent(Farewell::Done, now, out),
            Step::Closed if child => {
                self.ending.step = Step::Terminated;
                self.ending.deadline = Some(now + grace);
                out.note(Note::Stopping { signal: "SIGTERM" });
                out.order(Order::Terminate);
            }
            Step::Terminated if child => {
                self.ending.step = Step::Killed;
                self.ending.deadline = Some(now + grace);
                out.note(Note::Stopping { signal: "SIGKILL" });
                out.order(Order::Kill);
            }
            Step::Closed | Step::Terminated | Step::Killed | Step::Exited => {
                self.finish(Cause::AgentLeft, out)
            }
        }
    }

    /// Ends the conversation because `side` broke the rules once too often.
    pub(super) fn expel(
        &mut self,
        side: Side,
        blame: &'static str,
        now: Instant,
        out: &mut Outbox,
    ) {
        if !self.ending.speaks[side as usize] {
            return;
        }
        out.note(Note::Ended {
            side,
            how: blame.to_owned(),
        });
        self.ending.speaks[side as usize] = false;
        match side {
            Side::Client => {
                out.close(Side::Client, Farewell::Violation);
                self.client_left(false, Cause::Expelled(side), now, out);
            }
            Side::Agent => {
                self.ending.blame = Some(blame);
                self.ending.cause.get_or_insert(Cause::Expelled(side));
                if self.manners.agent_is_child {
                    self.close_agent(Farewell::Violation, now, out);
                } else {
                    self.finish(Cause::Expelled(side), out);
                }
            }
        }
    }

    /// The error for a request of `from` that the other side cannot be asked any more.
    pub(super) fn unanswerable(&self, from: Side) -> Option<Reason> {
        let ending = &self.ending;
        match from {
            Side::Client if ending.cause == Some(Cause::Stopped) => {
                Some(excuse::draining(Delivered::No))
            }
            Side::Client if !ending.hears(Side::Agent) => Some(self.agent_gone(Delivered::No)),
            Side::Agent if !ending.speaks[Side::Client as usize] => {
                Some(excuse::client_left(Delivered::No))
            }
            _ => None,
        }
    }

    /// An agent that still owes an answer to somebody who listens gets more time with each word.
    pub(super) fn heard_agent(&mut self, now: Instant) {
        if matches!(self.ending.step, Step::Finishing | Step::Closed) && self.owes_answers() {
            self.ending.deadline = Some(now + self.limits.stop_grace);
        }
    }

    /// Goes on with the ending when the last answer that was waited for has come.
    pub(super) fn settle(&mut self, now: Instant, out: &mut Outbox) {
        if self.ending.step == Step::Finishing && !self.owes_answers() {
            self.close_agent(Farewell::Done, now, out);
        }
    }

    /// Takes the notice of another relay that its agent has exited; `false` if it is none.
    pub(super) fn take_exit_notice(
        &mut self,
        frame: &Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) -> bool {
        if self.manners.agent_is_child {
            return false;
        }
        let Some(notice) = reply::read_notice(frame, envelope) else {
            return false;
        };
        out.note(Note::AgentExited { exit: notice.exit });
        self.ending.exit = Some(notice.exit);
        self.ending.stderr_tail = notice.stderr_tail;
        true
    }

    fn client_left(&mut self, listens: bool, cause: Cause, now: Instant, out: &mut Outbox) {
        self.ending.hears[Side::Client as usize] &= listens;
        if self.ending.step == Step::Over {
            return;
        }
        self.ending.cause.get_or_insert(cause);
        self.answer_agent(&excuse::client_left(Delivered::Unknown), out);
        if !self.manners.agent_half_close && self.owes_answers() {
            self.ending.step = Step::Finishing;
            self.ending.deadline = Some(now + self.limits.stop_grace);
        } else {
            self.close_agent(Farewell::Done, now, out);
        }
    }

    /// Answers what the agent still waits for.
    fn answer_agent(&mut self, reason: &Reason, out: &mut Outbox) {
        for (id, method) in self.pending[Side::Agent as usize].take_all() {
            self.answer_for_peer(Side::Agent, &id, &method, reason, out);
        }
    }

    /// Ends our stream to the agent and gives it time to end too.
    fn close_agent(&mut self, why: Farewell, now: Instant, out: &mut Outbox) {
        out.close(Side::Agent, why);
        self.ending.hears[Side::Agent as usize] = false;
        if matches!(self.ending.step, Step::None | Step::Finishing) {
            self.ending.step = Step::Closed;
            self.ending.deadline = Some(now + self.limits.stop_grace);
        }
    }

    fn owes_answers(&self) -> bool {
        let stopped = self.ending.cause == Some(Cause::Stopped);
        !stopped
            && self.ending.hears(Side::Client)
            && !self.pending[Side::Client as usize].is_empty()
    }

    /// Answers what is still open and closes both sides.
    fn finish(&mut self, cause: Cause, out: &mut Outbox) {
        if self.ending.step == Step::Over {
            return;
        }
        self.ending.cause.get_or_insert(cause);
        self.ending.step = Step::Over;
        self.ending.deadline = None;
        self.ending.hears[Side::Agent as usize] = false;
        self.take_back(Side::Agent, out);
        for (id, method) in self.pending[Side::Client as usize].take_all() {
            let delivered = if self.ending.unsent.contains(&id) {
                Delivered::No
            } else {
                Delivered::Unknown
            };
            self.answer_for_peer(Side::Client, &id, &method, &self.agent_gone(delivered), out);
        }
        self.pending[Side::Agent as usize].take_all();
        if let Some(exit) = self.ending.exit
            && self.manners.announce_exit
            && self.ending.hears(Side::Client)
            && exit != Exit::Code(0)
        {
            out.say(
                Side::Client,
                reply::agent_exited_notice(exit, &self.ending.stderr_tail),
            );
        }
        out.close(Side::Agent, Farewell::Done);
        out.close(Side::Client, self.farewell());
    }

    /// How the client is taken leave of.
    fn farewell(&self) -> Farewell {
        match (&self.ending.cause, self.ending.exit) {
            (Some(Cause::Stopped), _) => Farewell::Shutdown,
            (Some(Cause::Expelled(Side::Agent)), _) => Farewell::PeerFailed,
            (_, None | Some(Exit::Code(0))) => Farewell::Done,
            _ => Farewell::PeerFailed,
        }
    }

    fn agent_gone(&self, delivered: Delivered) -> Reason {
        let ending = &self.ending;
        if let Some(blame) = ending.blame {
            return excuse::agent_stopped(blame, ending.exit, &ending.stderr_tail, delivered);
        }
        if self.manners.agent_is_child || ending.exit.is_some() {
            return excuse::agent_exited(ending.exit, &ending.stderr_tail, delivered);
        }
        excuse::agent_lost(delivered)
    }

    /// Why a conversation ends that the agent has ended.
    fn agent_cause(&self) -> Cause {
        if self.manners.agent_is_child {
            Cause::AgentExited
        } else {
            Cause::AgentLeft
        }
    }

    /// Clears the lane to a side that is gone: nobody else does, and the other side is not read
    /// while it is full. Requests for the agent will be answered; the rest is noted.
    fn take_back(&mut self, to: Side, out: &mut Outbox) {
        for frame in out.take_back(to) {
            match scan(&frame, &self.limits) {
                Shape::One(envelope) if to == Side::Agent && envelope.kind == Kind::Request => {
                    self.ending.unsent.insert(envelope.id(&frame).to_owned());
                }
                _ => out.note(Note::Undeliverable { from: to.other() }),
            }
        }
    }
}
