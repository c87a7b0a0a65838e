//! The list of transports.
//!
//! A new transport needs a line in [`all`]; the conformance suite tests every listed transport.

use super::http::Http;
use super::process::Exec;
use super::replay::ReplayTransport;
use super::stdio::Stdio;
use super::tcp::{self, Tcp};
use super::unix::{self, Unix};
use super::websocket::WebSocket;
use super::{Endpoint, HttpEndpoint, Link, Listener, OpenError, OpenErrorKind, Setup, Transport};

/// All transports. Some have state per process (there is one stdin), so they are static.
#[must_use]
pub fn all() -> &'static [&'static dyn Transport] {
    static STDIO: Stdio = Stdio::new();
    static REPLAY: ReplayTransport = ReplayTransport {
        check,
        connect: |to, setup| Box::pin(connect(to, setup)),
    };
    static ALL: &[&dyn Transport] = &[&STDIO, &Exec, &Tcp, &Unix, &WebSocket, &Http, &REPLAY];
    ALL
}

/// Checks `to` as far as possible before it is needed.
///
/// # Errors
/// When connecting could not succeed.
pub fn check(to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
    transport_for(to, setup)?.check(to, setup)
}

/// Whether nothing listens at `at`, as far as that shows without binding it; socket files are not
/// connected.
///
/// # Errors
/// When it could not be bound even if it were free.
pub fn is_free(at: &Endpoint) -> Result<bool, OpenError> {
    match at {
        Endpoint::Tcp { host, port } | Endpoint::Http(HttpEndpoint { host, port, .. }) => {
            tcp::is_free(at, host, *port)
        }
        Endpoint::Unix(path) => unix::check_path(at, path).map(|()| true),
        _ => Ok(true),
    }
}

/// Opens a link to a peer that listens (or starts it).
///
/// # Errors
/// When the peer cannot be reached; the error says why and what to do.
pub async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    transport_for(to, setup)?.connect(to, setup).await
}

/// Binds `at` and waits for peers.
///
/// # Errors
/// When it cannot be bound; the error says why and what to do.
pub async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    transport_for(at, setup)?.listen(at, setup).await
}

fn transport_for(endpoint: &Endpoint, setup: &Setup) -> Result<&'static dyn Transport, OpenError> {
    let scheme = endpoint.scheme();
    let added = setup.added.iter().copied();
    let serves = |transport: &&dyn Transport| transport.schemes().contains(&scheme);
    let found = all().iter().copied().chain(added).find(serves);
    found.ok_or_else(|| {
        let what = format!("\"{scheme}:\" is not supported");
        OpenError::new(OpenErrorKind::Usage, endpoint, what)
    })
}
