//! The streams of one connection: queued messages, and sent ones for a client that reconnects.
//!
//! No queued message is ever dropped: their sum is what pauses the agent. Sent messages are kept
//! within a bound for all streams, the oldest dropped first; a client that asks for dropped
//! messages is refused, because a part of them would look like all. A message gets its number when
//! it is sent, so that the numbers of a stream have no gaps even where another stream took over its
//! messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hyper::StatusCode;
use tokio::time::Instant;

use crate::http::port::refusal::Refusal;
use auth::RejectReason;
use jsonrpc::{Frame, IdBuf, Limits};
use link::{ReplayBuffer, Size};

/// The key of the connection's own stream. No session has this id.
pub(super) const CONNECTION: &str = "";

/// Messages of a stream that are kept to be sent again, whatever their size.
const MAX_KEPT: usize = 4096;
/// Streams of one connection. Beyond it empty ones are dropped, first those of sessions that are
/// not known.
const MAX_STREAMS: usize = 1024;

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    /// By session.
    all: HashMap<Arc<str>, Stream>,
    next_stream: u32,
    next_lease: u64,
    /// How many messages were ever put on streams.
    pub(super) pushed: u64,
    /// Bytes that wait, and bytes that are kept, in all streams.
    pub(super) waiting: usize,
    kept: usize,
    /// Bytes that may be kept.
    max_kept: usize,
    /// No more messages follow: a stream ends once its queue is empty.
    ended: bool,
    /// When a message was last taken.
    pub(super) taken_at: Instant,
}

/// One stream.
#[derive(Debug, Default)]
struct Stream {
    /// Its number, in the ids of events.
    number: u32,
    /// Whether the client or the agent has named the session.
    known: bool,
    /// The last messages that were sent, and those that wait.
    queue: ReplayBuffer<StoredFrame>,
    /// The lease of the client's request that has the stream open.
    holder: Option<u64>,
    /// Wakes the holder.
    waker: Option<Waker>,
    /// Whether a client has ever opened it.
    opened: bool,
    /// Since when messages have waited without a holder.
    unread_since: Option<Instant>,
    /// Whether the connection's stream carries its messages until it is opened.
    redirected: bool,
    /// Whether it does until the client's request to enter the session is answered.
    entering: bool,
}

/// One message of a stream.
#[derive(Debug)]
struct StoredFrame {
    frame: Frame,
    /// Its position in the order of all streams.
    order: u64,
    /// The id of a request that may be used again once this answer is sent.
    frees: Option<IdBuf>,
}

/// The claim of a client to the stream it opened.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    session: Arc<str>,
    /// The stream's number.
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

impl Streams {
    /// `max_kept` is how many bytes are kept to be sent again.
    pub(super) fn new(max_kept: usize, now: Instant) -> Self {
        let mut streams = Self {
            all: HashMap::new(),
            next_stream: 0,
            next_lease: 1,
            pushed: 0,
            waiting: 0,
            kept: 0,
            max_kept,
            ended: false,
            taken_at: now,
        };
        streams.mark_known(CONNECTION);
        streams
    }

    /// Whether any stream is open.
    pub(super) fn any_open(&self) -> bool {
        self.all.values().any(|stream| stream.holder.is_some())
    }

    /// The session, if the client or the agent has named it.
    pub(super) fn known(&self, session: &str) -> Option<Arc<str>> {
        let (session, stream) = self.all.get_key_value(session)?;
        stream.known.then(|| session.clone())
    }

    /// Marks a session as known.
    pub(super) fn mark_known(&mut self, session: &str) {
        self.stream_of(session).known = true;
    }

    /// Records that the client enters a session. If it has never opened the session's stream, all
    /// its messages go on the connection's until the request is answered, even if the client opens
    /// the other meanwhile: two streams have no order.
    pub(super) fn enter(&mut self, session: &str) {
        let stream = self.stream_of(session);
        stream.entering |= !stream.opened && !stream.queue.has_unwritten();
    }

