//! A host: it says what it has, and accepts what gateways open.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use async_nats::{Message, Subscriber};
use futures_util::StreamExt as _;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

use super::carrier::carrier;
use super::counts;
use super::guests::Guests;
use super::nats::{AGAIN, Nats, RENEWAL};
use super::owned::owned;
use super::record::{HostRecord, VERSION};
use super::request::{Answer, Request, carrier_subjects, is_random, name_part, subject};
use super::session_directory::SessionDirectory;
use super::sessions::OwnedSessions;
use super::ticket::{Claims, Purpose, Verifier};
use auth::{ONLY_AGENT, PassSource, Principal};
use jsonrpc::{Limits, printable};
use panics::SharedMutex;
use transport::process::Lease;
use transport::{
    AcceptFuture, Endpoint, IncomingLink, Link, LinkPlace, Links, ListenFuture, Listener,
    OpenError, OpenErrorKind, Peer, Setup, Workers, current_time,
};

/// The bucket of hosts.
pub(super) const HOSTS: &str = "acp_hosts";
/// How long a pass is valid, and how many are at a time.
const PASS: (Duration, usize) = (Duration::from_secs(30), 4096);

/// What a host is.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How many conversations it takes.
    pub capacity: usize,
    /// Where gateways reach it without NATS.
    pub address: Option<Endpoint>,
    /// The file with the public keys of gateways.
    pub trust: PathBuf,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    nats: Nats,
    bucket: kv::Store,
    id: String,
    /// The revision of its first entry, which is the epoch of its links.
    epoch: u64,
    settings: HostSettings,
    verifier: Verifier,
    agents: SharedMutex<BTreeSet<String>>,
    is_draining: AtomicBool,
    changed: Notify,
    passes: Passes,
    guests: Guests,
    open: Arc<AtomicUsize>,
    sessions: Arc<OwnedSessions>,
}

/// The tokens for direct connections, each for one.
#[derive(Debug, Default)]
struct Passes(SharedMutex<HashMap<String, (Arc<Principal>, Instant)>>);

/// Accepts what gateways open.
struct HostListener {
    host: Arc<Host>,
    requests: Subscriber,
    limits: Arc<Limits>,
    links: Arc<Links>,
    workers: Workers,
}

