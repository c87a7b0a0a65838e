//! What a person at the terminal of `serve` sees: how a listener is reached, and which clients come
//! and go. Nothing is printed on pipes and in files, where the log has it at the level info.

use std::io::IsTerminal as _;
use std::sync::LazyLock;
use std::time::Instant;

use super::agent_pool::{Agent, AgentPool};
use crate::cli::stderr;
use jsonrpc::printable;
use transport::{Endpoint, HttpEndpoint, Peer};

static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stderr().is_terminal());

/// Stands for this machine in an address that other machines connect to.
const HOST: &str = "HOST";

/// A connected client, until it is dropped.
pub(super) struct Visit(Option<Box<(String, Instant)>>);

impl Visit {
    /// Reports that a client has connected.
    pub(super) fn begin(client: &Peer, agent: &Agent) -> Self {
        Self(IS_TERMINAL.then(|| {
            let principal = client.principal.as_ref();
            let who = principal.map(|principal| format!(", the {principal}"));
            let name = format!("{}{}", client.name, who.unwrap_or_default());
            let name = printable(name.as_bytes());
            stderr::print(&format!(
                "acp-relay: {name} connected to {}",
                agent.display_name()
            ));
            Box::new((name, Instant::now()))
        }))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(visit) = &self.0 {
            let (name, since) = &**visit;
            let seconds = since.elapsed().as_secs();
            stderr::print(&format!("acp-relay: {name} left after {seconds} s"));
        }
    }
}

/// Prints how clients reach the listener at `address`.
pub(super) fn explain(address: &Endpoint, agents: &AgentPool) {
    if *IS_TERMINAL && !address.is_agent_connect() && *address != Endpoint::Stdio {
        for line in ways(address, agents) {
            stderr::print(&format!("  {line}"));
        }
    }
}

/// The commands, a line each.
fn ways(address: &Endpoint, agents: &AgentPool) -> Vec<String> {
    let mut address = address.clone();
    let is_any = |host: &str| matches!(host, "0.0.0.0" | "::");
    if let Endpoint::Http(HttpEndpoint { host, .. }) | Endpoint::Tcp { host, .. } = &mut address
        && is_any(host)
    {
        host.replace_range(.., HOST);
    }
    // One agent stands for the others.
    let name = agents.names().next().filter(|_| agents.default.is_none());
    if let (Endpoint::Http(web), Some(name)) = (&mut address, name) {
        web.path = format!("/agents/{name}{}", web.path);
    }
    let mut ways = vec![
        format!("in an editor:  acp-relay install zed {address}"),
        format!("or its agent:  acp-relay connect {address}"),
        format!("to try it:     acp-relay try {address}"),
    ];
    if !address.is_loopback() {
        ways.push(format!(
            "for a member:  acp-relay token new NAME --link {address}"
        ));
    }
    ways
}
