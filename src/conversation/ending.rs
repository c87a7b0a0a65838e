//! How a conversation ends: who left first, and how the agent is stopped.
//!
//! The steps only go forward: the agent may finish what it owes, then its stdin is closed, then
//! come SIGTERM and SIGKILL, each after its time. Not here: what is done with messages while both
//! sides are well (see `mind`), and what is said at the end (see `last_word`).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::mind::Core;
use super::{Note, Order, Outbox, excuse};
use crate::jsonrpc::reply::{self, Delivered};
use crate::jsonrpc::{Exit, Farewell, Flaw, IdBuf, Side};

/// Longest time for each step of stopping an agent once [`Limits::drain`](crate::jsonrpc::Limits::drain)
/// is over.
const HASTE: Duration = Duration::from_secs(1);

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
    /// It has to be recorded and could not be any more.
    Unrecorded,
    /// A side broke the rules once too often, or in a way that cannot be followed any more.
    Expelled(Side),
}

/// Where a conversation stands on its way out.
#[derive(Debug)]
pub(super) struct Ending {
    /// Which sides may still say something.
    pub(super) speaks: [bool; 2],
    /// Which sides can still be told something.
    pub(super) hears: [bool; 2],
    pub(super) step: Step,
    pub(super) deadline: Option<Instant>,
    /// When the time for turns is over, once the relay is told to stop.
    pub(super) drained: Option<Instant>,
    pub(super) cause: Option<Cause>,
    /// Why the agent was expelled, stopped or lost, for those who wait for its answers.
    pub(super) blame: Option<String>,
    /// Whether it was lost before anybody asked for its end.
    pub(super) lost: bool,
    /// It was told to stop, and our stream to the agent is ended for that.
    pub(super) dismissed: bool,
    /// It has also signalled the agent, so that its exit may be our doing.
    pub(super) signalled: bool,
    pub(super) exit: Option<Exit>,
    pub(super) stderr_tail: String,
    /// Requests that never left for the agent.
    pub(super) unsent: HashSet<IdBuf>,
}

/// How far the ending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Not begun.
    None,
    /// Told to stop: turns may end, nothing new begins.
    Draining,
    /// The client has ended its stream; the agent may finish its answers first, because its link
    /// cannot be half-closed.
    Finishing,
    /// Our stream to the agent is ended.
    Closed,
    /// SIGTERM is sent.
    Terminated,
    /// SIGKILL is sent.
    Killed,
    /// The agent has exited; its pipes may still deliver.
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
            drained: None,
            cause: None,
            blame: None,
            lost: false,
            dismissed: false,
            signalled: false,
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

    /// Whether it was told to stop, for whatever reason.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.cause, Some(Cause::Stopped | Cause::Unrecorded))
    }

    /// How a side is taken leave of when we were told to stop.
    pub(super) fn dismissal(&self) -> Farewell {
        if self.cause == Some(Cause::Unrecorded) {
            Farewell::Unrecorded
        } else {
            Farewell::Shutdown
        }
    }

    /// Goes on to `step`, unless that or a later one is reached.
    fn advance(&mut self, step: Step, deadline: Option<Instant>) {
        if self.step < step {
            self.step = step;
            self.deadline = deadline;
        }
    }
}

impl Core {
    /// Whether `side` is still to be read. A client is read until its link is closed, because what
    /// it has asked by then deserves an answer.
    #[must_use]
    pub fn listens_to(&self, side: Side) -> bool {
        let over = side == Side::Agent && self.ending.step == Step::Over;
        self.ending.speaks[side as usize] && !over
    }

    /// Why the conversation is over, if it is. What still waits is then only to be delivered.
    #[must_use]
    pub fn over(&self) -> Option<&Cause> {
        let over = self.ending.step == Step::Over;
        self.ending.cause.as_ref().filter(|_| over)
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

    /// Whether the agent has answered any request.
    #[must_use]
    pub fn has_agent_answered(&self) -> bool {
        self.agent_answered
    }

    /// When [`Core::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ending.deadline
    }

    /// Whether the agent's link broke off, or was broken off, before anybody asked for its end.
    #[must_use]
    pub fn has_lost_agent(&self) -> bool {
        self.ending.lost
    }

    /// `side` has ended its stream; `how` says it for a person.
    pub fn handle_eof(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        let lost = side == Side::Agent && self.ending.lost;
        out.note(Note::Ended { side, how, lost });
        self.ending.speaks[side as usize] = false;
        match side {
            Side::Client => {
                self.client_left(self.manners.client_half_close, Cause::ClientLeft, now, out);
            }
            Side::Agent => self.agent_left(Farewell::Done, now, out),
        }
    }

