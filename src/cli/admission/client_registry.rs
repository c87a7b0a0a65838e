//! How many clients of each principal are connected, and how many connected recently.
//!
//! The relay's own user is not counted, because `Limits::connections` suffices, nor are anonymous
//! clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::auth::{AuthMethod, Principal};
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::{self, Reason};

const MINUTE: Duration = Duration::from_secs(60);

/// Identifies a principal.
type Name = (AuthMethod, Arc<str>);

/// The connected clients, by principal.
#[derive(Debug)]
pub(super) struct ClientRegistry {
    limits: Arc<Limits>,
    counts: Mutex<HashMap<Name, Count>>,
}

/// The counts of one principal.
#[derive(Debug)]
struct Count {
    connected: usize,
    /// When the recent connections no longer count.
    until: Instant,
}

/// A connected client, until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Permit(Option<(Arc<ClientRegistry>, Name)>);

impl ClientRegistry {
    pub(super) fn new(limits: &Arc<Limits>) -> Arc<Self> {
        Arc::new(Self {
            limits: Arc::clone(limits),
            counts: Mutex::default(),
        })
    }

    /// Counts a client, or returns why it exceeds a limit.
    pub(super) fn admit(
        self: &Arc<Self>,
        principal: Option<&Arc<Principal>>,
    ) -> Result<Permit, Reason> {
        let counted = |principal: &&Arc<Principal>| {
            matches!(
                principal.auth_method,
                AuthMethod::Token | AuthMethod::Certificate
            )
        };
        match principal.filter(counted) {
            None => Ok(Permit(None)),
            Some(principal) => self.count(principal),
        }
    }

    fn count(self: &Arc<Self>, principal: &Principal) -> Result<Permit, Reason> {
        let now = Instant::now();
        let name = (principal.auth_method, Arc::clone(&principal.name));
        let mut counts = self.counts.lock();
        counts.retain(|_, count| count.connected > 0 || count.until > now);
        let count = counts.entry(name.clone()).or_insert(Count {
            connected: 0,
            until: now,
        });
        if count.connected >= self.limits.per_principal {
            return Err(limit_reached(format!(
                "{} of {principal} are connected already",
                count.connected
            )));
        }
        let each = MINUTE / u32::try_from(self.limits.agent_starts).unwrap_or(u32::MAX);
        let until = count.until.max(now) + each;
        if until - now > MINUTE {
            let wait = (until - now - MINUTE).as_secs() + 1;
            return Err(limit_reached(format!(
                "too many agents were started for {principal}; wait {wait} s"
            )));
        }
        count.until = until;
        count.connected += 1;
        Ok(Permit(Some((Arc::clone(self), name))))
    }
}

fn limit_reached(message: String) -> Reason {
    Reason::new(reply::OVERLOADED, message).retryable()
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((registry, name)) = &self.0
            && let Some(count) = registry.counts.lock().get_mut(name)
        {
            count.connected -= 1;
        }
    }
}
