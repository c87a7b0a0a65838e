//! Answers open requests when the other side is gone.
//!
//! Whatever ended a conversation, each open request is answered once before its sender's link is
//! closed, and undeliverable messages are noted. `shutdown` decides when it ends.

use std::time::Duration;

use super::shutdown_state::{Cause, Step};
use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{CloseReason, Envelope, Exit, Frame, Kind, Scanned, Side, scan, text, truncated};

/// Answers that carry the end of what the agent has printed. Others of the same moment only state
/// that it has ended, so that thousands of open requests do not add up to megabytes.
const WITH_OUTPUT: usize = 8;

/// Time for a client that is a program and has not asked anything when the agent is gone.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// How much of a line printed by an agent is quoted in a message, in characters.
const MAX_CHARS: usize = 200;

impl Conversation {
    /// Why a request of `from` cannot be passed on any more; `None` while it can.
    pub(super) fn refusal(&self, from: Side) -> Option<Reason> {
        let shutdown = &self.shutdown;
        match from {
            Side::Client if shutdown.is_stopped() => Some(self.stopping(Delivered::No)),
            Side::Client if self.awaits_exit() => None,
            Side::Client if !shutdown.receives(Side::Agent) => {
                Some(self.agent_gone(Delivered::No, true))
            }
            Side::Agent if !shutdown.receives(Side::Agent) => Some(self.stopping(Delivered::No)),
            Side::Agent if !shutdown.sends(Side::Client) => Some(client_left(Delivered::No)),
            _ => None,
        }
    }

    /// Whether the agent's output has ended and its process has not: later requests are answered
    /// with how the process ends.
    pub(super) fn awaits_exit(&self) -> bool {
        let shutdown = &self.shutdown;
        let ends = !shutdown.sends(Side::Agent) && shutdown.step < Step::Exited;
        ends && shutdown.exit.is_none() && self.links.agent_is_child
    }

    /// Takes another relay's notice that its agent has exited; `false` if the message is not one.
    pub(super) fn take_exit_notice(
        &mut self,
        frame: &Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) -> bool {
        let Some(notice) = reply::read_notice(frame, envelope) else {
            return false;
        };
        out.note(Note::AgentExited { exit: notice.exit });
        self.shutdown.exit = Some(notice.exit);
        self.shutdown.stderr_tail = notice.stderr_tail;
        true
    }

    /// Answers the agent's open requests.
    pub(super) fn answer_agent(&mut self, reason: &Reason, out: &mut Outbox) {
        let open: Vec<_> = self.pending[Side::Agent as usize].drain().collect();
        let goes_on = self.can_come_back();
        for (id, request) in open {
            let asked_as = request.own_id.as_deref().unwrap_or(&id);
            self.answer_for_peer(Side::Agent, asked_as, &request.method, reason, out);
            if goes_on {
                // The client may still show the question, and answer it.
                let cancel = reply::cancel_request(id.as_id());
                self.send(Side::Client, cancel, None, out);
                self.own_answers.expect(Side::Client, id, None);
            }
        }
    }

    /// The agent is gone. If it does not come back, answers all open requests and closes both sides.
    pub(super) fn finish(&mut self, cause: Cause, out: &mut Outbox) {
        self.expire_salvage(Some(Side::Agent), out);
        if self.shutdown.step == Step::Over {
            return;
        }
        if self.can_come_back() {
            return self.suspend(out);
        }
        self.shutdown.cause.get_or_insert(cause);
        self.shutdown.step = Step::Over;
        self.shutdown.deadline = None;
        self.shutdown.unreachable[Side::Agent as usize] = true;
        self.stop_claiming(out);
        self.take_unsent(Side::Agent, out);
        self.answer_client(out);
        self.refuse_for_restart(&self.agent_gone(Delivered::No, true), out);
        self.restart = None;
        self.attends_restart = false;
        self.stop_negotiating(out);
        // Prompts that have waited for the end of a turn.
        self.handle_returned(out);
        self.settle_updates(out);
        drop(self.pending[Side::Agent as usize].drain());
        if let Some(exit) = self.shutdown.exit
            && exit != Exit::Code(0)
            && self.links.announce_exit
            && !self.shutdown.signalled
            && self.shutdown.receives(Side::Client)
        {
            let notice = reply::agent_exited_notice(exit, &self.shutdown.stderr_tail);
            self.send(Side::Client, notice, None, out);
        }
        out.close(Side::Agent, CloseReason::Done);
        if self.awaits_first_request() {
            self.shutdown.deadline = Some(self.now + FIRST_REQUEST);
        } else {
            self.close_client_at_end(out);
        }
    }

    /// Answers the client's open requests.
    pub(super) fn answer_client(&mut self, out: &mut Outbox) {
        let mut open: Vec<_> = self.pending[Side::Client as usize].drain().collect();
        if self.dialects.converted() == Some(Side::Client) {
            // The end of a turn is the last that a client of v2 gets.
            open.sort_by_key(|(_, request)| &request.method[..] == b"session/prompt");
        }
        for (at, (id, request)) in open.into_iter().enumerate() {
            let delivered = if request.is_unsent {
                Delivered::No
            } else {
                Delivered::Unknown
            };
            let reason = self.agent_gone(delivered, at < WITH_OUTPUT);
            self.answer_for_peer(Side::Client, &id, &request.method, &reason, out);
        }
    }

    /// Whether the client may not have asked anything yet: only an error can tell it why the agent is
    /// gone.
    fn awaits_first_request(&self) -> bool {
        let is_open = self.shutdown.sends(Side::Client) && self.shutdown.receives(Side::Client);
        let is_program = self.links.client_on_stdio && !self.links.agent_is_replayed;
        is_program && is_open && !self.client_asked && !self.shutdown.is_stopped()
    }

