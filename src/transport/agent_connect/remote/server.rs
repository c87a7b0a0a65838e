//! Questions to an Agent Connect server, over HTTP.
//!
//! Not here: what is asked.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, Uri};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::agent_connect::remote::failure::Failure;
use crate::jsonrpc::Limits;
use crate::transport::http::client::{Places, Silence, Site, whole};
use crate::transport::{Endpoint, OpenError, OpenErrorKind, Setup, Web};

/// How often a server that is busy is asked.
const TRIES: u32 = 4;
/// How long it is waited for when it does not say how long, at first.
const PAUSE: Duration = Duration::from_millis(500);
/// All that is waited for a server that is busy. One that asks for more is believed at once: who
/// waits is told what it has said, instead of nothing for as long as it may take.
const LONGEST: Duration = Duration::from_secs(30);
/// How long an answer is waited for that does not wait for the agent.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server.
pub(super) struct Server {
    site: Site,
    /// Scheme, authority and path, without a slash at the end.
    base: String,
}

/// Its answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// As long as a server needs.
    Server,
    /// As long as the agent works.
    Agent,
}

impl Server {
    /// Reaches the server once.
    pub(super) async fn reach(
        to: &Endpoint,
        web: &Web,
        base: &str,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let scheme = if web.tls { "https" } else { "http" };
        let base = format!("{scheme}://{}{base}", web.authority());
        let uri: Uri = base.parse().map_err(|fault| {
            let what = format!("that is no address for HTTP ({fault})");
            OpenError::new(OpenErrorKind::Usage, to, what)
        })?;
        let places = Places {
            posts: uri.clone(),
            streams: uri,
        };
        let site = Site::reach(to, web, places, setup).await?;
        Ok(Self { site, base })
    }

    /// The bounds in force.
    pub(super) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.site.limits)
    }

    pub(super) fn longest(&self) -> usize {
        self.site.limits.frame_from_network
    }

    /// Reads what is there.
    pub(super) async fn get(&self, path: &str) -> Result<Told, Failure> {
        self.ask(Method::GET, path, None, Wait::Server).await
    }

    /// Has the server do something.
    pub(super) async fn post(
        &self,
        path: &str,
        body: impl Into<Option<&Value>>,
    ) -> Result<Told, Failure> {
        let body = body.into();
        self.ask(Method::POST, path, body, Wait::Server).await
    }

    /// Has it removed.
    pub(super) async fn delete(&self, path: &str) -> Result<Told, Failure> {
        self.ask(Method::DELETE, path, None, Wait::Server).await
    }

    /// Asks, and hears all of an answer that the agent works for.
    pub(super) async fn wait(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Told, Failure> {
        self.ask(method, path, body, Wait::Agent).await
    }

    /// The same, as soon as the answer begins.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Failure> {
        self.begin(method, path, body, Wait::Agent).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wait: Wait,
    ) -> Result<Told, Failure> {
        let asking = async {
            let answer = self.begin(method, path, body, wait).await?;
            let status = answer.status().as_u16();
            let body = whole(answer.into_body(), self.longest()).await;
            let body = body.map_err(Failure::internal)?;
            Ok(Told { status, body })
        };
        if wait == Wait::Agent {
            return asking.await;
        }
        timeout(PATIENCE, asking)
            .await
            .unwrap_or_else(|_| Err(Failure::internal(format!("no answer within {PATIENCE:?}"))))
    }

    /// Asks, and hears the head of the answer. A server that is too busy to look at the request is
    /// asked again.
    async fn begin(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wait: Wait,
    ) -> Result<Response<Incoming>, Failure> {
        let place: Uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|_| Failure::invalid("that names no place on the server"))?;
        let mut headers = HeaderMap::new();
        let accept = if wait == Wait::Agent {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let (mut pause, mut left) = (PAUSE, LONGEST);
        for last in (0..TRIES).rev() {
            let asking = self
                .site
                .ask_at(&place, method.clone(), headers.clone(), body.clone());
            let answer = asking.await.map_err(|silence| unheard(&silence))?;
            let busy = matches!(answer.status().as_u16(), 429 | 503);
            let asked = answer.headers().get(RETRY_AFTER);
            let asked = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            let wait = asked.map_or(pause, Duration::from_secs);
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

impl Told {
    /// Whether it is what was asked for.
    pub(super) const fn is_good(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Whether the server has no such path, or cannot do it.
    pub(super) const fn is_absent(&self) -> bool {
        is_absent(self.status)
    }

    /// The body of a good answer; `null` when there is none.
    ///
    /// # Errors
    /// When the server refused, or said something that is no JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        if !self.is_good() {
            return Err(self.refusal());
        }
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body)
            .map_err(|fault| Failure::internal(format!("the server's answer is no JSON ({fault})")))
    }

    pub(super) fn refusal(&self) -> Failure {
        Failure::refused(self.status, &self.body)
    }
}

/// Whether a status says that there is no such path, or that it does nothing.
pub(super) const fn is_absent(status: u16) -> bool {
    matches!(status, 404 | 405 | 501)
}

/// A name as one segment of a path: it comes from elsewhere, and must not lead there.
pub(super) fn segment(name: &str) -> String {
    let mut path = String::new();
    for byte in name.bytes() {
        // Dots alone would lead upwards.
        let plain = byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
        if plain || byte == b'.' && !name.trim_matches('.').is_empty() {
            path.push(byte as char);
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

fn unheard(silence: &Silence) -> Failure {
    Failure::new(
        crate::jsonrpc::reply::PEER_LOST,
        format!("the agent did not answer: {silence}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        assert_eq!(segment("b7a9-x_1.0"), "b7a9-x_1.0");
        assert_eq!(segment("../a?b"), "..%2Fa%3Fb");
        assert_eq!(segment(".."), "%2E%2E");
    }
}
