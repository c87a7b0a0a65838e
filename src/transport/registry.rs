//! Opens endpoints: which transport serves which.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::resumable::pause;
use super::{AddedTransport, http, process, ssh, stdio, tcp, unix, websocket};
use super::{
    Endpoint, HttpEndpoint, HttpProtocol, Link, Listener, OpenError, OpenErrorKind, Setup,
};
use link::Backoff;

/// For how long a link is tried to be opened whose first connection was lost.
const REOPENED: Duration = Duration::from_secs(10);

/// Checks `to` as far as possible before it is needed.
///
/// # Errors
/// When connecting could not succeed.
pub fn check(to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
    match to {
        Endpoint::Exec(argv) => process::find_program(argv, &setup.launch).map(drop),
        Endpoint::Ssh(_) => ssh::check(to, setup),
        _ if to.is_agent_connect() => (added(to, setup.agent_connect)?.check)(to),
        Endpoint::Replay(address) => {
            (added(to, setup.replay)?.check)(to)?;
            let live = address.forward.as_ref();
            live.map_or(Ok(()), |live| check(live, setup))
        }
        _ => Ok(()),
    }
}

/// Whether nothing listens at `at`; socket files are not connected.
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

/// Opens a link to a peer that listens (or starts it). Where the connection is lost before the link is
/// open, as by a peer that is being started again, it is tried again for ten seconds.
///
/// # Errors
/// When the peer cannot be reached; the error says why and what to do.
pub async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    use OpenErrorKind::{Lost, Unavailable};
    let (mut until, mut backoff) = (None, Backoff::default());
    loop {
        let error = match Box::pin(open(to, setup)).await {
            Err(error) if error.kind == Lost => error,
            // It was there before.
            Err(error) if error.kind == Unavailable && until.is_some() => error,
            opened => return opened,
        };
        let until = *until.get_or_insert_with(|| Instant::now() + REOPENED);
        let wait = pause(&mut backoff, None);
        if Instant::now() + wait > until {
            return Err(OpenError {
                kind: Lost,
                ..error
            });
        }
        tracing::warn!("{error}; connecting again");
        sleep(wait).await;
    }
}

async fn open(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    match to {
        Endpoint::Stdio => stdio::connect(setup),
        Endpoint::Exec(argv) => process::connect(argv, setup).await,
        Endpoint::Tcp { host, port } => tcp::connect(to, host, *port, setup).await,
        Endpoint::Unix(path) => unix::connect(to, path, setup).await,
        Endpoint::Ssh(at) => ssh::connect(to, at, setup).await,
        Endpoint::Http(web) => match web.protocol {
            HttpProtocol::WebSocket => websocket::connect(to, setup).await,
            HttpProtocol::StreamableHttp => {
                match Box::pin(websocket::connect_link(to, web, setup)).await? {
                    Some(link) => Ok(link),
                    None => http::connect(to, web, setup).await,
                }
            }
            HttpProtocol::Elephant => http::connect_elephant(to, web, setup).await,
            HttpProtocol::AgentConnect => {
                (added(to, setup.agent_connect)?.connect)(to, setup).await
            }
        },
        Endpoint::Replay(_) => (added(to, setup.replay)?.connect)(to, setup).await,
        Endpoint::Cluster(_) => (added(to, setup.cluster)?.connect)(to, setup).await,
    }
}

/// Binds `at` and waits for peers.
///
/// # Errors
/// When it cannot be bound; the error says why and what to do.
pub async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let unsupported = |what, remedy: &str| {
        Err(OpenError::new(OpenErrorKind::Usage, at, what).with_remedy(remedy))
    };
    match at {
        Endpoint::Stdio => stdio::listen(setup),
        Endpoint::Exec(_) => unsupported(
            "a process that the relay starts cannot be listened on",
            "Name the agent's command after `--`, and listen on stdio:, tcp:, unix: or ws:",
        ),
        Endpoint::Tcp { host, port } => tcp::listen(at, host, *port, setup).await,
        Endpoint::Unix(path) => unix::listen(at, path, setup).await,
        _ if at.is_agent_connect() => (added(at, setup.agent_connect)?.listen)(at, setup).await,
        Endpoint::Cluster(_) => (added(at, setup.cluster)?.listen)(at, setup).await,
        Endpoint::Http(_) => http::listen(at, setup).await,
        Endpoint::Ssh(_) => unsupported(
            "ssh leads to an agent; no client connects from it",
            "Run `acp-relay connect` with this endpoint on the client's machine",
        ),
        Endpoint::Replay(_) => (added(at, setup.replay)?.listen)(at, setup).await,
    }
}

fn added(
    endpoint: &Endpoint,
    transport: Option<AddedTransport>,
) -> Result<AddedTransport, OpenError> {
    transport.ok_or_else(|| {
        let what = format!("\"{}:\" is not supported", endpoint.scheme());
        OpenError::new(OpenErrorKind::Usage, endpoint, what)
    })
}
