//! The sessions of this host: its claims to them, and their leases.
//!
//! # Why
//!
//! **A session has one owner.** It is claimed before a request that enters it reaches an agent, and
//! the claim is renewed. A host that could not renew a claim stops the agent in time to be done when
//! the servers forget the claim, by its own clock and counted from before the renewal was sent. A host
//! that is stopped (SIGSTOP) cannot do that: then the watchdogs of its agents do, which know the time.
//!
//! **An entry on which a claim rests is never replaced by one that asks.** That would have a higher
//! number, and another host that has asked meanwhile would have the session as well. So whatever asks
//! in a session's place does so alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use super::counts;
use super::nats::{LEASE, RENEWAL};
use super::record::VERSION;
use super::session_directory::{SessionDirectory, SessionKey, SessionRecord, owners};
use auth::Principal;
use panics::SharedMutex;
use transport::process::Lease;

/// How long an agent may run after its session was renewed, if this process does not end it: SIGKILL
/// comes 2 s later.
const AGENT_LEASE: Duration = LEASE.saturating_sub(Duration::from_secs(3));
/// The time that a host keeps at least to stop an agent, so that it does that itself while it runs.
pub(super) const LEAST_STOP: Duration = Duration::from_secs(5);
/// Between two looks at the leases.
const LOOK: Duration = Duration::from_secs(1);
/// Renewals that are under way at a time.
const AT_ONCE: usize = 64;
/// Parts of the sessions.
const STRIPES: usize = 64;

/// What to do about a session that lives on another host.
const REMEDY: &str = "; `connect --no-link` to a gateway finds it there";

/// The sessions of a host.
#[derive(Debug)]
pub(super) struct OwnedSessions {
    directory: SessionDirectory,
    host: String,
    owned: SharedMutex<HashMap<String, Owned>>,
    /// Each for a part of the sessions: the task that has it may ask for one of them.
    asking: [Mutex<()>; STRIPES],
}

/// What this host writes of a session.
#[derive(Clone, Debug)]
struct Entry {
    session: SessionKey,
    key: String,
    /// While it asks, and after its first renewal.
    asks: Bytes,
    held: Bytes,
}

#[derive(Debug)]
struct Owned {
    revision: u64,
    entry: Entry,
    /// Before the last renewal that succeeded was sent.
    renewed: Instant,
    is_lost: bool,
    /// The time in which its agent is stopped.
    stop: Duration,
    users: Vec<User>,
}

/// The lease of an agent that has a session, and what is cancelled when the session is lost.
pub(super) type User = (Lease, CancellationToken);

/// A claim to a session, which is given up when it is dropped.
pub(super) struct Claim {
    key: String,
    lease: Lease,
    sessions: Arc<OwnedSessions>,
}

/// Whether a claim that was last renewed then is given up, by a host that needs the time `stop` to
/// stop an agent.
pub fn is_given_up(renewed: Instant, now: Instant, stop: Duration) -> bool {
    now >= renewed + LEASE.saturating_sub(stop)
}

impl OwnedSessions {
    /// The sessions of a host, which begins without any.
    pub(super) fn new(directory: SessionDirectory, host: String) -> Arc<Self> {
        Arc::new(Self {
            directory,
            host,
            owned: SharedMutex::default(),
            asking: [const { Mutex::const_new(()) }; STRIPES],
        })
    }

    /// Claims a session for this host, which needs the time `stop` to stop the agent.
    ///
    /// # Errors
    /// It is another host's, the servers do not answer, or `stop` leaves no time for renewals.
    pub(super) async fn claim(
        self: Arc<Self>,
        who: Arc<Principal>,
        session: String,
        agent: String,
        stop: Duration,
        user: User,
    ) -> Result<Claim, String> {
        if stop + 2 * RENEWAL > LEASE {
            return Err("the limit stop-grace of its agent is more than 9 s".to_owned());
        }
        let entry = self.entry(SessionKey::new(&who, &session), &agent);
        let claim = timeout(RENEWAL, async {
            let _alone = self.alone(&entry).await;
            if let Some(claim) = self.again(&entry.key, stop, &user)? {
                return Ok(claim);
            }
            let renewed = Instant::now();
            let unclear = |why| format!("it cannot be claimed now ({why})");
            let revision = self.ask(&entry).await.map_err(unclear)?;
            let decided = self.decide(&entry, revision).await.map_err(unclear);
            if let Some(why) = decided.unwrap_or_else(Some) {
                self.give_back(entry.key, revision);
                return Err(why);
            }
            let key = entry.key.clone();
            let own = Owned {
                revision,
                entry,
                renewed,
                is_lost: false,
                stop,
                users: Vec::new(),
            };
            self.owned.lock().insert(key.clone(), own);
            let claim = self.again(&key, stop, &user)?;
            claim.ok_or_else(|| "it was lost just now".to_owned())
        });
        let claim = claim.await;
        claim.map_err(|_| "NATS does not answer".to_owned())?
    }

