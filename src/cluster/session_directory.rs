//! Which host a living session is on.
//!
//! # Why
//!
//! **A host writes under its own name only,** so that its account of NATS needs no more, and cannot
//! change what others have written. So several hosts may write that they have the same session, and the
//! numbers that the servers give to all entries of the bucket decide. A host writes that it asks. Once
//! that is stored, it reads the entries of the session upward, and has the session if its own is the
//! lowest and no other is marked as held; otherwise it takes its own back. From the first renewal on an
//! entry is marked. Of two hosts that ask, the one with the higher number meets the other's entry: that
//! is there until its lease ends, and a renewal moves it upward, where the reader has not been, and
//! marks it. A copy of the servers that lags does not have the reader's own entry, which is no answer.
//!
//! **What is written says nothing to others.** NATS cannot let a host read the entries of one session
//! and of no other. So a key has a digest instead of the session, and an entry counts only with a proof
//! that its host knows the session and the principal.

use std::collections::BTreeSet;

use async_nats::jetstream::kv;
use async_nats::jetstream::stream::RawMessageErrorKind as Kind;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::Deserialize;
use tokio::time::timeout;

use super::nats::{Nats, RENEWAL, entries};
use super::request::DOT;
use auth::Principal;
use transport::OpenError;

/// The bucket of sessions.
const SESSIONS: &str = "acp_sessions";

/// The directory of sessions.
#[derive(Clone, Debug)]
pub(super) struct SessionDirectory {
    pub(super) bucket: kv::Store,
}

/// A session of a principal, as those know it who know both.
#[derive(Clone, Debug)]
pub(super) struct SessionKey(hmac::Key);

/// What a host writes of a session.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SessionRecord {
    /// The version of the record.
    pub v: u32,
    /// The agent.
    #[serde(default)]
    pub agent: String,
    /// Whether it was renewed: before, the host may only ask for the session.
    #[serde(default)]
    pub held: bool,
    /// That the host knows the session and its principal.
    pub proof: String,
    /// The id of the host, by the key.
    #[serde(skip)]
    pub host: String,
    /// The number of the entry.
    #[serde(skip)]
    pub revision: u64,
}

/// The hosts that may have a session, by its entries in the order of their numbers: those that hold
/// it, and the one that has asked first. Usually it is one.
pub fn owners(entries: &[SessionRecord]) -> impl Iterator<Item = &SessionRecord> {
    let first = entries.first().map(|first| first.revision);
    let may_own = move |entry: &&SessionRecord| entry.held || Some(entry.revision) == first;
    entries.iter().filter(may_own)
}

impl SessionKey {
    /// The key of a principal's session.
    pub(super) fn new(who: &Principal, session: &str) -> Self {
        let text = format!("{:?}\0{}\0{session}\0", who.auth_method, who.name);
        let digest = digest(&SHA256, text.as_bytes());
        Self(hmac::Key::new(hmac::HMAC_SHA256, digest.as_ref()))
    }

    /// What only those can say of it who know it: with the id of a host, the proof that the host does;
    /// with nothing, what stands for it in the bucket.
    pub(super) fn tag(&self, of: &str) -> String {
        HEXLOWER.encode(hmac::sign(&self.0, of.as_bytes()).as_ref())
    }

    /// The key of the entry of a host.
    pub(super) fn of(&self, host: &str) -> String {
        format!("{host}{DOT}{}", self.tag(""))
    }
}

impl SessionDirectory {
    /// The directory on these servers.
    pub(super) async fn open(nats: &Nats) -> Result<Self, OpenError> {
        let bucket = nats.bucket(SESSIONS).await?;
        Ok(Self { bucket })
    }

    /// The entries of a session in the order of their numbers. They are read upward one by one, so that
    /// one that is renewed meanwhile is not missed. There may be many that count for nothing: it is for
    /// the caller to limit the time.
    pub(super) async fn entries(&self, key: &SessionKey) -> Result<Vec<SessionRecord>, String> {
        let subject = format!("{}*.*.{}", self.bucket.prefix, key.tag(""));
        let (mut found, mut from) = (Vec::new(), 1);
        loop {
            let stream = &self.bucket.stream;
            let next = stream.get_first_raw_message_by_subject(&subject, from);
            let next = match next.await {
                Err(error) if error.kind() == Kind::NoMessageFound => return Ok(found),
                next => next.map_err(|error| error.to_string())?,
            };
            from = next.sequence + 1;
            let entry = next.subject.strip_prefix(&self.bucket.prefix);
            let entry = entry.and_then(|at| read(at, &next.payload, next.sequence));
            found.extend(entry.filter(|entry| entry.proof == key.tag(&entry.host)));
        }
    }

    /// Where a session of a principal is, if it lives.
    ///
    /// # Errors
    /// The servers do not answer, or it is not clear.
    pub(super) async fn find(
        &self,
        who: &Principal,
        session: &str,
    ) -> Result<Option<String>, String> {
        let key = SessionKey::new(who, session);
        let entries = timeout(RENEWAL, self.entries(&key)).await;
        let entries = entries.map_err(|_| "no answer came".to_owned())??;
        let hosts: BTreeSet<&str> = owners(&entries).map(|entry| &*entry.host).collect();
        let mut hosts = hosts.into_iter();
        match (hosts.next(), hosts.next()) {
            (Some(one), Some(other)) => {
                Err(format!("{one} and {other} both say that they have it"))
            }
            (found, _) => Ok(found.map(str::to_owned)),
        }
    }

    /// Where all living sessions are.
    pub(super) async fn all(&self) -> Result<Vec<SessionRecord>, String> {
        let all = entries(&self.bucket).await?;
        let read = |entry: &kv::Entry| read(&entry.key, &entry.value, entry.revision);
        Ok(all.iter().filter_map(read).collect())
    }
}

/// An entry; `None` if it says nothing of a session, or says that it has ended.
fn read(key: &str, value: &[u8], revision: u64) -> Option<SessionRecord> {
    let (host, _) = key.rsplit_once(DOT)?;
    Some(SessionRecord {
        host: host.to_owned(),
        revision,
        ..serde_json::from_slice(value).ok()?
    })
}
