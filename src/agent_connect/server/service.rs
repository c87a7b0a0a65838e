//! What the handlers of a service share, and the client of a request.

use std::sync::Arc;

use hyper::{StatusCode, Uri};

use super::agents::Requester;
use super::hub::Hub;
use crate::transport::http::port::Port;
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::http::port::refusal::Refusal;

/// The Agent Connect service of a port.
pub(super) struct Api {
    pub(super) port: Arc<Port>,
    pub(super) hub: Arc<Hub>,
    /// The path it is served at, without a slash at the end.
    pub(super) path: String,
    /// Its URL.
    pub(super) base: String,
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