    /// Closes the client's link if the conversation is over.
    pub(super) fn close_client_at_end(&self, out: &mut Outbox) {
        if self.shutdown.step == Step::Over {
            out.close(Side::Client, self.close_reason());
        }
    }

    /// After a panic: queues an error for each request of the client that is open, waits, or is in
    /// `current`, the frame that was being handled, and closes the client. Nothing else is read of
    /// the state.
    pub fn answer_after_panic(&self, current: Option<&Frame>, out: &mut Outbox) {
        let request_in = |frame: Frame| match scan(&frame, &self.limits) {
            Scanned::Message(at) if at.kind == Kind::Request => Some(at.id(&frame).to_owned()),
            _ => None,
        };
        let messages_of = |frame: &Frame| match scan(frame, &self.limits) {
            Scanned::Batch => text::items(frame.as_bytes().trim_ascii())
                .map(|item| Frame::from(item.to_vec()))
                .collect(),
            _ => vec![frame.clone()],
        };
        let pending = &self.pending[Side::Client as usize];
        let claiming = &self.claims.waiting[Side::Client as usize];
        let unread = self
            .held
            .iter()
            .map(|(frame, _)| frame)
            .chain(current)
            .flat_map(messages_of);
        let unread = unread.chain(claiming.iter().map(|waiting| waiting.frame.clone()));
        let unread = unread.chain(self.held_for_restart().cloned());
        let unread = unread.filter_map(request_in);
        let unread = unread.filter(|id| pending.get(id.as_id()).is_none());
        let message = "a fault of the relay has ended the conversation; its log has the place";
        let reason = Reason::new(reply::PEER_LOST, message).delivered(Delivered::Unknown);
        for id in pending.iter().map(|(id, _)| id.clone()).chain(unread) {
            out.send(Side::Client, reply::error(id.as_id(), &reason));
        }
        out.close(Side::Client, CloseReason::PeerFailed);
    }

    /// Clears the lane to a side that is gone. It is not written any more, and the other side is
    /// not read while the lane is full. Requests for the agent will be answered; the rest is noted.
    pub(super) fn take_unsent(&mut self, to: Side, out: &mut Outbox) {
        for frame in out.take_unsent(to) {
            match scan(&frame, &self.limits) {
                Scanned::Message(envelope)
                    if to == Side::Agent && envelope.kind == Kind::Request =>
                {
                    let asked = &mut self.pending[Side::Client as usize];
                    if let Some(request) = asked.get_mut(envelope.id(&frame)) {
                        request.is_unsent = true;
                    }
                }
                _ => out.note(Note::Undeliverable { to }),
            }
        }
    }

    /// The error for requests that arrive while it ends.
    pub(super) fn stopping(&self, delivered: Delivered) -> Reason {
        match self.shutdown.cause {
            Some(Cause::Unrecorded) => Reason::unrecorded().delivered(delivered),
            _ => Reason::draining().delivered(delivered),
        }
    }

    /// The reason the client's link is closed with.
    fn close_reason(&self) -> CloseReason {
        match (&self.shutdown.cause, self.shutdown.exit) {
            (Some(Cause::Stopped | Cause::Unrecorded), _) => self.shutdown.stop_reason(),
            (Some(Cause::Violation(Side::Agent)), _) => CloseReason::PeerFailed,
            (_, None | Some(Exit::Code(0))) => CloseReason::Done,
            _ => CloseReason::PeerFailed,
        }
    }

    /// The error for what the agent cannot answer any more, with its output or without.
    pub(super) fn agent_gone(&self, delivered: Delivered, with_output: bool) -> Reason {
        let shutdown = &self.shutdown;
        let is_child = self.links.agent_is_child;
        if shutdown.stop_closed && shutdown.cause == Some(Cause::Unrecorded) {
            return Reason::unrecorded().delivered(delivered);
        }
        if shutdown.stop_closed {
            let message = "the relay was asked to stop and has ended the agent";
            return Reason {
                retryable: delivered == Delivered::No,
                ..Reason::new(reply::DRAINING, message).delivered(delivered)
            };
        }
        let (code, message) = match (&shutdown.agent_error, shutdown.exit) {
            (Some(cause), _) if is_child => {
                let message = format!("the agent was stopped: it {cause}");
                (reply::AGENT_EXITED, message)
            }
            // Of another process, its relay has reported the exit.
            (_, Some(exit)) => (reply::AGENT_EXITED, format!("the agent ended with {exit}")),
            (None, None) if is_child => {
                let message = "the agent has closed its output";
                (reply::AGENT_EXITED, message.to_owned())
            }
            (cause, None) => {
                let why = cause.as_ref().map(|cause| format!(": it {cause}"));
                let why = why.unwrap_or_default();
                let message = format!("the connection to the agent has ended{why}");
                (reply::PEER_LOST, message)
            }
        };
        let mut reason = Reason {
            exit: shutdown.exit,
            ..Reason::new(code, message)
                .at(ErrorSource::Agent)
                .delivered(delivered)
        };
        if code == reply::AGENT_EXITED && with_output {
            let tail = shutdown.stderr_tail.as_str();
            reason.stderr_tail = (!tail.is_empty()).then(|| tail.into());
            if let Some(printed) = self.printed.tail() {
                let line = printed.lines().next_back().unwrap_or_default();
                let shown = truncated(line, MAX_CHARS);
                reason.message = format!("{}; it printed: {shown}", reason.message).into();
                reason.stdout_tail = Some(printed.into());
            }
        }
        reason
    }
}

/// The client has disconnected and cannot answer.
pub(super) fn client_left(delivered: Delivered) -> Reason {
    Reason::new(reply::PEER_LOST, "the client has left and cannot answer")
        .at(ErrorSource::Client)
        .delivered(delivered)
}