impl Host {
    /// Makes a host of this relay, which has `open` conversations; it is not said before
    /// [`Self::announce`].
    ///
    /// # Errors
    /// NATS or the file of keys cannot be used.
    pub async fn start(
        nats: Nats,
        settings: HostSettings,
        open: Arc<AtomicUsize>,
    ) -> Result<Arc<Self>, OpenError> {
        let random = Uuid::new_v4().simple();
        let id = format!("{}.{random}", name_part(&settings.name));
        let verifier = Verifier::new(settings.trust.clone(), id.clone());
        let verifier =
            verifier.map_err(|what| OpenError::new(OpenErrorKind::NoInput, &id, what))?;
        let directory = SessionDirectory::open(&nats).await?;
        let mut host = Self {
            sessions: OwnedSessions::new(directory, id.clone()),
            bucket: nats.bucket(HOSTS).await?,
            nats,
            id,
            epoch: 0,
            settings,
            verifier,
            agents: SharedMutex::default(),
            is_draining: AtomicBool::new(true),
            changed: Notify::new(),
            passes: Passes::default(),
            guests: Guests::default(),
            open,
        };
        host.epoch = host.put().await.map_err(|what| {
            let what = format!("this host cannot be announced ({what})");
            let error = OpenError::new(OpenErrorKind::Unavailable, HOSTS, what);
            error.with_remedy(
                "Let this account publish $KV.acp_hosts.NAME.*, and give JetStream room",
            )
        })?;
        host.is_draining = AtomicBool::new(false);
        Ok(Arc::new(host))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where its links end.
    #[must_use]
    pub fn place(&self) -> LinkPlace {
        LinkPlace::Here {
            name: self.id.clone(),
            epoch: self.epoch.to_string(),
        }
    }

    /// Sets its agents, by name.
    pub fn set_agents(&self, agents: BTreeSet<String>) {
        *self.agents.lock() = agents;
        self.changed.notify_one();
    }

    /// No new conversations are placed on it from now on.
    pub fn drain(&self) {
        if !self.is_draining.swap(true, Relaxed) {
            tracing::info!("this host is draining: no new conversations are placed on it");
        }
        self.changed.notify_one();
    }

    /// The link of a client of `agent`, whose sessions are this host's until it gives them up. The agent's
    /// process was started with that lease.
    #[must_use]
    pub fn own(&self, client: Link, agent: &str, lease: Lease, limits: &Arc<Limits>) -> Link {
        owned(client, Arc::clone(&self.sessions), agent, lease, limits)
    }

    /// Says what it has, and renews its claims, until the future is dropped.
    pub async fn announce(&self) {
        tokio::join!(self.say(), self.sessions.keep());
    }

    async fn say(&self) {
        loop {
            let mut until = RENEWAL;
            if let Err(what) = self.put().await {
                counts::FAILED.fetch_add(1, Relaxed);
                tracing::error!("this host cannot be announced: {what}");
                until = AGAIN;
            }
            // A drain or other agents are said at once, otherwise it is a renewal.
            let _ = timeout(until, self.changed.notified()).await;
        }
    }

    /// Says that it has ended.
    pub async fn retire(&self) {
        // It expires otherwise.
        let _ = timeout(RENEWAL, self.bucket.delete(&self.id)).await;
    }

    async fn put(&self) -> Result<u64, String> {
        let record = HostRecord {
            v: VERSION,
            labels: self.settings.labels.clone(),
            agents: self.agents.lock().clone(),
            capacity: self.settings.capacity,
            open: self.open.load(Relaxed),
            draining: self.is_draining.load(Relaxed),
            address: self.settings.address.as_ref().map(Endpoint::to_string),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let record = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
        // Gateways would not use it.
        HostRecord::read(&record)?;
        let put = timeout(RENEWAL, self.bucket.put(&self.id, record.into())).await;
        put.map_err(|_| "no answer came".to_owned())?
            .map_err(|error| error.to_string())
    }

    /// What a request asks for, if its ticket is accepted. `was_full`: before it was counted itself.
    fn admit(&self, message: &Message, was_full: bool) -> Result<(Claims, Request), String> {
        let request: Request = serde_json::from_slice(&message.payload)
            .map_err(|error| format!("the request is not understood ({error})"))?;
        if request.v != VERSION {
            return Err(format!("only version {VERSION} is spoken here"));
        }
        let claims = self.verifier.accept(&request.ticket, current_time().unix);
        let claims = claims.map_err(|error| error.to_string())?;
        if request.carrier.iter().any(|random| *random != claims.nonce) {
            return Err("the ticket is for another connection".to_owned());
        }
        if claims.purpose == Purpose::Begin {
            if self.is_draining.load(Relaxed) {
                return Err("the host is draining".to_owned());
            }
            if !self.agents.lock().contains(&claims.guest.agent) {
                return Err("the host has no such agent".to_owned());
            }
            // The one that is asked for is counted by now, if the limit of connections allows it.
            let capacity = self.settings.capacity;
            if was_full || self.open.load(Relaxed) > capacity {
                return Err(format!("the host has {capacity} conversations"));
            }
        }
        Ok((claims, request))
    }

    async fn answer(&self, message: &Message, answer: &Answer) -> Result<(), String> {
        let reply = message.reply.clone().ok_or("the request wants no answer")?;
        let answer = serde_json::to_vec(answer).map_err(|error| error.to_string())?;
        let sent = self.nats.client.publish(reply, answer.into()).await;
        sent.map_err(|error| error.to_string())
    }

    /// Serves a request: the carrier that it opens, if it opens one.
    async fn serve(
        &self,
        message: &Message,
        was_full: bool,
        limits: &Limits,
    ) -> Result<Option<Link>, String> {
        let (claims, request) = match self.admit(message, was_full) {
            Ok(admitted) => admitted,
            Err(why) => {
                self.answer(message, &Answer::Refused(why.clone())).await?;
                return Err(why);
            }
        };
        let done = match claims.purpose {
            Purpose::Begin | Purpose::Resume => None,
            Purpose::List => Some(Answer::Guests(self.guests.of(&claims.signer, request.skip))),
            Purpose::Revoke => {
                self.guests.withdraw(&claims);
                Some(Answer::Done)
            }
            Purpose::Drain => {
                self.drain();
                Some(Answer::Done)
            }
        };
        if let Some(done) = done {
            self.answer(message, &done).await?;
            return Ok(None);
        }
        let principal = Arc::new(self.guests.admit(&claims));
        let Some(random) = request.carrier.filter(|random| is_random(random)) else {
            let answer = match self.passes.add(principal, Instant::now()) {
                Some(pass) => Answer::Pass(pass),
                None => Answer::Refused("too many direct connections are begun".to_owned()),
            };
            self.answer(message, &answer).await?;
            return Ok(None);
        };
        let [own, others] = carrier_subjects(&self.id, &random);
        let parts = self.nats.client.subscribe(own).await;
        let parts = parts.map_err(|error| error.to_string())?;
        self.answer(message, &Answer::Open).await?;
        let mut peer = Peer::remote(format!("cluster:{}", &random[..8]), false);
        peer.principal = Some(principal);
        peer.wanted_agent = Some(claims.guest.agent)
            .filter(|name| name != ONLY_AGENT)
            .map(Arc::from);
        Ok(Some(carrier(&self.nats, parts, others, peer, limits)))
    }
}

impl PassSource for Host {
    fn take(&self, pass: &[u8]) -> Option<Arc<Principal>> {
        let pass = std::str::from_utf8(pass).ok()?;
        let (principal, until) = self.passes.0.lock().remove(pass)?;
        (Instant::now() < until).then_some(principal)
    }
}

impl Passes {
    /// A pass for a principal; `None` when there are too many.
    fn add(&self, principal: Arc<Principal>, now: Instant) -> Option<String> {
        let mut passes = self.0.lock();
        if passes.len() >= PASS.1 {
            passes.retain(|_, (_, until)| now < *until);
        }
        if passes.len() >= PASS.1 {
            return None;
        }
        let pass = Uuid::new_v4().simple().to_string() + &Uuid::new_v4().simple().to_string();
        passes.insert(pass.clone(), (principal, now + PASS.0));
        Some(pass)
    }
}

/// Waits for gateways.
pub(super) fn listen<'a>(at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
    Box::pin(async move {
        let fail = |what: String| OpenError::new(OpenErrorKind::Usage, at, what);
        let host = setup.extensions.get::<Arc<Host>>();
        let host = host
            .ok_or_else(|| fail("this relay is no host".to_owned()))?
            .clone();
        let links = setup.links.clone();
        let links = links
            .ok_or_else(|| fail("a host keeps links: start it without --no-link".to_owned()))?;
        let requests = host.nats.client.subscribe(subject(&host.id)).await;
        let requests = requests.map_err(|error| fail(error.to_string()))?;
        let listener: Box<dyn Listener> = Box::new(HostListener {
            host,
            requests,
            limits: Arc::clone(&setup.limits),
            links,
            workers: setup.workers.clone(),
        });
        Ok(listener)
    })
}

impl Listener for HostListener {
    fn accept(&mut self) -> AcceptFuture<'_> {
        Box::pin(async move {
            let message = self.requests.next().await?;
            let (host, links, limits) = (
                Arc::clone(&self.host),
                Arc::clone(&self.links),
                Arc::clone(&self.limits),
            );
            let was_full = host.open.load(Relaxed) >= host.settings.capacity;
            let finish = async move {
                let carrier = host.serve(&message, was_full, &limits).await;
                let carrier = carrier.map_err(|why| {
                    let why = printable(why.as_bytes());
                    OpenError::new(OpenErrorKind::Forbidden, "a gateway's request", why)
                })?;
                Ok(match carrier {
                    Some(carrier) => links.accept(carrier, &limits).await,
                    None => None,
                })
            };
            Some(Ok(IncomingLink {
                from: "a gateway".to_owned(),
                finish: Box::pin(finish),
                worker: self.workers.pick(),
            }))
        })
    }

    fn address(&self) -> Endpoint {
        Endpoint::Cluster(self.host.id.clone())
    }

    fn update(&mut self, setup: &Setup) -> Result<(), OpenError> {
        self.limits = Arc::clone(&setup.limits);
        Ok(())
    }
}
