//! The one link over stdin and stdout. The kind of each file decides how it is read or written.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncRead, AsyncWrite, Interest};

use super::pollable::{self, Socket};
use super::threads;
use crate::transport::{
    AcceptFuture, ConnectFuture, Endpoint, IncomingLink, Link, ListenFuture, Listener, OpenError,
    OpenErrorKind, Peer, PeerKind, Worker,
};
use crate::transport::{Setup, Transport, stream};

/// The transport behind `stdio:`. There is one stdin, so it makes one link.
#[derive(Debug)]
pub(in crate::transport) struct Stdio {
    in_use: AtomicBool,
}

/// Yields the one link, then ends.
struct Once(Option<Setup>);

impl Stdio {
    pub(in crate::transport) const fn new() -> Self {
        Self {
            in_use: AtomicBool::new(false),
        }
    }

    fn take(&self, endpoint: &Endpoint) -> Result<(), OpenError> {
        if *endpoint != Endpoint::Stdio {
            return Err(OpenError::wrong_scheme(endpoint));
        }
        if self.in_use.swap(true, Ordering::Relaxed) {
            let what = "stdin and stdout are already in use";
            return Err(OpenError::new(OpenErrorKind::Usage, endpoint, what)
                .with_remedy("Name stdio: only once"));
        }
        Ok(())
    }
}

impl Transport for Stdio {
    fn schemes(&self) -> &'static [&'static str] {
        &["stdio"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            self.take(to)?;
            link(setup)
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(async move {
            self.take(at)?;
            Ok(Box::new(Once(Some(setup.clone()))) as Box<dyn Listener>)
        })
    }
}

impl Listener for Once {
    fn accept(&mut self) -> AcceptFuture<'_> {
        let setup = self.0.take();
        Box::pin(async move {
            let setup = setup?;
            let from = Endpoint::Stdio.to_string();
            let finish = Box::pin(async move { link(&setup) });
            let worker = Worker::current();
            Some(Ok(IncomingLink {
                from,
                finish,
                worker,
            }))
        })
    }

    fn address(&self) -> Endpoint {
        Endpoint::Stdio
    }
}

fn link(setup: &Setup) -> Result<Link, OpenError> {
    let files = stdin().and_then(|input| Ok((input, stdout()?)));
    let (input, output) = files.map_err(|source| {
        let what = format!("a thread could not be started ({source})");
        OpenError::new(OpenErrorKind::System, Endpoint::Stdio, what)
    })?;
    // The process that started the relay is as local as one that the relay starts.
    let max = setup.limits.frame_from_child;
    let (rx, tx) = stream::halves(input, output, max, setup);
    Ok(Link {
        peer: Peer {
            name: Endpoint::Stdio.to_string(),
            half_close: true,
            kind: PeerKind::Parent,
            principal: None,
            wanted_agent: None,
        },
        rx: Box::new(rx),
        tx: Box::new(tx),
        guard: Box::new(()),
    })
}

fn stdin() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    if let Some(pipe) = pollable::pipe_in() {
        return Ok(Box::new(pipe));
    }
    if let Some(socket) = Socket::of(rustix::stdio::stdin(), Interest::READABLE) {
        return Ok(Box::new(socket));
    }
    Ok(Box::new(threads::start_reading()?))
}

fn stdout() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    if let Some(pipe) = pollable::pipe_out() {
        return Ok(Box::new(pipe));
    }
    if let Some(socket) = Socket::of(rustix::stdio::stdout(), Interest::WRITABLE) {
        return Ok(Box::new(socket));
    }
    Ok(Box::new(threads::start_writing()?))
}