    /// Whether the answer to a request to enter a session, which came after `since` messages, goes
    /// on the session's stream, because that has the session's messages.
    pub(super) fn has_history(&mut self, session: &str, since: u64) -> bool {
        let Some(stream) = self.all.get_mut(session) else {
            return false;
        };
        if std::mem::take(&mut stream.entering) {
            return false;
        }
        // A client that reconnects is sent again what it missed.
        let last = stream.queue.written().next_back();
        let has_missed = last.is_some_and(|last| last.order >= since);
        stream.holder.is_some() || stream.queue.has_unwritten() || has_missed
    }

    /// Puts a message on the stream of a session. `frees` is an id that it frees when it is sent.
    pub(super) fn push(&mut self, session: &str, frame: Frame, frees: Option<IdBuf>) {
        let own = self.stream_of(session);
        let carried = own.redirected || own.entering;
        let event = StoredFrame {
            frame,
            order: self.pushed,
            frees,
        };
        self.pushed += 1;
        self.waiting += event.size();
        let stream = self.stream_of(if carried { CONNECTION } else { session });
        stream.queue.append(event);
        stream.wake();
        stream.update_unread();
    }

    /// Opens the stream of a session.
    pub(super) fn open(
        &mut self,
        session: &str,
        how: Opening,
        limits: &Limits,
    ) -> Result<Lease, Refusal> {
        let is_open = |stream: &Stream| stream.holder.is_some();
        if self.known(session).is_none() && !self.all.get(session).is_some_and(is_open) {
            let streams = self.all.values();
            let unknown = streams.filter(|stream| !stream.known && is_open(stream));
            if unknown.count() >= limits.http_unknown_sessions {
                let why = "too many streams are open for sessions that are not known";
                let refusal = Refusal::new(StatusCode::NOT_FOUND, why);
                return Err(refusal.counted_as(RejectReason::Limit));
            }
        }
        let lease = self.next_lease;
        let stream = self.stream_of(session);
        if is_open(stream) && how == Opening::Fresh {
            let why = "this stream is open already; Last-Event-ID takes it over";
            return Err(Refusal::new(StatusCode::CONFLICT, why));
        }
        let again = match how {
            Opening::After(of, _) if of != stream.number => None,
            Opening::After(_, last) => stream.queue.rewind_to(last.saturating_add(1)),
            Opening::Restart => stream.queue.rewind_to(1),
            Opening::Fresh | Opening::Takeover => Some(0),
        };
        let again = again.ok_or_else(Refusal::forgotten)?;
        stream.wake();
        stream.holder = Some(lease);
        stream.opened = true;
        stream.redirected = false;
        stream.unread_since = None;
        let number = stream.number;
        self.kept -= again;
        self.waiting += again;
        self.next_lease += 1;
        Ok(Lease {
            session: session.into(),
            stream: number,
            number: lease,
        })
    }

