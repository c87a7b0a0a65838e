//! A gateway: it knows the hosts, finds one for a client and opens connections there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv;
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};
use uuid::Uuid;

use super::carrier::carrier;
use super::counts;
use super::guests::PAGE;
use super::host::HOSTS;
use super::nats::{AGAIN, LEASE, Nats, entries};
use super::placed::{Find, placed};
use super::record::{Directory, HostRecord, Placement, VERSION};
use super::request::{Answer, Request, carrier_subjects, subject};
use super::session_directory::{SessionDirectory, SessionRecord};
use super::ticket::{Claims, Purpose, Signer};
use auth::address::Reach;
use auth::{ONLY_AGENT, Principal};
use jsonrpc::{Limits, printable};
use panics::SharedMutex;
use transport::{
    ConnectFuture, Dial, Endpoint, HttpEndpoint, Link, Links, OpenError, OpenErrorKind, Peer,
    Setup, connect_link, current_time, websocket,
};

/// Time for a host to answer; then the next one is asked.
const ANSWER: Duration = Duration::from_secs(2);
/// Hosts that are asked at a time whom they serve, and most answers of one.
const AT_ONCE: usize = 16;
const MAX_PAGES: usize = 64;

/// What is said of a host that is not used as it wants.
const LEFT_OUT: &str = "not all agents of a host are offered";
const NOT_DIRECTLY: &str = "a host is not reached directly, and NATS is used";

/// What a gateway is.
#[derive(Debug)]
pub struct GatewaySettings {
    /// The key that signs its tickets.
    pub signer: Signer,
    /// The labels that a host needs to be used.
    pub select: BTreeMap<String, String>,
    /// How direct connections to hosts are opened.
    pub direct: Setup,
}

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    nats: Nats,
    bucket: kv::Store,
    signer: Signer,
    directory: SharedMutex<Directory>,
    sessions: SessionDirectory,
    agents: watch::Sender<BTreeSet<String>>,
    direct: Setup,
}

/// Why there is no connection to a host.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum NotOpened {
    /// The host has ended.
    #[error("the host of the agent has ended, or could not reach NATS for 25 s")]
    Gone,
    /// It does not answer, or refuses; it may answer later.
    #[error("{0}")]
    Later(String),
    /// The client may not do that.
    #[error("{0}")]
    Never(String),
}

impl Gateway {
    /// Makes a gateway of this relay.
    ///
    /// # Errors
    /// NATS cannot be used.
    pub async fn start(nats: Nats, settings: GatewaySettings) -> Result<Arc<Self>, OpenError> {
        let gateway = Arc::new(Self {
            bucket: nats.bucket(HOSTS).await?,
            sessions: SessionDirectory::open(&nats).await?,
            nats,
            signer: settings.signer,
            directory: SharedMutex::new(Directory::new(LEASE, settings.select)),
            agents: watch::Sender::new(BTreeSet::new()),
            direct: settings.direct,
        });
        // A client that comes first finds the agents.
        let hosts = entries(&gateway.bucket).await.map_err(|what| {
            let what = format!("the hosts cannot be read ({what})");
            OpenError::new(OpenErrorKind::Unavailable, HOSTS, what)
        })?;
        hosts.iter().for_each(|host| gateway.heard(host));
        gateway.update_agents();
        Ok(gateway)
    }

    fn count_hosts(&self) {
        let hosts = self.hosts();
        let draining = hosts.values().filter(|host| host.draining).count();
        for (gauge, count) in counts::HOSTS.iter().zip([hosts.len() - draining, draining]) {
            gauge.store(count as u64, Relaxed);
        }
    }

    fn update_agents(&self) {
        self.count_hosts();
        let (agents, left_out) = self.directory.lock().agents(Instant::now());
        for host in left_out {
            self.refuse(&host, LEFT_OUT, "there are too many");
        }
        self.agents.send_if_modified(|known| {
            let is_new = *known != agents;
            *known = agents;
            is_new
        });
    }

    /// The hosts, by their ids, with what each says of itself.
    #[must_use]
    pub fn hosts(&self) -> BTreeMap<String, HostRecord> {
        self.directory.lock().all(Instant::now())
    }

    /// The agents of all hosts, by name.
    #[must_use]
    pub fn agents(&self) -> watch::Receiver<BTreeSet<String>> {
        self.agents.subscribe()
    }

