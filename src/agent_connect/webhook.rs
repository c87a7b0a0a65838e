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
use hyper::{Method, StatusCode, Uri};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::agent_connect::api::api_error::ApiError;
use crate::auth::address::is_public;
use crate::transport::{
    Endpoint, HttpClient, HttpEndpoint, HttpProtocol, NoResponse, OpenErrorKind, Setup,
};

/// Time limit of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Delays before the attempts of one call.
const DELAYS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(3),
];
/// Calls that may be queued. Further calls are dropped.
const MAX_QUEUED: usize = 1024;
/// Concurrent calls.
const MAX_CALLS: usize = 32;

/// Sends the status of runs to webhooks.
#[derive(Clone, Debug)]
pub(super) struct WebhookSender {
    /// Hosts that are allowed although they are in a private network or use plain HTTP: `HOST` or
    /// `HOST:PORT`.
    allowed: Arc<Vec<String>>,
    queue: Arc<Semaphore>,
    calls: Arc<Semaphore>,
}

/// The address of a webhook.
#[derive(Clone, Debug)]
struct Address {
    server: HttpEndpoint,
    /// The path and the query.
    target: String,
    /// The operator has allowed this host.
    allowed: bool,
}

/// Why a call failed.
enum CallError {
    /// A retry may succeed.
    Retry(String),
    /// A retry cannot succeed.
    Permanent(String),
}

impl WebhookSender {
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self {
            allowed: Arc::new(allowed),
            queue: Arc::new(Semaphore::new(MAX_QUEUED)),
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
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

    /// Queues a call and returns at once.
    pub(super) fn send(&self, webhook: &str, body: &Value) {
        let Ok(permit) = self.queue.clone().try_acquire_owned() else {
            tracing::warn!("too many webhook calls are queued; this one is dropped");
            return;
        };
        let (sender, webhook) = (self.clone(), webhook.to_owned());
        let body = Bytes::from(body.to_string());
        tokio::spawn(async move {
            sender.deliver(&webhook, body).await;
            drop(permit);
        });
    }

    async fn deliver(&self, webhook: &str, body: Bytes) {
        let mut why = String::new();
        for delay in DELAYS {
            sleep(delay).await;
            let Ok(_turn) = self.calls.acquire().await else {
                return;
            };
            match self.call(webhook, body.clone()).await {
                Ok(()) => return,
                Err(CallError::Retry(what)) => why = what,
                Err(CallError::Permanent(what)) => {
                    why = what;
                    break;
                }
            }
        }
        tracing::warn!(
            webhook = crate::jsonrpc::printable(webhook.as_bytes()),
            "the webhook could not be called: {why}"
        );
    }

    /// Makes one call.
    async fn call(&self, webhook: &str, body: Bytes) -> Result<(), CallError> {
        let address = self.read(webhook).map_err(CallError::Permanent)?;
        let late = |_| CallError::Retry(format!("it took longer than {CALL_TIMEOUT:?}"));
        let status = timeout(CALL_TIMEOUT, post(&address, body)).await;
        let status = status.map_err(late)?.map_err(|fault| match fault {
            NoResponse::Unsent(fault)
                if matches!(fault.kind, OpenErrorKind::Forbidden | OpenErrorKind::Usage) =>
            {
                CallError::Permanent(fault.what)
            }
            fault => CallError::Retry(fault.cause().to_owned()),
        })?;
        match status.as_u16() {
            200..=299 => Ok(()),
            300..=399 => Err(CallError::Permanent(format!(
                "it answered {status}, and redirects are not followed"
            ))),
            408 | 425 | 429 | 500..=599 => Err(CallError::Retry(format!("it answered {status}"))),
            _ => Err(CallError::Permanent(format!("it answered {status}"))),
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
        let server = HttpEndpoint {
            protocol: HttpProtocol::AgentConnect,
            tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            path: "/".to_owned(),
        };
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Address {
            server,
            target: target.to_owned(),
            allowed,
        })
    }
}

async fn post(address: &Address, body: Bytes) -> Result<StatusCode, NoResponse> {
    let setup = Setup {
        public_only: !address.allowed,
        ..Setup::default()
    };
    let client = HttpClient::new(&Endpoint::Http(address.server.clone()), &setup)?;
    let mut request = client.request(Method::POST, &address.target, body)?;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    Ok(client.send(request).await?.status())
}
