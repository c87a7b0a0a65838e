//! Handles what is received and is not a message that can be passed on: broken lines, and what an
//! agent prints.

use std::time::Instant;

use super::mind::Core;
use super::{Note, Outbox, excuse};
use crate::jsonrpc::reply;
use crate::jsonrpc::{Fault, Flaw, Frame, IdBuf, Role, Side};

impl Core {
    /// Notes that a message of `from` cannot be passed on, and sends an error to the side it
    /// concerns.
    pub fn handle_flaw(&mut self, from: Side, flaw: Flaw, now: Instant, out: &mut Outbox) {
        let asker = from.other();
        let awaited = match flaw.role {
            Some(Role::Answer) => self.pending[asker as usize].answer(flaw.id.as_id()),
            _ => None,
        };
        match awaited {
            // The requester would wait for ever; the sender of an answer gets no error.
            Some(answered) => {
                let id = answered.spelled.unwrap_or_else(|| flaw.id.clone());
                self.answer_for_peer(
                    asker,
                    &id,
                    &answered.method,
                    &excuse::unusable_answer(from, &flaw),
                    out,
                );
            }
            // Under an id that is in flight, the sender would take it for another answer.
            None if self.pending[from as usize].awaits(&flaw.id) => {
                let nameless = Flaw {
                    id: IdBuf::Absent,
                    ..flaw.clone()
                };
                self.say(from, reply::flaw(&nameless), out);
            }
            None => self.say(from, reply::flaw(&flaw), out),
        }
        let too_long = matches!(flaw.fault, Fault::TooLong { .. });
        out.note(Note::Refused { from, flaw });
        if too_long {
            self.offences[from as usize] += 1;
            if self.offences[from as usize] >= self.limits.offences {
                self.expel(
                    from,
                    "sent too many over-long messages".to_owned(),
                    now,
                    out,
                );
            }
        }
    }

    /// Whether a text that is not a message is passed on all the same, because the agent is a
    /// recording. A replayed agent takes any bytes, and so does the pipe of the program that
    /// started us; a WebSocket takes only UTF-8. Where a policy applies, a client gets no such
    /// text: it may hold a call that cannot be checked.
    pub(super) fn may_say_anything(&self, to: Side, frame: &Frame) -> bool {
        let takes_bytes = to == Side::Agent || !self.manners.announce_exit;
        let judged = to == Side::Client && self.border.as_ref().is_some_and(|one| one.judges());
        self.manners.agent_is_played
            && !judged
            && (takes_bytes || simdutf8::basic::from_utf8(frame.as_bytes()).is_ok())
    }

    pub(super) fn stray(&mut self, line: &Frame, now: Instant, out: &mut Outbox) {
        out.note(Note::Stray {
            bytes: line.len(),
            excerpt: self.babble.excerpt(line.as_bytes()),
        });
        self.babble.add(line.as_bytes());
        self.strays += 1;
        if self.strays >= self.limits.strays {
            let blame = "printed too many lines that are not JSON (is it started in its ACP mode?)";
            self.expel(Side::Agent, blame.to_owned(), now, out);
        }
    }
}

/// Whether a line that the agent printed was never meant as a message: `Ready.`, `[INFO] starting`.
pub(super) fn is_stray(flaw: &Flaw) -> bool {
    let nothing_known = flaw.role.is_none() && flaw.id == IdBuf::Absent;
    !flaw.json_like || (matches!(flaw.fault, Fault::Malformed { .. }) && nothing_known)
}
