//! The negotiation of the protocol version, and the timers of the conversion between versions.

use super::state::Conversation;
use super::{Command, Note, Outbox};
use dialect::versions::Step;
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason, is_own_error};
use jsonrpc::{Envelope, Frame, Kind, Scanned, Side, scan};

/// Frames that wait for the agent's version, and what they weigh; then the client is not read.
const MAX_HELD: usize = 64;
const MAX_HELD_BYTES: usize = 1 << 20;

impl Conversation {
    /// Whether no more of what the client sends is held.
    pub(super) fn is_holding_enough(&self) -> bool {
        let weights = self.held.iter().map(|(frame, _)| frame.weight());
        // The first is what the agent is started for; the client is still read meanwhile.
        let restart = || self.held_for_restart().skip(1).map(Frame::weight);
        self.held.len() >= MAX_HELD
            || weights.sum::<usize>() >= MAX_HELD_BYTES
            || restart().count() >= MAX_HELD
            || restart().sum::<usize>() >= MAX_HELD_BYTES
    }

    /// Takes a message while the versions of the two sides are not known.
    pub(super) fn negotiate(&mut self, from: Side, frame: Frame, at: &Envelope, out: &mut Outbox) {
        let is_request = from == Side::Client && at.kind == Kind::Request;
        let asks = is_request && at.has_method(&frame, "initialize") && self.reads(Side::Agent);
        if is_request && !asks && self.dialects.has_no_version() {
            let what = "the agent speaks no version of the protocol that the relay knows: \
                        initialize has failed";
            let reason = Reason::new(reply::INVALID_REQUEST, what);
            let error = reply::error(at.id(&frame), &reason);
            return self.send(Side::Client, error, None, out);
        }
        let is_relays = || self.links.agent_is_relay && is_own_error(&frame, at);
        let may_retry = self.links.agent_restarts && !self.is_ending() && !is_relays();
        let step = match asks || from == Side::Agent && at.kind.is_answer() {
            true => self.dialects.negotiate(&frame, at, may_retry, self.now),
            false => Step::Pass,
        };
        let frame = match step {
            Step::Pass => return self.pass_message(from, frame, at, out),
            Step::Send(frame) => frame,
            Step::Refuse(error) => return self.send(Side::Client, error, None, out),
            Step::Retry(offer) => {
                out.command(Command::RestartAgent);
                let asked = &mut self.pending[Side::Client as usize];
                if let Scanned::Message(sent) = scan(&offer, &self.limits)
                    && let Some(open) = asked.get_mut(sent.id(&offer))
                {
                    open.kept = open
                        .kept
                        .take()
                        .and_then(|_| sent.body(&offer).map(Box::from));
                }
                let announced = match scan(&offer, &self.limits) {
                    Scanned::Message(sent) => self.announce_login(&offer, &sent),
                    Scanned::Batch | Scanned::Invalid(_) => None,
                };
                let offer = announced.unwrap_or(offer);
                let offer = self.admitted(offer.clone()).unwrap_or(offer);
                return self.queue(Side::Agent, offer, out);
            }
            // The answer is the first message that is converted.
            Step::Bridge(bridge) => match self.dialects.convert_by(bridge) {
                Side::Agent => return self.translate_in(Side::Agent, frame, at, out),
                Side::Client => frame,
            },
        };
        match scan(&frame, &self.limits) {
            Scanned::Message(at) => self.pass_message(from, frame, &at, out),
            // The members of both versions may make it too long.
            Scanned::Invalid(error) => self.handle_frame_error(from, error, self.now, out),
            Scanned::Batch => debug_assert!(false, "the negotiation made a batch: {frame:?}"),
        }
    }

    /// Handles what the client has sent before the agent had answered `initialize`.
    pub(super) fn release_held(&mut self, out: &mut Outbox) {
        let now = self.now;
        while !self.dialects.awaits_version() {
            let Some((frame, received)) = self.held.pop_front() else {
                break;
            };
            self.now = received;
            let scanned = scan(&frame, &self.limits);
            self.handle_scanned(Side::Client, frame, &scanned, out);
        }
        self.now = now;
    }

    /// The client has ended its stream, so what it has sent does not wait any longer for the
    /// agent's answer to `initialize`.
    pub(super) fn refuse_held(&mut self, out: &mut Outbox) {
        let what = "the client has ended its stream before the agent had answered initialize";
        let reason = Reason::new(reply::PEER_LOST, what);
        let reason = reason.at(ErrorSource::Client).delivered(Delivered::No);
        while let Some((frame, _)) = self.held.pop_front() {
            match scan(&frame, &self.limits) {
                Scanned::Message(at) if at.kind == Kind::Request => {
                    let (id, method) = (at.id(&frame).to_owned(), at.raw_method(&frame));
                    self.answer_for_peer(Side::Client, &id, method, &reason, out);
                }
                _ => out.note(Note::Undeliverable { to: Side::Agent }),
            }
        }
    }

    /// The agent will not answer `initialize` any more.
    pub(super) fn stop_negotiating(&mut self, out: &mut Outbox) {
        self.dialects.stop_negotiating();
        self.release_held(out);
    }

    /// Does what is due for the side that speaks v2.
    pub(super) fn expire_version_timers(&mut self, out: &mut Outbox) {
        if let Some((peer, mut outcome)) = self.dialects.expire(self.now) {
            self.note_outcome(peer, &mut outcome, out);
            self.take_translation(peer, outcome, out);
            self.handle_returned(out);
        }
    }
}
