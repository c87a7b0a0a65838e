//! The connection to the NATS servers, and the buckets on them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{self, ErrorCode, kv, stream};
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::StreamExt as _;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::request::name_part;
use panics::SharedMutex;
use transport::{OpenError, OpenErrorKind};

/// How long an entry of a bucket is valid without a renewal.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// Between two renewals.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// Messages that wait in a subscription: those of a whole window of a link, which are mostly longer
/// than 40 bytes.
pub(super) const WAITING: usize = 1 << 17;
/// How often a bucket is tried again, and after which time: servers that have just started elect a
/// leader first.
const TRIES: u32 = 3;
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Time for an answer of a server.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for a server to acknowledge a write.
const WRITTEN: Duration = Duration::from_secs(2);

/// Between two pings. After three without an answer the connection is replaced: TCP doubles its pauses
/// while packets are lost, and leases would end before it sends again.
const PING: Duration = Duration::from_secs(3);
/// Time to connect to a server; then the next one is tried.
const CONNECTED: Duration = Duration::from_secs(2);

/// Longest entry of a bucket, in bytes: a record of a host, and its headers.
const MAX_MESSAGE: i32 = 65 << 10;

/// What to do about servers without buckets.
const REMEDY: &str = "Enable JetStream on the servers, and let this account use it";

/// Where the servers are, and who connects.
#[derive(Clone, Debug)]
pub struct NatsSettings {
    /// The servers.
    pub servers: Vec<ServerAddr>,
    /// Credentials: a JWT and a seed, or a seed alone.
    pub credentials: Option<String>,
    /// Authorities that are trusted besides the system's, in PEM.
    pub ca: Option<PathBuf>,
    /// `gateway` or the name of a host, with which the subjects of answers begin.
    pub name: String,
}

/// A connection to the servers; clones share it.
#[derive(Clone, Debug)]
pub struct Nats {
    pub(super) client: Client,
    /// Cancelled when the connection is lost that is open now.
    lost: Arc<SharedMutex<CancellationToken>>,
    servers: String,
}

/// Reads the address of a server.
///
/// # Errors
/// It is none.
pub fn read_server(text: &str) -> Result<ServerAddr, String> {
    let address = text.parse::<ServerAddr>();
    let address = address.map_err(|error| format!("{error}; expected nats://HOST[:PORT]"))?;
    match address.scheme() {
        "nats" | "tls" => Ok(address),
        other => Err(format!(
            "{other:?} is no scheme of NATS; expected nats:// or tls://"
        )),
    }
}

impl Nats {
    /// Connects to one of the servers, and to another one whenever that is lost.
    ///
    /// # Errors
    /// None is reached, or they refuse.
    pub async fn connect(settings: &NatsSettings) -> Result<Self, OpenError> {
        let servers: Vec<String> = settings.servers.iter().map(show).collect();
        let servers = servers.join(",");
        let fail = |kind, what: String, remedy: &str| {
            OpenError::new(kind, &servers, what).with_remedy(remedy)
        };
        let lost = Arc::new(SharedMutex::new(CancellationToken::new()));
        let events = Arc::clone(&lost);
        let mut options = ConnectOptions::new()
            .name(format!("acp-relay {}", settings.name))
            .custom_inbox_prefix(format!("_INBOX_acp_{}", name_part(&settings.name)))
            .subscription_capacity(WAITING)
            .request_timeout(Some(ANSWER))
            .ping_interval(PING)
            .connection_timeout(CONNECTED)
            .event_callback(move |event| {
                on_event(&event, &mut events.lock());
                std::future::ready(())
            });
        if let Some(text) = &settings.credentials {
            let given = match text.trim().starts_with("SU") {
                true => Ok(options.nkey(text.trim().to_owned())),
                false => options.credentials(text),
            };
            options = given.map_err(|error| {
                let what = format!("the file of --cluster-credentials cannot be used ({error})");
                let remedy = "Give a file that `nsc generate creds` or `nk -gen user` writes";
                fail(OpenErrorKind::NoInput, what, remedy)
            })?;
        }
        // A password in an address, which NATS's own tools take as well.
        let mut servers_with = settings.servers.iter();
        if let Some((user, password)) =
            servers_with.find_map(|server| server.username().zip(server.password()))
        {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }
        if let Some(path) = &settings.ca {
            options = options.add_root_certificates(path.clone());
        }
        let client = options.connect(settings.servers.clone()).await;
        let client = client.map_err(|error| match error.kind() {
            async_nats::ConnectErrorKind::Authentication
            | async_nats::ConnectErrorKind::AuthorizationViolation => fail(
                OpenErrorKind::Forbidden,
                format!("NATS refuses the credentials ({error})"),
                "Check --cluster-credentials and the server's accounts: acp-relay assets print nats/cluster.conf",
            ),
            _ => fail(
                OpenErrorKind::Unavailable,
                format!("no NATS server is reached ({error})"),
                "Start the servers first, or check --cluster and --cluster-ca",
            ),
        })?;
        Ok(Self {
            client,
            lost,
            servers,
        })
    }

