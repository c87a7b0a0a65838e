//! Connecting and listening: sockets, TLS, the opening, and what is said when one of them fails.

use std::io;
use std::sync::Arc;

use tokio::io::split;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::ServerName;

use super::frame::Role;
use super::handshake::{Entrance, HandshakeError, accept_stream, connect_stream};
use super::link::link;
use crate::guard::origin::{Door, Names};
use crate::transport::{Arrival, BoxFuture, Endpoint, Link, Listener, OpenError, OpenErrorKind};
use crate::transport::{Setup, Transport, Web, failure, tcp, tls};

/// The transport behind `ws://` and `wss://`.
#[derive(Debug)]
pub(in crate::transport) struct WebSocket;

/// A bound `ws://` or `wss://` endpoint.
struct Bound {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    at: Endpoint,
    entrance: Arc<Entrance>,
    setup: Setup,
}

impl Transport for WebSocket {
    fn schemes(&self) -> &'static [&'static str] {
        &["ws", "wss"]
    }

    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Link, OpenError>> {
        Box::pin(async move {
            let Endpoint::Web(web) = to else {
                return Err(OpenError::misplaced(to));
            };
            let Web { host, path, .. } = web;
            let connector = if web.tls {
                Some(tls::connector(to, &setup.tls)?)
            } else {
                None
            };
            let mut stream = tcp::dial(to, host, web.port, setup).await?;
            let within = setup.limits.handshake;
            let name = to.to_string();
            let authority = web.authority();
            let open = async {
                let Some(connector) = connector else {
                    let opened = connect_stream(&mut stream, &authority, path, &setup.limits).await;
                    let begun = opened.map_err(|fault| not_opened(to, &fault))?;
                    return Ok(link(stream.into_split(), begun, Role::Client, name, setup));
                };
                let certified = ServerName::try_from(host.clone()).map_err(|_| {
                    let what = format!("{host:?} cannot be the name of a TLS server");
                    OpenError::new(OpenErrorKind::Usage, to, what)
                })?;
                let mut stream = connector
                    .connect(certified, stream)
                    .await
                    .map_err(|fault| not_encrypted(to, &fault))?;
                let opened = connect_stream(&mut stream, &authority, path, &setup.limits).await;
                let begun = opened.map_err(|fault| not_opened(to, &fault))?;
                Ok(link(split(stream), begun, Role::Client, name, setup))
            };
            let opened = timeout(within, open).await;
            opened.unwrap_or_else(|_| Err(failure::too_slow(to, "the handshake", within)))
        })
    }

    fn listen<'a>(
        &'a self,
        at: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, OpenError>> {
        Box::pin(async move {
            let Endpoint::Web(web) = at else {
                return Err(OpenError::misplaced(at));
            };
            let acceptor = if web.tls {
                Some(tls::acceptor(at, &setup.tls)?)
            } else {
                None
            };
            let (socket, port) = tcp::bind(at, &web.host, web.port).await?;
            let names = if at.is_loopback() {
                let default_port = web.default_port();
                Names::Loopback { port, default_port }
            } else {
                Names::Any
            };
            let origins = Vec::new();
            let bound = Bound {
                socket,
                tls: acceptor,
                at: Endpoint::Web(Web {
                    port,
                    ..web.clone()
                }),
                entrance: Arc::new(Entrance {
                    path: web.path.clone(),
                    door: Door { origins, names },
                }),
                setup: setup.clone(),
            };
            Ok(Box::new(bound) as Box<dyn Listener>)
        })
    }
}

impl Listener for Bound {
    fn accept(&mut self) -> BoxFuture<'_, Option<io::Result<Arrival>>> {
        Box::pin(async move {
            let (stream, address) = match tcp::accept(&self.socket).await {
                Ok(accepted) => accepted,
                Err(fault) => return Some(Err(fault)),
            };
            let scheme = self.at.scheme();
            let from = format!("{scheme}://{address}");
            let name = from.clone();
            let tls = self.tls.clone();
            let entrance = self.entrance.clone();
            let setup = self.setup.clone();
            let finish = Box::pin(async move {
                let within = setup.limits.handshake;
                let admitted = timeout(within, admit(stream, &name, tls, &entrance, &setup)).await;
                admitted.unwrap_or_else(|_| Err(failure::too_slow(&name, "the handshake", within)))
            });
            Some(Ok(Arrival { from, finish }))
        })
    }

    fn address(&self) -> Endpoint {
        self.at.clone()
    }
}

async fn admit(
    mut stream: TcpStream,
    name: &str,
    tls: Option<TlsAcceptor>,
    entrance: &Entrance,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (limits, link_name) = (&setup.limits, name.to_owned());
    let Some(tls) = tls else {
        let opened = accept_stream(&mut stream, entrance, limits).await;
        let begun = opened.map_err(|fault| not_admitted(name, &fault))?;
        let halves = stream.into_split();
        return Ok(link(halves, begun, Role::Server, link_name, setup));
    };
    let mut stream = tls.accept(stream).await.map_err(|fault| {
        let what = format!("the client did not open TLS ({fault})");
        OpenError::new(OpenErrorKind::Protocol, name, what)
    })?;
    let opened = accept_stream(&mut stream, entrance, limits).await;
    let begun = opened.map_err(|fault| not_admitted(name, &fault))?;
    let halves = split(stream);
    Ok(link(halves, begun, Role::Server, link_name, setup))
}

fn not_admitted(name: &str, fault: &HandshakeError) -> OpenError {
    match fault {
        HandshakeError::Refused { status, why } => {
            let kind = match status.get(..3) {
                Some("403" | "404") => OpenErrorKind::Forbidden,
                _ => OpenErrorKind::Protocol,
            };
            OpenError::new(kind, name, format!("refused with {status}: {why}"))
        }
        fault => {
            let what = format!("the client did not open a WebSocket ({fault})");
            OpenError::new(OpenErrorKind::Protocol, name, what)
        }
    }
}

fn not_encrypted(to: &Endpoint, fault: &io::Error) -> OpenError {
    let what = format!("TLS could not be agreed on ({fault})");
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy(
        "Check that the peer speaks TLS there; name its certificate with --tls-ca if it is your own",
    )
}

fn not_opened(to: &Endpoint, fault: &HandshakeError) -> OpenError {
    let (what, remedy) = match fault {
        HandshakeError::Refused { status, why } => {
            let colon = if why.is_empty() { "" } else { ": " };
            let what = format!("it answered {status} to a WebSocket{colon}{why}");
            (what, "Check the path; /acp is usual")
        }
        fault => (
            format!("it does not speak WebSocket ({fault})"),
            "Check the port and the scheme",
        ),
    };
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy(remedy)
}
