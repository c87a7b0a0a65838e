//! The one link over the standard input and output of this process: `stdio:`.
//!
//! Nothing else in the program touches them. The runtime waits for pipes, threads wait for
//! everything else. stderr belongs to the log.

mod threads;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use super::{
    AcceptFuture, Endpoint, IncomingLink, Link, Listener, OpenError, OpenErrorKind, Peer, PeerKind,
    Setup, Worker, stream,
};

/// There is one stdin, so there is one link.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Yields the one link, then ends.
struct Once(Option<Setup>);

/// The link over stdin and stdout, to the agent.
pub(crate) fn connect(setup: &Setup) -> Result<Link, OpenError> {
    take()?;
    link(setup)
}

/// A listener that accepts the client on stdin and stdout.
pub(super) fn listen(setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    take()?;
    Ok(Box::new(Once(Some(setup.clone()))))
}

fn take() -> Result<(), OpenError> {
    if IN_USE.swap(true, Ordering::Relaxed) {
        let what = "stdin and stdout are already in use";
        return Err(OpenError::new(OpenErrorKind::Usage, Endpoint::Stdio, what)
            .with_remedy("Name stdio: only once"));
    }
    Ok(())
}

impl Listener for Once {
    fn accept(&mut self) -> AcceptFuture<'_> {
        let setup = self.0.take();
        Box::pin(async move {
            let setup = setup?;
            let from = Endpoint::Stdio.to_string();
            let finish = Box::pin(async move { link(&setup).map(Some) });
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
    let peer = Peer {
        kind: PeerKind::Parent,
        ..Peer::remote(Endpoint::Stdio.to_string(), true)
    };
    Ok(Link::new(peer, rx, tx, ()))
}

/// Neither file is made non-blocking, because the flag belongs to all processes that share it, such
/// as the shell that started the relay. A pipe is opened once more, through `/proc`, which gives it
/// a file description of its own (proc_pid_fd(5)), and needs no thread.
fn stdin() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Ok(Box::new(pipe)),
        Err(_) => Ok(Box::new(threads::start_reading()?)),
    }
}

fn stdout() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => Ok(Box::new(pipe)),
        Err(_) => Ok(Box::new(threads::start_writing()?)),
    }
}
