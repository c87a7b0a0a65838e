//! Where conversations wait for their clients.
//!
//! Not here: what is kept of them (see `berth`), and how a newcomer is met (see `reception`).

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::berth::Berth;
use super::line::{self, Shared};
use crate::jsonrpc::{Frame, Limits};
use crate::observe::metrics::{Come, DetachedSource, DetachedStats, Metrics};
use crate::transport::{Link, Peer};

/// All conversations of a listener whose clients may come back.
#[derive(Debug)]
pub struct Harbour {
    pub(super) limits: Arc<Limits>,
    berths: Mutex<Vec<Weak<Mutex<Berth>>>>,
    /// Where is counted who comes, if anybody counts.
    metrics: OnceLock<Arc<Metrics>>,
}

impl Harbour {
    /// An empty harbour.
    #[must_use]
    pub fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            berths: Mutex::default(),
            metrics: OnceLock::new(),
        }
    }

    /// Has those who come counted in `metrics`, and those who wait shown by it. The first one stays.
    pub fn be_watched(self: &Arc<Self>, metrics: &Arc<Metrics>) {
        if self.metrics.set(Arc::clone(metrics)).is_ok() {
            let own: Weak<dyn DetachedSource> = Arc::downgrade(self) as _;
            metrics.add_detached(own);
        }
    }

    /// A client has come.
    pub(super) fn came(&self, how: Come) {
        if let Some(metrics) = self.metrics.get() {
            metrics.attached(how);
        }
    }

    /// Gives a conversation that begins with `client` a link that outlives the client's.
    #[must_use]
    pub fn moor(&self, client: Link) -> Link {
        let peer = client.peer.clone();
        let berth = Arc::new(Mutex::new(Berth::new(client, Arc::clone(&self.limits))));
        let mut berths = self.berths.lock();
        berths.retain(|berth| berth.strong_count() > 0);
        berths.push(Arc::downgrade(&berth));
        line::link(&berth, peer)
    }

    /// What the agents of `peer` here have answered to an `initialize` that `params` may take for
    /// its own.
    pub(super) fn answer(&self, peer: &Peer, params: &[u8]) -> Option<Frame> {
        let all = self.all();
        all.iter().find_map(|berth| {
            let berth = berth.lock();
            let own = berth.is_of(peer).then(|| berth.opening().answer_to(params));
            own.flatten().cloned()
        })
    }

    /// The conversation of `peer` that keeps `session`, if the agent was promised no more than
    /// `params` does.
    pub(super) fn find(&self, peer: &Peer, session: &str, params: &[u8]) -> Option<Shared> {
        self.all().into_iter().find(|berth| {
            let berth = berth.lock();
            berth.is_of(peer) && berth.keeps(session) && berth.opening().answer_to(params).is_some()
        })
    }

    /// Whether nobody is waited for.
    pub(super) fn is_empty(&self) -> bool {
        let berths = self.berths.lock();
        berths.iter().all(|berth| berth.strong_count() == 0)
    }

    fn all(&self) -> Vec<Shared> {
        let berths = self.berths.lock();
        berths.iter().filter_map(Weak::upgrade).collect()
    }
}

impl DetachedSource for Harbour {
    fn detached(&self) -> DetachedStats {
        let all = self.all();
        let mut detached = DetachedStats {
            room: all.len() * self.limits.kept_for_return,
            ..DetachedStats::default()
        };
        for berth in all {
            let (is_away, kept) = berth.lock().standing();
            detached.away += usize::from(is_away);
            detached.kept += kept;
        }
        detached
    }
}
