//! How many clients of each principal are connected, and how many connected recently.
//!
//! The relay's own user is not counted, because `Limits::connections` suffices, nor are anonymous
//! clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::{AuthMethod, Principal, RateLimit};
use jsonrpc::Limits;
use jsonrpc::reply::{self, Reason};
use panics::SharedMutex;

const MINUTE: Duration = Duration::from_secs(60);

/// Identifies a principal.
type Name = (AuthMethod, Arc<str>);

/// The connected clients, by principal.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientRegistry(Arc<SharedMutex<HashMap<Name, Count>>>);

/// The counts of one principal.
#[derive(Debug)]
struct Count {
    connected: usize,
    starts: RateLimit,
}

/// A connected client, until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Permit(Option<(ClientRegistry, Name)>);

impl ClientRegistry {
    /// Counts a client, or returns why it exceeds a limit.
    pub(super) fn admit(
        &self,
        principal: Option<&Arc<Principal>>,
        limits: &Limits,
    ) -> Result<Permit, Reason> {
        let counted = [AuthMethod::Token, AuthMethod::Certificate];
        let Some(principal) = principal.filter(|one| counted.contains(&one.auth_method)) else {
            return Ok(Permit(None));
        };
        let reached = |message| Err(Reason::new(reply::OVERLOADED, message).retryable());
        let now = Instant::now();
        let name = (principal.auth_method, Arc::clone(&principal.name));
        let mut counts = self.0.lock();
        counts.retain(|_, count| count.connected > 0 || !count.starts.is_idle(now));
        let count = counts.entry(name.clone()).or_insert_with(|| Count {
            connected: 0,
            starts: RateLimit::per(MINUTE, limits.agent_starts),
        });
        let connected = count.connected;
        if connected >= limits.per_principal {
            return reached(format!("{connected} of {principal} are connected already"));
        }
        if let Err(wait) = count.starts.acquire(now) {
            let wait = wait.as_secs() + 1;
            return reached(format!(
                "too many agents were started for {principal}; wait {wait} s"
            ));
        }
        count.connected += 1;
        Ok(Permit(Some((self.clone(), name))))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((registry, name)) = &self.0
            && let Some(count) = registry.0.lock().get_mut(name)
        {
            count.connected -= 1;
        }
    }
}
