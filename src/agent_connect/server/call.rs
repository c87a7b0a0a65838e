//! A request of the API: its sender, and what its path, its query and its body hold.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use bytes::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::agents::Requester;
use super::hub::{Hub, RunAt};
use crate::api::agent::parse_id;
use crate::api::error::{ApiError, ApiResult};
use crate::api::page::ResultPage;
use crate::store::Rows;
use transport::current_time;

/// How long a client may have a response wait, in seconds.
const MAX_BLOCK: f64 = 600.0;

/// A request.
pub(super) struct Call {
    pub(super) hub: Arc<Hub>,
    pub(super) requester: Arc<Requester>,
    /// Its body; an empty one is an empty object.
    pub(super) body: Value,
    /// The last event that its sender has received.
    pub(super) last_event: Option<String>,
    /// The parameters of its path, by name.
    path: HashMap<String, String>,
    query: HashMap<String, String>,
}

/// What was received before the route of a request was found.
#[derive(Clone)]
pub(super) struct Received {
    pub(super) requester: Arc<Requester>,
    pub(super) body: Bytes,
}

impl FromRequestParts<Arc<Hub>> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> ApiResult<Self> {
        let path = Path::from_request_parts(parts, hub).await;
        let Path(path) = path.map_err(|_| ApiError::not_found("the path is not UTF-8"))?;
        let received = parts.extensions.remove::<Received>();
        let Received { requester, body } =
            received.ok_or_else(|| ApiError::unavailable("the request was not received"))?;
        let query = parts.uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes()).into_owned();
        let last_event = parts.headers.get("last-event-id");
        let wrong = |error| ApiError::invalid(format!("the body is not JSON: {error}"));
        Ok(Self {
            hub: hub.clone(),
            requester,
            body: match body.is_empty() {
                true => json!({}),
                false => serde_json::from_slice(&body).map_err(wrong)?,
            },
            last_event: last_event.and_then(|id| Some(id.to_str().ok()?.to_owned())),
            path,
            query: query.collect(),
        })
    }
}

impl Call {
    /// The owner name of its sender.
    pub(super) fn owner(&self) -> &Arc<str> {
        &self.requester.owner
    }

    /// Runs a job on the rows of its sender.
    pub(super) async fn rows<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Rows<'_>) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        self.hub.store.run(self.owner(), job).await
    }

    /// The name or the id of the agent of its path.
    pub(super) fn agent(&self) -> &str {
        self.path.get("agent_id").map_or("", String::as_str)
    }

    /// The thread of its path, if it names one.
    pub(super) fn thread_if_named(&self) -> ApiResult<Option<Uuid>> {
        let named = self.path.contains_key("thread_id");
        named.then(|| self.thread()).transpose()
    }

    /// The thread of its path.
    pub(super) fn thread(&self) -> ApiResult<Uuid> {
        self.id("thread_id", "there is no such thread")
    }

    /// The run of its path.
    pub(super) fn run(&self) -> ApiResult<RunAt> {
        Ok(RunAt {
            owner: self.owner().clone(),
            thread: self.thread_if_named()?,
            id: self.id("run_id", "there is no such run")?,
        })
    }

    fn id(&self, name: &str, missing: &'static str) -> ApiResult<Uuid> {
        let id = self.path.get(name).and_then(|text| parse_id(text));
        id.ok_or_else(|| ApiError::not_found(missing))
    }

    /// A parameter of the query.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A parameter of the query, which must be what `wanted` says.
    pub(super) fn parsed<T: FromStr>(&self, name: &str, wanted: &str) -> ApiResult<Option<T>> {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|_| ApiError::invalid(format!("\"{name}\" must be {wanted}")))
    }

    /// The part of the results that the query requests.
    pub(super) fn page(&self) -> ApiResult<ResultPage> {
        let (usual, number) = (ResultPage::default(), "a whole number, 0 or more");
        let page = ResultPage {
            limit: self.parsed("limit", number)?.unwrap_or(usual.limit),
            offset: self.parsed("offset", number)?.unwrap_or(usual.offset),
        };
        page.check()
    }

    /// How long to wait: `block_timeout` in seconds, in the query or, as in the prose
    /// specification, in the body; `default` if not given.
    pub(super) fn max_wait(&self, default: Option<Duration>) -> ApiResult<Option<Duration>> {
        let name = "block_timeout";
        let given = match (self.text(name), &self.body[name]) {
            (Some(text), _) => text.parse().ok(),
            (None, Value::Null) => return Ok(default),
            (None, value) => value.as_f64(),
        };
        let given = given.filter(|given: &f64| given.is_finite() && *given >= 0.0);
        let what = "\"block_timeout\" must be a number of seconds, 0 or more";
        let seconds = given.ok_or_else(|| ApiError::invalid(what))?;
        Ok(Some(Duration::from_secs_f64(seconds.min(MAX_BLOCK))))
    }

    /// Waits until the access of its sender ends, because its credentials are no longer valid.
    pub(super) fn expired(&self) -> impl Future<Output = ()> + Send + use<> {
        let (principal, port) = (self.requester.principal.clone(), &self.hub.port);
        let (gate, recheck) = (port.rules().gate.clone(), port.limits.credential_check);
        async move {
            if principal.key.is_none() && principal.expires.is_none() {
                return std::future::pending().await;
            }
            loop {
                sleep(recheck).await;
                if !gate.is_still_valid(&principal, current_time()) {
                    return;
                }
            }
        }
    }

    /// Waits for `waiting` while its sender has access.
    pub(super) async fn while_valid<T>(
        &self,
        waiting: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        tokio::select! {
            waited = waiting => waited,
            () = self.expired() => {
                let what = format!("{} is no longer authorized", self.requester.principal);
                Err(ApiError::new(401, what))
            }
        }
    }

    /// Refuses to start anything while the relay shuts down.
    pub(super) fn check_not_draining(&self) -> ApiResult<()> {
        match self.hub.port.setup.draining.is_cancelled() {
            true => Err(ApiError::unavailable("the relay is shutting down")),
            false => Ok(()),
        }
    }
}
