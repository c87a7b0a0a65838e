//! Which host a living session is on: the directory, and the leases of this host in it.
//!
//! # Why
//!
//! **A session has one owner.** It is claimed before a request that enters it reaches an agent, and
//! the claim is renewed. A host that could not renew a claim stops the agent in time to be done when
//! the servers forget the claim, by its own clock and counted from before the renewal was sent. A host
//! that is stopped (SIGSTOP) cannot do that: then the watchdogs of its agents do, which know the time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use data_encoding::HEXLOWER;
use futures_util::StreamExt as _;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use super::counts;
use super::nats::{LEASE, Nats, RENEWAL, entries};
use super::record::VERSION;
use crate::auth::Principal;
use crate::panics::SharedMutex;
use crate::transport::OpenError;
use crate::transport::process::Lease;

/// The bucket of sessions.
const SESSIONS: &str = "acp_sessions";
/// How long an agent may run after its session was renewed, if this process does not end it: SIGKILL
/// comes 2 s later.
const AGENT_LEASE: Duration = LEASE.saturating_sub(Duration::from_secs(3));
/// The time that a host keeps at least to stop an agent, so that it does that itself while it runs.
pub(super) const LEAST_STOP: Duration = Duration::from_secs(5);
/// Between two looks at the leases.
const LOOK: Duration = Duration::from_secs(1);
/// Renewals that are under way at a time.
const AT_ONCE: usize = 64;

/// What to do about a session that lives on another host.
const REMEDY: &str = "; `connect --no-link` to a gateway finds it there";

/// The directory of sessions.
#[derive(Clone, Debug)]
pub(super) struct SessionDirectory {
    bucket: kv::Store,
}

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The version of the record.
    pub v: u32,
    /// The id of the host.
    pub host: String,
    /// The agent.
    pub agent: String,
}

/// The sessions of a host.
#[derive(Debug)]
pub(super) struct OwnedSessions {
    directory: SessionDirectory,
    host: String,
    owned: SharedMutex<HashMap<String, Owned>>,
}

#[derive(Debug)]
struct Owned {
    revision: u64,
    value: bytes::Bytes,
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

impl SessionDirectory {
    /// The directory on these servers.
    pub(super) async fn open(nats: &Nats) -> Result<Self, OpenError> {
        let bucket = nats.bucket(SESSIONS).await?;
        Ok(Self { bucket })
    }

    /// Where a session of a principal is, if it lives.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(super) async fn find(
        &self,
        who: &Principal,
        session: &str,
    ) -> Result<Option<SessionRecord>, String> {
        let entry = timeout(RENEWAL, self.bucket.get(key(who, session))).await;
        let entry = entry.map_err(|_| "no answer came".to_owned())?;
        let entry = entry.map_err(|error| error.to_string())?;
        Ok(entry.and_then(|entry| serde_json::from_slice(&entry).ok()))
    }

    /// Where all living sessions are.
    pub(super) async fn all(&self) -> Result<Vec<SessionRecord>, String> {
        let all = entries(&self.bucket).await?;
        let read = |entry: &kv::Entry| serde_json::from_slice(&entry.value).ok();
        Ok(all.iter().filter_map(read).collect())
    }
}

impl OwnedSessions {
    /// The sessions of a host, which begins without any.
    pub(super) fn new(directory: SessionDirectory, host: String) -> Arc<Self> {
        Arc::new(Self {
            directory,
            host,
            owned: SharedMutex::default(),
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
        let key = key(&who, &session);
        if let Some(claim) = self.again(&key, stop, &user)? {
            return Ok(claim);
        }
        let record = SessionRecord {
            v: VERSION,
            host: self.host.clone(),
            agent,
        };
        let value = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
        let value = bytes::Bytes::from(value);
        let renewed = Instant::now();
        let made = self.make(&key, &value);
        let made = timeout(RENEWAL, made).await;
        let revision = made.map_err(|_| "NATS does not answer".to_owned())??;
        let mut owned = self.owned.lock();
        let own = owned.entry(key.clone()).or_insert(Owned {
            revision,
            value,
            renewed,
            is_lost: false,
            stop,
            users: Vec::new(),
        });
        // Another client may have claimed it at the same time.
        own.revision = own.revision.max(revision);
        drop(owned);
        let claim = self.again(&key, stop, &user)?;
        claim.ok_or_else(|| "it was lost just now".to_owned())
    }

    /// Makes the entry of a session: its revision.
    async fn make(&self, key: &str, value: &bytes::Bytes) -> Result<u64, String> {
        let bucket = &self.directory.bucket;
        let error = match bucket.create(key, value.clone()).await {
            Ok(revision) => return Ok(revision),
            Err(error) => error,
        };
        let entry = bucket.entry(key).await.map_err(|error| error.to_string())?;
        let Some(entry) = entry.filter(|entry| entry.operation == kv::Operation::Put) else {
            return Err(format!("it cannot be claimed now ({error})"));
        };
        match serde_json::from_slice::<SessionRecord>(&entry.value) {
            // It was given up, and is not deleted yet.
            Ok(found) if found.host == self.host => {
                let update = bucket.update(key, value.clone(), entry.revision).await;
                update.map_err(|error| error.to_string())
            }
            Ok(SessionRecord { host, .. }) => Err(format!("it lives on the host {host}{REMEDY}")),
            Err(_) => Err(format!(
                "its entry is not of version {VERSION}; update its host"
            )),
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
        let found = self
            .owned
            .lock()
            .get(&key)
            .map(|own| (own.revision, own.value.clone()));
        let Some((mut revision, value)) = found else {
            return;
        };
        // An answer may have been lost: then the entry is still the one of this host.
        for _ in 0..2 {
            let renewed = Instant::now();
            let update = self.directory.bucket.update(&key, value.clone(), revision);
            let error = match timeout(RENEWAL, update).await {
                Ok(Ok(revision)) => return self.renewed(&key, revision, renewed),
                Ok(Err(error)) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => error,
                // Whether it came is found out by the next one.
                Ok(Err(error)) => return failed(&error.to_string()),
                Err(_) => return failed("NATS does not answer"),
            };
            let entry = timeout(RENEWAL, self.directory.bucket.entry(&key)).await;
            match entry {
                Ok(Ok(Some(entry))) if entry.value == value => revision = entry.revision,
                // Servers that were killed may have lost it: it is made again, unless another host does.
                Ok(Ok(None)) => revision = 0,
                Ok(Ok(_)) => {
                    if let Some(own) = self.owned.lock().get_mut(&key) {
                        tracing::error!(
                            "a session is another host's ({error}); its agent is stopped"
                        );
                        own.lose();
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    fn renewed(&self, key: &str, revision: u64, at: Instant) {
        let mut owned = self.owned.lock();
        let Some(own) = owned.get_mut(key) else {
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
        let (bucket, key) = (self.sessions.directory.bucket.clone(), self.key.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // What is not deleted expires.
            runtime.spawn(async move {
                let delete = bucket.delete_expect_revision(&key, Some(revision));
                let _ = timeout(RENEWAL, delete).await;
            });
        }
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

/// The key of a principal's session.
fn key(who: &Principal, session: &str) -> String {
    let mut digest = Context::new(&SHA256);
    for part in [
        format!("{:?}", who.auth_method).as_str(),
        &who.name,
        session,
    ] {
        digest.update(part.as_bytes());
        digest.update(&[0]);
    }
    HEXLOWER.encode(digest.finish().as_ref())
}
