//! A message's way from one dialect through canonical to another, with what was said before.
//!
//! *Between* two peers there is one translation for each, as in a relay: the client speaks one
//! dialect, the agent the other. A *whole* conversation in one dialect needs two for either
//! dialect, because both sides spoke the first and both are to have spoken the second; each
//! message is also shown to the translation across from it, so that answers find what they answer.
//! Not here: rules (see `crate::dialect`), and lines (see `lines`).

use std::collections::HashMap;
use std::sync::Arc;

use crate::conversation::{Choice, Recognised, Speech};
use crate::dialect::{Fired, Library, Note, Outcome, Unknown, Way};
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Shape, Side, scan};

/// The translations of a conversation.
pub(super) enum Passage {
    /// The client speaks one dialect, the agent another.
    Between(Pair),
    /// Both spoke one dialect and are to have spoken another.
    Whole { from: Box<Pair>, to: Box<Pair> },
}

/// A translation for each peer, as a relay has between them.
#[derive(Debug)]
pub(in crate::cli) struct Pair {
    speech: Speech,
    /// The methods of open requests, by the side that asked: an answer may show a dialect.
    asked: [HashMap<IdBuf, String>; 2],
}

/// What comes of one message at one peer's translation.
#[derive(Debug)]
pub(in crate::cli) struct Turn {
    /// What the peer's dialect was found to be.
    pub(in crate::cli) recognised: Option<Recognised>,
    /// What goes back to the sender.
    pub(in crate::cli) back: Vec<Frame>,
    pub(in crate::cli) stage: Stage,
}

/// What comes of one message.
#[derive(Default)]
pub(super) struct Carried {
    /// What goes on.
    pub(super) forward: Vec<Frame>,
    /// What goes back to the sender.
    pub(super) back: Vec<Frame>,
    /// What was done, in order.
    pub(super) stages: Vec<Stage>,
    /// What the sender's dialect was found to be.
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

    /// What a peer is taken to speak at present.
    pub(in crate::cli) fn dialect(&self, peer: Side) -> &str {
        self.speech.dialect(peer)
    }

    /// Turns what `peer` has said into canonical; a frame that is no message stays as it is.
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

    /// Turns a canonical message into what `peer` speaks.
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
    /// Carries one message of side `from`.
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
                    // What is answered in canonical goes to the sender in its own dialect.
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

/// A request with the id it had, which its recorded answer will have, too.
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
