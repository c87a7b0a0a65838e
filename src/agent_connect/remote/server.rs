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

use crate::api::error::{RpcError, RpcResult};
use jsonrpc::Limits;
use jsonrpc::reply::PEER_LOST;
use transport::http::client::{HttpClient, read_body, retry_after};
use transport::{Endpoint, OpenError, Setup};

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
    pub(super) async fn get(&self, path: &str) -> RpcResult<RemoteResponse> {
        self.request(Method::GET, path, None).await
    }

    /// Sends a POST request.
    pub(super) async fn post(&self, path: &str, body: &Value) -> RpcResult<RemoteResponse> {
        self.request(Method::POST, path, Some(body)).await
    }

    /// Sends a request that does not wait for the agent.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> RpcResult<RemoteResponse> {
        let late = |_| RpcError::internal(format!("no answer within {TIMEOUT:?}"));
        let request = async { self.read(self.send(method, path, body, JSON).await?).await };
        timeout(TIMEOUT, request).await.map_err(late)?
    }

    /// Sends a request that waits for the agent, and reads the whole response.
    pub(super) async fn wait(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> RpcResult<RemoteResponse> {
        self.read(self.open(method, path, body).await?).await
    }

    /// The same, but returns when the response begins.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> RpcResult<Response<Incoming>> {
        self.send(method, path, body, EVENTS).await
    }

    /// Reads the rest of a response.
    pub(super) async fn read(&self, answer: Response<Incoming>) -> RpcResult<RemoteResponse> {
        let status = answer.status().as_u16();
        let body = read_body(answer.into_body(), self.limits().frame_from_network).await;
        let body = body.map_err(RpcError::internal)?;
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
    ) -> RpcResult<Response<Incoming>> {
        let path = format!("{}{path}", self.base);
        let text = body.map(ToString::to_string).unwrap_or_default();
        let wrong = |_| RpcError::invalid("that is not a valid path on the server");
        let mut request = self.site.request(method, &path, text).map_err(wrong)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let (mut pause, mut left, mut tries) = (PAUSE, MAX_WAIT, MAX_TRIES);
        loop {
            let answer = self.site.send(request.clone()).await.map_err(|silence| {
                let what = format!("the agent did not answer: {silence}");
                RpcError::new(PEER_LOST, what)
            })?;
            tries -= 1;
            let busy = matches!(answer.status().as_u16(), 429 | 503);
            let wait = retry_after(answer.headers()).unwrap_or(pause);
            if tries == 0 || !busy || wait > left {
                return Ok(answer);
            }
            sleep(wait).await;
            left -= wait;
            pause *= 2;
        }
    }
}

impl RemoteResponse {
    /// Whether the status is 2xx.
    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Whether the server does not have the path or the operation.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self.status, 404 | 405 | 501)
    }

    /// The body of a successful response; `null` when it is empty.
    ///
    /// # Errors
    /// When the server returned an error, or a body that is not JSON.
    pub(super) fn json(&self) -> RpcResult<Value> {
        self.check()?;
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|fault| {
            RpcError::internal(format!("the server's response is not JSON ({fault})"))
        })
    }

    /// An error, unless the status is 2xx.
    pub(super) fn check(&self) -> RpcResult<()> {
        match self.is_success() {
            true => Ok(()),
            false => Err(self.to_error()),
        }
    }

    pub(super) fn to_error(&self) -> RpcError {
        RpcError::from_http(self.status, &self.body)
    }
}

/// Encodes a name as one path segment: names come from outside and must not change the path.
pub(super) fn segment(name: &str) -> String {
    // A segment of dots would lead upwards.
    match name.trim_matches('.').is_empty() {
        true => name.replace('.', "%2E"),
        false => utf8_percent_encode(name, &ESCAPED).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn path_segments_are_escaped() {
        assert_eq!(segment("b7a9-x_1.0"), "b7a9-x_1.0");
        assert_eq!(segment("../a?b"), "..%2Fa%3Fb");
        assert_eq!(segment(".."), "%2E%2E");
    }
}
