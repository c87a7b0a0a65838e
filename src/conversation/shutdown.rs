//! How a conversation ends, how the agent is stopped, and what the client is told of lost
//! connections.
//!
//! The steps only go forward: the agent may finish its answers, then its stdin is closed, then come
//! SIGTERM and SIGKILL, each after its time. `final_error` answers what is still open at the end.

use std::time::{Duration, Instant};

use super::final_error::client_left;
use super::shutdown_state::{Cause, Step};
use super::state::Conversation;
use super::{Command, Note, Outbox};
use jsonrpc::reply::{self, Delivered};
use jsonrpc::{CloseReason, Exit, FrameError, Side};

/// Longest time for each step of stopping an agent once
/// [`Limits::drain`](jsonrpc::Limits::drain) is over.
const LATE_STEP: Duration = Duration::from_secs(1);

impl Conversation {
    /// Whether `side` is still to be read. A client is read until its link is closed, because what
    /// it has asked by then needs an answer.
    #[must_use]
    pub fn reads(&self, side: Side) -> bool {
        let over = side == Side::Agent && self.shutdown.step == Step::Over;
        let is_full = side == Side::Client && self.is_holding_enough();
        self.shutdown.sends(side) && !over && !is_full
    }

    /// Why the conversation is over, if it is. What is left then only has to be delivered.
    #[must_use]
    pub fn end_cause(&self) -> Option<&Cause> {
        let over = self.shutdown.step == Step::Over;
        self.shutdown.cause.as_ref().filter(|_| over)
    }

