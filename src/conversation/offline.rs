//! Translates what is in a file, without links, in virtual time.
//!
//! [`OfflineRelay`] is a whole conversation, whose peers are the file. [`TranslatorPair`] has the
//! translators of both sides alone, and tells what they did.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dialect_options::{DialectChoice, DialectOptions};
use super::outbox::{Command, Outbox};
use super::state::{Conversation, LinkTraits};
use dialect::{DetectedDialect, DialectError, Library, Translation, Way};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Scanned, Side, scan};

/// A relay in virtual time.
#[derive(Debug)]
pub struct OfflineRelay {
    conversation: Conversation,
    outbox: Outbox,
    began: Instant,
    now: Instant,
    /// The agent is started again, and has received nothing since.
    is_agent_fresh: bool,
}

/// One translator for each peer, as in a relay.
#[derive(Debug)]
pub struct TranslatorPair {
    options: DialectOptions,
    /// The methods of open requests, by the side that sent them: an answer may reveal a dialect.
    pending: [HashMap<IdBuf, String>; 2],
}

/// One translation of one message.
#[derive(Debug)]
pub struct Stage {
    /// From the dialect, or to it.
    pub way: Way,
    /// The dialect.
    pub dialect: String,
    /// The message.
    pub before: Frame,
    /// What it becomes.
    pub after: Vec<Frame>,
    /// The dialect that was detected for the peer.
    pub recognised: Option<DetectedDialect>,
    /// What the translator did.
    pub outcome: Translation,
}

impl OfflineRelay {
    /// A conversation that begins now; `agent_is_replayed`: the agent was a recording itself.
    #[must_use]
    pub fn new(dialects: DialectOptions, agent_is_replayed: bool) -> Self {
        let limits = Arc::new(Limits::default());
        let links = LinkTraits {
            client_half_close: true,
            agent_half_close: true,
            agent_is_replayed,
            agent_restarts: true,
            ..LinkTraits::default()
        };
        // Any instant is a beginning of virtual time.
        let began = Instant::now();
        Self {
            outbox: Outbox::new(&limits),
            conversation: Conversation::new(limits, links, dialects, began),
            began,
            now: began,
            is_agent_fresh: false,
        }
    }

    /// Lets time pass until this long after the beginning; what is due happens at its time.
    pub fn pass_time(&mut self, elapsed: Duration) {
        let until = self.began + elapsed;
        let due = |conversation: &Conversation| conversation.poll_timeout();
        while let Some(at) = due(&self.conversation).filter(|at| *at <= until) {
            let at = at.max(self.now);
            self.conversation.handle_timeout(at, &mut self.outbox);
        }
        self.now = until;
        self.settle();
    }

    /// Receives a message of a side.
    pub fn receive(&mut self, from: Side, frame: Frame) {
        let (now, outbox) = (self.now, &mut self.outbox);
        self.conversation.handle_frame(from, frame, now, outbox);
        self.settle();
    }

    /// A side ends its stream.
    pub fn end(&mut self, from: Side) {
        let (how, now) = ("ended its stream".to_owned(), self.now);
        self.conversation
            .handle_eof(from, how, now, &mut self.outbox);
        self.settle();
    }

    /// The next message to a side, and whether it is the first to an agent that was started again.
    pub fn sent(&mut self, to: Side) -> Option<(Frame, bool)> {
        let frame = self.outbox.pop(to)?;
        let is_fresh = to == Side::Agent && std::mem::take(&mut self.is_agent_fresh);
        Some((frame, is_fresh))
    }

    /// Takes what is not a message.
    fn settle(&mut self) {
        while self.outbox.pop_note().is_some() {}
        while let Some(command) = self.outbox.pop_command() {
            self.is_agent_fresh |= command == Command::RestartAgent;
        }
    }
}

impl TranslatorPair {
    /// The translators of a client and an agent that speak these dialects.
    ///
    /// # Errors
    /// A dialect is not known.
    pub fn new(
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
    #[must_use]
    pub fn dialect(&self, peer: Side) -> &str {
        self.options.dialect(peer)
    }

    /// Translates a frame from `peer` to canonical; a frame that is no message is not changed.
    pub fn read(&mut self, peer: Side, frame: &Frame) -> Stage {
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
    pub fn write(&mut self, peer: Side, frame: &Frame) -> Stage {
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

impl Stage {
    /// What it becomes; a request keeps its id, because its recorded answer has that one.
    pub fn after_with_id(&self) -> impl Iterator<Item = Frame> {
        self.after
            .iter()
            .map(|after| match (envelope(&self.before), envelope(after)) {
                (Some(old), Some(new))
                    if old.kind == Kind::Request && new.kind == Kind::Request =>
                {
                    new.with_id(after, old.id(&self.before))
                }
                _ => after.clone(),
            })
    }
}

/// The envelope of a frame that is one message.
fn envelope(frame: &Frame) -> Option<Envelope> {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => Some(at),
        _ => None,
    }
}
