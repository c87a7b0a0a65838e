//! The streams of one connection: queued messages, and sent ones for a client that reconnects.
//!
//! No queued message is ever dropped: their sum is what pauses the agent. Sent messages are kept
//! within a bound for all streams, the oldest dropped first; a client that asks for dropped
//! messages is refused, because a part of them would look like all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::StatusCode;
use tokio::time::Instant;

use super::refusal::Refusal;
use super::stream::{Receiver, StoredFrame, Stream};
use crate::auth::RejectReason;
use crate::jsonrpc::{Frame, Limits};

/// The connection's own stream.
pub(super) const CONNECTION: u32 = 0;

/// Messages of a stream that are kept to be sent again, whatever their size.
const MAX_KEPT: usize = 4096;
/// Streams of one connection. Beyond it empty ones are dropped, first those of sessions that are
/// not known.
const MAX_STREAMS: usize = 1024;

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    all: BTreeMap<u32, Stream>,
    by_session: HashMap<Arc<str>, u32>,
    next_number: u32,
    next_lease: u64,
    next_order: u64,
    /// Bytes that wait, and bytes that are kept, in all streams.
    waiting: usize,
    stored: usize,
    /// Bytes that may be kept.
    max_bytes_kept: usize,
    /// No more messages follow: a stream ends once its queue is empty.
    ended: bool,
    /// When a message was last taken.
    pub(super) taken_at: Instant,
}

/// The claim of a client to the stream it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) stream: u32,
    number: u64,
}

/// How a stream is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Only if it is not open.
    Fresh,
    /// By a client that has received this stream up to this message, and takes it over.
    After(u32, u64),
    /// By a client that has received nothing of this stream, and takes it over.
    Restart,
    /// By a client that takes it over and gets the queued messages.
    Takeover,
}

/// The result of taking messages from a stream.
#[derive(Debug)]
pub(super) enum Delivery {
    /// Messages were taken.
    Some,
    /// No more will come, or the stream was taken over.
    End,
}

impl Streams {
    /// `max_bytes_kept` is how many bytes are kept to be sent again.
    pub(super) fn new(max_bytes_kept: usize, now: Instant) -> Self {
        Self {
            all: BTreeMap::from([(CONNECTION, Stream::new(None))]),
            by_session: HashMap::new(),
            next_number: 1,
            next_lease: 1,
            next_order: 0,
            waiting: 0,
            stored: 0,
            max_bytes_kept,
            ended: false,
            taken_at: now,
        }
    }

    /// Bytes that wait to be taken.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many streams are open.
    pub(super) fn open_count(&self) -> usize {
        let open = self.all.values().filter(|stream| stream.receiver.is_some());
        open.count()
    }

    /// Whether this session was named by the client or the agent.
    pub(super) fn is_known(&self, session: &str) -> bool {
        let number = self.find(session);
        number.is_some_and(|number| self.all[&number].known)
    }

    /// Marks a session as known.
    pub(super) fn mark_known(&mut self, session: &str) {
        self.stream_of(session).known = true;
    }

    /// How many messages were ever put on streams.
    pub(super) const fn pushed(&self) -> u64 {
        self.next_order
    }

    /// Records that the client enters a session. If it has never opened the session's stream, all
    /// its messages go on the connection's until the request is answered, even if the client opens
    /// the other meanwhile: two streams have no order.
    pub(super) fn enter(&mut self, session: &str) {
        let stream = self.stream_of(session);
        stream.entering |= !stream.opened && stream.waiting.is_empty();
    }

    /// The stream for the answer to a request to enter a session, which came after `since`
    /// messages: the one that has the session's messages.
    pub(super) fn entered(&mut self, session: &str, since: u64) -> u32 {
        let found = self.find(session);
        let Some((number, stream)) = found.and_then(|at| Some((at, self.all.get_mut(&at)?))) else {
            return CONNECTION;
        };
        if std::mem::take(&mut stream.entering) {
            return CONNECTION;
        }
        // A client that reconnects is sent again what it missed.
        let has_missed = stream.sent.back().is_some_and(|last| last.order >= since);
        let own = stream.receiver.is_some() || !stream.waiting.is_empty() || has_missed;
        if own { number } else { CONNECTION }
    }

