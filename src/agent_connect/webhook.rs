//! Calls webhooks: the address is checked, then the call is made. Which addresses are public is in
//! `auth::address`.
//!
//! # Decisions
//!
//! **The address that is called is the one that was checked.** A name is resolved once for each
//! call, every address of it is checked, and the socket is opened to one of those: a name that
//! resolves to another address a moment later (DNS rebinding) gains nothing.
//!
//! **Redirects are not followed**, because their targets were not checked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Uri};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::api::error::ApiError;
use crate::api::run::RunRecord;
use crate::shares::Shares;
use auth::address::{Reach, is_public};
use transport::{Endpoint, HttpClient, HttpEndpoint, HttpProtocol, NoResponse, Setup};

/// Time limit of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Delays before the attempts of one call.
const DELAYS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(3),
];
/// Weight of the calls of one owner that may be queued, in KiB; further calls are dropped.
const MAX_QUEUED: usize = 32 << 10;
/// Weight of a call beside its body, in KiB.
const CALL_WEIGHT: usize = 32;
/// Concurrent calls of one owner.
const MAX_CALLS: usize = 16;

/// Sends the status of runs to webhooks.
#[derive(Clone, Debug)]
pub(super) struct WebhookSender {
    /// Hosts that are allowed although they are in a private network or use plain HTTP: `HOST` or
    /// `HOST:PORT`.
    allowed: Arc<Vec<String>>,
    queues: Shares,
    calls: Shares,
}

/// The address of a webhook.
struct Address {
    /// The server; its path is that of the call, with the query.
    server: HttpEndpoint,
    /// The operator has allowed this host.
    allowed: bool,
}

impl WebhookSender {
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self {
            allowed: Arc::new(allowed),
            queues: Shares::new(MAX_QUEUED),
            calls: Shares::new(MAX_CALLS),
        }
    }

    /// Checks an address without resolving its name.
    pub(super) fn check(&self, webhook: &str) -> Result<(), ApiError> {
        let address = self.read(webhook).map_err(ApiError::invalid)?;
        match address.server.host.parse() {
            Ok(ip) if !address.allowed && !is_public(ip) => Err(ApiError::invalid(
                "\"webhook\" names an address of a private network",
            )),
            _ => Ok(()),
        }
    }

    /// Queues a call for the owner of a run and returns at once.
    pub(super) fn send(&self, owner: &Arc<str>, webhook: &str, run: &RunRecord) {
        let body = Bytes::from(run.shown().to_string());
        let weight = u32::try_from(CALL_WEIGHT + body.len() / 1024).unwrap_or(u32::MAX);
        let queue = self.queues.of(owner);
        let Ok(permit) = queue.try_acquire_many_owned(weight) else {
            tracing::warn!(%owner, "too many webhook calls are queued; this one is dropped");
            return;
        };
        let (sender, webhook) = (self.clone(), webhook.to_owned());
        let calls = self.calls.of(owner);
        tokio::spawn(async move {
            sender.deliver(&calls, &webhook, body).await;
            drop(permit);
        });
    }

    async fn deliver(&self, calls: &Semaphore, webhook: &str, body: Bytes) {
        let mut why = String::new();
        for delay in DELAYS {
            sleep(delay).await;
            let Ok(_turn) = calls.acquire().await else {
                return;
            };
            let late = |_| Err(format!("it took longer than {CALL_TIMEOUT:?}"));
            let called = timeout(CALL_TIMEOUT, self.call(webhook, body.clone())).await;
            match called.unwrap_or_else(late) {
                Ok(()) => return,
                Err(what) => why = what,
            }
        }
        tracing::warn!(
            webhook = jsonrpc::printable(webhook.as_bytes()),
            "the webhook could not be called: {why}"
        );
    }

    /// Makes one call.
    async fn call(&self, webhook: &str, body: Bytes) -> Result<(), String> {
        let Address { server, allowed } = self.read(webhook)?;
        let setup = Setup {
            reach: if allowed { Reach::All } else { Reach::Public },
            ..Setup::default()
        };
        let target = server.path.clone();
        let post = async {
            let client = HttpClient::new(&Endpoint::Http(server), &setup)?;
            let mut request = client.request(Method::POST, &target, body)?;
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            client.send(request).await
        };
        let sent: Result<_, NoResponse> = post.await;
        let status = sent.map_err(|fault| fault.cause().to_owned())?.status();
        match status.as_u16() {
            200..=299 => Ok(()),
            300..=399 => Err(format!(
                "it answered {status}, and redirects are not followed"
            )),
            _ => Err(format!("it answered {status}")),
        }
    }

    fn read(&self, webhook: &str) -> Result<Address, String> {
        let wrong = || "\"webhook\" must be an address: https://HOST[:PORT][/PATH]".to_owned();
        let uri: Uri = webhook.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(wrong());
        }
        let host = authority.host().to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let with_port = format!("{host}:{port}");
        let allowed = self
            .allowed
            .iter()
            .any(|one| *one == host || *one == with_port);
        if !tls && !allowed {
            return Err("\"webhook\" must begin with https://".to_owned());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let server = HttpEndpoint {
            protocol: HttpProtocol::AgentConnect,
            tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            path: path.to_owned(),
        };
        Ok(Address { server, allowed })
    }
}
