//! Answers open requests when the other side is gone.
//!
//! Whatever ended a conversation, each open request is answered once before its sender's link is
//! closed, and undeliverable messages are noted. `shutdown` decides when it ends.

use super::ending::{Cause, Step};
use super::mind::Core;
use super::{Note, Outbox, excuse};
use crate::jsonrpc::reply::{self, Delivered, Reason};
use crate::jsonrpc::{Envelope, Exit, Farewell, Frame, Kind, Shape, Side, scan};

/// Answers that carry the end of what the agent has printed. Others of the same moment only say
/// that it has ended, so that thousands of open requests do not add up to megabytes.
const WITH_WORDS: usize = 8;

impl Core {
    /// Why a request of `from` cannot be passed on any more; `None` while it can.
    pub(super) fn unanswerable(&self, from: Side) -> Option<Reason> {
        let ending = &self.ending;
        match from {
            Side::Client if ending.is_stopped() => Some(self.stopping(Delivered::No)),
            Side::Client if self.awaits_exit() => None,
            Side::Client if !ending.hears(Side::Agent) => {
                Some(self.agent_gone(Delivered::No, true))
            }
            Side::Agent if !ending.hears(Side::Agent) => Some(self.stopping(Delivered::No)),
            Side::Agent if !ending.speaks[Side::Client as usize] => {
                Some(excuse::client_left(Delivered::No))
            }
            _ => None,
        }
    }

    /// Whether the agent's output has ended and its process has not: later requests are answered
    /// with how the process ends.
    pub(super) fn awaits_exit(&self) -> bool {
        let ending = &self.ending;
        let ends = !ending.speaks[Side::Agent as usize] && ending.step < Step::Exited;
        ends && ending.exit.is_none() && self.manners.agent_is_child
    }

    /// Takes another relay's notice that its agent has exited; `false` if the message is not one.
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

    /// Answers the agent's open requests.
    pub(super) fn answer_agent(&mut self, reason: &Reason, out: &mut Outbox) {
        for (id, method) in self.pending[Side::Agent as usize].take_all() {
            self.answer_for_peer(Side::Agent, &id, &method, reason, out);
        }
    }

    /// Answers all open requests and closes both sides.
    pub(super) fn finish(&mut self, cause: Cause, out: &mut Outbox) {
        if self.ending.step == Step::Over {
            return;
        }
        self.ending.cause.get_or_insert(cause);
        self.ending.step = Step::Over;
        self.ending.deadline = None;
        self.ending.hears[Side::Agent as usize] = false;
        self.take_back(Side::Agent, out);
        let open = self.pending[Side::Client as usize].take_all();
        for (at, (id, method)) in open.into_iter().enumerate() {
            let unsent = self.ending.unsent.contains(&id);
            let delivered = if unsent {
                Delivered::No
            } else {
                Delivered::Unknown
            };
            let reason = self.agent_gone(delivered, at < WITH_WORDS);
            self.answer_for_peer(Side::Client, &id, &method, &reason, out);
        }
        self.pending[Side::Agent as usize].take_all();
        if let Some(exit) = self.ending.exit
            && exit != Exit::Code(0)
            && self.manners.announce_exit
            && !self.ending.signalled
            && self.ending.hears(Side::Client)
        {
            let notice = reply::agent_exited_notice(exit, &self.ending.stderr_tail);
            self.say(Side::Client, notice, out);
        }
        out.close(Side::Agent, Farewell::Done);
        out.close(Side::Client, self.farewell());
    }

    /// Clears the lane to a side that is gone. It is not written any more, and the other side is
    /// not read while the lane is full. Requests for the agent will be answered; the rest is noted.
    pub(super) fn take_back(&mut self, to: Side, out: &mut Outbox) {
        for frame in out.take_back(to) {
            match scan(&frame, &self.limits) {
                Shape::One(envelope) if to == Side::Agent && envelope.kind == Kind::Request => {
                    self.ending.unsent.insert(envelope.id(&frame).to_owned());
                }
                _ => out.note(Note::Undeliverable { to }),
            }
        }
    }

    /// The error for requests that arrive while it ends.
    pub(super) fn stopping(&self, delivered: Delivered) -> Reason {
        match self.ending.cause {
            Some(Cause::Unrecorded) => excuse::unrecorded(delivered),
            _ => excuse::draining(delivered),
        }
    }

    /// The reason the client's link is closed with.
    fn farewell(&self) -> Farewell {
        match (&self.ending.cause, self.ending.exit) {
            (Some(Cause::Stopped | Cause::Unrecorded), _) => self.ending.dismissal(),
            (Some(Cause::Expelled(Side::Agent)), _) => Farewell::PeerFailed,
            (_, None | Some(Exit::Code(0))) => Farewell::Done,
            _ => Farewell::PeerFailed,
        }
    }

    /// The error for what the agent cannot answer any more, with its output or without.
    fn agent_gone(&self, delivered: Delivered, with_words: bool) -> Reason {
        let ending = &self.ending;
        let tail = ending.stderr_tail.as_str();
        let stderr_tail = if with_words { tail } else { "" };
        let mut reason = match &ending.blame {
            _ if ending.dismissed && ending.cause == Some(Cause::Unrecorded) => {
                excuse::unrecorded(delivered)
            }
            _ if ending.dismissed => excuse::dismissed(delivered),
            Some(blame) if self.manners.agent_is_child => {
                excuse::agent_stopped(blame, ending.exit, stderr_tail, delivered)
            }
            // Another relay has reported the exit.
            _ if self.manners.agent_is_child || ending.exit.is_some() => {
                excuse::agent_exited(ending.exit, stderr_tail, delivered)
            }
            Some(blame) => excuse::agent_lost(&format!(": it {blame}"), delivered),
            None => excuse::agent_lost("", delivered),
        };
        if reason.code == reply::AGENT_EXITED && with_words {
            excuse::quote(&mut reason, self.babble.tail());
        }
        reason
    }
}
