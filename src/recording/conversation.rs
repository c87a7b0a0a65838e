//! Who asked what, and what came of it: a recording's requests paired with their answers.
//!
//! It is shown one event after the other and keeps no bodies, so that it can follow a recording
//! that grows. Not here: reading (see `read`), what is printed of it.

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
    /// Open requests by edge, asker and id, for recordings whose answers do not name theirs. Of
    /// several with one id, the last is answered first: a peer that notices refuses that one.
    open: HashMap<(Side, Side, IdBuf), SmallVec<[usize; 1]>>,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request's event.
    pub n: u64,
    /// The edge it crossed.
    pub hop: Side,
    /// Who asked.
    pub asker: Side,
    /// Its id, as spelled.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its session.
    pub session: Option<String>,
    /// The heard request that this one was made from; `None` for one that was heard itself.
    pub of: Option<u64>,
    /// When it was asked, in microseconds since the recording began.
    pub asked: u64,
    /// What came of it.
    pub answer: Option<Answer>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its event.
    pub n: u64,
    /// When it crossed the edge, in microseconds since the recording began.
    pub at: u64,
    /// It says why there is none.
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
    /// Takes an event in; the exchange it belongs to, when it is a request or an answer.
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

    /// The exchange that event `n` asks for or answers.
    #[must_use]
    pub fn exchange(&self, n: u64) -> Option<&Exchange> {
        self.by_number.get(&n).map(|index| &self.exchanges[*index])
    }

    /// The exchange of event `n` as it was asked in a view: where a request was translated, there is
    /// one for each edge.
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

    /// How long the exchange took that event `n` is the request or the answer of, in microseconds.
    /// Nothing as long as there is no answer, and of an answer that is not the one that counts.
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
        // The first answer counts; of two events for one answer, heard and said, the heard one.
        self.exchanges[index].answer.get_or_insert(answer);
        // What a translated request was made of has it, too, and may have no event for it.
        if let Some(origin) = self.origin(index) {
            let asked = &self.exchanges[origin];
            self.close((asked.hop, asked.asker, id_of(&asked.id)), |open| {
                open == origin
            });
            self.exchanges[origin].answer.get_or_insert(answer);
        }
        Some(index)
    }

    /// The request that a translated one was made of, unless that is about something else.
    fn origin(&self, index: usize) -> Option<usize> {
        let asked = &self.exchanges[index];
        let origin = *self.by_number.get(&asked.of?)?;
        let (own, other) = (&self.exchanges[origin], asked);
        (own.asker == other.asker && own.id == other.id).then_some(origin)
    }

    /// Takes the last open request of a key that is one of those.
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