    /// Passes queued messages to the holder of `lease`, each with its number and the id that it
    /// frees, until `give` returns false: whether the stream goes on. It ends when no more will
    /// come, and when it was taken over.
    pub(super) fn poll_take(
        &mut self,
        lease: &Lease,
        cx: &Context<'_>,
        mut give: impl FnMut(u64, &Frame, Option<&IdBuf>) -> bool,
    ) -> Poll<bool> {
        let Some(stream) = held(&mut self.all, lease) else {
            return Poll::Ready(false);
        };
        if !stream.queue.has_unwritten() {
            if self.ended {
                return Poll::Ready(false);
            }
            stream.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.taken_at = Instant::now();
        let mut more = true;
        while more && let Some((number, event)) = stream.queue.next_ref(u64::MAX) {
            more = give(number, &event.frame, event.frees.as_ref());
            self.waiting -= event.size();
            self.kept += event.size();
            if self.max_kept == 0 || stream.queue.written().len() > MAX_KEPT {
                self.kept -= stream.queue.drop_oldest().unwrap_or(0);
            }
        }
        // The oldest of all streams first.
        let oldest = |one: &&mut Stream| one.queue.written().next().map_or(u64::MAX, |e| e.order);
        while self.kept > self.max_kept
            && let Some(stream) = self.all.values_mut().min_by_key(oldest)
            && let Some(size) = stream.queue.drop_oldest()
        {
            self.kept -= size;
        }
        Poll::Ready(true)
    }

    /// The number of the last message sent to the holder of `lease`, or its predecessor; `None`
    /// when the stream was taken over.
    pub(super) fn last_sent(&mut self, lease: &Lease) -> Option<u64> {
        held(&mut self.all, lease).map(|stream| stream.queue.position() - 1)
    }

    /// The holder of `lease` was dropped.
    pub(super) fn release(&mut self, lease: &Lease) {
        if let Some(stream) = held(&mut self.all, lease) {
            stream.holder = None;
            stream.update_unread();
        }
    }

    /// Moves messages that no stream of their own takes to the connection's stream, if that is
    /// open.
    pub(super) fn redirect(&mut self, limits: &Limits, now: Instant) {
        if self.stream_of(CONNECTION).holder.is_none() {
            return;
        }
        let mut moved = Vec::new();
        for stream in self.all.values_mut() {
            let limit = match stream.opened {
                true => limits.http_grace,
                false => limits.http_stream_open,
            };
            if stream.unread_since.is_some_and(|at| now - at >= limit) {
                moved.extend(stream.queue.take_unwritten());
                stream.unread_since = None;
                stream.redirected = true;
            }
        }
        if !moved.is_empty() {
            // In the order in which the client would have received them on one stream.
            let own = self.stream_of(CONNECTION);
            moved.extend(own.queue.take_unwritten());
            moved.sort_by_key(|event| event.order);
            moved.into_iter().for_each(|event| own.queue.append(event));
            own.wake();
        }
    }

    /// No more messages will follow.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.all.values_mut().for_each(Stream::wake);
    }

    /// Drops all messages and holders.
    pub(super) fn drop_all(&mut self) {
        self.end();
        self.all.clear();
        (self.waiting, self.kept) = (0, 0);
    }

    /// The stream of a session, made if there is none.
    fn stream_of(&mut self, session: &str) -> &mut Stream {
        if !self.all.contains_key(session) {
            if self.all.len() >= MAX_STREAMS {
                self.remove_unused();
            }
            let stream = Stream {
                number: self.next_stream,
                ..Stream::default()
            };
            self.next_stream += 1;
            self.all.insert(session.into(), stream);
        }
        self.all.get_mut(session).expect("it was made")
    }

    fn remove_unused(&mut self) {
        let all = self.all.iter().filter(|(session, stream)| {
            ***session != *CONNECTION && stream.holder.is_none() && !stream.queue.has_unwritten()
        });
        let found = all.min_by_key(|(_, stream)| stream.known);
        if let Some(session) = found.map(|(session, _)| session.clone())
            && let Some(stream) = self.all.remove(&session)
        {
            self.kept -= stream.queue.bytes();
        }
    }
}

impl Stream {
    /// Records since when messages wait without a holder.
    fn update_unread(&mut self) {
        if self.holder.is_none() && self.queue.has_unwritten() {
            self.unread_since.get_or_insert_with(Instant::now);
        }
    }

    /// Wakes the holder, which is about to change or has something to take.
    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Size for StoredFrame {
    fn size(&self) -> usize {
        self.frame.weight()
    }
}

/// The stream that the holder of a lease has open.
fn held<'a>(all: &'a mut HashMap<Arc<str>, Stream>, lease: &Lease) -> Option<&'a mut Stream> {
    let stream = all.get_mut(&lease.session);
    stream.filter(|stream| stream.holder == Some(lease.number))
}