    /// Follows what hosts say of themselves until the future is dropped.
    pub async fn follow(&self) {
        let mut ticks = interval(AGAIN);
        loop {
            match self.bucket.watch_with_history(">").await {
                Err(error) => tracing::error!("the hosts cannot be watched: {error}"),
                Ok(mut watch) => loop {
                    tokio::select! {
                        entry = watch.next() => match entry {
                            Some(Ok(entry)) => self.heard(&entry),
                            Some(Err(error)) => tracing::warn!("watching the hosts: {error}"),
                            None => break,
                        },
                        // Not after each entry, of which a host may write many.
                        _ = ticks.tick() => self.update_agents(),
                    }
                },
            }
            sleep(AGAIN).await;
        }
    }

    fn heard(&self, entry: &kv::Entry) {
        let (host, record) = (&entry.key, (&*entry.value, entry.revision));
        if entry.operation != kv::Operation::Put {
            self.directory.lock().gone(host);
            return;
        }
        let heard = self.directory.lock().heard(host, record, Instant::now());
        if let Err(why) = heard {
            self.refuse(host, "a host is not used", &why);
        }
    }

    /// Counts that something of a host is refused, and says so once for a while.
    fn refuse(&self, host: &str, what: &'static str, why: &str) {
        counts::REFUSED.fetch_add(1, Relaxed);
        if self.directory.lock().is_news(host, what, Instant::now()) {
            let (host, why) = (printable(host.as_bytes()), printable(why.as_bytes()));
            tracing::warn!(host, "{what}: {why}");
        }
    }

    /// Opens a connection for a new link to a host with that agent: the least loaded one that
    /// accepts it.
    pub(super) async fn begin(
        &self,
        who: &Principal,
        agent: &str,
        limits: &Limits,
    ) -> Result<(String, Link), NotOpened> {
        let candidates = self.directory.lock().candidates(agent, Instant::now());
        let mut why = "no host has this agent now".to_owned();
        for to in candidates {
            match self.open(&to, who, agent, Purpose::Begin, limits).await {
                Ok(link) => {
                    self.directory.lock().placed(&to.host);
                    counts::PLACEMENTS[0].fetch_add(1, Relaxed);
                    return Ok((to.host, link));
                }
                Err(NotOpened::Never(why)) => return Err(NotOpened::Never(why)),
                Err(error) => {
                    let host = &to.host;
                    tracing::info!(host, "the next host is asked: {error}");
                    counts::PLACEMENTS[1].fetch_add(1, Relaxed);
                    why = error.to_string();
                }
            }
        }
        counts::PLACEMENTS[2].fetch_add(1, Relaxed);
        Err(NotOpened::Later(why))
    }

    /// Opens a connection for a link that a host has.
    pub(super) async fn resume(
        &self,
        host: &str,
        who: &Principal,
        agent: &str,
        limits: &Limits,
    ) -> Result<Link, NotOpened> {
        let (purpose, until) = (Purpose::Resume, Instant::now() + limits.handshake / 2);
        loop {
            let found = self.directory.lock().find(host, Instant::now());
            // A host that has announced nothing for long may still answer, and only it has the
            // state of the link.
            let to = found.unwrap_or_else(|| Placement {
                host: host.to_owned(),
                address: None,
            });
            match self.open(&to, who, agent, purpose, limits).await {
                // What a gateway heard before it started or was connected again may be old.
                Err(NotOpened::Later(_)) if self.is_forgotten(host).await => {
                    return Err(NotOpened::Gone);
                }
                // The client waits longer after each attempt, and here the end of a lease shows.
                Err(NotOpened::Later(_)) if Instant::now() < until => sleep(AGAIN).await,
                opened => return opened,
            }
        }
    }

    /// Whether the servers know that a host has ended, or have nothing newer than what was heard of it
    /// long ago.
    async fn is_forgotten(&self, host: &str) -> bool {
        match timeout(ANSWER, self.bucket.entry(host)).await {
            Ok(Ok(Some(entry))) if entry.operation == kv::Operation::Put => {
                let directory = self.directory.lock();
                directory.is_silent(host, entry.revision, Instant::now())
            }
            Ok(Ok(_)) => true,
            _ => false,
        }
    }

    async fn open(
        &self,
        to: &Placement,
        who: &Principal,
        agent: &str,
        purpose: Purpose,
        limits: &Limits,
    ) -> Result<Link, NotOpened> {
        let claims = Claims::of(who, agent, &to.host, purpose, current_time().unix);
        let claims = claims.ok_or_else(|| {
            NotOpened::Never("agents on other machines need a client with credentials".to_owned())
        })?;
        if let Some(address) = &to.address {
            match self.open_direct(&claims, address).await {
                Err(NotOpened::Later(why)) => self.refuse(&to.host, NOT_DIRECTLY, &why),
                opened => return opened,
            }
        }
        let random = Uuid::new_v4().simple().to_string();
        let [others, own] = carrier_subjects(&to.host, &random);
        let parts = self.nats.client.subscribe(own).await;
        let parts = parts.map_err(|error| NotOpened::Later(error.to_string()))?;
        let claims = Claims {
            nonce: random.clone(),
            ..claims
        };
        match self.ask(&claims, Some(random), 0).await? {
            Answer::Open => {
                let peer = Peer::remote(format!("cluster:{}", to.host), false);
                Ok(carrier(&self.nats, parts, others, peer, limits))
            }
            answer => Err(refused(answer)),
        }
    }

