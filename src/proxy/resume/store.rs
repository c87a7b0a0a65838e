//! The conversations of a listener whose clients may reconnect, and which client belongs to which.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::detached::{DetachedConversation, ReadAhead};
use super::link::{self, Shared};
use ::link::{LinkSource, LinkTotals};
use jsonrpc::framing::Decoded;
use jsonrpc::{Envelope, Frame, Kind, Limits, Scanned, named_session, reply, scan};
use observe::metrics::Metrics;
use panics::SharedMutex;
use transport::{Link, Peer};

/// All conversations of a listener whose clients may reconnect.
#[derive(Debug)]
pub struct ConversationStore {
    limits: Arc<Limits>,
    conversations: SharedMutex<Vec<Weak<Mutex<DetachedConversation>>>>,
    /// Counts connecting clients, if metrics are on.
    metrics: OnceLock<Arc<Metrics>>,
    ends_killed: bool,
}

impl ConversationStore {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            conversations: SharedMutex::default(),
            metrics: OnceLock::new(),
            ends_killed: false,
        }
    }

    /// Ends the conversation of a client whose process was killed; only connections that break are
    /// waited for.
    #[must_use]
    pub const fn ending_killed(mut self) -> Self {
        self.ends_killed = true;
        self
    }

    /// Sets the metrics for connecting and disconnected clients. The first one stays.
    pub fn set_metrics(self: &Arc<Self>, metrics: &Arc<Metrics>) {
        if self.metrics.set(Arc::clone(metrics)).is_ok() {
            let own: Weak<dyn LinkSource> = Arc::downgrade(self) as _;
            metrics.add_detached(own);
        }
    }

    /// Attaches a client that has connected to its conversation. A client without one begins a
    /// conversation, whose link is returned; it outlives the client's. Where no conversation waits,
    /// nothing is read from the client.
    pub async fn attach(&self, mut client: Link) -> Option<Link> {
        let mut read = ReadAhead::default();
        let conversation = self.conversation_of(&mut client, &mut read).await;
        let new = match conversation {
            Some((conversation, params, wanted)) => conversation
                .lock()
                .attach(client, params.as_bytes(), wanted)
                .err()
                .map(|client| *client),
            None => Some(client),
        };
        if let Some(metrics) = self.metrics.get() {
            metrics.attached(new.is_none());
        }
        new.map(|client| self.add(client, read))
    }

    /// The conversation that a client asks for, the parameters of its `initialize`, and the request
    /// that names its session. What is read is also kept in `read`.
    async fn conversation_of(
        &self,
        client: &mut Link,
        read: &mut ReadAhead,
    ) -> Option<(Shared, Frame, Frame)> {
        if self.all().is_empty() {
            return None;
        }
        let (request, at) = self.next_request(client, &mut read.frames).await?;
        if at.method(&request) != "initialize" {
            return None;
        }
        let (id, params) = (at.id(&request), at.body(&request).unwrap_or_default());
        let result = self.initialize_answer(&client.peer, params)?;
        let answer = reply::answer(id, "result", result.as_bytes());
        client.send(answer).await.ok()?;
        read.answered = Some(id.to_owned());
        let (wanted, at) = self.next_request(client, &mut read.frames).await?;
        if !matches!(&*at.method(&wanted), "session/load" | "session/resume") {
            return None;
        }
        let session = named_session(&wanted, &at)?.into_owned();
        let is_wanted = |conversation: &Shared| {
            let conversation = conversation.lock();
            conversation.belongs_to(&client.peer)
                && conversation.has_session(&session)
                && conversation.initialize.answer_to(params).is_some()
        };
        let conversation = self.all().into_iter().find(is_wanted)?;
        Some((conversation, Frame::new(params.to_vec()), wanted))
    }

    /// The client's next message, if it is a request.
    async fn next_request(
        &self,
        client: &mut Link,
        read: &mut VecDeque<Decoded>,
    ) -> Option<(Frame, Envelope)> {
        // Later reads return an end or an error again.
        let decoded = client.receive().await?.ok()?;
        read.push_back(decoded.clone());
        match decoded {
            Decoded::Frame(frame) => match scan(&frame, &self.limits) {
                Scanned::Message(at) if at.kind == Kind::Request => Some((frame, at)),
                _ => None,
            },
            Decoded::Error(_) => None,
        }
    }

    fn add(&self, client: Link, read: ReadAhead) -> Link {
        let peer = client.peer.clone();
        let limits = Arc::clone(&self.limits);
        let metrics = self.metrics.get().cloned();
        let conversation =
            DetachedConversation::new(client, read, limits, !self.ends_killed, metrics);
        let conversation = Arc::new(Mutex::new(conversation));
        let mut conversations = self.conversations.lock();
        conversations.retain(|conversation| conversation.strong_count() > 0);
        conversations.push(Arc::downgrade(&conversation));
        link::link(&conversation, peer)
    }

    /// An answer to `initialize` of one of this peer's agents that is also valid for `params`.
    fn initialize_answer(&self, peer: &Peer, params: &[u8]) -> Option<Frame> {
        self.all().iter().find_map(|conversation| {
            let conversation = conversation.lock();
            let answer = conversation.initialize.answer_to(params);
            answer.filter(|_| conversation.belongs_to(peer)).cloned()
        })
    }

    fn all(&self) -> Vec<Shared> {
        let conversations = self.conversations.lock();
        conversations.iter().filter_map(Weak::upgrade).collect()
    }
}

impl LinkSource for ConversationStore {
    fn totals(&self) -> LinkTotals {
        let all = self.all();
        let mut detached = LinkTotals {
            room: all.len() * self.limits.reconnect_bytes,
            ..LinkTotals::default()
        };
        for conversation in all {
            let (is_away, bytes) = conversation.lock().status();
            detached.away += usize::from(is_away);
            detached.kept += bytes;
        }
        detached
    }
}
