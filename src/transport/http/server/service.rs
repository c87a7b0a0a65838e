//! The state that all requests at a listener share.

use std::sync::Arc;

use hyper::header::HeaderValue;

use super::connection::Connection;
use super::connections::Connections;
use super::elephant;
use super::link::link;
use super::refusal::Refusal;
use crate::transport::HttpProtocol;
use crate::transport::http::port::Port;
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::http::port::rules::AGENTS;

/// The ACP service of a listener.
#[derive(Debug)]
pub(in crate::transport::http) struct AcpService {
    pub(super) port: Arc<Port>,
    pub(super) connections: Arc<Connections>,
}

impl AcpService {
    /// A service at a port, without connections.
    pub(super) fn new(port: &Arc<Port>) -> Self {
        Self {
            port: port.clone(),
            connections: Arc::default(),
        }
    }

    /// Whether anything is served at `path`.
    pub(in crate::transport::http) fn serves(&self, path: &str) -> bool {
        let below = path.strip_prefix(&*self.port.at.path);
        let elephant = below.filter(|_| self.has_elephant());
        self.is_endpoint(path) || elephant.and_then(elephant::Route::of).is_some()
    }

    /// Whether the official endpoint, or one for a named agent, is at `path`.
    pub(super) fn is_endpoint(&self, path: &str) -> bool {
        self.port
            .rules()
            .requested_agent(&self.port.at.path, path)
            .is_some()
    }

    /// Whether the official endpoint accepts messages, not only WebSockets.
    pub(super) fn has_http(&self) -> bool {
        self.port.at.protocol == HttpProtocol::StreamableHttp
    }

    /// Whether only WebSockets are served.
    pub(super) fn only_websockets(&self) -> bool {
        self.port.at.protocol == HttpProtocol::WebSocket
    }

    /// The paths that are served, with their verb, for a person.
    pub(super) fn served_paths(&self) -> String {
        let path = &self.port.at.path;
        match self.port.at.protocol {
            HttpProtocol::Elephant => format!("{path}/rpc and {path}/sse are"),
            _ if self.port.rules().front.agents.is_empty() => format!("{path} is"),
            _ if self.port.rules().front.names_only => format!("{AGENTS}NAME{path} is"),
            _ => format!("{path} and {AGENTS}NAME{path} are"),
        }
    }

    /// Whether elephant.ai's routes are served.
    pub(super) fn has_elephant(&self) -> bool {
        match self.port.at.protocol {
            HttpProtocol::Elephant => true,
            HttpProtocol::StreamableHttp => !self.port.rules().front.no_elephant,
            HttpProtocol::WebSocket | HttpProtocol::AgentConnect => false,
        }
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
