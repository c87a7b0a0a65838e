//! Translates messages from one dialect through canonical to another, with conversation state.
//!
//! *Relay* mode has one translator for each peer, as in a relay: the client speaks one dialect, the
//! agent another. *Convert* mode takes a conversation held in one dialect on both sides and
//! produces it in another, so it needs two translators per dialect. Each message also passes the
//! opposite translator, so that answers find their requests.
//!
//! Where one of the dialects is v2, messages pass whole relays. A file of what a client and an agent
//! of different versions sent passes one. A conversation in one version passes two, one behind the
//! other, and its translation is what is said between them: the outer peers are those of the file, so
//! that what the relays send them is left out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use conversation::offline::{OfflineRelay, Stage, TranslatorPair};
use conversation::{DialectChoice, DialectOptions};
use dialect::versions::{Version, VersionPolicies};
use dialect::{DialectError, Library};
use jsonrpc::{Frame, Side};

/// How a conversation is translated.
#[derive(Debug)]
pub enum Pipeline {
    /// The client speaks one dialect, the agent another.
    Relay(Box<TranslatorPair>),
    /// Both sides spoke one dialect; the output is in another.
    Convert(Box<[TranslatorPair; 2]>),
    /// One of the dialects is v2: the relays that a message passes.
    Versions(Vec<OfflineRelay>),
}

/// The result of one message.
#[derive(Debug, Default)]
pub struct PipelineOutput {
    /// Messages for the other side.
    pub forward: Vec<Frame>,
    /// Messages for the sender.
    pub back: Vec<Frame>,
    /// The translations made, in order; between versions none is told.
    pub stages: Vec<Stage>,
}

impl Pipeline {
    /// For messages of a client and an agent that speak these dialects, as a relay translates them.
    ///
    /// # Errors
    /// A dialect is not known.
    pub fn relay(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
    ) -> Result<Self, DialectError> {
        if let Some(relays) = version_relays(library, &[[client, agent]])? {
            return Ok(Self::Versions(relays));
        }
        let pair = TranslatorPair::new(library, client, agent)?;
        Ok(Self::Relay(Box::new(pair)))
    }

    /// For a conversation that both sides held in the first dialect; and the only side that speaks the
    /// dialect of a table, if there is only one.
    ///
    /// # Errors
    /// A dialect is not known.
    pub fn convert(
        library: &Arc<Library>,
        from: &DialectChoice,
        to: &DialectChoice,
    ) -> Result<(Self, Option<Side>), DialectError> {
        if let Some(relays) = version_relays(library, &[[from, to], [to, from]])? {
            return Ok((Self::Versions(relays), None));
        }
        let speaker = |choice: &DialectChoice| match choice {
            DialectChoice::Named(name) => library.table(name).ok()?.speaker,
            DialectChoice::Canonical | DialectChoice::Auto => None,
        };
        let pair = |choice| TranslatorPair::new(library, choice, choice);
        let pairs = Box::new([pair(from)?, pair(to)?]);
        Ok((Self::Convert(pairs), speaker(from).or_else(|| speaker(to))))
    }

    /// Translates one message of side `from`, `micros` after the beginning.
    pub fn translate(&mut self, from: Side, frame: &Frame, micros: u64) -> PipelineOutput {
        let mut output = PipelineOutput::default();
        match self {
            Self::Versions(relays) => pass_relays(relays, from, frame, micros, &mut output),
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
            Self::Convert(pairs) => {
                let [old, new] = &mut **pairs;
                let read = old.read(from, frame);
                let canonical = read.after.clone();
                output.stages.push(read);
                for one in canonical {
                    old.write(from.other(), &one);
                    let written = new.write(from.other(), &one);
                    for frame in written.after_with_id() {
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

/// A relay for each pair of a client's and an agent's dialect: one, or two whose inner dialects
/// are the same; `None` if no pair needs a conversion.
fn version_relays(
    library: &Arc<Library>,
    pairs: &[[&DialectChoice; 2]],
) -> Result<Option<Vec<OfflineRelay>>, DialectError> {
    let mut versions = pairs.iter().map(|pair| pair.map(DialectChoice::is_v2));
    if versions.all(|[client, agent]| client == agent) {
        return Ok(None);
    }
    let canonical = DialectChoice::Canonical;
    let version = |choice: &DialectChoice| match choice.is_v2() {
        true => Some(Version::Two),
        false => Some(Version::One),
    };
    let relay = |pair: &[&DialectChoice; 2]| {
        let (versions, [client, agent]) = match pairs {
            // The file shows the versions, perhaps in a second `initialize`.
            [_] => {
                let of_v1 = pair.map(|one| if one.is_v2() { &canonical } else { one });
                ([None; 2], of_v1)
            }
            _ => (pair.map(version), *pair),
        };
        let options = DialectOptions::new(library, client, agent)?;
        let options = options.with_versions(Arc::default(), VersionPolicies::default(), versions);
        Ok(OfflineRelay::new(options, false))
    };
    pairs.iter().map(relay).collect::<Result<_, _>>().map(Some)
}

/// Passes a message through the relays.
fn pass_relays(
    relays: &mut [OfflineRelay],
    from: Side,
    frame: &Frame,
    micros: u64,
    output: &mut PipelineOutput,
) {
    let is_chain = relays.len() > 1;
    let first = if is_chain { from as usize } else { 0 };
    let mut waiting = VecDeque::from([(first, from, frame.clone())]);
    while let Some((at, side, frame)) = waiting.pop_front() {
        let relay = &mut relays[at];
        relay.pass_time(Duration::from_micros(micros));
        relay.receive(side, frame);
        for to in [Side::Client, Side::Agent] {
            while let Some((frame, _)) = relay.sent(to) {
                // The client of the first relay and the agent of the second are outside.
                if is_chain && to as usize == at {
                    continue;
                }
                if is_chain {
                    waiting.push_back((1 - at, to.other(), frame.clone()));
                }
                match to == from {
                    true => output.back.push(frame),
                    false => output.forward.push(frame),
                }
            }
        }
    }
}
