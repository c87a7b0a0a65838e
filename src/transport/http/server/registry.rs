//! `/registry.json`: the agents of a listener that a client may use, in the format of the ACP
//! registry (github.com/agentclientprotocol/registry, FORMAT.md), so that an editor or a team's
//! registry offers them. Each is started as `acp-relay connect URL`, once this version is published
//! by npx or uvx. Before, no package is named, because anybody could publish one of that name; only
//! `acp-relay agents import` then knows how to start them.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use hyper::HeaderMap;
use hyper::Uri;
use hyper::header::{CONTENT_TYPE, HOST};
use serde_json::{Value, json};

use super::service::{AGENTS, AcpService};
use crate::HttpProtocol;
use crate::IS_PUBLISHED;
use crate::http::port::caller::AuthenticatedClient;
use auth::ONLY_AGENT;

/// The path.
pub(super) const PATH: &str = "/registry.json";

/// By which a proxy says that its client used TLS.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Answers with the registry.
pub(super) async fn registry(
    State(service): State<Arc<AcpService>>,
    Extension(client): Extension<AuthenticatedClient>,
    uri: Uri,
    fields: HeaderMap,
) -> Response {
    let at = &service.port.at;
    let text = |name| fields.get(name).and_then(|value| value.to_str().ok());
    let tls = at.tls || text(FORWARDED_PROTO) == Some("https");
    let scheme = match (at.protocol, tls) {
        (HttpProtocol::WebSocket, false) => "ws",
        (HttpProtocol::WebSocket, true) => "wss",
        (_, false) => "http",
        (_, true) => "https",
    };
    // The port has checked it.
    let host = uri.authority().map(|authority| authority.as_str());
    let host = host.or_else(|| text(HOST.as_str())).unwrap_or_default();
    let rules = service.port.rules();
    let names = rules.front.agents.iter().map(String::as_str);
    let named = names.map(|name| (name, format!("{AGENTS}{name}{}", at.path)));
    // A listener without names has one agent, at its own path.
    let only = rules.front.agents.is_empty() && !rules.front.names_only;
    let only = only.then(|| (ONLY_AGENT, at.path.clone()));
    let usable = named.chain(only);
    let usable = usable.filter(|(name, _)| client.principal.may_use(name));
    let agents: Vec<Value> = usable
        .map(|(name, path)| entry(name, host, &format!("{scheme}://{host}{path}")))
        .collect();
    let registry = json!({ "version": "1.0.0", "agents": agents, "extensions": [] });
    ([(CONTENT_TYPE, "application/json")], registry.to_string()).into_response()
}

/// The entry of one agent.
fn entry(name: &str, host: &str, url: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let mut entry = json!({
        "id": name,
        "name": name,
        "version": version,
        "description": format!("{name} on {host}, through acp-relay"),
        "authors": ["acp-relay"],
        "license": "Apache-2.0",
        "_meta": { "acp-relay": { "url": url } },
    });
    if IS_PUBLISHED {
        let package = format!("acp-relay@{version}");
        let package = json!({ "package": package, "args": ["connect", url] });
        entry["distribution"] = json!({ "npx": package, "uvx": package });
    }
    entry
}
