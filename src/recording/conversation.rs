//! Pairs the requests of a recording with their answers.
//!
//! It is given the events one by one and keeps no bodies, so that it can follow a growing
//! recording.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use smallvec::SmallVec;

use super::event::{Event, Message, MessageKind, What};
use super::view::View;
use crate::jsonrpc::{Id, IdBuf, Side};

/// The requests of a conversation, in the order they were seen.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    exchanges: Vec<Exchange>,
    /// By the numbers of the requests and of their answers.
    by_number: HashMap<u64, usize>,
    /// Open requests by edge, requester and id, for recordings whose answers do not name their
    /// requests. If several have one id, the last is answered first: a peer that detects the
    /// duplicate
    /// rejects that one.
    open: HashMap<(Side, Side, IdBuf), SmallVec<[usize; 1]>>,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request's event.
    pub n: u64,
    /// The side of the relay where it was seen.
    pub hop: Side,
    /// The side that sent the request.
    pub asker: Side,
    /// Its id, as spelled.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its session.
    pub session: Option<String>,
    /// The received request that this one was made from; `None` for a received request.
    pub of: Option<u64>,
    /// When it was sent, in microseconds since the recording began.
    pub asked: u64,
    /// The answer, if there is one.
    pub answer: Option<Answer>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
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
    pub fn took(&self) -> Option<u64> {
        self.answer
            .map(|answer| answer.at.saturating_sub(self.asked))
    }
}

impl Conversation {
    /// Adds an event; returns the exchange it belongs to, when it is a request or an answer.
    pub fn see(&mut self, event: &Event) -> Option<&Exchange> {
        let What::Message(message) = &event.what else {
            return None;
        };
        let index = match message.kind? {
            MessageKind::Request => self.ask(event, message),
            MessageKind::Notification => return None,
            kind => self.answer(event, message, kind == MessageKind::Error)?,
        };
        Some(&self.exchanges[index])
    }

    /// All requests.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// The exchange whose request or answer is event `n`.
    #[must_use]
    pub fn exchange(&self, n: u64) -> Option<&Exchange> {
        self.by_number.get(&n).map(|index| &self.exchanges[*index])
    }

    /// The exchange of event `n` in a view: a translated request has one for each edge.
    #[must_use]
    pub fn exchange_in(&self, view: View, n: u64) -> Option<&Exchange> {
        let index = *self.by_number.get(&n)?;
        let own = &self.exchanges[index];
        let hop = match view {
            View::Heard => own.asker,
            View::At(side) => side,
        };
        let origin = self.origin(index).map(|origin| &self.exchanges[origin]);
        Some(match origin {
            Some(origin) if own.hop != hop && origin.hop == hop => origin,
            _ => own,
        })
    }

    /// The duration of the exchange whose request or answer is event `n`, in microseconds. `None`
    /// as
    /// long as there is no answer, and for an answer that does not count.
    #[must_use]
    pub fn took(&self, n: u64) -> Option<u64> {
        let exchange = self.exchange(n)?;
        let answer = exchange.answer?;
        (n == exchange.n || n == answer.n).then(|| exchange.took())?
    }

    fn ask(&mut self, event: &Event, message: &Message) -> usize {
        let index = self.exchanges.len();
        let asker = message.to.other();
        let id = message.id.clone().unwrap_or_default();
        self.by_number.insert(event.n, index);
        let known = self.open.entry((message.hop, asker, id_of(&id)));
        known.or_default().push(index);
        self.exchanges.push(Exchange {
            n: event.n,
            hop: message.hop,
            asker,
            id,
            method: message.method.clone().unwrap_or_default(),
            session: message.session.clone(),
            of: message.of,
            asked: event.t,
            answer: None,
        });
        index
    }

    fn answer(&mut self, event: &Event, message: &Message, failed: bool) -> Option<usize> {
        let index = match message.answers {
            Some(n) => {
                let index = *self.by_number.get(&n)?;
                let asked = &self.exchanges[index];
                let key = (asked.hop, asked.asker, id_of(&asked.id));
                self.close(key, |open| open == index);
                index
            }
            None => {
                let id = id_of(message.id.as_deref()?);
                let key = |hop| (hop, message.to, id.clone());
                let here = self.close(key(message.hop), |_| true);
                here.or_else(|| self.close(key(message.hop.other()), |_| true))?
            }
        };
        self.by_number.insert(event.n, index);
        let answer = Answer {
            n: event.n,
            at: event.t,
            failed,
        };
        // The first answer counts; if an answer has two events, received and sent, the received
        // one.
        self.exchanges[index].answer.get_or_insert(answer);
        // The source of a translated request gets the answer too; it may have no event of its own
        // for it.
        if let Some(origin) = self.origin(index) {
            let asked = &self.exchanges[origin];
            self.close((asked.hop, asked.asker, id_of(&asked.id)), |open| {
                open == origin
            });
            self.exchanges[origin].answer.get_or_insert(answer);
        }
        Some(index)
    }

    /// The source of a translated request, unless that is a different request.
    fn origin(&self, index: usize) -> Option<usize> {
        let asked = &self.exchanges[index];
        let origin = *self.by_number.get(&asked.of?)?;
        let (own, other) = (&self.exchanges[origin], asked);
        (own.asker == other.asker && own.id == other.id).then_some(origin)
    }

    /// Removes the last open request of a key that `is` accepts.
    fn close(&mut self, key: (Side, Side, IdBuf), is: impl Fn(usize) -> bool) -> Option<usize> {
        let Entry::Occupied(mut open) = self.open.entry(key) else {
            return None;
        };
        let at = open.get().iter().rposition(|index| is(*index))?;
        let last = open.get_mut().remove(at);
        if open.get().is_empty() {
            open.remove();
        }
        Some(last)
    }
}

fn id_of(spelled: &str) -> IdBuf {
    Id::of_json(spelled.as_bytes()).to_owned()
}
