//! HTTP requests to an Agent Connect server.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::error::RemoteError;
use crate::jsonrpc::Limits;
use crate::transport::http::client::{HttpClient, NoResponse, read_body, retry_after};
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

/// What a response waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The server alone.
    Server,
    /// The agent's work.
    Agent,
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

    pub(super) fn max_body(&self) -> usize {
        self.site.limits.frame_from_network
    }

    /// Sends a GET request.
    pub(super) async fn get(&self, path: &str) -> Result<RemoteResponse, RemoteError> {
        self.request(Method::GET, path, None, Wait::Server).await
    }

    /// Sends a POST request.
    pub(super) async fn post(
        &self,
        path: &str,
        body: impl Into<Option<&Value>>,
    ) -> Result<RemoteResponse, RemoteError> {
        let body = body.into();
        self.request(Method::POST, path, body, Wait::Server).await
    }

    /// Sends a DELETE request.
    pub(super) async fn delete(&self, path: &str) -> Result<RemoteResponse, RemoteError> {
        self.request(Method::DELETE, path, None, Wait::Server).await
    }

    /// Sends a request that waits for the agent, and reads the whole response.
    pub(super) async fn wait(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<RemoteResponse, RemoteError> {
        self.request(method, path, body, Wait::Agent).await
    }

    /// The same, but returns when the response begins.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, RemoteError> {
        self.send(method, path, body, Wait::Agent).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wait: Wait,
    ) -> Result<RemoteResponse, RemoteError> {
        let request = async {
            let answer = self.send(method, path, body, wait).await?;
            let status = answer.status().as_u16();
            let body = read_body(answer.into_body(), self.max_body()).await;
            let body = body.map_err(RemoteError::internal)?;
            Ok(RemoteResponse { status, body })
        };
        if wait == Wait::Agent {
            return request.await;
        }
        timeout(TIMEOUT, request).await.unwrap_or_else(|_| {
            Err(RemoteError::internal(format!(
                "no answer within {TIMEOUT:?}"
            )))
        })
    }

    /// Sends a request and reads the head of the response. A server that is too busy is tried
    /// again.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wait: Wait,
    ) -> Result<Response<Incoming>, RemoteError> {
        let has_body = body.is_some();
        let body = body.map(ToString::to_string).unwrap_or_default();
        let path = format!("{}{path}", self.base);
        let request = self.site.request(method, &path, body);
        let mut request =
            request.map_err(|_| RemoteError::invalid("that is not a valid path on the server"))?;
        let accept = if wait == Wait::Agent {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let (mut pause, mut left) = (PAUSE, MAX_WAIT);
        for last in (0..MAX_TRIES).rev() {
            let answer = self.site.send(request.clone()).await;
            let answer = answer.map_err(|silence| no_answer(&silence))?;
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
        if !self.is_success() {
            return Err(self.to_error());
        }
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|fault| {
            RemoteError::internal(format!("the server's response is not JSON ({fault})"))
        })
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
    let mut path = String::new();
    for byte in name.bytes() {
        // A segment of dots would lead upwards.
        let plain = byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
        if plain || byte == b'.' && !name.trim_matches('.').is_empty() {
            path.push(byte as char);
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

fn no_answer(silence: &NoResponse) -> RemoteError {
    RemoteError::new(
        crate::jsonrpc::reply::PEER_LOST,
        format!("the agent did not answer: {silence}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_segments_are_escaped() {
        assert_eq!(segment("b7a9-x_1.0"), "b7a9-x_1.0");
        assert_eq!(segment("../a?b"), "..%2Fa%3Fb");
        assert_eq!(segment(".."), "%2E%2E");
    }
}
