//! The clients that gateways have authenticated and that have something on this host: whose
//! credentials are not valid any more is for the gateways to say.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::ticket::{Claims, Guest};
use auth::Principal;

/// Most clients in an answer, which has to fit a message of the servers.
pub(super) const PAGE: usize = 1024;

/// The clients, each until the last of its links has ended.
#[derive(Debug, Default)]
pub(super) struct Guests(Mutex<HashMap<Guest, Known>>);

#[derive(Debug)]
struct Known {
    withdrawn: Weak<CancellationToken>,
    /// The public keys of the gateways that have vouched for it: each of them may withdraw that.
    signers: BTreeSet<String>,
}

impl Guests {
    /// The principal of an accepted ticket.
    pub(super) fn admit(&self, claims: &Claims) -> Principal {
        let mut known = self.0.lock();
        known.retain(|_, known| known.withdrawn.strong_count() > 0);
        let known = known.entry(claims.guest.clone()).or_insert_with(|| Known {
            withdrawn: Weak::new(),
            signers: BTreeSet::new(),
        });
        let withdrawn = known.withdrawn.upgrade().unwrap_or_default();
        known.withdrawn = Arc::downgrade(&withdrawn);
        known.signers.insert(claims.signer.clone());
        claims.guest.principal(Some(withdrawn))
    }

    /// Those of a gateway, without the first ones.
    pub(super) fn of(&self, signer: &str, skip: usize) -> Vec<Guest> {
        let known = self.0.lock();
        let own = known.iter().filter(|(_, known)| {
            known.signers.contains(signer) && known.withdrawn.strong_count() > 0
        });
        let own = own.map(|(guest, _)| guest.clone());
        own.skip(skip).take(PAGE).collect()
    }

    /// A gateway says that the credentials of a client are not valid any more.
    pub(super) fn withdraw(&self, claims: &Claims) {
        let mut known = self.0.lock();
        let is_own = |known: &Known| known.signers.contains(&claims.signer);
        // One that is admitted again has other credentials.
        if known.get(&claims.guest).is_some_and(is_own)
            && let Some(known) = known.remove(&claims.guest)
            && let Some(withdrawn) = known.withdrawn.upgrade()
        {
            withdrawn.cancel();
        }
    }
}