    /// Cancelled when the connection is lost that is open now.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.lock().clone()
    }

    /// The bucket of that name, whose entries are valid for a lease; it is made if there is none.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) async fn bucket(&self, name: &str) -> Result<kv::Store, OpenError> {
        let mut tries = 0;
        loop {
            match self.open_bucket(name).await {
                Err(error) if error.kind == OpenErrorKind::Unavailable && tries < TRIES => {
                    tracing::info!("{error}; it is tried again");
                    tries += 1;
                    sleep(AGAIN).await;
                }
                opened => return opened,
            }
        }
    }

    async fn open_bucket(&self, name: &str) -> Result<kv::Store, OpenError> {
        let mut jetstream = jetstream::new(self.client.clone());
        jetstream.set_timeout(WRITTEN);
        let fail = |kind, what: String, remedy: &str| {
            let what = format!("the bucket {name} cannot be used: {what}");
            Err(OpenError::new(kind, &self.servers, what).with_remedy(remedy))
        };
        match jetstream.get_stream(format!("KV_{name}")).await {
            Ok(stream) => {
                let found = &stream.cached_info().config;
                let (age, history) = (found.max_age, found.max_messages_per_subject);
                // Old servers make room for a new entry by the loss of the oldest one.
                let most = found.max_bytes.max(found.max_messages);
                if age != LEASE || history != 1 || most > 0 {
                    let what = format!(
                        "it is not of this version (maximum age {age:?}, history {history}, \
                         maximum size {most})"
                    );
                    let remedy = "Delete it if no other program uses it (nats kv del BUCKET), and \
                                  start again; its size must have no maximum";
                    return fail(OpenErrorKind::Protocol, what, remedy);
                }
            }
            Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(ref error) if error.code() == 404) =>
            {
                let mut made = Ok(());
                // A cluster of servers keeps three copies; one server can only keep one.
                for num_replicas in [3, 1] {
                    // `create_key_value` asks for more than old servers and small accounts answer.
                    let config = stream::Config {
                        name: format!("KV_{name}"),
                        subjects: vec![format!("$KV.{name}.>")],
                        max_messages_per_subject: 1,
                        max_age: LEASE,
                        discard: stream::DiscardPolicy::New,
                        allow_rollup: true,
                        deny_delete: true,
                        max_message_size: MAX_MESSAGE,
                        // Copies that lag behind would answer with revisions that are old.
                        allow_direct: false,
                        num_replicas,
                        ..stream::Config::default()
                    };
                    made = jetstream.create_stream(config).await.map(drop);
                    // Those of a cluster that do not run yet are awaited.
                    let kind = made.as_ref().map_err(|error| error.kind());
                    if !matches!(kind, Err(CreateStreamErrorKind::JetStream(error))
                        if error.error_code() != ErrorCode::CLUSTER_NO_PEERS)
                    {
                        break;
                    }
                }
                if let Err(error) = made {
                    return fail(OpenErrorKind::Unavailable, error.to_string(), REMEDY);
                }
            }
            Err(error) => {
                return fail(OpenErrorKind::Unavailable, error.to_string(), REMEDY);
            }
        }
        let store = jetstream.get_key_value(name).await;
        store.or_else(|error| fail(OpenErrorKind::Unavailable, error.to_string(), REMEDY))
    }
}

fn on_event(event: &Event, lost: &mut CancellationToken) {
    match event {
        Event::Connected => {
            if lost.is_cancelled() {
                *lost = CancellationToken::new();
            }
            tracing::info!("NATS is connected");
        }
        Event::Disconnected => {
            lost.cancel();
            tracing::warn!("the connection to NATS is lost; connecting again");
        }
        Event::SlowConsumer(_) => {
            tracing::warn!("NATS has dropped messages; their links send them again");
        }
        Event::ServerError(error) => tracing::error!("NATS: {error}"),
        event => tracing::info!("NATS: {event}"),
    }
}

/// The entries of a bucket.
pub(super) async fn entries(bucket: &kv::Store) -> Result<Vec<kv::Entry>, String> {
    let mut keys = bucket.keys().await.map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    while let Some(key) = keys.next().await {
        let key = key.map_err(|error| error.to_string())?;
        found.extend(bucket.entry(key).await.map_err(|error| error.to_string())?);
    }
    Ok(found)
}

/// An address without the password in it.
fn show(address: &ServerAddr) -> String {
    let (scheme, host) = (address.scheme(), address.host());
    format!("{scheme}://{host}:{}", address.port())
}
