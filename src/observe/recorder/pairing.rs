//! Reads the facts of a message (kind, id, method, session), and pairs answers with requests.
//!
//! Requests that are not answered yet are remembered by the edge they crossed.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use crate::jsonrpc::{Envelope, Id, IdAt, IndexedMember, Kind, Side, Span, member_range};

/// Requests remembered for one sender at one edge before answered ones are removed.
const REMEMBERED: usize = 1 << 10;

/// Requests remembered for one sender at one edge before all are removed.
const MAX_REQUESTS: usize = 1 << 15;

/// Open requests, by edge and sender.
#[derive(Debug)]
pub(super) struct RequestTable {
    open: [[Requests; 2]; 2],
    /// The last request: its edge, sender and id.
    latest: Option<(Side, Side, Key)>,
    session_finder: Finder<'static>,
}

/// Requests by their ids; those with one id in the order in which they were sent.
type Requests = HashMap<Key, SmallVec<[Request; 1]>>;

/// An id in its canonical spelling.
type Key = SmallVec<[u8; 24]>;

/// Where an answer was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerAt {
    /// It was received from the other side, as this event.
    Received(u64),
    /// It is sent by the relay, because of the event with this number.
    Sent(Option<u64>),
}

/// The facts of a message, as positions in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageInfo {
    pub(super) kind: Kind,
    pub(super) id: IdAt,
    pub(super) method: Option<Span>,
    /// The text of the member `sessionId` of its body, as JSON.
    pub(super) session: Option<Span>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) n: u64,
    pub(super) method: Arc<[u8]>,
    pub(super) session: Option<Arc<[u8]>>,
    /// The received request that this one was made from.
    source: Option<u64>,
    state: State,
}

/// The state of a request at its edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The relay has refused it, so that no other answer follows.
    Refused,
    /// The other side has answered it, in that event; the answer sent at this edge may differ.
    Answered(u64),
}

impl RequestTable {
    pub(super) fn new() -> Self {
        Self {
            open: Default::default(),
            latest: None,
            session_finder: Finder::new(b"\"sessionId\""),
        }
    }

    /// Remembers a request that crossed `hop`.
    pub(super) fn insert(&mut self, hop: Side, requester: Side, id: Id<'_>, request: Request) {
        let open = &mut self.open[hop as usize][requester as usize];
        if open.len() >= REMEMBERED {
            open.retain(|_, same| same.iter().any(|request| !request.is_answered()));
        }
        if open.len() >= MAX_REQUESTS {
            open.clear();
        }
        let key = Key::from_slice(&id.canonical());
        let same = open.entry(key.clone()).or_default();
        // Of the answered ones, the answer to the last may still have to be sent at this edge.
        if same.len() > 1 {
            let last = same.iter().rfind(|request| request.is_answered());
            let last = last.map(|request| request.n);
            same.retain(|request| !request.is_answered() || Some(request.n) == last);
        }
        if same.len() >= MAX_REQUESTS {
            same.clear();
        }
        same.push(request);
        self.latest = Some((hop, requester, key));
    }

    /// The relay does not forward the last request, because its id is in use.
    pub(super) fn refuse(&mut self) {
        let latest = self.latest.take();
        let same = latest.and_then(|(hop, requester, key)| {
            self.open[hop as usize][requester as usize].get_mut(&key)
        });
        if let Some(request) = same.and_then(|same| same.last_mut()) {
            request.state = State::Refused;
        }
    }

    /// The request of `requester` that an answer at `hop` belongs to. A request that passed
    /// unchanged has only crossed the other edge, and stays until its answer leaves there.
    pub(super) fn answer(
        &mut self,
        hop: Side,
        requester: Side,
        id: Id<'_>,
        at: AnswerAt,
    ) -> Option<Request> {
        if id == Id::Absent {
            return None;
        }
        let here = &mut self.open[hop as usize][requester as usize];
        let received = match at {
            AnswerAt::Received(n) => n,
            AnswerAt::Sent(of) => return take(here, &id.canonical(), |same| find_sent(same, of)),
        };
        if let Some(key) = matching_key(here, id) {
            let request = take(here, &key, |same| same.iter().rposition(Request::is_open))?;
            // At the edge it came from, its answer may differ.
            let there = &mut self.open[hop.other() as usize][requester as usize];
            let from = request.source.and_then(|of| {
                let mut same = there.get_mut(&key)?.iter_mut();
                same.find(|request| request.n == of)
            });
            if let Some(from) = from {
                from.state = State::Answered(received);
            }
            return Some(request);
        }
        let there = &mut self.open[hop.other() as usize][requester as usize];
        let key = matching_key(there, id)?;
        let same = there.get_mut(&key)?;
        let request = same.iter_mut().rfind(|asked| asked.is_open())?;
        request.state = State::Answered(received);
        Some(request.clone())
    }

