//! Translates messages from one dialect through canonical to another, with conversation state.
//!
//! *Relay* mode has one translator for each peer, as in a relay: the client speaks one dialect, the
//! agent another. *Convert* mode takes a conversation held in one dialect on both sides and
//! produces it in another, so it needs two translators per dialect. Each message also passes the
//! opposite translator, so that answers find their requests.

use std::collections::HashMap;
use std::sync::Arc;

use crate::conversation::{Choice, Recognised, Speech};
use crate::dialect::{Fired, Library, Note, Outcome, Unknown, Way};
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Shape, Side, scan};

/// How a conversation is translated.
pub(super) enum Passage {
    /// The client speaks one dialect, the agent another.
    Between(Pair),
    /// Both sides spoke one dialect; the output is in another.
    Whole { from: Box<Pair>, to: Box<Pair> },
}

/// One translator for each peer, as in a relay.
#[derive(Debug)]
pub(in crate::cli) struct Pair {
    speech: Speech,
    /// The methods of open requests, by the side that sent them: an answer may reveal a dialect.
    asked: [HashMap<IdBuf, String>; 2],
}

/// The result of one message at one peer's translator.
#[derive(Debug)]
pub(in crate::cli) struct Turn {
    /// The dialect that was detected for the peer.
    pub(in crate::cli) recognised: Option<Recognised>,
    /// Messages for the sender.
    pub(in crate::cli) back: Vec<Frame>,
    pub(in crate::cli) stage: Stage,
}

/// The result of one message.
#[derive(Default)]
pub(super) struct Carried {
    /// Messages for the other side.
    pub(super) forward: Vec<Frame>,
    /// Messages for the sender.
    pub(super) back: Vec<Frame>,
    /// The translations made, in order.
    pub(super) stages: Vec<Stage>,
    /// The dialect that was detected for the sender.
    pub(super) recognised: Option<Recognised>,
}

/// One translation of one message.
#[derive(Debug)]
pub(in crate::cli) struct Stage {
    pub(super) way: Way,
    pub(in crate::cli) dialect: String,
    pub(super) before: Frame,
    pub(in crate::cli) after: Vec<Frame>,
    pub(in crate::cli) fired: Vec<Fired>,
    pub(in crate::cli) notes: Vec<Note>,
}

impl Pair {
    /// # Errors
    /// A dialect is not known.
    pub(in crate::cli) fn new(
        library: &Arc<Library>,
        client: &Choice,
        agent: &Choice,
    ) -> Result<Self, Unknown> {
        Ok(Self {
            speech: Speech::new(library, client, agent)?,
            asked: Default::default(),
        })
    }

    /// The dialect assumed for a peer at present.
    pub(in crate::cli) fn dialect(&self, peer: Side) -> &str {
        self.speech.dialect(peer)
    }

    /// Translates a frame from `peer` to canonical; a frame that is no message is not changed.
    pub(in crate::cli) fn read(&mut self, peer: Side, frame: &Frame) -> Turn {
        let Some(at) = envelope(frame) else {
            return self.turn(peer, Way::Read, frame, Outcome::default());
        };
        let id = at.id(frame).to_owned();
        let asked = match at.kind {
            Kind::Result | Kind::Error => self.asked[peer.other() as usize].remove(&id),
            Kind::Request => {
                let method = at.method(frame).into_owned();
                self.asked[peer as usize].insert(id, method);
                None
            }
            Kind::Notification => None,
        };
        let asked = asked.as_deref().map(str::as_bytes);
        let recognised = self.speech.recognise(peer, frame, &at, asked);
        let outcome = self.speech.read(peer, frame, &at);
        Turn {
            recognised,
            ..self.turn(peer, Way::Read, frame, outcome)
        }
    }

    /// Translates a canonical message to the dialect of `peer`.
    pub(in crate::cli) fn write(&mut self, peer: Side, frame: &Frame) -> Turn {
        let outcome = envelope(frame).map(|at| self.speech.write(peer, frame, &at));
        self.turn(peer, Way::Write, frame, outcome.unwrap_or_default())
    }

    fn turn(&self, peer: Side, way: Way, frame: &Frame, outcome: Outcome) -> Turn {
        let after = outcome.frames(frame);
        let Outcome {
            back, fired, notes, ..
        } = outcome;
        Turn {
            recognised: None,
            back,
            stage: Stage {
                way,
                dialect: self.dialect(peer).to_owned(),
                before: frame.clone(),
                after,
                fired: fired.into_vec(),
                notes,
            },
        }
    }
}

impl Passage {
    /// Translates one message of side `from`.
    pub(super) fn carry(&mut self, from: Side, frame: &Frame) -> Carried {
        let mut carried = Carried::default();
        match self {
            Self::Between(pair) => {
                let heard = pair.read(from, frame);
                carried.recognised = heard.recognised;
                carried.back.extend(heard.back);
                let canonical = heard.stage.after.clone();
                carried.stages.push(heard.stage);
                for frame in canonical {
                    let said = pair.write(from.other(), &frame);
                    carried.forward.extend(said.stage.after.iter().cloned());
                    carried.stages.push(said.stage);
                    // A canonical answer to the sender is translated to the sender's dialect.
                    for frame in said.back {
                        let told = pair.write(from, &frame);
                        carried.back.extend(told.stage.after.iter().cloned());
                        carried.stages.push(told.stage);
                    }
                }
            }
            Self::Whole { from: old, to: new } => {
                let heard = old.read(from, frame);
                carried.recognised = heard.recognised;
                let canonical = heard.stage.after.clone();
                carried.stages.push(heard.stage);
                for one in canonical {
                    old.write(from.other(), &one);
                    let said = new.write(from.other(), &one);
                    for frame in &said.stage.after {
                        let frame = numbered_as(&one, frame.clone());
                        new.read(from, &frame);
                        carried.forward.push(frame);
                    }
                    carried.stages.push(said.stage);
                }
            }
        }
        carried
    }
}

/// Restores the id of a request, because its recorded answer has that id.
fn numbered_as(before: &Frame, after: Frame) -> Frame {
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
        Shape::One(at) => Some(at),
        _ => None,
    }
}
