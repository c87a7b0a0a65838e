//! One conversation's client, connected or not: messages reach it now or when it reconnects.
//!
//! `messages` interprets what passes, `link` is the conversation's side of it, and `store` finds it
//! for a client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::history::History;
use super::ids::RequestIds;
use super::initialize::InitializeExchange;
use auth::Principal;
use conversation::{Note, wants_status};
use jsonrpc::framing::Decoded;
use jsonrpc::reply::{self, Delivered, Reason};
use jsonrpc::{
    CloseReason, Frame, IdBuf, Kind, Limits, PendingRequests, Scanned, Scanner, Side, scan,
};
use link::ReplayBuffer;
use observe::metrics::Metrics;
use transport::{Link, LinkError, Peer, Presence, PresenceCallback};

/// Time for closing the link of a client that reconnected over another one.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// One conversation's client, connected or not.
pub(super) struct DetachedConversation {
    pub(super) limits: Arc<Limits>,
    /// For messages to the client.
    pub(super) scanner: Scanner,
    /// The principal that began the conversation, and alone may reconnect to it.
    owner: Option<Arc<Principal>>,
    pub(super) client: Option<Link>,
    /// How many times a client has reconnected.
    pub(super) connection: u32,
    /// Since when no client is connected.
    away_since: Option<Instant>,
    /// No client is expected any more.
    over: bool,
    /// A client whose process was killed is expected back.
    keeps_killed: bool,
    /// The client's `initialize`, and the agent's answer.
    pub(super) initialize: InitializeExchange,
    pub(super) ids: RequestIds,
    /// The agent's open requests to the client.
    pub(super) agent_requests: PendingRequests<AgentRequest>,
    pub(super) history: History,
    /// Messages to the client that belong to no session, kept while it is disconnected.
    missed: ReplayBuffer,
    /// What is sent to the client before anything else.
    pub(super) urgent: VecDeque<Frame>,
    /// What was received from the client and not handled yet.
    received: VecDeque<Decoded>,
    /// The request that the client was answered before the conversation began: its agent's answer
    /// is not sent as well.
    pub(super) answered: Option<IdBuf>,
    /// The client has asked for notices of the relay.
    pub(super) wants_status: bool,
    waker: Option<Waker>,
    metrics: Option<Arc<Metrics>>,
    /// Called when the client disconnects and reconnects.
    watch: Option<Watch>,
}