    /// What this host writes of a session.
    fn entry(&self, session: SessionKey, agent: &str) -> Entry {
        let proof = session.tag(&self.host);
        let write = |held: bool| {
            let record = json!({ "v": VERSION, "agent": agent, "held": held, "proof": proof });
            Bytes::from(record.to_string())
        };
        Entry {
            key: session.of(&self.host),
            session,
            asks: write(false),
            held: write(true),
        }
    }

    /// Until it is dropped, nothing else here asks for that session.
    async fn alone(&self, entry: &Entry) -> Option<MutexGuard<'_, ()>> {
        let part = entry.key.bytes().map(usize::from).sum::<usize>() % STRIPES;
        Some(self.asking.get(part)?.lock().await)
    }

    /// Writes that this host asks for a session on which it has no claim: the entry's number.
    async fn ask(&self, Entry { key, asks, .. }: &Entry) -> Result<u64, String> {
        let bucket = &self.directory.bucket;
        if let Ok(revision) = bucket.update(key, asks.clone(), 0).await {
            return Ok(revision);
        }
        // It was given up; then its entry is replaced, so that it is not deleted later.
        let found = bucket.entry(key).await.map_err(|error| error.to_string())?;
        let found = found.map_or(0, |found| found.revision);
        let asked = bucket.update(key, asks.clone(), found).await;
        asked.map_err(|error| error.to_string())
    }

    /// Whose session it is for which this host asks by its entry with that number: `None` if it is this
    /// host's, or who has it.
    async fn decide(&self, entry: &Entry, revision: u64) -> Result<Option<String>, String> {
        let found = self.directory.entries(&entry.session).await?;
        match owners(&found).find(|other| other.host != self.host) {
            Some(other) if other.v != VERSION => Ok(Some(format!(
                "its entry is not of version {VERSION}; update its host"
            ))),
            Some(SessionRecord { host, .. }) => {
                Ok(Some(format!("it lives on the host {host}{REMEDY}")))
            }
            None if found.iter().any(|own| own.revision == revision) => Ok(None),
            None => Err("a server does not know what was written".to_owned()),
        }
    }

    /// Deletes the entry with that number.
    fn give_back(&self, key: String, revision: u64) {
        let bucket = self.directory.bucket.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // What is not deleted expires.
            runtime.spawn(async move {
                let delete = bucket.delete_expect_revision(&key, Some(revision));
                let _ = timeout(RENEWAL, delete).await;
            });
        }
    }

    /// Another claim to a session that is this host's already.
    ///
    /// # Errors
    /// It was lost, and an agent that had it may still run.
    fn again(
        self: &Arc<Self>,
        key: &str,
        stop: Duration,
        user: &User,
    ) -> Result<Option<Claim>, String> {
        let mut owned = self.owned.lock();
        let Some(own) = owned.get_mut(key) else {
            return Ok(None);
        };
        if own.is_lost {
            return Err("the agent that had it here is being stopped".to_owned());
        }
        own.stop = own.stop.max(stop);
        own.users.push(user.clone());
        extend(&user.0, &owned);
        Ok(Some(Claim {
            key: key.to_owned(),
            lease: user.0.clone(),
            sessions: Arc::clone(self),
        }))
    }

    /// Renews the claims, and gives up those that cannot be renewed, until the future is dropped.
    pub(super) async fn keep(&self) {
        let renewals = async {
            let mut ticks = interval(LOOK);
            loop {
                ticks.tick().await;
                let due = futures_util::stream::iter(self.due(Instant::now()));
                due.for_each_concurrent(AT_ONCE, |key| self.renew(key))
                    .await;
            }
        };
        let looks = async {
            let mut ticks = interval(LOOK);
            loop {
                ticks.tick().await;
                let now = Instant::now();
                for own in self.owned.lock().values_mut() {
                    if is_given_up(own.renewed, now, own.stop) && !own.is_lost {
                        tracing::error!("a session could not be renewed; its agent is stopped");
                        own.lose();
                    }
                }
            }
        };
        tokio::join!(renewals, looks);
    }

    /// The keys of the claims to renew.
    fn due(&self, now: Instant) -> Vec<String> {
        let owned = self.owned.lock();
        let due = owned
            .iter()
            .filter(|(_, own)| now >= own.renewed + RENEWAL && !own.is_lost);
        due.map(|(key, _)| key.clone()).collect()
    }

    async fn renew(&self, key: String) {
        let now = |own: &Owned| (own.entry.clone(), own.revision);
        let found = self.owned.lock().get(&key).map(now);
        let Some((entry, known)) = found else {
            return;
        };
        let (bucket, mut revision) = (&self.directory.bucket, known);
        for _ in 0..2 {
            let renewed = Instant::now();
            let update = bucket.update(&key, entry.held.clone(), revision);
            match timeout(RENEWAL, update).await {
                Ok(Ok(revision)) => return self.renewed(&key, (known, revision), renewed),
                Ok(Err(error)) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {}
                // Whether it came is found out by the next one.
                Ok(Err(error)) => return failed(&error.to_string()),
                Err(_) => return failed("NATS does not answer"),
            }
            let found = timeout(RENEWAL, self.recover(&entry, known)).await;
            match found.unwrap_or_else(|_| Err("NATS does not answer".to_owned())) {
                Ok(Some(found)) => revision = found,
                Ok(None) => return,
                Err(why) => return failed(&why),
            }
        }
    }

    /// The number of the entry of a claim, which is not the one that was `known`: an answer was lost,
    /// or servers that were killed have lost the entry. Then it is asked for again.
    async fn recover(&self, entry: &Entry, known: u64) -> Result<Option<u64>, String> {
        let _alone = self.alone(entry).await;
        let is_same = |own: &Owned| own.revision == known && !own.is_lost;
        if !self.owned.lock().get(&entry.key).is_some_and(is_same) {
            return Ok(None);
        }
        let bucket = &self.directory.bucket;
        let found = bucket.entry(&entry.key).await;
        let found = found.map_err(|error| error.to_string())?;
        let mut revision = found.as_ref().map_or(0, |found| found.revision);
        let is_put = |found: &&kv::Entry| found.operation == kv::Operation::Put;
        let is_there = found.as_ref().filter(is_put);
        if is_there.is_none() {
            let asked = bucket.update(&entry.key, entry.asks.clone(), revision);
            revision = asked.await.map_err(|error| error.to_string())?;
        }
        if is_there.is_none_or(|found| found.value != entry.held)
            && let Some(why) = self.decide(entry, revision).await?
        {
            if let Some(own) = self.owned.lock().get_mut(&entry.key) {
                tracing::error!("a session is lost, and its agent is stopped: {why}");
                own.lose();
            }
            return Ok(None);
        }
        Ok(Some(revision))
    }

    fn renewed(&self, key: &str, (known, revision): (u64, u64), at: Instant) {
        let mut owned = self.owned.lock();
        // It may have been given up meanwhile, and claimed again.
        let Some(own) = owned.get_mut(key).filter(|own| own.revision == known) else {
            return;
        };
        own.revision = revision;
        own.renewed = at;
        for (lease, _) in own.users.clone() {
            extend(&lease, &owned);
        }
    }
}

impl Owned {
    /// It is not this host's any more.
    fn lose(&mut self) {
        self.is_lost = true;
        self.users.iter().for_each(|(_, lost)| lost.cancel());
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut owned = self.sessions.owned.lock();
        let Some(own) = owned.get_mut(&self.key) else {
            return;
        };
        let mut users = own.users.iter();
        if let Some(at) = users.position(|(lease, _)| *lease == self.lease) {
            own.users.swap_remove(at);
        }
        if !own.users.is_empty() {
            return;
        }
        let revision = own.revision;
        owned.remove(&self.key);
        drop(owned);
        self.sessions.give_back(self.key.clone(), revision);
    }
}

/// Lets an agent run until the first of its claims can end.
fn extend(lease: &Lease, owned: &HashMap<String, Owned>) {
    let has = |own: &&Owned| own.users.iter().any(|(one, _)| one == lease);
    let claims = owned.values().filter(has);
    if let Some(renewed) = claims.map(|own| own.renewed).min() {
        lease.extend(renewed + AGENT_LEASE);
    }
}

fn failed(why: &str) {
    counts::FAILED.fetch_add(1, Relaxed);
    tracing::warn!("a session is not renewed: {why}");
}
