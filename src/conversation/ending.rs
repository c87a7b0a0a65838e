//! How a conversation ends, and how the agent is stopped.
//!
//! The steps only go forward: the agent may finish its answers, then its stdin is closed, then come
//! SIGTERM and SIGKILL, each after its time. `final_error` answers what is still open at the end.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::mind::Core;
use super::{Note, Order, Outbox, excuse};
use crate::jsonrpc::reply::{self, Delivered};
use crate::jsonrpc::{Exit, Farewell, Flaw, IdBuf, Side};

/// Longest time for each step of stopping an agent once
/// [`Limits::drain`](crate::jsonrpc::Limits::drain) is over.
const HASTE: Duration = Duration::from_secs(1);

/// Why a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The client ended its stream or was lost.
    ClientLeft,
    /// The agent's process ended by itself.
    AgentExited,
    /// The agent's link ended or failed.
    AgentLeft,
    /// The relay was told to stop.
    Stopped,
    /// The conversation has to be recorded and could not be any more.
    Unrecorded,
    /// A side broke the rules too often, or in a way that cannot be followed any more.
    Expelled(Side),
}

/// The state of a conversation's shutdown.
#[derive(Debug)]
pub(super) struct Ending {
    /// Which sides may still send.
    pub(super) speaks: [bool; 2],
    /// Which sides can still receive.
    pub(super) hears: [bool; 2],
    pub(super) step: Step,
    pub(super) deadline: Option<Instant>,
    /// When the time for turns is over, once the relay was told to stop.
    pub(super) drained: Option<Instant>,
    pub(super) cause: Option<Cause>,
    /// Why the agent was rejected, stopped or lost, for the errors that answer its open requests.
    pub(super) blame: Option<String>,
    /// Whether the agent was lost before a shutdown began.
    pub(super) lost: bool,
    /// The relay was told to stop, and ended its stream to the agent for that.
    pub(super) dismissed: bool,
    /// It has also signalled the agent, so that the agent's exit may be the relay's doing.
    pub(super) signalled: bool,
    pub(super) exit: Option<Exit>,
    pub(super) stderr_tail: String,
    /// Requests that were never sent to the agent.
    pub(super) unsent: HashSet<IdBuf>,
}

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Not begun.
    None,
    /// The relay was told to stop: turns may end, nothing new begins.
    Draining,
    /// The client has ended its stream; the agent may finish its answers first, because its link
    /// cannot be half-closed.
    Finishing,
    /// The relay's stream to the agent is ended.
    Closed,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
    /// The agent has exited; its pipes may still deliver.
    Exited,
    /// Everything was sent.
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

    /// Whether it was told to stop, for any reason.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.cause, Some(Cause::Stopped | Cause::Unrecorded))
    }

    /// The reason a side is closed with when the relay was told to stop.
    pub(super) fn dismissal(&self) -> Farewell {
        if self.cause == Some(Cause::Unrecorded) {
            Farewell::Unrecorded
        } else {
            Farewell::Shutdown
        }
    }

    /// Advances to `step`, unless that or a later one is reached.
    fn advance(&mut self, step: Step, deadline: Option<Instant>) {
        if self.step < step {
            self.step = step;
            self.deadline = deadline;
        }
    }
}

impl Core {
    /// Whether `side` is still to be read. A client is read until its link is closed, because what
    /// it has asked by then needs an answer.
    #[must_use]
    pub fn listens_to(&self, side: Side) -> bool {
        let over = side == Side::Agent && self.ending.step == Step::Over;
        self.ending.speaks[side as usize] && !over
    }

    /// Why the conversation is over, if it is. What is left then only has to be delivered.
    #[must_use]
    pub fn over(&self) -> Option<&Cause> {
        let over = self.ending.step == Step::Over;
        self.ending.cause.as_ref().filter(|_| over)
    }

    /// Whether the conversation is ending: there is a reason for it to end.
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

    /// When [`Conversation::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ending.deadline
    }

    /// Whether the agent's link was lost or closed before a shutdown began.
    #[must_use]
    pub fn has_lost_agent(&self) -> bool {
        self.ending.lost
    }

    /// `side` has ended its stream; `how` describes it for users.
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

    /// What `side` sends cannot be understood any more; `error` is reported to it.
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

    /// Reading from `side` failed: its connection was reset, its machine is gone. It broke no rule,
    /// so this counts as leaving.
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

    /// `side` can receive nothing any more: its link failed, or it takes nothing.
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
            // Its last messages and its exit are still to come.
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

    /// The relay is told to stop: nothing new begins, and running turns may end within
    /// [`Limits::drain`](crate::jsonrpc::Limits::drain). The second call does not wait.
    pub fn handle_stop(&mut self, now: Instant, out: &mut Outbox) {
        self.stop(Cause::Stopped, now, out);
    }

    /// [`Conversation::handle_stop`] because the conversation has to be recorded and cannot be any
    /// more.
    pub fn handle_unrecorded(&mut self, now: Instant, out: &mut Outbox) {
        self.stop(Cause::Unrecorded, now, out);
    }

    /// A deadline may have passed.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let next = self.next_step(now);
        let ending = &mut self.ending;
        let client_is_slow = ending.hears(Side::Client) && !out.has_room(Side::Client);
        if ending.step == Step::Exited && client_is_slow && !ending.is_stopped() {
            // The client is too slow for the agent's last messages, which is not the agent's fault.
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

    /// An agent that still owes an answer to a receiving client gets more time with each message.
    /// Not when the relay was told to stop: an agent that keeps sending would delay it for ever.
    pub(super) fn heard_agent(&mut self, now: Instant) {
        let may_go_on =
            matches!(self.ending.step, Step::Finishing | Step::Closed) && !self.ending.is_stopped();
        if may_go_on && self.owes_answers() {
            self.ending.deadline = Some(now + self.limits.stop_grace);
        }
    }

    /// Continues the shutdown when the last open request was answered.
    pub(super) fn settle(&mut self, now: Instant, out: &mut Outbox) {
        match self.ending.step {
            Step::Draining if !self.owes_answers() => {
                self.close_agent(self.ending.dismissal(), now, out)
            }
            Step::Finishing if !self.owes_answers() => self.close_agent(Farewell::Done, now, out),
            // An agent that owes no answer any more does not get the time for turns.
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

    /// The agent sends nothing more. A process is then waited for, and stopped if necessary.
    fn agent_left(&mut self, why: Farewell, now: Instant, out: &mut Outbox) {
        let cause = self.agent_cause();
        if self.manners.agent_is_child && self.ending.exit.is_none() {
            self.ending.cause.get_or_insert(cause);
            self.close_agent(why, now, out);
        } else {
            self.finish(cause, out);
        }
    }

    /// Ends the relay's stream to the agent and gives the agent time to end too. Its open requests
    /// are answered first.
    fn close_agent(&mut self, why: Farewell, now: Instant, out: &mut Outbox) {
        self.answer_agent(&self.stopping(Delivered::Unknown), out);
        out.close(Side::Agent, why);
        self.ending.dismissed |= why == self.ending.dismissal() && self.ending.exit.is_none();
        self.ending.hears[Side::Agent as usize] = false;
        let next = self.next_step(now);
        self.ending.advance(Step::Closed, Some(next));
    }

    /// When the next step of stopping an agent is due if it does not end by itself.
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

    /// The cause of a shutdown that the agent began.
    fn agent_cause(&self) -> Cause {
        if self.manners.agent_is_child {
            Cause::AgentExited
        } else {
            Cause::AgentLeft
        }
    }
}
