//! Translates messages between ACP v1 and v2, with the state of each session, as a relay does.
//!
//! A file of what a client and an agent of different versions sent passes one relay. A conversation
//! in one version passes two, one behind the other, and its translation is what is said between
//! them: the outer peers are those of the file, so that what the relays send them is left out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use dialect::versions::{V2_DIALECT, Version, VersionPolicies};
use dialect::{DialectError, Library};
use jsonrpc::{Frame, Limits, Side};

/// The relays that a message passes.
pub(super) struct VersionChain {
    hops: Vec<Relay>,
    began: Instant,
}

/// A relay in virtual time.
pub(super) struct Relay {
    pub(super) conversation: Conversation,
    pub(super) outbox: Outbox,
}

impl Relay {
    /// A relay between two dialects; `versions` are those of the client and the agent that are not
    /// left to `initialize`.
    ///
    /// # Errors
    /// A dialect is not known.
    pub(super) fn new(
        library: &Arc<Library>,
        [client, agent]: [&DialectChoice; 2],
        policies: VersionPolicies,
        versions: [Option<Version>; 2],
    ) -> Result<Self, DialectError> {
        let traits = LinkTraits {
            client_half_close: true,
            agent_half_close: true,
            agent_restarts: true,
            ..LinkTraits::default()
        };
        let limits = Arc::new(Limits::default());
        let options = DialectOptions::new(library, client, agent)?;
        let options = options.with_versions(Arc::clone(&limits), policies, versions);
        Ok(Self {
            outbox: Outbox::new(&limits),
            conversation: Conversation::new(limits, traits, options, Instant::now()),
        })
    }

    /// Lets time pass until then; what is due happens at its time, but not before `now`.
    pub(super) fn wait(&mut self, now: Instant, until: Instant) {
        let due = |conversation: &Conversation| conversation.poll_timeout();
        while let Some(at) = due(&self.conversation).filter(|at| *at <= until) {
            self.conversation
                .handle_timeout(at.max(now), &mut self.outbox);
        }
    }
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
        let hop = |pair: &[&DialectChoice; 2]| {
            let (versions, pair) = match pairs {
                // The file shows them, perhaps in a second `initialize`.
                [_] => ([None; 2], pair.map(v1_part)),
                _ => (pair.map(|choice| Some(version(choice))), *pair),
            };
            Relay::new(library, pair, VersionPolicies::default(), versions)
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
            let relay = &mut self.hops[at];
            relay.wait(self.began, now);
            let outbox = &mut relay.outbox;
            relay.conversation.handle_frame(side, frame, now, outbox);
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
