//! A request of the API: its sender, what its path, its query and its body hold, and what all
//! requests of a service share.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};
use serde_json::{Value, json};
use uuid::Uuid;

use super::agents::Requester;
use super::hub::{Hub, RunAt};
use super::permit::AccessPermit;
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::ids;
use crate::transport::http::port::Port;
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::http::port::refusal::Refusal;

/// How long a client may have a response wait, in seconds.
const MAX_BLOCK: f64 = 600.0;

/// The Agent Connect service of a port.
pub(super) struct Api {
    pub(super) port: Arc<Port>,
    pub(super) hub: Arc<Hub>,
    /// The path it is served at, without a slash at the end.
    pub(super) path: String,
    /// Its URL.
    pub(super) base: String,
}

/// A request.
pub(super) struct Call {
    pub(super) api: Arc<Api>,
    pub(super) requester: Arc<Requester>,
    /// The parameters of its path, by name.
    path: HashMap<String, String>,
    query: Vec<(String, String)>,
    body: Bytes,
    /// The last event that its sender has received.
    pub(super) last_event: Option<String>,
}

/// What was received before the route of a request was found.
#[derive(Clone)]
pub(super) struct Received {
    pub(super) requester: Arc<Requester>,
    pub(super) body: Bytes,
}

impl Api {
    /// Whether it serves a path of the port.
    pub(super) fn serves(&self, path: &str) -> bool {
        self.path_below(path).is_some()
    }

    /// The same address below the service's path; `/`, where nothing is served, for others.
    pub(super) fn address_below(&self, uri: &Uri) -> Uri {
        let path = self.path_below(uri.path()).unwrap_or_default();
        let query = uri
            .query()
            .map_or_else(String::new, |query| format!("?{query}"));
        let below = format!("/{}{query}", path.trim_matches('/'));
        below.parse().unwrap_or_default()
    }

    /// The client, if it may use any of the agents.
    pub(super) fn requester(&self, client: AuthenticatedClient) -> Result<Requester, Refusal> {
        let principal = client.principal;
        if !self.hub.agents.has_any_for(&principal) {
            let why = format!("the {principal} is for other agents");
            return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
        }
        Ok(Requester {
            owner: principal.to_string().into(),
            principal,
            default_agent: self.port.rules().front.default_agent.clone(),
        })
    }

    fn path_below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let below = path.strip_prefix(&self.path)?;
        below.starts_with('/').then_some(below)
    }
}

impl FromRequestParts<Arc<Api>> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, api).await;
        let Path(path) = path.map_err(|_| ApiError::not_found("the path is not UTF-8"))?;
        let received = parts.extensions.remove::<Received>();
        let Received { requester, body } =
            received.ok_or_else(|| ApiError::unavailable("the request was not received"))?;
        let query = parts.uri.query().unwrap_or_default();
        let last_event = parts.headers.get("last-event-id");
        Ok(Self {
            api: api.clone(),
            requester,
            path,
            query: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            body,
            last_event: last_event.and_then(|id| Some(id.to_str().ok()?.to_owned())),
        })
    }
}

impl Call {
    /// The owner name of its sender.
    pub(super) fn owner(&self) -> &Arc<str> {
        &self.requester.owner
    }

    /// The name or the id of the agent of its path.
    pub(super) fn agent(&self) -> &str {
        self.path.get("agent_id").map_or("", String::as_str)
    }

    /// The thread of its path, if it names one.
    pub(super) fn thread_if_named(&self) -> Result<Option<Uuid>, ApiError> {
        let named = self.path.contains_key("thread_id");
        named.then(|| self.thread()).transpose()
    }

    /// The thread of its path.
    pub(super) fn thread(&self) -> Result<Uuid, ApiError> {
        self.id("thread_id", "there is no such thread")
    }

    /// The run of its path.
    pub(super) fn run(&self) -> Result<RunAt, ApiError> {
        Ok(RunAt {
            owner: self.owner().clone(),
            thread: self.thread_if_named()?,
            id: self.id("run_id", "there is no such run")?,
        })
    }

    fn id(&self, name: &str, missing: &'static str) -> Result<Uuid, ApiError> {
        let id = self.path.get(name).and_then(|text| ids::parse(text));
        id.ok_or_else(|| ApiError::not_found(missing))
    }

    /// The body; an empty one is an empty object.
    pub(super) fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        let wrong = |error| ApiError::invalid(format!("the body is not JSON: {error}"));
        serde_json::from_slice(&self.body).map_err(wrong)
    }

    /// A parameter of the query.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A parameter of the query, which must be what `wanted` says.
    pub(super) fn parsed<T: FromStr>(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>, ApiError> {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|_| ApiError::wrong_type(name, wanted))
    }

    /// A parameter of the query that is a whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        self.parsed(name, "a whole number, 0 or more")
    }

    /// How long to wait: `block_timeout` in seconds, in the query or, as in the prose
    /// specification, in the body; `default` if not given.
    pub(super) fn max_wait(&self, default: Option<Duration>) -> Result<Option<Duration>, ApiError> {
        let name = "block_timeout";
        let given = match self.text(name) {
            Some(text) => text.parse().ok(),
            None => match &self.json()?[name] {
                Value::Null => return Ok(default),
                value => value.as_f64(),
            },
        };
        let given = given.filter(|given: &f64| given.is_finite() && *given >= 0.0);
        let wrong = || ApiError::wrong_type(name, "a number of seconds, 0 or more");
        let seconds = given.ok_or_else(wrong)?.min(MAX_BLOCK);
        Ok(Some(Duration::from_secs_f64(seconds)))
    }

    /// The access of its sender.
    pub(super) fn permit(&self) -> AccessPermit {
        AccessPermit::new(&self.api.port, &self.requester)
    }

    /// Refuses to start anything while the relay shuts down.
    pub(super) fn check_not_draining(&self) -> Result<(), ApiError> {
        match self.api.port.setup.draining.is_cancelled() {
            true => Err(ApiError::unavailable("the relay is shutting down")),
            false => Ok(()),
        }
    }
}