    /// The number of the stream of `session`, or of the connection's.
    pub(super) fn of(&mut self, session: Option<&str>) -> u32 {
        session.map_or(CONNECTION, |session| self.find_or_make(session))
    }

    /// Puts a message on a stream.
    pub(super) fn push(&mut self, number: u32, frame: Frame) {
        let stream = self.all.get(&number);
        let carried = stream.is_none_or(|stream| stream.redirected || stream.entering);
        let number = if carried { CONNECTION } else { number };
        let order = self.next_order;
        self.next_order += 1;
        let event = StoredFrame { frame, order };
        self.waiting += event.size();
        let stream = self.all.entry(number).or_default();
        stream.waiting.push_back(event);
        stream.wake();
        if stream.receiver.is_none() {
            stream.update_unread(Instant::now());
        }
    }

    /// Opens the stream of `session`, or the connection's.
    pub(super) fn open(
        &mut self,
        session: Option<&str>,
        how: Opening,
        limits: &Limits,
        now: Instant,
    ) -> Result<Lease, Refusal> {
        if let Some(session) = session
            && !self.is_known(session)
        {
            let streams = self.all.values();
            let open = streams.filter(|one| !one.known && one.receiver.is_some());
            let number = self.find(session);
            let is_open = number.is_some_and(|number| self.all[&number].receiver.is_some());
            if !is_open && open.count() >= limits.http_unknown_sessions {
                let why = "too many streams are open for sessions that are not known";
                let refusal = Refusal::new(StatusCode::NOT_FOUND, why);
                return Err(refusal.counted_as(RejectReason::Limit));
            }
        }
        let number = session.map_or(CONNECTION, |session| self.find_or_make(session));
        let stream = self.all.entry(number).or_default();
        if stream.receiver.is_some() && how == Opening::Fresh {
            let why = "this stream is open already; Last-Event-ID takes it over";
            return Err(Refusal::new(StatusCode::CONFLICT, why));
        }
        let last = match how {
            Opening::After(of, _) if of != number => return Err(Refusal::forgotten()),
            Opening::After(_, last) => Some(last),
            Opening::Restart => Some(0),
            Opening::Fresh | Opening::Takeover => None,
        };
        if let Some(last) = last {
            let bytes = stream.rewind(last).ok_or_else(Refusal::forgotten)?;
            self.stored -= bytes;
            self.waiting += bytes;
        }
        stream.wake();
        let lease = self.next_lease;
        self.next_lease += 1;
        stream.receiver = Some(Receiver {
            lease,
            waker: None,
            last_taken: now,
        });
        stream.opened = true;
        stream.redirected = false;
        stream.unread_since = None;
        Ok(Lease {
            stream: number,
            number: lease,
        })
    }

    /// Passes queued messages to the holder of `lease`, each with its number, until `give` returns
    /// false. The first argument of `give` is the most bytes that can follow.
    pub(super) fn take(
        &mut self,
        lease: Lease,
        cx: &Context<'_>,
        now: Instant,
        mut give: impl FnMut(usize, u64, &Frame) -> bool,
    ) -> Poll<Delivery> {
        let stream = self.all.get_mut(&lease.stream);
        let Some(stream) = stream.filter(|stream| stream.is_held_by(lease.number)) else {
            return Poll::Ready(Delivery::End);
        };
        let receiver = stream.receiver.as_mut();
        let receiver = receiver.expect("a stream that is held has a receiver");
        receiver.last_taken = now;
        if stream.waiting.is_empty() {
            if self.ended {
                return Poll::Ready(Delivery::End);
            }
            receiver.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.taken_at = now;
        let mut more = true;
        while more && let Some(event) = stream.waiting.pop_front() {
            more = give(self.waiting, stream.next_number, &event.frame);
            let size = event.size();
            stream.next_number += 1;
            self.waiting -= size;
            if self.max_bytes_kept > 0 {
                stream.sent.push_back(event);
                self.stored += size;
                if stream.sent.len() > MAX_KEPT {
                    self.stored -= stream.forget();
                }
            }
        }
        self.trim_kept();
        Poll::Ready(Delivery::Some)
    }

    /// The number of the last message sent to the current holder of `lease`, or its predecessor.
    pub(super) fn last_sent(&self, lease: Lease) -> Option<u64> {
        let stream = self.all.get(&lease.stream)?;
        let holds = stream.is_held_by(lease.number);
        holds.then(|| stream.next_number - 1)
    }

    /// The holder of `lease` was dropped.
    pub(super) fn release(&mut self, lease: Lease, now: Instant) {
        if let Some(stream) = self.all.get_mut(&lease.stream)
            && stream.is_held_by(lease.number)
        {
            stream.receiver = None;
            stream.update_unread(now);
        }
    }

    /// Closes streams whose receivers have read nothing for too long, and moves messages without a
    /// receiver to the connection's stream. `true` when a stream was closed.
    pub(super) fn expire(&mut self, limits: &Limits, now: Instant) -> bool {
        let mut stalled = false;
        for stream in self.all.values_mut() {
            let is_stuck =
                |receiver: &Receiver| now - receiver.last_taken >= limits.http_write_timeout;
            if !stream.waiting.is_empty() && stream.receiver.as_ref().is_some_and(is_stuck) {
                stream.wake();
                stream.receiver = None;
                stream.update_unread(now);
                stalled = true;
            }
        }
        if self.all[&CONNECTION].receiver.is_some() {
            self.redirect(limits, now);
        }
        stalled
    }

    /// No more messages will follow.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.all.values_mut().for_each(Stream::wake);
    }

