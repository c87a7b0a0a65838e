//! Pairs the requests of a recording with their answers.
//!
//! It is given the events one by one and keeps no bodies, so that it can follow a growing
//! recording.

use std::collections::HashMap;

use super::event::{Message, RecordedEvent};
use super::view::View;
use jsonrpc::{Id, Kind, PendingRequests, Side};

/// The requests of a conversation, in the order they were seen.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    list: Vec<Exchange>,
    /// By the numbers of the requests and of their answers.
    by_number: HashMap<u64, usize>,
    /// Open requests by edge and requester, for recordings whose answers do not name their
    /// requests. If several have one id, the last is answered: a peer that detects the duplicate
    /// rejects that one.
    open: [[PendingRequests<usize>; 2]; 2],
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request's event.
    pub n: u64,
    /// The side of the relay where it was seen.
    pub edge: Side,
    /// The side that sent the request.
    pub requester: Side,
    /// Its id, as spelled.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its session.
    pub session: Option<String>,
    /// The received request that this one was made from; `None` for a received request.
    pub source: Option<u64>,
    /// When it was sent, in microseconds since the recording began.
    pub requested_at: u64,
    /// The answer, if there is one.
    pub answer: Option<ExchangeAnswer>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeAnswer {
    /// Its event.
    pub n: u64,
    /// Its time in microseconds since the recording began.
    pub at: u64,
    /// Whether it is an error.
    pub failed: bool,
}

impl Exchange {
    /// From the request to the answer, in microseconds.
    #[must_use]
    pub fn duration(&self) -> Option<u64> {
        self.answer
            .map(|answer| answer.at.saturating_sub(self.requested_at))
    }
}

impl Exchanges {
    /// Adds an event, unless it is known; returns the exchange it belongs to, when it is a request
    /// or an answer.
    pub fn add(&mut self, event: &RecordedEvent) -> Option<&Exchange> {
        let message = event.message()?;
        let index = match (message.kind?, self.by_number.get(&event.n)) {
            (Kind::Notification, _) => return None,
            (_, Some(known)) => *known,
            (Kind::Request, None) => self.add_request(event, message),
            (kind, None) => self.add_answer(event, message, kind == Kind::Error)?,
        };
        self.list.get(index)
    }

    /// All requests.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.list
    }

    /// The exchange whose request or answer is event `n`.
    #[must_use]
    pub fn exchange(&self, n: u64) -> Option<&Exchange> {
        self.list.get(*self.by_number.get(&n)?)
    }

    /// The exchange of event `n` in a view: a translated request has one for each edge.
    #[must_use]
    pub fn exchange_in(&self, view: View, n: u64) -> Option<&Exchange> {
        let index = *self.by_number.get(&n)?;
        let own = self.list.get(index)?;
        let edge = match view {
            View::Received => own.requester,
            View::At(side) => side,
        };
        let origin = self.origin(index).and_then(|origin| self.list.get(origin));
        Some(match origin {
            Some(origin) if own.edge != edge && origin.edge == edge => origin,
            _ => own,
        })
    }

    /// The duration of the exchange whose request or answer is event `n`, in microseconds. `None`
    /// as long as there is no answer, and for an answer that does not count.
    #[must_use]
    pub fn duration(&self, n: u64) -> Option<u64> {
        let exchange = self.exchange(n)?;
        let answer = exchange.answer?;
        (n == exchange.n || n == answer.n).then(|| exchange.duration())?
    }

    fn add_request(&mut self, event: &RecordedEvent, message: &Message) -> usize {
        let index = self.list.len();
        let requester = message.to.other();
        let id = message.id.clone().unwrap_or_default();
        self.by_number.insert(event.n, index);
        let open = self.open_at(message.edge, requester);
        open.remove(id_of(&id));
        // There is no limit, and the id is free now.
        let _ = open.insert(id_of(&id), index);
        self.list.push(Exchange {
            n: event.n,
            edge: message.edge,
            requester,
            id,
            method: message.method.clone().unwrap_or_default(),
            session: message.session.clone(),
            source: message.source,
            requested_at: event.t,
            answer: None,
        });
        index
    }

    fn add_answer(
        &mut self,
        event: &RecordedEvent,
        message: &Message,
        failed: bool,
    ) -> Option<usize> {
        let index = match message.answers {
            Some(n) => *self.by_number.get(&n)?,
            None => {
                let id = id_of(message.id.as_deref()?);
                let mut take = |edge| self.open_at(edge, message.to).remove(id);
                let (_, index) = take(message.edge).or_else(|| take(message.edge.other()))?;
                index
            }
        };
        self.by_number.insert(event.n, index);
        let answer = ExchangeAnswer {
            n: event.n,
            at: event.t,
            failed,
        };
        // The first answer counts; if an answer has two events, received and sent, the received
        // one.
        self.close(index, answer);
        // The source of a translated request gets the answer too; it may have no event of its own
        // for it.
        if let Some(origin) = self.origin(index) {
            self.close(origin, answer);
        }
        Some(index)
    }

    /// The source of a translated request, unless that is a different request.
    fn origin(&self, index: usize) -> Option<usize> {
        let other = self.list.get(index)?;
        let origin = *self.by_number.get(&other.source?)?;
        let own = self.list.get(origin)?;
        (own.requester == other.requester && own.id == other.id).then_some(origin)
    }

    fn open_at(&mut self, edge: Side, requester: Side) -> &mut PendingRequests<usize> {
        requester.of_mut(edge.of_mut(&mut self.open))
    }

    /// A request is answered.
    fn close(&mut self, index: usize, answer: ExchangeAnswer) {
        let Some(request) = self.list.get_mut(index) else {
            return;
        };
        request.answer.get_or_insert(answer);
        let id = id_of(&request.id);
        let open = request.edge.of_mut(&mut self.open);
        let open = request.requester.of_mut(open);
        if open.get(id) == Some(&index) {
            open.remove(id);
        }
    }
}

fn id_of(spelled: &str) -> Id<'_> {
    Id::of_json(spelled.as_bytes())
}
