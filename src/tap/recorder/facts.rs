//! What can be told of a frame: its kind, id, method, session, and the request it answers.
//!
//! Here are remembered the requests whose answers are still to come, by the edge they crossed.
//! Not here: how it is written down.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use crate::recording::MessageKind;
use crate::wire::{Envelope, Id, Kind, Outlined, Side};

/// Requests remembered for one asker at one edge before answered ones are forgotten.
const REMEMBERED: usize = 1 << 10;

/// And before all are.
const BOUND: usize = 1 << 15;

/// Open requests, by edge and asker.
#[derive(Debug)]
pub(super) struct Ledger {
    open: [[HashMap<SmallVec<[u8; 24]>, Asked>; 2]; 2],
    session: Finder<'static>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) n: u64,
    pub(super) method: Arc<[u8]>,
    pub(super) session: Option<Arc<[u8]>>,
    answered: bool,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            open: Default::default(),
            session: Finder::new(b"\"sessionId\""),
        }
    }

    /// Remembers a request that crossed `hop` as event `n`.
    pub(super) fn ask(&mut self, hop: Side, asker: Side, id: Id<'_>, asked: Asked) {
        let open = &mut self.open[hop as usize][asker as usize];
        if open.len() >= REMEMBERED {
            open.retain(|_, asked| !asked.answered);
        }
        if open.len() >= BOUND {
            open.clear();
        }
        open.insert(SmallVec::from_slice(id.json()), asked);
    }

    /// The request of `asker` that an answer at `hop` is for. One that passed unchanged has
    /// crossed the other edge only, and is remembered for the answer as it leaves there.
    pub(super) fn answer(&mut self, hop: Side, asker: Side, id: Id<'_>) -> Option<Asked> {
        if let Some(asked) = self.open[hop as usize][asker as usize].remove(id.json()) {
            return Some(asked);
        }
        let there = &mut self.open[hop.other() as usize][asker as usize];
        let asked = there.get_mut(id.json())?;
        asked.answered = true;
        Some(asked.clone())
    }

    /// The session a message is about: the text of its body's member `sessionId`, as it stands in
    /// JSON.
    pub(super) fn session<'a>(&self, envelope: &Envelope, text: &'a [u8]) -> Option<&'a [u8]> {
        let value = match &envelope.outline {
            Some(outline) => {
                let member = |member: &Outlined| member.is_called("sessionId", text);
                outline.members().find(member)?.value.of(text)
            }
            None => {
                let body = envelope.body?.of(text);
                self.session.find(body)?;
                let members = crate::recording::members;
                let (_, at) = members(body).find(|(name, _)| *name == b"sessionId")?;
                &body[at]
            }
        };
        value.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }
}

impl Asked {
    pub(super) fn new(n: u64, method: &[u8], session: Option<&[u8]>) -> Self {
        Self {
            n,
            method: method.into(),
            session: session.map(Into::into),
            answered: false,
        }
    }
}

/// What a message is.
pub(super) const fn kind(envelope: &Envelope) -> MessageKind {
    match envelope.kind {
        Kind::Request => MessageKind::Request,
        Kind::Notification => MessageKind::Notification,
        Kind::Result => MessageKind::Result,
        Kind::Error => MessageKind::Error,
    }
}