    /// Drops all messages and receivers.
    pub(super) fn drop_all(&mut self) {
        for stream in self.all.values_mut() {
            stream.wake();
            stream.receiver = None;
            stream.waiting.clear();
            stream.sent.clear();
        }
        (self.waiting, self.stored, self.ended) = (0, 0, true);
    }

    fn redirect(&mut self, limits: &Limits, now: Instant) {
        let mut moved = Vec::new();
        for stream in self.all.values_mut() {
            let limit = if stream.opened {
                limits.http_grace
            } else {
                limits.http_stream_open
            };
            if stream.session.is_some() && stream.unread_since.is_some_and(|at| now - at >= limit) {
                moved.extend(stream.waiting.drain(..));
                stream.unread_since = None;
                stream.redirected = true;
            }
        }
        if moved.is_empty() {
            return;
        }
        // In the order in which the client would have received them on one stream.
        let own = self.all.entry(CONNECTION).or_default();
        moved.extend(own.waiting.drain(..));
        moved.sort_by_key(|event| event.order);
        own.waiting.extend(moved);
        own.wake();
    }

    fn trim_kept(&mut self) {
        while self.stored > self.max_bytes_kept {
            let oldest = self.all.values_mut().filter(|one| !one.sent.is_empty());
            let Some(stream) = oldest.min_by_key(|one| one.sent.front().map(|event| event.order))
            else {
                return;
            };
            self.stored -= stream.forget();
        }
    }

    /// The stream of a session, if there is one.
    fn find(&self, session: &str) -> Option<u32> {
        self.by_session.get(session).copied()
    }

    /// The stream of a session, made if there is none.
    fn stream_of(&mut self, session: &str) -> &mut Stream {
        let number = self.find_or_make(session);
        self.all.entry(number).or_default()
    }

    /// Its number.
    fn find_or_make(&mut self, session: &str) -> u32 {
        if let Some(number) = self.find(session) {
            return number;
        }
        if self.all.len() >= MAX_STREAMS {
            let idle = |stream: &Stream| {
                stream.session.is_some() && stream.receiver.is_none() && stream.waiting.is_empty()
            };
            let all = self.all.iter().filter(|(_, stream)| idle(stream));
            let found = all.min_by_key(|(_, stream)| stream.known);
            if let Some(number) = found.map(|(number, _)| *number) {
                self.forget(number);
            }
        }
        let number = self.next_number;
        self.next_number += 1;
        let session: Arc<str> = session.into();
        self.all.insert(number, Stream::new(Some(session.clone())));
        self.by_session.insert(session, number);
        number
    }

    fn forget(&mut self, number: u32) {
        let Some(stream) = self.all.remove(&number) else {
            return;
        };
        self.stored -= stream.sent_bytes();
        self.waiting -= stream.waiting_bytes();
        if let Some(session) = stream.session {
            self.by_session.remove(&session);
        }
    }
}
