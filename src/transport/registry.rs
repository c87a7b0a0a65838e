//! The one list of transports.
//!
//! A new transport is a file and a line in [`all`]; what is listed here is enrolled in the
//! conformance suite.

use super::agent_connect::Rest;
use super::http::Http;
use super::memory::Memory;
use super::process::Exec;
use super::replay::Replay;
use super::stdio::Stdio;
use super::tcp::{self, Tcp};
use super::unix::{self, Unix};
use super::websocket::WebSocket;
use super::{Endpoint, Link, Listener, OpenError, OpenErrorKind, Setup, Transport, Web};

/// Every transport there is. Some keep state for the process (there is one stdin), so they are
/// made once.
#[must_use]
pub fn all() -> &'static [&'static dyn Transport] {
    static STDIO: Stdio = Stdio::new();
    static MEMORY: Memory = Memory::new();
    static ALL: &[&dyn Transport] = &[
        &STDIO, &Exec, &Tcp, &Unix, &WebSocket, &Http, &Rest, &Replay, &MEMORY,
    ];
    ALL
}

/// The transport that serves `scheme`, given without `:`.
#[must_use]
pub fn lookup(scheme: &str) -> Option<&'static dyn Transport> {
    let mut all = all().iter().copied();
    all.find(|transport| transport.schemes().contains(&scheme))
}

/// Checks what can be checked about `to` before anybody needs it.
///
/// # Errors
/// When connecting could not succeed.
pub fn check(to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
    serving(to)?.check(to, setup)
}

/// Whether nobody listens at `at` now, as far as that shows without listening there; who is behind a
/// socket file is not asked.
///
/// # Errors
/// When it could not be bound whoever listens there.
pub fn is_free(at: &Endpoint) -> Result<bool, OpenError> {
    match at {
        Endpoint::Tcp { host, port } | Endpoint::Web(Web { host, port, .. }) => {
            tcp::is_free(at, host, *port)
        }
        Endpoint::Unix(path) => unix::check_path(at, path).map(|()| true),
        _ => Ok(true),
    }
}

/// Opens a link to a peer that listens (or starts it).
///
/// # Errors
/// When the peer is not to be had; the error says why and what to do.
pub async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    serving(to)?.connect(to, setup).await
}

/// Binds `at` and waits for peers.
///
/// # Errors
/// When it cannot be bound; the error says why and what to do.
pub async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    serving(at)?.listen(at, setup).await
}

fn serving(endpoint: &Endpoint) -> Result<&'static dyn Transport, OpenError> {
    lookup(endpoint.scheme()).ok_or_else(|| {
        let what = format!("\"{}:\" is not built in yet", endpoint.scheme());
        OpenError::new(OpenErrorKind::Usage, endpoint, what)
    })
}
