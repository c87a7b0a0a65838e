//! The conversations of a listener whose clients may reconnect.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::berth::Berth;
use super::line::{self, Shared};
use crate::jsonrpc::{Frame, Limits};
use crate::observe::metrics::{Come, Ledger, Moored, Moorings};
use crate::transport::{Link, Peer};

/// All conversations of a listener whose clients may reconnect.
#[derive(Debug)]
pub struct Harbour {
    pub(super) limits: Arc<Limits>,
    berths: Mutex<Vec<Weak<Mutex<Berth>>>>,
    /// Counts connecting clients, if metrics are on.
    ledger: OnceLock<Arc<Ledger>>,
}

impl Harbour {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            berths: Mutex::default(),
            ledger: OnceLock::new(),
        }
    }

    /// Sets the metrics for connecting and disconnected clients. The first one stays.
    pub fn be_watched(self: &Arc<Self>, ledger: &Arc<Ledger>) {
        if self.ledger.set(Arc::clone(ledger)).is_ok() {
            let own: Weak<dyn Moorings> = Arc::downgrade(self) as _;
            ledger.watch(own);
        }
    }

    /// Counts a client that has connected.
    pub(super) fn came(&self, how: Come) {
        if let Some(ledger) = self.ledger.get() {
            ledger.came(how);
        }
    }

    /// Adds a conversation that begins with `client`, and returns a link for it that outlives the
    /// client's.
    #[must_use]
    pub fn moor(&self, client: Link) -> Link {
        let peer = client.peer.clone();
        let berth = Arc::new(Mutex::new(Berth::new(client, Arc::clone(&self.limits))));
        let mut berths = self.berths.lock();
        berths.retain(|berth| berth.strong_count() > 0);
        berths.push(Arc::downgrade(&berth));
        line::link(&berth, peer)
    }

    /// An answer to `initialize` of one of this peer's agents that is also valid for `params`.
    pub(super) fn answer(&self, peer: &Peer, params: &[u8]) -> Option<Frame> {
        let all = self.all();
        all.iter().find_map(|berth| {
            let berth = berth.lock();
            let own = berth.is_of(peer).then(|| berth.opening().answer_to(params));
            own.flatten().cloned()
        })
    }

    /// The conversation of `peer` that keeps `session`, if `params` has all the capabilities that
    /// its agent was told of.
    pub(super) fn find(&self, peer: &Peer, session: &str, params: &[u8]) -> Option<Shared> {
        self.all().into_iter().find(|berth| {
            let berth = berth.lock();
            berth.is_of(peer) && berth.keeps(session) && berth.opening().answer_to(params).is_some()
        })
    }

    /// Whether no conversation waits for a client.
    pub(super) fn is_empty(&self) -> bool {
        let berths = self.berths.lock();
        berths.iter().all(|berth| berth.strong_count() == 0)
    }

    fn all(&self) -> Vec<Shared> {
        let berths = self.berths.lock();
        berths.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Moorings for Harbour {
    fn moored(&self) -> Moored {
        let all = self.all();
        let mut moored = Moored {
            room: all.len() * self.limits.kept_for_return,
            ..Moored::default()
        };
        for berth in all {
            let (is_away, kept) = berth.lock().standing();
            moored.away += usize::from(is_away);
            moored.kept += kept;
        }
        moored
    }
}
