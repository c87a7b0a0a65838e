//! A gateway's link to the agent of a client, on the host where the client's session lives: which
//! session that is shows after the client has been answered by an agent, so the host may change once.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::timeout;

use jsonrpc::framing::Decoded;
use jsonrpc::{Frame, Kind, Limits, Scanned, Scanner, named_session, scan};
use transport::{
    FrameSink, FrameStream, Link, LinkError, LinkGuard, Peer, Presence, PresenceCallback, SinkPoll,
    forward,
};

/// Opens a link to the host where a session lives; `None` if that is the one that is open, or none.
pub type Find = Box<dyn Fn(String) -> BoxFuture<'static, Result<Option<Link>, String>> + Send>;

/// Requests that enter a session that there is.
const ENTERS: [&str; 2] = ["session/load", "session/resume"];
/// Methods after which a client stays where it is.
const STAYS: [&str; 3] = ["session/new", "session/fork", "session/prompt"];

struct Shared {
    link: Link,
    find: Find,
    scanner: Scanner,
    limits: Arc<Limits>,
    /// The client's `initialize`.
    initialize: Option<Frame>,
    is_settled: bool,
    /// The change of hosts that is under way, and the request that waits until it is over.
    moving: Option<BoxFuture<'static, Result<Option<Link>, String>>>,
    held: Option<Frame>,
    reader: Option<Waker>,
    /// Receives the reports that the connection to the host is lost or restored.
    watch: Option<Arc<Mutex<PresenceCallback>>>,
}

/// A half of the link, or its guard.
struct Part(Arc<Mutex<Shared>>);

/// A link that begins as `link`.
pub fn placed(link: Link, limits: &Arc<Limits>, find: Find) -> Link {
    let peer: Peer = link.peer.clone();
    let shared = Arc::new(Mutex::new(Shared {
        link,
        find,
        scanner: Scanner::new(Arc::clone(limits)),
        limits: Arc::clone(limits),
        initialize: None,
        is_settled: false,
        moving: None,
        held: None,
        reader: None,
        watch: None,
    }));
    let part = || Part(Arc::clone(&shared));
    Link::new(peer, part(), part(), part())
}

impl Shared {
    fn send(&mut self, mut frame: Frame) -> Result<(), LinkError> {
        if !self.is_settled
            && let Scanned::Message(at) = self.scanner.scan(&mut frame)
            && at.kind == Kind::Request
        {
            let method = at.method(&frame).into_owned();
            let session = named_session(&frame, &at).map(|name| name.into_owned());
            if method == "initialize" {
                self.initialize = Some(frame.clone());
            }
            self.is_settled = STAYS.contains(&&*method);
            if ENTERS.contains(&&*method)
                && let (Some(session), Some(initialize)) = (session, self.initialize.take())
            {
                self.is_settled = true;
                let found = (self.find)(session);
                let limits = Arc::clone(&self.limits);
                let moved = async move {
                    let Some(mut link) = found.await? else {
                        return Ok(None);
                    };
                    let sent = link.send(initialize).await;
                    sent.map_err(|error| error.to_string())?;
                    // The client has the answer of another process of the same agent.
                    let answer = timeout(limits.handshake, async {
                        while let Some(Ok(Decoded::Frame(frame))) = link.receive().await {
                            if let Scanned::Message(at) = scan(&frame, &limits)
                                && at.kind.is_answer()
                            {
                                return Some(at.kind);
                            }
                        }
                        None
                    });
                    match answer.await {
                        Ok(Some(Kind::Result)) => Ok(Some(link)),
                        Ok(Some(_)) => Err("it refuses the client".to_owned()),
                        _ => Err("its agent does not answer".to_owned()),
                    }
                };
                self.moving = Some(Box::pin(moved));
                self.held = Some(frame);
                return Ok(());
            }
        }
        self.link.tx.start_send(frame)
    }

    /// Has the link that is open report to the receiver of [`LinkGuard::watch_presence`].
    fn watch(&mut self) {
        if let Some(watch) = self.watch.clone() {
            let callback = Box::new(move |presence: Presence<'_>| watch.lock()(presence));
            self.link.guard.watch_presence(callback);
        }
    }

    /// Ready when the client is where it has to be.
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        if let Some(moving) = &mut self.moving {
            let moved = ready!(moving.as_mut().poll(cx));
            self.moving = None;
            match moved {
                Ok(Some(link)) => {
                    self.link = link;
                    self.watch();
                }
                Ok(None) => {}
                // The host that is open answers, and knows why not.
                Err(why) => tracing::warn!("the host of a session is not reached: {why}"),
            }
        }
        if self.held.is_some() {
            ready!(self.link.tx.poll_ready(cx))?;
            if let Some(frame) = self.held.take() {
                self.link.tx.start_send(frame)?;
            }
            self.reader.take().into_iter().for_each(Waker::wake);
        }
        Poll::Ready(Ok(()))
    }
}

impl FrameStream for Part {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let mut shared = self.0.lock();
        if shared.held.is_some() {
            shared.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        shared.link.rx.poll_next(cx)
    }

    forward!(self => self.0.lock().link.rx; poll_lost, ended_cleanly, has_progressed, tells_loss);
}

impl FrameSink for Part {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        let mut shared = self.0.lock();
        ready!(shared.poll_moved(cx))?;
        shared.link.tx.poll_ready(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.0.lock().send(frame)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        let mut shared = self.0.lock();
        ready!(shared.poll_moved(cx))?;
        shared.link.tx.poll_flush(cx)
    }

    forward!(self => self.0.lock().link.tx; poll_close);
}

impl LinkGuard for Part {
    fn watch_presence(&mut self, callback: PresenceCallback) {
        let mut shared = self.0.lock();
        shared.watch = Some(Arc::new(Mutex::new(callback)));
        shared.watch();
    }

    forward!(self => self.0.lock().link.guard;
        poll_exit, signal, capture_stderr, longest, away, unacknowledged, log_redaction,
        restart, restarts, is_relay, stderr_tail);
}
