//! Reads the facts of a message (kind, id, method, session), and pairs answers with requests.
//!
//! Requests that are not answered yet are remembered by the edge they crossed.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use jsonrpc::{Envelope, Id, IdBuf, Kind, PendingRequests, Side, Span, member_range};

/// Requests remembered for one sender at one edge before answered ones are removed.
const REMEMBERED: usize = 1 << 10;

/// Requests remembered for one sender at one edge, and those with one id.
const MAX_REQUESTS: usize = 1 << 15;

/// Open requests, by edge and sender.
#[derive(Debug)]
pub(super) struct RequestTable {
    open: [[Requests; 2]; 2],
    /// The last request: its edge, sender and id.
    latest: Option<(Side, Side, IdBuf)>,
}

/// Requests by their ids; those with one id in the order in which they were sent.
type Requests = PendingRequests<SmallVec<[Request; 1]>>;

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
pub struct MessageInfo {
    pub(super) kind: Kind,
    pub(super) id: Option<Span>,
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

impl Default for RequestTable {
    fn default() -> Self {
        let requests = |_| std::array::from_fn(|_| PendingRequests::new(MAX_REQUESTS));
        Self {
            open: std::array::from_fn(requests),
            latest: None,
        }
    }
}

impl RequestTable {
    /// Remembers a request that crossed `hop`.
    pub(super) fn insert(&mut self, hop: Side, requester: Side, id: Id<'_>, request: Request) {
        self.latest = Some((hop, requester, id.to_owned()));
        let open = &mut self.open[hop as usize][requester as usize];
        if open.len() >= REMEMBERED {
            open.retain(|_, same| same.iter().any(|request| !request.is_answered()));
        }
        if open.len() >= MAX_REQUESTS {
            open.pop_oldest();
        }
        if open.insert(id, smallvec![request.clone()]).is_ok() {
            return;
        }
        let Some(same) = open.get_mut(id) else { return };
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
    }

    /// The relay does not forward the last request, because its id is in use.
    pub(super) fn refuse(&mut self) {
        let Some((hop, requester, id)) = self.latest.take() else {
            return;
        };
        let same = self.open[hop as usize][requester as usize].get_mut(id.as_id());
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
            AnswerAt::Sent(of) => return take(here, id, |same| find_sent(same, of)),
        };
        let answered = take(here, id, |same| same.iter().rposition(Request::is_open));
        let there = &mut self.open[hop.other() as usize][requester as usize];
        let mut same = there.get_mut(id).into_iter().flatten();
        // At the edge it came from, its answer may differ.
        if let Some(request) = answered {
            if let Some(from) = same.find(|from| request.source == Some(from.n)) {
                from.state = State::Answered(received);
            }
            return Some(request);
        }
        let request = same.rfind(|asked| asked.is_open())?;
        request.state = State::Answered(received);
        Some(request.clone())
    }
}

impl MessageInfo {
    /// The facts of a message.
    #[must_use]
    pub fn of(envelope: &Envelope, text: &[u8]) -> Self {
        const NAME: &str = "sessionId";
        let value = match (&envelope.index, envelope.body) {
            (Some(index), _) => {
                let mut members = index.members();
                let session = members.find(|member| member.has_name(NAME, text));
                session.map(|session| session.value)
            }
            (None, Some(body)) => member_range(body.of(text), NAME).map(|at| {
                let start = body.start as usize;
                Span::new(start + at.start, start + at.end)
            }),
            (None, None) => None,
        };
        Self {
            kind: envelope.kind,
            id: envelope.id,
            method: envelope.method,
            session: value.and_then(|value| inner(value, text)),
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
/// `of`: the request itself if `of` is its event, else the one whose answer is event `of`, else one
/// whose answer has not been sent.
fn find_sent(same: &[Request], of: Option<u64>) -> Option<usize> {
    let because = of.and_then(|of| {
        let is = |request: &Request| request.n == of || request.state == State::Answered(of);
        same.iter().position(is)
    });
    // Between versions, the answer to a prompt is sent because of a later message.
    let open = || same.iter().rposition(Request::is_open);
    because
        .or_else(open)
        .or_else(|| same.iter().rposition(Request::is_answered))
}

/// Removes one of the requests with one id.
fn take(
    open: &mut Requests,
    id: Id<'_>,
    which: impl FnOnce(&[Request]) -> Option<usize>,
) -> Option<Request> {
    let same = open.get_mut(id)?;
    let request = same.remove(which(same)?);
    if same.is_empty() {
        open.remove(id);
    }
    Some(request)
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
