//! How many clients of each principal are connected, and how many connected recently.
//!
//! The relay's own user is not counted, for whom `Limits::connections` suffices, nor are anonymous
//! clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::auth::{Means, Principal};
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::{self, Reason};

const MINUTE: Duration = Duration::from_secs(60);

/// Identifies a principal.
type Name = (Means, Arc<str>);

/// The connected clients, by principal.
#[derive(Debug)]
pub(super) struct Guests {
    limits: Arc<Limits>,
    counts: Mutex<HashMap<Name, Count>>,
}

/// The counts of one principal.
#[derive(Debug)]
struct Count {
    here: usize,
    /// When the recent connections no longer count.
    until: Instant,
}

/// A connected client, until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Stay(Option<(Arc<Guests>, Name)>);

impl Guests {
    pub(super) fn new(limits: &Arc<Limits>) -> Arc<Self> {
        Arc::new(Self {
            limits: Arc::clone(limits),
            counts: Mutex::default(),
        })
    }

    /// Counts a client, or returns why it exceeds a limit.
    pub(super) fn enter(self: &Arc<Self>, who: Option<&Arc<Principal>>) -> Result<Stay, Reason> {
        let counted =
            |who: &&Arc<Principal>| matches!(who.means, Means::Token | Means::Certificate);
        match who.filter(counted) {
            None => Ok(Stay(None)),
            Some(who) => self.count(who, Instant::now()),
        }
    }

    fn count(self: &Arc<Self>, who: &Principal, now: Instant) -> Result<Stay, Reason> {
        let name = (who.means, Arc::clone(&who.name));
        let mut counts = self.counts();
        counts.retain(|_, count| count.here > 0 || count.until > now);
        let count = counts.entry(name.clone()).or_insert(Count {
            here: 0,
            until: now,
        });
        if count.here >= self.limits.of_principal {
            return Err(full(format!(
                "{} of {who} are connected already",
                count.here
            )));
        }
        let each = MINUTE / u32::try_from(self.limits.spawns).unwrap_or(u32::MAX);
        let until = count.until.max(now) + each;
        if until - now > MINUTE {
            let wait = (until - now - MINUTE).as_secs() + 1;
            return Err(full(format!(
                "too many agents were started for {who}; wait {wait} s"
            )));
        }
        count.until = until;
        count.here += 1;
        Ok(Stay(Some((Arc::clone(self), name))))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Name, Count>> {
        self.counts.lock()
    }
}

fn full(message: String) -> Reason {
    Reason::new(reply::OVERLOADED, message).retryable()
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some((guests, name)) = &self.0
            && let Some(count) = guests.counts().get_mut(name)
        {
            count.here -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Grant;

    fn who(name: &str, means: Means) -> Arc<Principal> {
        Arc::new(Principal {
            name: Arc::from(name),
            means,
            grant: Grant::everything(false),
            key: None,
            expires: None,
        })
    }

    #[test]
    fn a_principal_has_so_many_at_a_time_and_so_many_a_minute() {
        let limits = Limits {
            of_principal: 2,
            spawns: 3,
            ..Limits::default()
        };
        let guests = Guests::new(&Arc::new(limits));
        let (alice, start) = (who("alice", Means::Token), Instant::now());
        let first = guests.count(&alice, start).expect("the first");
        let _second = guests.count(&alice, start).expect("the second");
        let full = guests.count(&alice, start).expect_err("full");
        assert!(full.message.contains("token alice"), "{}", full.message);
        drop(first);
        let third = guests.count(&alice, start).expect("the third");
        drop(third);
        assert!(
            guests.count(&alice, start).is_err(),
            "the fourth in a minute"
        );
        let other = who("alice", Means::Certificate);
        assert!(guests.count(&other, start).is_ok());
        assert!(guests.count(&alice, start + MINUTE / 3).is_ok());
    }

    #[test]
    fn the_user_is_not_counted() {
        let guests = Guests::new(&Arc::new(Limits::default()));
        let me = who("me", Means::User);
        let all: Vec<_> = (0..500).map(|_| guests.enter(Some(&me))).collect();
        assert!(all.iter().all(Result::is_ok));
        assert!(guests.counts().is_empty());
    }
}