    /// The facts of a message, even if they have to be searched.
    pub(super) fn info(&self, envelope: &Envelope, text: &[u8]) -> MessageInfo {
        MessageInfo::of(envelope, text).unwrap_or_else(|| {
            let session = envelope.body.and_then(|body| {
                self.session_finder.find(body.of(text))?;
                let at = member_range(body.of(text), "sessionId")?;
                let place = |at: usize| u32::try_from(at).ok().map(|at| body.start + at);
                inner(
                    Span {
                        start: place(at.start)?,
                        end: place(at.end)?,
                    },
                    text,
                )
            });
            MessageInfo::with(envelope, session)
        })
    }
}

impl MessageInfo {
    /// The facts that an envelope contains; `None` when the message has to be searched.
    #[inline]
    pub(super) fn of(envelope: &Envelope, text: &[u8]) -> Option<Self> {
        let session = match (&envelope.index, envelope.body) {
            (Some(index), _) => index
                .members()
                .find(|member: &IndexedMember| member.has_name("sessionId", text))
                .and_then(|member| inner(member.value, text)),
            (None, Some(body)) if body.of(text).starts_with(b"{") => return None,
            (None, _) => None,
        };
        Some(Self::with(envelope, session))
    }

    const fn with(envelope: &Envelope, session: Option<Span>) -> Self {
        Self {
            kind: envelope.kind,
            id: envelope.id,
            method: envelope.method,
            session,
        }
    }
}

impl Request {
    /// A request that is event `n`, made from the one received as event `of`.
    pub(super) fn new(n: u64, of: Option<u64>, method: &[u8], session: Option<&[u8]>) -> Self {
        Self {
            n,
            method: method.into(),
            session: session.map(Into::into),
            source: of,
            state: State::Open,
        }
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    const fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered(_))
    }
}

/// Which of the requests with one id an answer belongs to that the relay sends because of event
/// `of`: the request itself if `of` is its event, else the one whose answer is event `of`.
fn find_sent(same: &[Request], of: Option<u64>) -> Option<usize> {
    let because = of.and_then(|of| {
        let is = |request: &Request| request.n == of || request.state == State::Answered(of);
        same.iter().position(is)
    });
    because.or_else(|| same.iter().rposition(Request::is_open))
}

/// Removes one of the requests with one id.
fn take(
    open: &mut Requests,
    key: &[u8],
    which: impl FnOnce(&[Request]) -> Option<usize>,
) -> Option<Request> {
    let same = open.get_mut(key)?;
    let request = same.remove(which(same)?);
    if same.is_empty() {
        open.remove(key);
    }
    Some(request)
}

/// The id of the open request that `id` answers: a program that stores numbers as doubles spells
/// some of them differently. Two requests that match cannot be distinguished.
fn matching_key(open: &Requests, id: Id<'_>) -> Option<Key> {
    let is_open = |same: &[Request]| same.iter().any(Request::is_open);
    let key = id.canonical();
    match open.get(&*key) {
        Some(same) if is_open(same) => return Some(Key::from_slice(&key)),
        None if matches!(id, Id::Number(_)) => {}
        _ => return None,
    }
    let mut candidates = open.iter().filter(|(key, same)| {
        !key.starts_with(b"\"") && is_open(same) && Id::Number(key).same_double(&id)
    });
    match (candidates.next(), candidates.next()) {
        (Some((only, _)), None) => Some(only.clone()),
        _ => None,
    }
}

/// The content of a string, without its quotes.
fn inner(value: Span, text: &[u8]) -> Option<Span> {
    let string = value.of(text);
    let quoted = string.len() >= 2 && string.starts_with(b"\"") && string.ends_with(b"\"");
    quoted.then_some(Span {
        start: value.start + 1,
        end: value.end - 1,
    })
}