    /// Whether the conversation is ending: there is a reason for it to end.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.shutdown.cause.is_some()
    }

    /// How the agent's process ended, if that is known.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.shutdown.exit
    }

    /// Why the agent was lost, rejected or stopped, as a clause.
    #[must_use]
    pub fn agent_error(&self) -> Option<String> {
        let error = self.shutdown.agent_error.as_ref()?;
        Some(format!("it {error}"))
    }

    /// Whether the agent has answered any request.
    #[must_use]
    pub fn has_agent_answered(&self) -> bool {
        self.agent_answered
    }

    /// Whether a request of the client is open.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        !self.pending[Side::Client as usize].is_empty() || self.held_for_restart().next().is_some()
    }

    /// When [`Conversation::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [
            self.shutdown.deadline,
            self.link_status.due(),
            self.cancelled_due(),
            self.silence_due(),
            self.restart_due(),
            self.dialects.deadline(),
            self.early.until,
            self.salvage_due(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Whether the agent's link was lost or closed before a shutdown began.
    #[must_use]
    pub fn has_lost_agent(&self) -> bool {
        self.shutdown.lost
    }

    /// `side` has ended its stream; `how` describes it for users.
    pub fn handle_eof(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.expire_salvage(Some(side), out);
        let lost = side == Side::Agent && self.shutdown.lost;
        out.note(Note::Ended { side, how, lost });
        self.shutdown.silent[side as usize] = true;
        match side {
            Side::Client => {
                self.refuse_held(out);
                self.client_left(self.links.client_half_close, Cause::ClientLeft, out);
            }
            Side::Agent => self.agent_left(CloseReason::Done, out),
        }
    }

    /// What `side` sends cannot be understood any more; `error` is reported to it.
    pub fn handle_invalid(
        &mut self,
        side: Side,
        how: String,
        error: Option<FrameError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        self.now = now;
        if let Some(error) = error {
            self.send(side, reply::frame_error(&error), None, out);
        }
        self.close_for_violation(side, how, out);
    }

    /// Reading from `side` failed: its connection was reset, its machine is unreachable. It broke
    /// no rule, so this counts as leaving.
    pub fn handle_lost(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        self.now = now;
        match side {
            Side::Client => {
                self.shutdown.silent[Side::Client as usize] = true;
                self.handle_unwritable(side, how, now, out);
            }
            Side::Agent => {
                if !self.links.agent_is_child {
                    self.shutdown.lost |= !self.is_ending();
                    self.shutdown.agent_error.get_or_insert_with(|| how.clone());
                }
                self.handle_eof(side, how, now, out);
            }
        }
    }

    /// `side` can receive nothing any more: its link failed, or it takes nothing.
    pub fn handle_unwritable(&mut self, side: Side, how: String, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.take_unsent(side, out);
        if !self.shutdown.receives(side) {
            return;
        }
        let is_network = side == Side::Agent && !self.links.agent_is_child;
        self.shutdown.lost |= is_network && !self.is_ending();
        let lost = is_network && self.shutdown.lost;
        out.note(Note::Ended { side, how, lost });
        match side {
            Side::Client => {
                self.shutdown.silent[Side::Client as usize] = true;
                self.client_left(false, Cause::ClientLeft, out);
            }
            // Its last messages and its exit are not received yet.
            Side::Agent => {
                let cause = self.agent_cause();
                self.shutdown.cause.get_or_insert(cause);
                self.close_agent(CloseReason::Done, out);
            }
        }
    }

    /// The agent's process has ended; its pipes may still deliver.
    pub fn handle_exit(&mut self, exit: Exit, stderr_tail: String, now: Instant, out: &mut Outbox) {
        self.now = now;
        out.note(Note::AgentExited { exit });
        self.shutdown.exit = Some(exit);
        self.shutdown.stderr_tail = stderr_tail;
        if self.shutdown.step == Step::Over || self.is_agent_down() {
            return;
        }
        self.shutdown.cause.get_or_insert(Cause::AgentExited);
        self.hold_at_end();
        self.shutdown.unreachable[Side::Agent as usize] = true;
        self.take_unsent(Side::Agent, out);
        if self.shutdown.sends(Side::Agent) {
            self.shutdown
                .advance(Step::Exited, Some(now + self.limits.close_grace));
        } else {
            self.finish(Cause::AgentExited, out);
        }
    }

    /// The relay is asked to stop: nothing new begins, and running turns may end within
    /// [`Limits::drain`](jsonrpc::Limits::drain). The second call does not wait. `cause` is
    /// [`Cause::Stopped`], or [`Cause::Unrecorded`] when the conversation has to be recorded and
    /// cannot be any more.
    pub fn handle_stop(&mut self, cause: Cause, now: Instant, out: &mut Outbox) {
        self.now = now;
        if self.shutdown.step == Step::Over {
            return self.close_client_at_end(out);
        }
        let again = self.shutdown.is_stopped();
        self.shutdown.cause = Some(cause.clone());
        self.stop_restarting(&self.stopping(Delivered::No), out);
        if self.is_agent_down() {
            return self.finish(cause, out);
        }
        if !again {
            let drained = now + self.limits.drain;
            self.shutdown.drained = Some(drained);
            if matches!(self.shutdown.step, Step::Finishing | Step::Closed) && self.owes_answers() {
                self.shutdown.deadline = Some(drained);
            }
            self.shutdown.advance(Step::Draining, Some(drained));
            self.continue_shutdown(out);
        } else if self.shutdown.step == Step::Exited || !self.links.agent_is_child {
            self.shutdown.stop_closed |= self.shutdown.step != Step::Exited;
            self.finish(cause, out);
        } else {
            self.close_agent(self.shutdown.stop_reason(), out);
            self.kill(out);
        }
    }

    /// The time for turns ends then already, while the relay stops.
    pub fn shorten_drain(&mut self, until: Instant) {
        let shutdown = &mut self.shutdown;
        shutdown.drained = shutdown.drained.map(|drained| drained.min(until));
        shutdown.deadline = shutdown.deadline.map(|at| at.min(until));
    }

    /// The connection to the agent is lost since then, or there is one. The conversation continues
    /// over the next one.
    pub fn handle_agent_away(&mut self, since: Option<Instant>, now: Instant, out: &mut Outbox) {
        self.now = now;
        let is_back = since.is_none();
        if let Some(since) = self.link_status.update(since, now) {
            self.tell_status(false, since, out);
        }
        if is_back {
            self.heard[Side::Agent as usize] = now;
            self.note_agent_back();
        }
        self.reschedule_cancelled(out);
    }

    fn tell_status(&mut self, is_lost: bool, since: Duration, out: &mut Outbox) {
        if self.reads(Side::Agent) {
            out.note(Note::LinkStatus { is_lost });
            self.send(Side::Client, reply::link_status(is_lost, since), None, out);
        }
    }

    /// A deadline may have passed.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        self.now = now;
        if let Some(since) = self.link_status.take_due(now) {
            self.tell_status(true, since, out);
        }
        self.dialects.set_time(now);
        self.expire_silence(out);
        self.expire_cancelled(out);
        self.expire_restart(out);
        self.expire_version_timers(out);
        self.settle_updates(out);
        self.expire_updates(out);
        self.expire_salvage(None, out);
        if self.shutdown.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let next = self.next_step();
        let shutdown = &mut self.shutdown;
        let client_is_slow = shutdown.receives(Side::Client) && !out.has_room(Side::Client);
        if shutdown.step == Step::Exited && client_is_slow && !shutdown.is_stopped() {
            // The client is too slow for the agent's last messages, which is not the agent's fault.
            // The relay gives up a client that takes nothing at all.
            shutdown.deadline = Some(now + self.limits.close_grace);
            return;
        }
        match shutdown.step {
            Step::None | Step::Over => {
                shutdown.deadline = None;
                self.close_client_at_end(out);
            }
            Step::Finishing if !shutdown.is_stopped() => self.close_agent(CloseReason::Done, out),
            Step::Draining | Step::Finishing => {
                self.close_agent(self.shutdown.stop_reason(), out);
            }
            Step::Closed if self.links.agent_is_child => {
                self.shutdown.stop_closed |=
                    self.shutdown.is_stopped() && self.shutdown.exit.is_none();
                self.shutdown.advance(Step::Terminated, Some(next));
                self.shutdown.signalled = self.shutdown.stop_closed;
                let reason = if self.shutdown.sends(Side::Agent) {
                    "ran on though its input had ended"
                } else {
                    "ran on though it had closed its output"
                };
                self.shutdown
                    .agent_error
                    .get_or_insert_with(|| reason.to_owned());
                out.note(Note::Stopping { signal: "SIGTERM" });
                out.command(Command::Terminate);
            }
            Step::Terminated => self.kill(out),
            Step::Closed | Step::Killed | Step::Exited => {
                let cause = self.agent_cause();
                self.finish(cause, out);
            }
        }
    }

    /// Ends the conversation because of what `side` did.
    pub(super) fn close_for_violation(&mut self, side: Side, reason: String, out: &mut Outbox) {
        if !self.shutdown.sends(side) {
            return;
        }
        self.shutdown.lost |= side == Side::Agent && !self.is_ending();
        out.note(Note::Ended {
            side,
            how: reason.clone(),
            lost: side == Side::Agent && self.shutdown.lost,
        });
        self.shutdown.silent[side as usize] = true;
        match side {
            Side::Client => {
                out.close(Side::Client, CloseReason::Violation);
                self.client_left(false, Cause::Violation(side), out);
            }
            Side::Agent => {
                self.shutdown.agent_error = Some(reason);
                self.shutdown.cause.get_or_insert(Cause::Violation(side));
                self.agent_left(CloseReason::Violation, out);
            }
        }
    }

    /// An agent that still owes an answer to a receiving client gets more time with each message.
    /// Not when the relay was asked to stop: an agent that keeps sending would delay it for ever.
    pub(super) fn extend_deadline(&mut self) {
        let may_extend = matches!(self.shutdown.step, Step::Finishing | Step::Closed)
            && !self.shutdown.is_stopped();
        if may_extend && self.owes_answers() {
            self.shutdown.deadline = Some(self.now + self.limits.stop_grace);
        }
    }

    /// Continues the shutdown when the last open request was answered.
    pub(super) fn continue_shutdown(&mut self, out: &mut Outbox) {
        match self.shutdown.step {
            Step::Draining if !self.owes_answers() => {
                self.close_agent(self.shutdown.stop_reason(), out)
            }
            Step::Finishing if !self.owes_answers() => self.close_agent(CloseReason::Done, out),
            // An agent that owes no answer any more does not get the time for turns.
            Step::Closed if self.shutdown.is_stopped() && !self.owes_answers() => {
                let soon = self.next_step();
                self.shutdown.deadline = self.shutdown.deadline.map(|at| at.min(soon));
            }
            _ => {}
        }
    }

    fn client_left(&mut self, listens: bool, cause: Cause, out: &mut Outbox) {
        self.shutdown.unreachable[Side::Client as usize] |= !listens;
        if self.shutdown.step == Step::Over {
            return self.close_client_at_end(out);
        }
        self.shutdown.cause.get_or_insert_with(|| cause.clone());
        self.answer_agent(&client_left(Delivered::Unknown), out);
        self.stop_restarting(&client_left(Delivered::No), out);
        if self.is_agent_down() {
            return self.finish(cause, out);
        }
        if !self.links.agent_half_close && self.owes_answers() {
            self.shutdown
                .advance(Step::Finishing, Some(self.now + self.limits.stop_grace));
        } else {
            self.close_agent(CloseReason::Done, out);
        }
    }

    /// The agent sends nothing more. A process is then waited for, and stopped if necessary.
    fn agent_left(&mut self, why: CloseReason, out: &mut Outbox) {
        let cause = self.agent_cause();
        if self.links.agent_is_child && self.shutdown.exit.is_none() {
            self.shutdown.cause.get_or_insert(cause);
            self.close_agent(why, out);
        } else {
            self.finish(cause, out);
        }
    }

    /// Ends the relay's stream to the agent and gives the agent time to end too. Its open requests
    /// are answered first.
    fn close_agent(&mut self, why: CloseReason, out: &mut Outbox) {
        self.hold_at_end();
        self.answer_agent(&self.stopping(Delivered::Unknown), out);
        let ends_for_good = why == CloseReason::Shutdown && self.links.client_on_stdio;
        let reported = if ends_for_good {
            CloseReason::Done
        } else {
            why
        };
        out.close(Side::Agent, reported);
        self.shutdown.stop_closed |=
            why == self.shutdown.stop_reason() && self.shutdown.exit.is_none();
        self.shutdown.unreachable[Side::Agent as usize] = true;
        let next = self.next_step();
        self.shutdown.advance(Step::Closed, Some(next));
    }

    /// When the next step of stopping an agent is due if it does not end by itself.
    fn next_step(&self) -> Instant {
        let due = self.now + self.limits.stop_grace;
        let late = |drained: Instant| due.min(drained.max(self.now) + LATE_STEP);
        self.shutdown.drained.map_or(due, late)
    }

    fn kill(&mut self, out: &mut Outbox) {
        if self.shutdown.step < Step::Killed {
            let next = self.next_step();
            self.shutdown.advance(Step::Killed, Some(next));
            self.shutdown.signalled = self.shutdown.stop_closed;
            out.note(Note::Stopping { signal: "SIGKILL" });
            out.command(Command::Kill);
        }
    }

    fn owes_answers(&self) -> bool {
        self.shutdown.receives(Side::Client) && !self.pending[Side::Client as usize].is_empty()
    }

    /// The cause of a shutdown that the agent began.
    pub(super) fn agent_cause(&self) -> Cause {
        if self.links.agent_is_child {
            Cause::AgentExited
        } else {
            Cause::AgentLeft
        }
    }
}