    /// Connects to the address that a host has given.
    async fn open_direct(&self, claims: &Claims, address: &str) -> Result<Link, NotOpened> {
        let later = |what: String| NotOpened::Later(what);
        let Ok(Endpoint::Http(web)) = address.parse::<Endpoint>() else {
            let address = printable(address.as_bytes());
            return Err(later(format!("{address} is no address of a host")));
        };
        if self.direct.reach == Reach::Within(Arc::default()) {
            return Err(later("there is no --cluster-direct".to_owned()));
        }
        let pass = match self.ask(claims, None, 0).await? {
            Answer::Pass(pass) => pass,
            answer => return Err(refused(answer)),
        };
        let path = match &*claims.guest.agent {
            ONLY_AGENT => web.path.clone(),
            name => format!("/agents/{name}{}", web.path),
        };
        let to = Endpoint::Http(HttpEndpoint { path, ..web });
        let mut setup = self.direct.clone();
        setup.request_headers.set_bearer(&pass).map_err(later)?;
        let opened = timeout(ANSWER, websocket::connect_carrier(&to, &setup)).await;
        let opened = opened.map_err(|_| later("no answer came in time".to_owned()))?;
        opened.map_err(|error| later(error.to_string()))
    }

    /// Asks the host of a ticket.
    async fn ask(
        &self,
        claims: &Claims,
        carrier: Option<String>,
        skip: usize,
    ) -> Result<Answer, NotOpened> {
        let later = |what: String| NotOpened::Later(what);
        let request = Request {
            v: VERSION,
            ticket: self.signer.sign(claims).map_err(later)?,
            carrier,
            skip,
        };
        let request = serde_json::to_vec(&request).map_err(|error| later(error.to_string()))?;
        let answer = self
            .nats
            .client
            .request(subject(&claims.host), request.into());
        let answer = timeout(ANSWER, answer).await;
        let answer = answer.map_err(|_| later("the host did not answer".to_owned()))?;
        let answer = answer.map_err(|error| later(format!("the host did not answer ({error})")))?;
        serde_json::from_slice(&answer.payload)
            .map_err(|error| later(format!("the host's answer is not understood ({error})")))
    }

    /// The living sessions of all principals.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn sessions(&self) -> Result<Vec<SessionRecord>, String> {
        self.sessions.all().await
    }

    /// Has nothing more placed on a host.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub async fn drain(&self, host: &str) -> Result<(), String> {
        let own = Principal::user("gateway".into());
        match self.tell(host, &own, "", Purpose::Drain, 0).await? {
            Answer::Done => Ok(()),
            answer => Err(refused(answer).to_string()),
        }
    }

    /// Asks the hosts for the clients of this gateway's key, and has those end whose credentials
    /// are not valid any more.
    pub async fn check_guests(&self, is_valid: impl Fn(&Principal) -> bool + Sync) {
        let hosts: Vec<String> = self.hosts().into_keys().collect();
        let is_valid = &is_valid;
        let checks = stream::iter(hosts).for_each_concurrent(AT_ONCE, |host| async move {
            if let Err(why) = self.check_guests_of(&host, is_valid).await {
                tracing::info!(host, "its clients are not checked now: {why}");
            }
        });
        checks.await;
    }

    async fn check_guests_of(
        &self,
        host: &str,
        is_valid: impl Fn(&Principal) -> bool,
    ) -> Result<(), String> {
        let own = Principal::user("gateway".into());
        let mut guests = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = self.tell(host, &own, "", Purpose::List, guests.len()).await;
            let page = match page? {
                Answer::Guests(page) => page,
                answer => return Err(refused(answer).to_string()),
            };
            let is_last = page.len() < PAGE;
            guests.extend(page);
            if is_last {
                break;
            }
        }
        let mut ended = 0;
        let guests = guests.iter().map(|guest| (guest, guest.principal(None)));
        for (guest, who) in guests.filter(|(_, who)| !is_valid(who)).take(PAGE) {
            self.tell(host, &who, &guest.agent, Purpose::Revoke, 0)
                .await?;
            ended += 1;
        }
        if ended > 0 {
            tracing::warn!(
                host,
                "{ended} clients end there: their credentials are no longer valid"
            );
        }
        Ok(())
    }

    /// Asks a host for something else than a connection.
    async fn tell(
        &self,
        host: &str,
        who: &Principal,
        agent: &str,
        purpose: Purpose,
        skip: usize,
    ) -> Result<Answer, String> {
        let claims = Claims::of(who, agent, host, purpose, current_time().unix);
        let claims = claims.ok_or("it is no client with credentials")?;
        let answer = self.ask(&claims, None, skip).await;
        answer.map_err(|error| error.to_string())
    }
}