type Watch = Arc<dyn Fn(Presence<'_>) + Send + Sync>;

/// What a client has sent, and was answered, before its conversation began.
#[derive(Default)]
pub(super) struct ReadAhead {
    pub(super) frames: VecDeque<Decoded>,
    pub(super) answered: Option<IdBuf>,
}

/// A request of the agent to the client. One from a connection that broke is sent again on the
/// next, with the same id: as far as is known no user has seen it.
#[derive(Debug)]
pub(super) struct AgentRequest {
    pub(super) session: Option<String>,
    pub(super) frame: Frame,
    /// It was sent on this connection.
    pub(super) is_sent: bool,
}

impl DetachedConversation {
    pub(super) fn new(
        client: Link,
        read: ReadAhead,
        limits: Arc<Limits>,
        keeps_killed: bool,
        metrics: Option<Arc<Metrics>>,
    ) -> Self {
        Self {
            scanner: Scanner::new(Arc::clone(&limits)),
            agent_requests: PendingRequests::new(limits.in_flight),
            limits,
            owner: client.peer.principal.clone(),
            client: Some(client),
            connection: 0,
            away_since: None,
            over: false,
            keeps_killed,
            initialize: InitializeExchange::default(),
            ids: RequestIds::default(),
            history: History::default(),
            missed: ReplayBuffer::default(),
            urgent: VecDeque::new(),
            received: read.frames,
            answered: read.answered,
            wants_status: false,
            waker: None,
            metrics,
            watch: None,
        }
    }

    /// Sets the callback for when the client disconnects and reconnects.
    pub(super) fn set_watch(&mut self, watch: PresenceCallback) {
        // Called by one link at a time, but shared by those of all connections.
        let watch = Mutex::new(watch);
        self.watch = Some(Arc::new(move |presence: Presence<'_>| {
            watch.lock()(presence)
        }));
        self.watch_client();
    }

    /// Has the client's link report its connections, if it outlives them.
    fn watch_client(&mut self) {
        if let (Some(client), Some(watch)) = (&mut self.client, self.watch.clone()) {
            client
                .guard
                .watch_presence(Box::new(move |presence| watch(presence)));
        }
    }

    /// Whether the conversation belongs to that client.
    pub(super) fn belongs_to(&self, peer: &Peer) -> bool {
        match (&self.owner, &peer.principal) {
            (Some(owner), Some(principal)) => principal.finds(owner),
            (owner, principal) => owner.is_none() && principal.is_none(),
        }
    }

    /// Whether a client can reconnect to this session.
    pub(super) fn has_session(&self, session: &str) -> bool {
        !self.over && self.history.has(session)
    }

    /// Whether it waits for a disconnected client, and how many bytes are kept.
    pub(super) fn status(&self) -> (bool, usize) {
        (self.away_since.is_some() && !self.over, self.kept_bytes())
    }

    /// Takes a client that has reconnected; `initialize` are the parameters of that, and `request`
    /// is the one that names its session. The link of an earlier client, if any, is closed.
    ///
    /// # Errors
    /// When the conversation has just ended.
    pub(super) fn attach(
        &mut self,
        client: Link,
        initialize: &[u8],
        request: Frame,
    ) -> Result<(), Box<Link>> {
        if self.over {
            return Err(Box::new(client));
        }
        let from = &client.peer.name;
        tracing::info!(from, "the client has reconnected");
        if let Some(watch) = &self.watch {
            watch(Presence::Restored(from));
        }
        let was_away = self.is_away();
        if let Some(old) = self.client.replace(client) {
            if was_away {
                // What waits in its link is lost with that.
                self.history.resend_all();
            }
            drop(tokio::spawn(close_replaced(old)));
        }
        self.watch_client();
        self.connection += 1;
        self.wants_status = wants_status(initialize);
        self.away_since = None;
        self.history.reset_connection();
        for request in self.agent_requests.values_mut() {
            request.is_sent = false;
        }
        self.urgent.clear();
        self.received.clear();
        self.received.push_back(Decoded::Frame(request));
        self.queue_agent_requests(None);
        self.urgent.extend(self.missed.take_unwritten());
        self.wake();
        Ok(())
    }

    /// The next item received from the client.
    pub(super) fn poll_received(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Decoded, LinkError>>> {
        loop {
            let _ = self.flush_urgent(cx);
            if let Some(received) = self.received.pop_front() {
                let passed = match received {
                    Decoded::Frame(frame) => self.receive(frame).map(Decoded::Frame),
                    error => Some(error),
                };
                match passed {
                    Some(passed) => return Poll::Ready(Some(Ok(passed))),
                    None => continue,
                }
            }
            let Some(client) = &mut self.client else {
                self.waker = Some(cx.waker().clone());
                return match self.over {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                };
            };
            match client.rx.poll_next(cx) {
                Poll::Pending => {
                    self.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(received))) => self.received.push_back(received),
                Poll::Ready(None) if client.rx.ended_cleanly() => {
                    self.over = true;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(LinkError::Killed))) if self.keeps_killed => {
                    self.detach_client("its process was killed");
                }
                Poll::Ready(None) => self.detach_client("ended its stream"),
                Poll::Ready(Some(Err(error @ LinkError::Io { .. }))) => {
                    self.detach_client(&error.to_string());
                }
                other => return other,
            }
        }
    }

    /// Why the client's link is over, though it is not being read.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.waker = Some(cx.waker().clone());
        match &mut self.client {
            Some(client) => client.rx.poll_lost(cx),
            None => Poll::Pending,
        }
    }

    /// Whether another message for the client can be accepted.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.flush_urgent(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(client) = &mut self.client {
            match client.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(()),
                Poll::Ready(Err(error)) => self.fail(&error, cx),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.over || self.kept_bytes() < self.limits.reconnect_bytes {
            return Poll::Ready(());
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.flush_urgent(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(client) = &mut self.client {
            match client.tx.poll_flush(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(&error, cx),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> Poll<()> {
        self.over = true;
        let Some(client) = &mut self.client else {
            return Poll::Ready(());
        };
        client.tx.poll_close(cx, why).map(|_| ())
    }

    /// The conversation no longer needs a client.
    pub(super) const fn close(&mut self) {
        self.over = true;
    }

    /// Sends a message to the client, or keeps it for the next one.
    pub(super) fn deliver(&mut self, frame: Frame) {
        if !self.urgent.is_empty() {
            self.urgent.push_back(frame);
        } else if self.client.is_none() {
            self.missed.append(frame);
        } else {
            self.send_now(frame);
        }
    }

    /// Sends a message to the client that is there. In place of one that is too long for it, there
    /// is the error for a request or an answer.
    fn send_now(&mut self, frame: Frame) {
        let limit = self.longest();
        let frame = match frame.len() > limit {
            true => self.refuse_too_long(&frame, limit),
            false => Some(frame),
        };
        if let (Some(client), Some(frame)) = (&mut self.client, frame)
            && let Err(error) = client.tx.start_send(frame)
        {
            self.detach_client(&error.to_string());
        }
    }

    fn refuse_too_long(&mut self, frame: &Frame, limit: usize) -> Option<Frame> {
        let (to, bytes) = (Side::Client, frame.len());
        let note = Note::TooLong { to, bytes, limit };
        tracing::warn!("{note}");
        if let Some(metrics) = &self.metrics {
            metrics.kept_too_long(&note);
        }
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            return None;
        };
        let reason = Reason::too_long(to, bytes, limit);
        let error = |delivered| reply::error(at.id(frame), &reason.delivered(delivered));
        if at.kind == Kind::Request {
            // An earlier client may have received it.
            self.received
                .push_back(Decoded::Frame(error(Delivered::Unknown)));
            self.wake();
            return None;
        }
        at.kind.is_answer().then(|| error(Delivered::Yes))
    }

    /// The longest message that the client takes; one that is away may take any.
    pub(super) fn longest(&self) -> usize {
        let client = self.client.as_ref();
        client.map_or(usize::MAX, |client| client.peer.longest)
    }

    /// Sends what comes before anything else.
    fn flush_urgent(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut moved = false;
        while let Some(client) = &mut self.client
            && !self.urgent.is_empty()
        {
            match client.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    self.fail(&error, cx);
                    break;
                }
                Poll::Pending => return Poll::Pending,
            }
            if let Some(frame) = self.urgent.pop_front() {
                self.send_now(frame);
            }
            moved = true;
        }
        if moved
            && let Some(client) = &mut self.client
            && let Poll::Ready(Err(error)) = client.tx.poll_flush(cx)
        {
            self.fail(&error, cx);
        }
        Poll::Ready(())
    }

    /// The client can be sent nothing any more. It may have left on purpose.
    fn fail(&mut self, error: &LinkError, cx: &mut Context<'_>) {
        while let Some(client) = &mut self.client {
            match client.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(received))) => self.received.push_back(received),
                Poll::Ready(None) if client.rx.ended_cleanly() => {
                    self.over = true;
                    self.client = None;
                }
                Poll::Ready(Some(Err(LinkError::Killed))) if !self.keeps_killed => {
                    self.over = true;
                    self.client = None;
                }
                _ => break,
            }
        }
        self.detach_client(&error.to_string());
    }

    /// The client's link has ended or failed.
    fn detach_client(&mut self, how: &str) {
        if self.client.take().is_none() {
            return;
        }
        if !self.urgent.is_empty() {
            self.urgent.clear();
            self.history.resend_all();
        }
        // Without a session, no client could ask for it.
        self.over |= self.history.is_empty();
        tracing::info!(how, "the client has disconnected");
        if let Some(watch) = &self.watch {
            watch(Presence::Lost(how));
        }
        self.away_since = Some(Instant::now());
        self.wake();
    }

    /// Whether the client is lost, and its link waits for it.
    pub(super) fn is_away(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.guard.away().is_some())
    }

    /// Since when no client is connected, also over a link that outlives connections, and the bytes
    /// that wait for it.
    pub(super) fn away(&self) -> Option<(Instant, usize)> {
        match &self.client {
            Some(client) => client.guard.away(),
            None => Some((self.away_since?, self.kept_bytes())),
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Queues the agent's requests of a session that are still to be sent on this connection.
    pub(super) fn queue_agent_requests(&mut self, session: Option<&str>) {
        for request in self.agent_requests.values_mut() {
            if !request.is_sent && request.session.as_deref() == session {
                request.is_sent = true;
                self.urgent.push_back(request.frame.clone());
            }
        }
    }

    fn kept_bytes(&self) -> usize {
        let requests = self.agent_requests.iter();
        let requests: usize = requests.map(|(_, request)| request.frame.weight()).sum();
        self.history.bytes() + requests + self.missed.bytes()
    }
}

/// Closes the link of a client that reconnected over another one.
async fn close_replaced(mut old: Link) {
    // A link that is not closed in time is dropped.
    let _ = timeout(CLOSE_TIMEOUT, old.close(CloseReason::Replaced)).await;
}
