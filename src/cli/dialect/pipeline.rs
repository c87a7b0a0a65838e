//! Translates messages from one dialect through canonical to another, with conversation state.
//!
//! *Relay* mode has one translator for each peer, as in a relay: the client speaks one dialect, the
//! agent another. *Convert* mode takes a conversation held in one dialect on both sides and
//! produces it in another, so it needs two translators per dialect. Each message also passes the
//! opposite translator, so that answers find their requests.

use std::collections::HashMap;
use std::sync::Arc;

use super::version_chain::VersionChain;
use conversation::{Detection, DialectChoice, DialectOptions};
use dialect::{DialectError, Library, Translation, Way};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Scanned, Side, scan};

/// How a conversation is translated.
pub(super) enum Pipeline {
    /// The client speaks one dialect, the agent another.
    Relay(Box<TranslatorPair>),
    /// Both sides spoke one dialect; the output is in another.
    Convert {
        from: Box<TranslatorPair>,
        to: Box<TranslatorPair>,
    },
    /// One of the dialects is v2.
    Versions(Box<VersionChain>),
}

/// One translator for each peer, as in a relay.
#[derive(Debug)]
pub(in crate::cli) struct TranslatorPair {
    options: DialectOptions,
    /// The methods of open requests, by the side that sent them: an answer may reveal a dialect.
    pending: [HashMap<IdBuf, String>; 2],
}

/// One translation of one message.
#[derive(Debug)]
pub(in crate::cli) struct Stage {
    pub(super) way: Way,
    pub(in crate::cli) dialect: String,
    pub(super) before: Frame,
    pub(in crate::cli) after: Vec<Frame>,
    /// The dialect that was detected for the peer.
    pub(in crate::cli) recognised: Option<Detection>,
    pub(in crate::cli) outcome: Translation,
}

/// The result of one message.
#[derive(Default)]
pub(super) struct PipelineOutput {
    /// Messages for the other side.
    pub(super) forward: Vec<Frame>,
    /// Messages for the sender.
    pub(super) back: Vec<Frame>,
    /// The translations made, in order.
    pub(super) stages: Vec<Stage>,
}

impl TranslatorPair {
    /// # Errors
    /// A dialect is not known.
    pub(in crate::cli) fn new(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
    ) -> Result<Self, DialectError> {
        Ok(Self {
            options: DialectOptions::new(library, client, agent)?,
            pending: Default::default(),
        })
    }

    /// The dialect assumed for a peer at present.
    pub(in crate::cli) fn dialect(&self, peer: Side) -> &str {
        self.options.dialect(peer)
    }

    /// Translates a frame from `peer` to canonical; a frame that is no message is not changed.
    pub(in crate::cli) fn read(&mut self, peer: Side, frame: &Frame) -> Stage {
        let Some(at) = envelope(frame) else {
            return self.stage(peer, Way::Read, frame, Translation::default());
        };
        let id = at.id(frame).to_owned();
        let request = match at.kind {
            Kind::Result | Kind::Error => self.pending[peer.other() as usize].remove(&id),
            Kind::Request => {
                let method = at.method(frame).into_owned();
                self.pending[peer as usize].insert(id, method);
                None
            }
            Kind::Notification => None,
        };
        let request = request.as_deref().map(str::as_bytes);
        let recognised = self.options.detect(peer, frame, &at, request);
        let outcome = self.options.read(peer, frame, &at);
        Stage {
            recognised,
            ..self.stage(peer, Way::Read, frame, outcome)
        }
    }

    /// Translates a canonical message to the dialect of `peer`.
    pub(in crate::cli) fn write(&mut self, peer: Side, frame: &Frame) -> Stage {
        let outcome = envelope(frame).map(|at| self.options.write(peer, frame, &at));
        self.stage(peer, Way::Write, frame, outcome.unwrap_or_default())
    }

    fn stage(&self, peer: Side, way: Way, frame: &Frame, outcome: Translation) -> Stage {
        Stage {
            way,
            dialect: self.dialect(peer).to_owned(),
            before: frame.clone(),
            after: outcome.frames(frame),
            recognised: None,
            outcome,
        }
    }
}

impl Pipeline {
    /// Translates one message of side `from`, `micros` after the beginning.
    pub(super) fn translate(&mut self, from: Side, frame: &Frame, micros: u64) -> PipelineOutput {
        let mut output = PipelineOutput::default();
        match self {
            Self::Versions(chain) => {
                [output.forward, output.back] = chain.translate(from, frame, micros);
            }
            Self::Relay(pair) => {
                let read = pair.read(from, frame);
                output.back.clone_from(&read.outcome.replies);
                let canonical = read.after.clone();
                output.stages.push(read);
                for frame in canonical {
                    let written = pair.write(from.other(), &frame);
                    output.forward.extend_from_slice(&written.after);
                    let replies = written.outcome.replies.clone();
                    output.stages.push(written);
                    // A canonical answer to the sender is translated to the sender's dialect.
                    for frame in replies {
                        let reply = pair.write(from, &frame);
                        output.back.extend_from_slice(&reply.after);
                        output.stages.push(reply);
                    }
                }
            }
            Self::Convert { from: old, to: new } => {
                let read = old.read(from, frame);
                let canonical = read.after.clone();
                output.stages.push(read);
                for one in canonical {
                    old.write(from.other(), &one);
                    let written = new.write(from.other(), &one);
                    for frame in &written.after {
                        let frame = restore_id(&one, frame.clone());
                        new.read(from, &frame);
                        output.forward.push(frame);
                    }
                    output.stages.push(written);
                }
            }
        }
        output
    }
}

/// Restores the id of a request, because its recorded answer has that id.
fn restore_id(before: &Frame, after: Frame) -> Frame {
    let (Some(old), Some(new)) = (envelope(before), envelope(&after)) else {
        return after;
    };
    if old.kind == Kind::Request && new.kind == Kind::Request {
        return new.with_id(&after, old.id(before));
    }
    after
}

fn envelope(frame: &Frame) -> Option<Envelope> {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => Some(at),
        _ => None,
    }
}
