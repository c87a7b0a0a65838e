//! What can be told of a frame: its kind, id, method, session, and the request it answers.
//!
//! Here are remembered the requests whose answers are still to come, by the edge they crossed.
//! Not here: how it is written down.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use crate::recording::MessageKind;
use crate::wire::{Envelope, Id, IdAt, Kind, Outlined, Side, Span};

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

/// What a message tells of itself, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) kind: MessageKind,
    pub(super) id: IdAt,
    pub(super) method: Option<Span>,
    /// The text of its body's member `sessionId`, as it stands in JSON.
    pub(super) session: Option<Span>,
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

    /// What a message tells, however long one has to look for it.
    pub(super) fn read(&self, envelope: &Envelope, text: &[u8]) -> Told {
        Told::of(envelope, text).unwrap_or_else(|| {
            let session = envelope.body.and_then(|body| {
                self.session.find(body.of(text))?;
                let mut members = crate::recording::members(body.of(text));
                let (_, at) = members.find(|(name, _)| *name == b"sessionId")?;
                let place = |at: usize| u32::try_from(at).ok().map(|at| body.start + at);
                inner(
                    Span {
                        start: place(at.start)?,
                        end: place(at.end)?,
                    },
                    text,
                )
            });
            Told::with(envelope, session)
        })
    }
}

impl Told {
    /// What an envelope tells without another look at its message; `None` when that takes one.
    pub(super) fn of(envelope: &Envelope, text: &[u8]) -> Option<Self> {
        let session = match (&envelope.outline, envelope.body) {
            (Some(outline), _) => outline
                .members()
                .find(|member: &Outlined| member.is_called("sessionId", text))
                .and_then(|member| inner(member.value, text)),
            (None, Some(body)) if body.of(text).starts_with(b"{") => return None,
            (None, _) => None,
        };
        Some(Self::with(envelope, session))
    }

    const fn with(envelope: &Envelope, session: Option<Span>) -> Self {
        let kind = match envelope.kind {
            Kind::Request => MessageKind::Request,
            Kind::Notification => MessageKind::Notification,
            Kind::Result => MessageKind::Result,
            Kind::Error => MessageKind::Error,
        };
        Self {
            kind,
            id: envelope.id,
            method: envelope.method,
            session,
        }
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

/// What stands between the quotes of a string.
fn inner(value: Span, text: &[u8]) -> Option<Span> {
    let string = value.of(text);
    let quoted = string.len() >= 2 && string.starts_with(b"\"") && string.ends_with(b"\"");
    quoted.then_some(Span {
        start: value.start + 1,
        end: value.end - 1,
    })
}
