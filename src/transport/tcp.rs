//! Frames over TCP: `tcp://HOST:PORT`.
//!
//! Also opens the sockets of HTTP and WebSockets, so that all sockets have the same options: no
//! delay for small messages, and an end when the other machine no longer acknowledges.
//!
//! # Decisions
//!
//! **Both keepalive and `TCP_USER_TIMEOUT`.** Keepalive probes only while no data is
//! unacknowledged. Unacknowledged data is retransmitted by Linux for a quarter of an hour, and on
//! event streams, which carry keep-alive comments, there is always some.
//!
//! **A byte stream carries no token.** A first line outside the protocol would exclude every
//! program that this transport is for (`socat`, an agent's own `--port`). So such a listener is for
//! programs of the relay's own user, or for all if configured. From other machines clients connect
//! through ssh, or over `wss://`.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::time::timeout;

use super::admission::{StreamListener, admit};
use super::{Endpoint, IncomingLink, Link, Listener, OpenError, OpenErrorKind, Peer, Setup};
use super::{open_error, owner, stream};
use auth::{Credentials, Gate, Reachability};
use jsonrpc::Limits;

/// Shortest keepalive time of the system.
const MIN_KEEPALIVE: Duration = Duration::from_secs(1);

/// Connects to `tcp://HOST:PORT`.
pub(crate) async fn connect(
    to: &Endpoint,
    host: &str,
    port: u16,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let stream = dial(to, host, port, setup).await?;
    let (reader, writer) = stream.into_split();
    Ok(stream::remote(reader, writer, to.to_string(), setup))
}

/// Listens at `tcp://HOST:PORT`.
pub(super) async fn listen(
    at: &Endpoint,
    host: &str,
    port: u16,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let (socket, port) = bind(at, host, port, setup).await?;
    let host = host.to_owned();
    Ok(Box::new(StreamListener {
        socket,
        at: Endpoint::Tcp { host, port },
        setup: setup.clone(),
        next: |bound| Box::pin(next(bound)),
    }))
}

async fn next(bound: &StreamListener<TcpListener>) -> io::Result<IncomingLink> {
    let StreamListener {
        socket, at, setup, ..
    } = bound;
    let (stream, address) = accept(socket, &setup.limits).await?;
    let place = if at.is_loopback() {
        Reachability::Loopback
    } else {
        Reachability::Network
    };
    let user = user_of(&stream, address, &setup.gate, place);
    let credentials = Credentials {
        reachability: place,
        address: Some(address.ip()),
        user,
        certificate: None,
        token: None,
    };
    let from = format!("tcp://{address}");
    let stream = stream.into_std()?;
    let open = |name, setup: &Setup| {
        let (reader, writer) = TcpStream::from_std(stream)?.into_split();
        let (rx, tx) = stream::accepted(reader, writer, setup);
        Ok(Link::new(Peer::remote(name, true), rx, tx, ()))
    };
    Ok(admit(from, &credentials, setup, "tcp", open))
}

/// Connects a socket, trying each address of the host's name.
pub(super) async fn dial(
    to: &Endpoint,
    host: &str,
    port: u16,
    setup: &Setup,
) -> Result<TcpStream, OpenError> {
    if port == 0 {
        let what = "port 0 is for listening; nothing can be reached at it";
        return Err(OpenError::new(OpenErrorKind::Usage, to, what));
    }
    let within = setup.limits.handshake;
    timeout(within, async {
        let addresses: Vec<SocketAddr> = resolve(to, host, port).await?;
        let mut refused = addresses.iter().map(|one| setup.reach.refuses(one.ip()));
        if let Some(what) = refused.find_map(|why| why) {
            return Err(OpenError::new(OpenErrorKind::Forbidden, to, what));
        }
        let stream = TcpStream::connect(&addresses[..])
            .await
            .map_err(|source| open_error::not_connected(to, &source))?;
        set_options(&stream, setup.limits.tcp_user_timeout);
        Ok(stream)
    })
    .await
    .unwrap_or_else(|_| Err(open_error::timed_out(to, "connecting", within)))
}

/// Binds a listening socket and returns its port.
pub(crate) async fn bind(
    at: &Endpoint,
    host: &str,
    port: u16,
    setup: &Setup,
) -> Result<(TcpListener, u16), OpenError> {
    let addresses = resolve(at, host, port).await?;
    let not_bound = |source| open_error::not_bound(at, &source);
    let socket = match setup.inherited.tcp(&addresses) {
        Some(socket) => TcpListener::from_std(socket),
        None => TcpListener::bind(&addresses[..]).await,
    };
    let socket = socket.map_err(not_bound)?;
    let port = socket.local_addr().map_err(not_bound)?.port();
    Ok((socket, port))
}

/// Whether a port is free: listens there for a moment. Other programs can still bind it meanwhile.
pub(super) fn is_free(at: &Endpoint, host: &str, port: u16) -> Result<bool, OpenError> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|source| open_error::not_resolved(at, host, &source))?;
    match std::net::TcpListener::bind(&*found.collect::<Vec<_>>()) {
        Ok(_) => Ok(true),
        Err(source) if source.kind() == io::ErrorKind::AddrInUse => Ok(false),
        Err(source) => Err(open_error::not_bound(at, &source)),
    }
}

/// Accepts a socket; connections that were closed before are skipped.
pub(super) async fn accept(
    socket: &TcpListener,
    limits: &Limits,
) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        match socket.accept().await {
            Ok((stream, address)) => {
                set_options(&stream, limits.tcp_user_timeout);
                return Ok((stream, address));
            }
            Err(fault) if is_gone(&fault) => {}
            Err(fault) => return Err(fault),
        }
    }
}

/// The user of the client at `address`, if the gate needs it and the system can report it.
pub(super) fn user_of(
    stream: &TcpStream,
    address: SocketAddr,
    gate: &Gate,
    place: Reachability,
) -> Option<u32> {
    let near = gate.requires_user(place).then(|| stream.local_addr())?;
    owner::of_socket(address, near.ok()?)
}

fn is_gone(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

async fn resolve(endpoint: &Endpoint, host: &str, port: u16) -> Result<Vec<SocketAddr>, OpenError> {
    let not_resolved = |source: &io::Error| open_error::not_resolved(endpoint, host, source);
    let found = lookup_host((host, port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(|source| not_resolved(&source))?.collect();
    if addresses.is_empty() {
        return Err(not_resolved(&io::Error::other("it has no address")));
    }
    Ok(addresses)
}

/// Sets the socket options. A system without an option is used without it.
fn set_options(stream: &TcpStream, timeout: Duration) {
    // The first probe after half of the time, then five more.
    let keepalive = TcpKeepalive::new()
        .with_time((timeout / 2).max(MIN_KEEPALIVE))
        .with_interval((timeout / 10).max(MIN_KEEPALIVE))
        .with_retries(5);
    let socket = SockRef::from(stream);
    let set = stream
        .set_nodelay(true)
        .and_then(|()| socket.set_tcp_keepalive(&keepalive))
        .and_then(|()| set_user_timeout(&socket, timeout));
    if let Err(fault) = set {
        tracing::debug!(%fault, "a socket option could not be set");
    }
}

#[cfg(target_os = "linux")]
fn set_user_timeout(socket: &SockRef<'_>, timeout: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(timeout.max(MIN_KEEPALIVE)))
}

#[cfg(not(target_os = "linux"))]
fn set_user_timeout(_: &SockRef<'_>, _: Duration) -> io::Result<()> {
    Ok(())
}
