//! HTTP requests to an Agent Connect server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::error::RemoteError;
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::PEER_LOST;
use crate::transport::http::client::{HttpClient, read_body, retry_after};
use crate::transport::{Endpoint, OpenError, Setup};

/// Attempts at a busy server.
const MAX_TRIES: u32 = 4;
/// First pause before a retry, if the server gives no Retry-After.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum total pause for a busy server. If the server asks for more, its error is passed to the
/// client at once instead of a long wait.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time limit of a response that does not wait for the agent.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What is accepted as a response that waits for the agent, and as any other.
const EVENTS: &str = "text/event-stream, application/json";
const JSON: &str = "application/json";
/// The characters that are escaped in a path segment.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An Agent Connect server.
pub(super) struct RemoteServer {
    site: HttpClient,
    /// The path of the API, without a slash at the end.
    base: String,
}

/// A response of the server.
#[derive(Debug)]
pub(super) struct RemoteResponse {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl RemoteServer {
    /// Connects to the server once.
    pub(super) async fn connect(
        to: &Endpoint,
        base: &str,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let site = HttpClient::new(to, setup)?;
        site.url(base)?;
        site.connect().await?;
        let base = base.to_owned();
        Ok(Self { site, base })
    }

    /// The current limits.
    pub(super) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.site.limits)
    }

    /// Sends a GET request.
    pub(super) async fn get(&self, path: &str) -> Result<RemoteResponse, RemoteError> {
        self.request(Method::GET, path, None).await
    }

    /// Sends a POST request.
    pub(super) async fn post(
        &self,
        path: &str,
        body: impl Into<Option<&Value>>,
    ) -> Result<RemoteResponse, RemoteError> {
        self.request(Method::POST, path, body.into()).await
    }

    /// Sends a DELETE request.
    pub(super) async fn delete(&self, path: &str) -> Result<RemoteResponse, RemoteError> {
        self.request(Method::DELETE, path, None).await
    }

    /// Sends a request that waits for the agent, and reads the whole response.
    pub(super) async fn wait(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<RemoteResponse, RemoteError> {
        self.read(method, path, body, EVENTS).await
    }

    /// The same, but returns when the response begins.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, RemoteError> {
        self.send(method, path, body, EVENTS).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<RemoteResponse, RemoteError> {
        let late = |_| RemoteError::internal(format!("no answer within {TIMEOUT:?}"));
        let request = self.read(method, path, body, JSON);
        timeout(TIMEOUT, request).await.map_err(late)?
    }

    async fn read(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &'static str,
    ) -> Result<RemoteResponse, RemoteError> {
        let answer = self.send(method, path, body, accept).await?;
        let status = answer.status().as_u16();
        let body = read_body(answer.into_body(), self.limits().frame_from_network).await;
        let body = body.map_err(RemoteError::internal)?;
        Ok(RemoteResponse { status, body })
    }

    /// Sends a request and reads the head of the response. A server that is too busy is tried
    /// again.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &'static str,
    ) -> Result<Response<Incoming>, RemoteError> {
        let path = format!("{}{path}", self.base);
        let text = body.map(ToString::to_string).unwrap_or_default();
        let wrong = |_| RemoteError::invalid("that is not a valid path on the server");
        let mut request = self.site.request(method, &path, text).map_err(wrong)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let (mut pause, mut left) = (PAUSE, MAX_WAIT);
        for last in (0..MAX_TRIES).rev() {
            let answer = self.site.send(request.clone()).await.map_err(|silence| {
                let what = format!("the agent did not answer: {silence}");
                RemoteError::new(PEER_LOST, what)
            })?;
            let busy = matches!(answer.status().as_u16(), 429 | 503);
            let wait = retry_after(answer.headers()).unwrap_or(pause);
            if last == 0 || !busy || wait > left {
                return Ok(answer);
            }
            sleep(wait).await;
            left -= wait;
            pause *= 2;
        }
        unreachable!("the last try returns")
    }
}

impl RemoteResponse {
    /// Whether the status is 2xx.
    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Whether the server does not have the path or the operation.
    pub(super) const fn is_absent(&self) -> bool {
        is_absent(self.status)
    }

    /// The body of a successful response; `null` when it is empty.
    ///
    /// # Errors
    /// When the server returned an error, or a body that is not JSON.
    pub(super) fn json(&self) -> Result<Value, RemoteError> {
        self.check()?;
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|fault| {
            RemoteError::internal(format!("the server's response is not JSON ({fault})"))
        })
    }

    /// An error, unless the status is 2xx.
    pub(super) fn check(&self) -> Result<(), RemoteError> {
        match self.is_success() {
            true => Ok(()),
            false => Err(self.to_error()),
        }
    }

    pub(super) fn to_error(&self) -> RemoteError {
        RemoteError::from_http(self.status, &self.body)
    }
}

/// Whether a status says that the path or the operation does not exist.
pub(super) const fn is_absent(status: u16) -> bool {
    matches!(status, 404 | 405 | 501)
}

/// Encodes a name as one path segment: names come from outside and must not change the path.
pub(super) fn segment(name: &str) -> String {
    // A segment of dots would lead upwards.
    match name.trim_matches('.').is_empty() {
        true => name.replace('.', "%2E"),
        false => utf8_percent_encode(name, &ESCAPED).to_string(),
    }
}
