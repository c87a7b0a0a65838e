//! The state that all requests at a listener share.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::connection::{Connection, Connections};
use super::link::link;
use crate::HttpProtocol;
use crate::http::headers;
use crate::http::port::Port;
use crate::http::port::caller::AuthenticatedClient;
use crate::http::port::refusal::Refusal;
use crate::http::port::shared::Rules;
use auth::ONLY_AGENT;

/// The prefix of a path that names an agent.
pub(super) const AGENTS: &str = "/agents/";

/// The ACP service of a listener: what all its requests share.
pub(super) struct AcpService {
    pub(super) port: Arc<Port>,
    pub(super) connections: Arc<Connections>,
}

impl AcpService {
    /// The agent that is asked for at `path`, when that is the official endpoint, one below the
    /// name of an agent, or one of elephant.ai's routes, and is served; and whether the path names
    /// it.
    pub(super) fn requested_agent<'a>(
        &self,
        rules: &'a Rules,
        path: &'a str,
    ) -> Option<(&'a str, bool)> {
        let (own, front) = (&*self.port.at.path, &rules.front);
        let (has_official, has_elephant) = match self.port.at.protocol {
            HttpProtocol::Elephant => (false, true),
            HttpProtocol::StreamableHttp => (true, !front.no_elephant),
            HttpProtocol::WebSocket => (true, false),
            HttpProtocol::AgentConnect => (false, false),
        };
        let is_served = match path.strip_prefix(own) {
            Some("/rpc" | "/sse") => has_elephant,
            Some("") => has_official,
            _ => {
                let name = path.strip_prefix(AGENTS)?.strip_suffix(own)?;
                let name = front.agents.get(name).filter(|_| has_official)?;
                return Some((name, true));
            }
        };
        let name = front.default_agent.as_deref().unwrap_or(ONLY_AGENT);
        (is_served && !front.names_only).then_some((name, false))
    }

    /// The connection that a request names, if it names one.
    ///
    /// # Errors
    /// It is not open, or not the client's.
    pub(super) fn connection(
        &self,
        fields: &HeaderMap,
        client: &AuthenticatedClient,
    ) -> Result<Option<Arc<Connection>>, Refusal> {
        let Some(id) = single(fields, &headers::CONNECTION_ID)? else {
            return Ok(None);
        };
        let found = self.connections.find(id);
        let found = found.filter(|connection| client.principal.finds(&connection.owner));
        found.map(Some).ok_or_else(Refusal::unknown_connection)
    }

    /// Nothing is served at the path of a request.
    pub(super) fn not_found(&self) -> Refusal {
        let (path, rules) = (&self.port.at.path, self.port.rules());
        let served = match self.port.at.protocol {
            HttpProtocol::Elephant => format!("{path}/rpc and {path}/sse are"),
            _ if rules.front.agents.is_empty() => format!("{path} is"),
            _ if rules.front.names_only => format!("{AGENTS}NAME{path} is"),
            _ => format!("{path} and {AGENTS}NAME{path} are"),
        };
        let why = format!("only {served} served here");
        Refusal::fatal(StatusCode::NOT_FOUND, why)
    }

    /// Passes the link of a new HTTP connection to the accept loop.
    pub(super) async fn announce(
        &self,
        connection: &Arc<Connection>,
        client: &AuthenticatedClient,
    ) -> Result<(), Refusal> {
        let link = link(connection, &self.connections, client);
        self.port.announce(&client.from, link).await
    }

    /// The cookie for a new connection.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let rules = self.port.rules();
        let pair = rules.front.affinity_cookie.as_ref()?;
        let secure = if self.port.at.tls { "; Secure" } else { "" };
        let path = match rules.front.agents.is_empty() {
            true => &self.port.at.path,
            // The same relay is behind all of them.
            false => "/",
        };
        let cookie = format!("{pair}; Path={path}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&cookie).ok()
    }
}

/// The only header of that name, as text; an empty one counts as none.
pub(super) fn single<'a>(
    fields: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Refusal> {
    let mut all = fields.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) if all.next().is_none() => Ok(Some(text).filter(|text| !text.is_empty())),
        Ok(_) => Err(Refusal::bad_request(format!("{name} is given twice"))),
        Err(_) => Err(Refusal::bad_request(format!("{name} is not plain ASCII"))),
    }
}
