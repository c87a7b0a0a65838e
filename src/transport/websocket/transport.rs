//! Connecting and listening: sockets, TLS, the opening, and what is said when one of them fails.

use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::Error;

use super::handshake::{Entrance, accept_stream, connect_stream};
use super::link::link;
use crate::guard::origin::{Door, Names};
use crate::transport::endpoint::default_port;
use crate::transport::{Arrival, BoxFuture, Endpoint, Link, Listener, OpenError, OpenErrorKind};
use crate::transport::{Setup, Transport, failure, tcp, tls};

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
            let Endpoint::WebSocket {
                tls, host, port, ..
            } = to
            else {
                return Err(OpenError::misplaced(to));
            };
            let connector = if *tls {
                Some(tls::connector(to, &setup.tls)?)
            } else {
                None
            };
            let stream = tcp::dial(to, host, *port, setup).await?;
            let within = setup.limits.handshake;
            let url = to.to_string();
            let open = async {
                let Some(connector) = connector else {
                    let opened = connect_stream(stream, &url, &setup.limits).await;
                    let stream = opened.map_err(|fault| not_opened(to, &fault))?;
                    return Ok(link(stream, url.clone(), setup));
                };
                let name = ServerName::try_from(host.clone()).map_err(|_| {
                    let what = format!("{host:?} cannot be the name of a TLS server");
                    OpenError::new(OpenErrorKind::Usage, to, what)
                })?;
                let stream = connector
                    .connect(name, stream)
                    .await
                    .map_err(|fault| not_encrypted(to, &fault))?;
                let opened = connect_stream(stream, &url, &setup.limits).await;
                let stream = opened.map_err(|fault| not_opened(to, &fault))?;
                Ok(link(stream, url.clone(), setup))
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
            let Endpoint::WebSocket {
                tls,
                host,
                port,
                path,
            } = at
            else {
                return Err(OpenError::misplaced(at));
            };
            let acceptor = if *tls {
                Some(tls::acceptor(at, &setup.tls)?)
            } else {
                None
            };
            let (socket, port) = tcp::bind(at, host, *port).await?;
            let names = if at.is_loopback() {
                let default_port = default_port(*tls);
                Names::Loopback { port, default_port }
            } else {
                Names::Any
            };
            let origins = Vec::new();
            let bound = Bound {
                socket,
                tls: acceptor,
                at: Endpoint::WebSocket {
                    tls: *tls,
                    host: host.clone(),
                    port,
                    path: path.clone(),
                },
                entrance: Arc::new(Entrance {
                    path: path.clone(),
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
    stream: TcpStream,
    name: &str,
    tls: Option<TlsAcceptor>,
    entrance: &Entrance,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let not_admitted = |fault: Error| match &fault {
        Error::Http(response) => {
            let why = first_line(response.body().as_deref());
            let what = format!("refused with {}{why}", response.status());
            OpenError::new(OpenErrorKind::Forbidden, name, what)
        }
        fault => {
            let what = format!("the client did not open a WebSocket ({fault})");
            OpenError::new(OpenErrorKind::Protocol, name, what)
        }
    };
    let Some(tls) = tls else {
        let opened = accept_stream(stream, entrance, &setup.limits).await;
        let stream = opened.map_err(not_admitted)?;
        return Ok(link(stream, name.to_owned(), setup));
    };
    let stream = tls.accept(stream).await.map_err(|fault| {
        let what = format!("the client did not open TLS ({fault})");
        OpenError::new(OpenErrorKind::Protocol, name, what)
    })?;
    let opened = accept_stream(stream, entrance, &setup.limits).await;
    let stream = opened.map_err(not_admitted)?;
    Ok(link(stream, name.to_owned(), setup))
}

fn not_encrypted(to: &Endpoint, fault: &io::Error) -> OpenError {
    let what = format!("TLS could not be agreed on ({fault})");
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy(
        "Check that the peer speaks TLS there; name its certificate with --tls-ca if it is your own",
    )
}

fn not_opened(to: &Endpoint, fault: &Error) -> OpenError {
    let (what, remedy) = match fault {
        Error::Http(response) => {
            let why = first_line(response.body().as_deref());
            let what = format!("it answered {} to a WebSocket{why}", response.status());
            (what, "Check the path; /acp is usual")
        }
        fault => (
            format!("it does not speak WebSocket ({fault})"),
            "Check the port and the scheme",
        ),
    };
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy(remedy)
}

/// The first line of a refusal's body, for a person: at most 120 characters, none that a terminal
/// would obey.
fn first_line(body: Option<&[u8]>) -> String {
    let text = String::from_utf8_lossy(body.unwrap_or_default());
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|character| !character.is_control())
        .take(120)
        .collect();
    if line.is_empty() {
        line
    } else {
        format!(": {line}")
    }
}