fn refused(answer: Answer) -> NotOpened {
    NotOpened::Later(match answer {
        Answer::Refused(why) => format!("the host refuses: {}", printable(why.as_bytes())),
        _ => "the host answers something else".to_owned(),
    })
}

/// A client of this gateway, and the agent that it asks for.
#[derive(Clone)]
struct Wanted {
    gateway: Arc<Gateway>,
    who: Arc<Principal>,
    agent: String,
    links: Arc<Links>,
    limits: Arc<Limits>,
}

/// Opens a link to an agent on a host for a client whose principal is among the settings.
pub(super) fn connect<'a>(to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
    Box::pin(async move {
        let fail = |what: &str| OpenError::new(OpenErrorKind::Usage, to, what);
        let gateway = setup.extensions.get::<Arc<Gateway>>();
        let gateway = gateway.ok_or_else(|| fail("this relay is no gateway"))?;
        let who = setup.extensions.get::<Arc<Principal>>();
        let who = who.ok_or_else(|| fail("the client has no principal"))?;
        let links = setup.links.as_ref();
        let links =
            links.ok_or_else(|| fail("a gateway keeps links: start it without --no-link"))?;
        let Endpoint::Cluster(agent) = to else {
            return Err(OpenError::wrong_scheme(to));
        };
        let wanted = Wanted {
            gateway: Arc::clone(gateway),
            who: Arc::clone(who),
            agent: agent.clone(),
            links: Arc::clone(links),
            limits: Arc::clone(&setup.limits),
        };
        let begun = gateway.begin(who, agent, &setup.limits).await;
        let (host, first) = begun.map_err(|error| open_error(agent, &error))?;
        let link = wanted.clone().link(host.clone(), first).await?;
        let find: Find = Box::new(move |session| {
            let (wanted, host) = (wanted.clone(), host.clone());
            Box::pin(async move { wanted.find(&session, &host).await })
        });
        Ok(placed(link, &setup.limits, find))
    })
}

impl Wanted {
    /// The link that begins on a host with this connection.
    async fn link(self, host: String, first: Link) -> Result<Link, OpenError> {
        let (links, limits) = (Arc::clone(&self.links), Arc::clone(&self.limits));
        let dial: Dial = Arc::new(move |_| {
            let (wanted, host) = (self.clone(), host.clone());
            Box::pin(async move {
                let link = wanted.resume(&host).await;
                link.map(|link| Some(link.into()))
                    .map_err(|error| open_error(&wanted.agent, &error))
            })
        });
        connect_link(first.into(), dial, None, &links, &limits).await
    }

    async fn resume(&self, host: &str) -> Result<Link, NotOpened> {
        let (who, agent) = (&self.who, &self.agent);
        self.gateway.resume(host, who, agent, &self.limits).await
    }

    /// A link to the host where a session lives, if that is another one than `here`.
    async fn find(self, session: &str, here: &str) -> Result<Option<Link>, String> {
        let found = self.gateway.sessions.find(&self.who, session).await?;
        let Some(host) = found.filter(|host| host != here) else {
            return Ok(None);
        };
        let first = self.resume(&host).await;
        let first = first.map_err(|error| error.to_string())?;
        let link = self.link(host, first).await;
        link.map(Some).map_err(|error| error.to_string())
    }
}

fn open_error(agent: &str, error: &NotOpened) -> OpenError {
    let (kind, remedy) = match error {
        NotOpened::Gone => (OpenErrorKind::Forbidden, "Load the session again"),
        NotOpened::Never(_) => (OpenErrorKind::Forbidden, "Authenticate with a token"),
        NotOpened::Later(_) => {
            let remedy = "Try again later; `acp-relay cluster hosts` shows what the hosts have";
            (OpenErrorKind::Overloaded, remedy)
        }
    };
    OpenError::new(kind, format!("cluster:{agent}"), error.to_string()).with_remedy(remedy)
}
