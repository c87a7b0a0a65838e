//! Handles what is received and is not a message that can be passed on: broken lines, and what an
//! agent prints.

use std::time::Instant;

use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Frame, FrameError, FrameFault, IdBuf, Role, Side};

impl Conversation {
    /// Notes that a message of `from` cannot be passed on, and sends an error to the side it
    /// concerns.
    pub fn handle_frame_error(
        &mut self,
        from: Side,
        error: FrameError,
        now: Instant,
        out: &mut Outbox,
    ) {
        self.now = now;
        self.note_heard(from, out);
        let requester = from.other();
        let awaited = match error.role {
            Some(Role::Answer) => self.pending[requester as usize].remove(error.id.as_id()),
            _ => None,
        };
        match awaited {
            // The requester would wait for ever; the sender of an answer gets no error.
            Some((id, answered)) => {
                let source = match from {
                    Side::Client => ErrorSource::Client,
                    Side::Agent => ErrorSource::Agent,
                };
                let reason = Reason {
                    message: format!("the answer of the {from} cannot be passed on: {error}")
                        .into(),
                    source,
                    delivered: Delivered::Yes,
                    ..Reason::of_fault(&error.fault)
                };
                let id = answered.own_id.map_or(id, |own| *own);
                self.answer_for_peer(requester, &id, &answered.method, &reason, out);
            }
            // Under an id that is in flight, the sender would take it for another answer.
            None if self.pending[from as usize].get(error.id.as_id()).is_some() => {
                let without_id = FrameError {
                    id: IdBuf::default(),
                    ..error.clone()
                };
                self.send(from, reply::frame_error(&without_id), None, out);
            }
            None => self.send(from, reply::frame_error(&error), None, out),
        }
        let too_long = matches!(error.fault, FrameFault::TooLong { .. });
        out.note(Note::Refused { from, error });
        self.settle_updates(out);
        if too_long {
            self.oversized[from as usize] += 1;
            if self.oversized[from as usize] >= self.limits.oversized_messages {
                let reason = "sent too many over-long messages".to_owned();
                self.close_for_violation(from, reason, out);
            }
        }
    }

    /// Whether a text that is not a message is passed on all the same, because the agent is a
    /// recording. A replayed agent takes any bytes, and so does the pipe of the program that
    /// started us; a WebSocket takes only UTF-8. Where a policy applies, a client gets no such
    /// text: it may hold a call that cannot be checked.
    pub(super) fn may_pass_raw(&self, to: Side, frame: &Frame) -> bool {
        let takes_bytes = to == Side::Agent || !self.links.announce_exit;
        let policy = self.policy.as_ref().filter(|_| to == Side::Client);
        let restricted = policy.is_some_and(|policy| policy.restricts_calls());
        self.links.agent_is_replayed
            && !restricted
            && (takes_bytes || simdutf8::basic::from_utf8(frame.as_bytes()).is_ok())
    }

    pub(super) fn handle_stray(&mut self, line: &Frame, out: &mut Outbox) {
        out.note(Note::Stray {
            bytes: line.len(),
            excerpt: self.printed.excerpt(line.as_bytes()),
        });
        self.printed.add(line.as_bytes());
        self.strays += 1;
        if self.strays >= self.limits.invalid_messages {
            let reason =
                "printed too many lines that are not JSON (is it started in its ACP mode?)";
            self.close_for_violation(Side::Agent, reason.to_owned(), out);
        }
    }
}