    /// What `side` sends cannot be understood any more; `flaw` is what it is told about that.
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
        }
        self.expel(side, how, now, out);
    }

    /// Reading from `side` failed: its connection was reset, its machine has vanished. Nobody broke
    /// a rule, so this counts as leaving.
    pub fn handle_lost(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        match side {
            Side::Client => {
                self.ending.speaks[Side::Client as usize] = false;
                self.handle_deaf(side, how, now, out);
            }
            Side::Agent => {
                if !self.manners.agent_is_child {
                    self.ending.lost |= !self.is_ending();
                    self.ending.blame.get_or_insert_with(|| how.clone());
                }
                self.handle_eof(side, how, now, out);
            }
        }
    }

    /// Nothing can be said to `side` any more: its link failed, or it takes nothing.
    pub fn handle_deaf(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        self.take_back(side, out);
        if !self.ending.hears(side) {
            return;
        }
        let is_network = side == Side::Agent && !self.manners.agent_is_child;
        self.ending.lost |= is_network && !self.is_ending();
        let lost = is_network && self.ending.lost;
        out.note(Note::Ended { side, how, lost });
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
        self.ending.exit = Some(exit);
        self.ending.stderr_tail = stderr_tail;
        if self.ending.step == Step::Over {
            return;
        }
        self.ending.cause.get_or_insert(Cause::AgentExited);
        self.ending.hears[Side::Agent as usize] = false;
        self.take_back(Side::Agent, out);
        if self.ending.speaks[Side::Agent as usize] {
            self.ending
                .advance(Step::Exited, Some(now + self.limits.last_words));
        } else {
            self.finish(Cause::AgentExited, out);
        }
    }

    /// The relay is told to stop: nothing new begins, and turns that run may end within
    /// [`Limits::drain`](crate::jsonrpc::Limits::drain). The second call does not wait.
    pub fn handle_stop(&mut self, now: Instant, out: &mut Outbox) {
        self.stop(Cause::Stopped, now, out);
    }

    /// The same, because the conversation has to be recorded and cannot be any more.
    pub fn handle_unrecorded(&mut self, now: Instant, out: &mut Outbox) {
        self.stop(Cause::Unrecorded, now, out);
    }

    /// A deadline may have passed.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let next = self.next_step(now);
        let ending = &mut self.ending;
        let client_is_slow = ending.hears(Side::Client) && !out.has_room(Side::Client);
        if ending.step == Step::Exited && client_is_slow && !ending.is_stopped() {
            // The client is too slow for the agent's last words, which is not the agent's fault.
            // The relay gives up a client that takes nothing at all.
            ending.deadline = Some(now + self.limits.last_words);
            return;
        }
        match ending.step {
            Step::None | Step::Over => ending.deadline = None,
            Step::Finishing if !ending.is_stopped() => self.close_agent(Farewell::Done, now, out),
            Step::Draining | Step::Finishing => {
                self.close_agent(self.ending.dismissal(), now, out);
            }
            Step::Closed if self.manners.agent_is_child => {
                self.ending.dismissed |= self.ending.is_stopped() && self.ending.exit.is_none();
                self.ending.advance(Step::Terminated, Some(next));
                self.ending.signalled = self.ending.dismissed;
                let blame = if self.ending.speaks[Side::Agent as usize] {
                    "ran on though its input had ended"
                } else {
                    "ran on though it had closed its output"
                };
                self.ending.blame.get_or_insert_with(|| blame.to_owned());
                out.note(Note::Stopping { signal: "SIGTERM" });
                out.order(Order::Terminate);
            }
            Step::Terminated => self.kill(now, out),
            Step::Closed | Step::Killed | Step::Exited => {
                let cause = self.agent_cause();
                self.finish(cause, out);
            }
        }
    }

    /// Ends the conversation because of what `side` did.
    pub(super) fn expel(&mut self, side: Side, blame: String, now: Instant, out: &mut Outbox) {
        if !self.ending.speaks[side as usize] {
            return;
        }
        self.ending.lost |= side == Side::Agent && !self.is_ending();
        out.note(Note::Ended {
            side,
            how: blame.clone(),
            lost: side == Side::Agent && self.ending.lost,
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
                self.agent_left(Farewell::Violation, now, out);
            }
        }
    }

    /// An agent that still owes an answer to somebody who listens gets more time with each message.
    /// Not when the relay was told to stop: an agent that talks on would hold it up for ever.
    pub(super) fn heard_agent(&mut self, now: Instant) {
        let may_go_on =
            matches!(self.ending.step, Step::Finishing | Step::Closed) && !self.ending.is_stopped();
        if may_go_on && self.owes_answers() {
            self.ending.deadline = Some(now + self.limits.stop_grace);
        }
    }

    /// Goes on with the ending when the last answer that was waited for has come.
    pub(super) fn settle(&mut self, now: Instant, out: &mut Outbox) {
        match self.ending.step {
            Step::Draining if !self.owes_answers() => {
                self.close_agent(self.ending.dismissal(), now, out)
            }
            Step::Finishing if !self.owes_answers() => self.close_agent(Farewell::Done, now, out),
            // The time for turns is not for an agent that owes no answer any more.
            Step::Closed if self.ending.is_stopped() && !self.owes_answers() => {
                let soon = self.next_step(now);
                self.ending.deadline = self.ending.deadline.map(|at| at.min(soon));
            }
            _ => {}
        }
    }

    fn stop(&mut self, cause: Cause, now: Instant, out: &mut Outbox) {
        if self.ending.step == Step::Over {
            return;
        }
        let again = self.ending.is_stopped();
        self.ending.cause = Some(cause.clone());
        if !again {
            let drained = now + self.limits.drain;
            self.ending.drained = Some(drained);
            if matches!(self.ending.step, Step::Finishing | Step::Closed) && self.owes_answers() {
                self.ending.deadline = Some(drained);
            }
            self.ending.advance(Step::Draining, Some(drained));
            self.settle(now, out);
        } else if self.ending.step == Step::Exited || !self.manners.agent_is_child {
            self.ending.dismissed |= self.ending.step != Step::Exited;
            self.finish(cause, out);
        } else {
            self.close_agent(self.ending.dismissal(), now, out);
            self.kill(now, out);
        }
    }

    fn client_left(&mut self, listens: bool, cause: Cause, now: Instant, out: &mut Outbox) {
        self.ending.hears[Side::Client as usize] &= listens;
        if self.ending.step == Step::Over {
            return;
        }
        self.ending.cause.get_or_insert(cause);
        self.answer_agent(&excuse::client_left(Delivered::Unknown), out);
        if !self.manners.agent_half_close && self.owes_answers() {
            self.ending
                .advance(Step::Finishing, Some(now + self.limits.stop_grace));
        } else {
            self.close_agent(Farewell::Done, now, out);
        }
    }

    /// The agent says nothing more. A process is then waited for, and stopped if need be.
    fn agent_left(&mut self, why: Farewell, now: Instant, out: &mut Outbox) {
        let cause = self.agent_cause();
        if self.manners.agent_is_child && self.ending.exit.is_none() {
            self.ending.cause.get_or_insert(cause);
            self.close_agent(why, now, out);
        } else {
            self.finish(cause, out);
        }
    }

    /// Ends our stream to the agent and gives it time to end too. What it still waits for is
    /// answered before.
    fn close_agent(&mut self, why: Farewell, now: Instant, out: &mut Outbox) {
        self.answer_agent(&self.stopping(Delivered::Unknown), out);
        out.close(Side::Agent, why);
        self.ending.dismissed |= why == self.ending.dismissal() && self.ending.exit.is_none();
        self.ending.hears[Side::Agent as usize] = false;
        let next = self.next_step(now);
        self.ending.advance(Step::Closed, Some(next));
    }

    /// When the next step of stopping an agent is due that does not end by itself.
    fn next_step(&self, now: Instant) -> Instant {
        let due = now + self.limits.stop_grace;
        let hasty = |drained: Instant| due.min(drained.max(now) + HASTE);
        self.ending.drained.map_or(due, hasty)
    }

    fn kill(&mut self, now: Instant, out: &mut Outbox) {
        if self.ending.step < Step::Killed {
            let next = self.next_step(now);
            self.ending.advance(Step::Killed, Some(next));
            self.ending.signalled = self.ending.dismissed;
            out.note(Note::Stopping { signal: "SIGKILL" });
            out.order(Order::Kill);
        }
    }

    fn owes_answers(&self) -> bool {
        self.ending.hears(Side::Client) && !self.pending[Side::Client as usize].is_empty()
    }

    /// The cause of an end that came from the agent.
    fn agent_cause(&self) -> Cause {
        if self.manners.agent_is_child {
            Cause::AgentExited
        } else {
            Cause::AgentLeft
        }
    }
}
