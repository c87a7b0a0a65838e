//! Translates messages between ACP v1 and v2, with the state of each session, as a relay does.
//!
//! A file of what a client and an agent of different versions sent passes one relay. A conversation
//! in one version passes two, one behind the other, and its translation is what is said between
//! them: the outer peers are those of the file, so that what the relays send them is left out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use crate::dialect::versions::{V2_DIALECT, Version, VersionPolicies};
use crate::dialect::{DialectError, Library};
use crate::jsonrpc::{Frame, Limits, Side};

/// The relays that a message passes.
pub(super) struct VersionChain {
    hops: Vec<(Conversation, Outbox)>,
    began: Instant,
}

impl VersionChain {
    /// A relay for each pair of a client's and an agent's dialect: one, or two whose inner dialects
    /// are the same; `None` if no pair needs a conversion.
    ///
    /// # Errors
    /// A dialect is not known.
    pub(super) fn new(
        library: &Arc<Library>,
        pairs: &[[&DialectChoice; 2]],
    ) -> Result<Option<Self>, DialectError> {
        let same = |[client, agent]: &[&DialectChoice; 2]| version(client) == version(agent);
        if pairs.iter().all(same) {
            return Ok(None);
        }
        let traits = LinkTraits {
            client_half_close: true,
            agent_half_close: true,
            agent_restarts: true,
            ..LinkTraits::default()
        };
        let hop = |pair: &[&DialectChoice; 2]| {
            let limits = Arc::new(Limits::default());
            let (versions, [client, agent]) = match pairs {
                // The file shows them, perhaps in a second `initialize`.
                [_] => ([None; 2], pair.map(v1_part)),
                _ => (pair.map(|choice| Some(version(choice))), *pair),
            };
            let policies = VersionPolicies::default();
            let options = DialectOptions::new(library, client, agent)?;
            let options = options.with_versions(Arc::clone(&limits), policies, versions);
            let outbox = Outbox::new(&limits);
            Ok((Conversation::new(limits, traits, options), outbox))
        };
        Ok(Some(Self {
            hops: pairs.iter().map(hop).collect::<Result<_, _>>()?,
            began: Instant::now(),
        }))
    }

    /// Translates one message of side `from`, `micros` after the beginning: what the other side
    /// gets, and what the sender gets.
    pub(super) fn translate(&mut self, from: Side, frame: &Frame, micros: u64) -> [Vec<Frame>; 2] {
        let mut sent = [Vec::new(), Vec::new()];
        let now = self.began + Duration::from_micros(micros);
        let is_chain = self.hops.len() > 1;
        let first = if is_chain { from as usize } else { 0 };
        let mut waiting = VecDeque::from([(first, from, frame.clone())]);
        while let Some((at, side, frame)) = waiting.pop_front() {
            let (conversation, outbox) = &mut self.hops[at];
            while conversation.poll_timeout().is_some_and(|due| due <= now) {
                conversation.handle_timeout(now, outbox);
            }
            conversation.handle_frame(side, frame, now, outbox);
            while outbox.pop_note().is_some() {}
            while outbox.pop_command().is_some() {}
            for to in [Side::Client, Side::Agent] {
                while let Some(frame) = outbox.pop(to) {
                    // The client of the first relay and the agent of the second are outside.
                    if is_chain && to as usize == at {
                        continue;
                    }
                    if is_chain {
                        waiting.push_back((1 - at, to.other(), frame.clone()));
                    }
                    sent[usize::from(to == from)].push(frame);
                }
            }
        }
        sent
    }
}

fn version(choice: &DialectChoice) -> Version {
    match choice {
        DialectChoice::Named(name) if name == V2_DIALECT => Version::Two,
        _ => Version::One,
    }
}

/// The dialect of v1 that a side speaks if it does not speak v2.
fn v1_part(choice: &DialectChoice) -> &DialectChoice {
    match version(choice) {
        Version::One => choice,
        Version::Two => &DialectChoice::Canonical,
    }
}
