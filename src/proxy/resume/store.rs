//! The conversations of a listener whose clients may reconnect.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::detached::DetachedConversation;
use super::link::{self, Shared};
use crate::jsonrpc::{Frame, Limits};
use crate::observe::metrics::{AttachKind, DetachedSource, DetachedStats, Metrics};
use crate::transport::{Link, Peer};

/// All conversations of a listener whose clients may reconnect.
#[derive(Debug)]
pub struct ConversationStore {
    pub(super) limits: Arc<Limits>,
    conversations: Mutex<Vec<Weak<Mutex<DetachedConversation>>>>,
    /// Counts connecting clients, if metrics are on.
    metrics: OnceLock<Arc<Metrics>>,
}

impl ConversationStore {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            conversations: Mutex::default(),
            metrics: OnceLock::new(),
        }
    }

    /// Sets the metrics for connecting and disconnected clients. The first one stays.
    pub fn set_metrics(self: &Arc<Self>, metrics: &Arc<Metrics>) {
        if self.metrics.set(Arc::clone(metrics)).is_ok() {
            let own: Weak<dyn DetachedSource> = Arc::downgrade(self) as _;
            metrics.add_detached(own);
        }
    }

    /// Counts a client that has connected.
    pub(super) fn count(&self, how: AttachKind) {
        if let Some(metrics) = self.metrics.get() {
            metrics.attached(how);
        }
    }

    /// Adds a conversation that begins with `client`, and returns a link for it that outlives the
    /// client's.
    #[must_use]
    pub fn add(&self, client: Link) -> Link {
        let peer = client.peer.clone();
        let conversation = Arc::new(Mutex::new(DetachedConversation::new(
            client,
            Arc::clone(&self.limits),
        )));
        let mut conversations = self.conversations.lock();
        conversations.retain(|conversation| conversation.strong_count() > 0);
        conversations.push(Arc::downgrade(&conversation));
        link::link(&conversation, peer)
    }

    /// An answer to `initialize` of one of this peer's agents that is also valid for `params`.
    pub(super) fn initialize_answer(&self, peer: &Peer, params: &[u8]) -> Option<Frame> {
        let all = self.all();
        all.iter().find_map(|conversation| {
            let conversation = conversation.lock();
            let own = conversation
                .belongs_to(peer)
                .then(|| conversation.initialize().answer_to(params));
            own.flatten().cloned()
        })
    }

    /// The conversation of `peer` that keeps `session`, if `params` has all the capabilities that
    /// its agent was sent.
    pub(super) fn find(&self, peer: &Peer, session: &str, params: &[u8]) -> Option<Shared> {
        self.all().into_iter().find(|conversation| {
            let conversation = conversation.lock();
            conversation.belongs_to(peer)
                && conversation.has_session(session)
                && conversation.initialize().answer_to(params).is_some()
        })
    }

    /// Whether no conversation waits for a client.
    pub(super) fn is_empty(&self) -> bool {
        let conversations = self.conversations.lock();
        conversations
            .iter()
            .all(|conversation| conversation.strong_count() == 0)
    }

    fn all(&self) -> Vec<Shared> {
        let conversations = self.conversations.lock();
        conversations.iter().filter_map(Weak::upgrade).collect()
    }
}

impl DetachedSource for ConversationStore {
    fn detached(&self) -> DetachedStats {
        let all = self.all();
        let mut detached = DetachedStats {
            room: all.len() * self.limits.reconnect_bytes,
            ..DetachedStats::default()
        };
        for conversation in all {
            let (is_away, bytes) = conversation.lock().status();
            detached.away += usize::from(is_away);
            detached.kept += bytes;
        }
        detached
    }
}
