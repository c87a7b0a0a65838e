//! A message's way from one dialect through canonical to another, with what was said before.
//!
//! *Between* two peers there is one translation for each, as in a relay: the client speaks one
//! dialect, the agent the other. A *whole* conversation in one dialect needs two for either
//! dialect, because both sides spoke the first and both are to have spoken the second; each
//! message is also shown to the translation across from it, so that answers find what they answer.
//! Not here: rules (see `crate::dialect`), and lines (see `lines`).

use std::sync::Arc;

use crate::dialect::{Fired, Note, Outcome, Program, Translator, Way};
use crate::wire::{Envelope, Frame, Kind, Limits, Shape, Side, scan};

/// The translations of a conversation.
pub(super) enum Passage {
    /// The client speaks one dialect, the agent another.
    Between(Box<Pair>),
    /// Both spoke one dialect and are to have spoken another.
    Whole { from: Box<Pair>, to: Box<Pair> },
}

/// A translation for each peer.
pub(super) struct Pair {
    client: Translator,
    agent: Translator,
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
}

/// One translation of one message.
pub(super) struct Stage {
    pub(super) way: Way,
    pub(super) dialect: String,
    pub(super) before: Frame,
    pub(super) after: Vec<Frame>,
    pub(super) fired: Vec<Fired>,
    pub(super) notes: Vec<Note>,
}

impl Pair {
    pub(super) fn new(client: &Arc<Program>, agent: &Arc<Program>) -> Box<Self> {
        Box::new(Self {
            client: Translator::new(Side::Client, Arc::clone(client)),
            agent: Translator::new(Side::Agent, Arc::clone(agent)),
        })
    }

    fn of(&mut self, side: Side) -> &mut Translator {
        match side {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        }
    }

    /// Translates for one peer; a frame that is no message stays as it is.
    fn turn(
        &mut self,
        peer: Side,
        way: Way,
        frame: &Frame,
    ) -> (Vec<Frame>, Vec<Frame>, Option<Stage>) {
        let Some(at) = envelope(frame) else {
            return (vec![frame.clone()], Vec::new(), None);
        };
        let translator = self.of(peer);
        let outcome = match way {
            Way::Read => translator.read(frame, &at),
            Way::Write => translator.write(frame, &at),
        };
        let after = outcome.frames(frame);
        let Outcome {
            back, fired, notes, ..
        } = outcome;
        let stage = Stage {
            way,
            dialect: translator.dialect().to_owned(),
            before: frame.clone(),
            after: after.clone(),
            fired,
            notes,
        };
        (after, back, Some(stage))
    }
}

impl Passage {
    /// Carries one message of side `from`.
    pub(super) fn carry(&mut self, from: Side, frame: &Frame) -> Carried {
        let mut carried = Carried::default();
        match self {
            Self::Between(pair) => {
                let (canonical, back, stage) = pair.turn(from, Way::Read, frame);
                carried.stages.extend(stage);
                carried.back.extend(back);
                for frame in canonical {
                    let (said, back, stage) = pair.turn(from.other(), Way::Write, &frame);
                    carried.stages.extend(stage);
                    carried.forward.extend(said);
                    // What is answered in canonical goes to the sender in its own dialect.
                    for frame in back {
                        let (said, _, stage) = pair.turn(from, Way::Write, &frame);
                        carried.stages.extend(stage);
                        carried.back.extend(said);
                    }
                }
            }
            Self::Whole { from: old, to: new } => {
                let (canonical, _, stage) = old.turn(from, Way::Read, frame);
                carried.stages.extend(stage);
                for one in canonical {
                    let _ = old.turn(from.other(), Way::Write, &one);
                    let (said, _, stage) = new.turn(from.other(), Way::Write, &one);
                    carried.stages.extend(stage);
                    for frame in said {
                        let frame = numbered_as(&one, frame);
                        let _ = new.turn(from, Way::Read, &frame);
                        carried.forward.push(frame);
                    }
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
