//! The link of a client whose sessions are claimed for this host, and which ends when one is lost.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::sessions::{Claim, LEAST_STOP, OwnedSessions};
use auth::Principal;
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Limits};
use transport::process::Lease;
use transport::{FrameSink, FrameStream, Link, LinkError, SessionClaims, SinkPoll, forward};

/// Time to report the loss of a session to the client.
const CLOSING: Duration = Duration::from_secs(20);

/// Most sessions of a client at a time.
const MAX_SESSIONS: usize = 4096;

/// The sessions of a client.
struct ClientSessions {
    sessions: Arc<OwnedSessions>,
    who: Arc<Principal>,
    agent: String,
    /// The time in which the agent is stopped.
    stop: Duration,
    lease: Lease,
    /// Cancelled when one of them is not this host's any more.
    lost: CancellationToken,
    claims: HashMap<String, Claim>,
    claiming: Option<(String, BoxFuture<'static, Result<Claim, String>>)>,
}

/// What both halves of a link share.
struct Shared {
    tx: Box<dyn FrameSink>,
    lost: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Set when a session was lost: a client that is away then is not awaited, so that another client
    /// can have the session here again.
    until: Option<Pin<Box<Sleep>>>,
}

struct OwnedStream {
    rx: Box<dyn FrameStream>,
    shared: Arc<Mutex<Shared>>,
}

struct OwnedSink(Arc<Mutex<Shared>>);

/// The link of a client of `agent`, whose sessions are claimed, and whose process has that lease. A
/// client without a principal has none that another one could enter.
pub(super) fn owned(
    client: Link,
    sessions: Arc<OwnedSessions>,
    agent: &str,
    lease: Lease,
    limits: &Arc<Limits>,
) -> Link {
    let Some(who) = client.peer.principal.clone() else {
        return client;
    };
    let lost = CancellationToken::new();
    let shared = Arc::new(Mutex::new(Shared {
        tx: client.tx,
        lost: Box::pin(lost.clone().cancelled_owned()),
        until: None,
    }));
    Link {
        rx: Box::new(OwnedStream {
            rx: client.rx,
            shared: Arc::clone(&shared),
        }),
        tx: Box::new(OwnedSink(shared)),
        sessions: Some(Box::new(ClientSessions {
            sessions,
            who,
            agent: agent.to_owned(),
            // Its stdin is closed, then come two signals.
            stop: (limits.stop_grace * 2 + Duration::from_secs(2)).max(LEAST_STOP),
            lease,
            lost,
            claims: HashMap::new(),
            claiming: None,
        })),
        ..client
    }
}

impl SessionClaims for ClientSessions {
    fn claim(&mut self, session: &str) {
        let (sessions, who) = (Arc::clone(&self.sessions), Arc::clone(&self.who));
        let user = (self.lease.clone(), self.lost.clone());
        let claiming: BoxFuture<'_, _> = if self.claims.len() >= MAX_SESSIONS {
            let why = format!("the client has {MAX_SESSIONS} sessions already");
            Box::pin(std::future::ready(Err(why)))
        } else {
            let (session, agent) = (session.to_owned(), self.agent.clone());
            Box::pin(sessions.claim(who, session, agent, self.stop, user))
        };
        self.claiming = Some((session.to_owned(), claiming));
    }

    fn poll_claimed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let Some((_, claiming)) = &mut self.claiming else {
            return Poll::Ready(Ok(()));
        };
        let claimed = ready!(claiming.as_mut().poll(cx));
        let session = self.claiming.take().map(|(session, _)| session);
        Poll::Ready(claimed.map(|claim| {
            self.claims.extend(session.map(|session| (session, claim)));
        }))
    }

    fn release(&mut self, session: &str) {
        self.claims.remove(session);
    }
}

impl Shared {
    /// The error when one of the sessions is not this host's any more.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        ready!(self.lost.as_mut().poll(cx));
        let what = "this host has lost a session of the client: it could not reach NATS for the \
                    time of a lease, or another host has it";
        self.until.get_or_insert_with(|| Box::pin(sleep(CLOSING)));
        // The client does not wait until the agent has stopped; one that is away receives it when
        // it connects again.
        let _ = self.tx.poll_close(cx, CloseReason::SessionLost);
        Poll::Ready(LinkError::Unavailable(what.to_owned()))
    }
}

impl FrameStream for OwnedStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        match self.shared.lock().poll_lost(cx) {
            Poll::Ready(error) => Poll::Ready(Some(Err(error))),
            Poll::Pending => self.rx.poll_next(cx),
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        match self.shared.lock().poll_lost(cx) {
            Poll::Ready(error) => Poll::Ready(error),
            Poll::Pending => self.rx.poll_lost(cx),
        }
    }

    forward!(self => self.rx; ended_cleanly, has_progressed, tells_loss);
}

impl FrameSink for OwnedSink {
    forward!(self => self.0.lock().tx; poll_ready, start_send, poll_flush);

    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        let mut shared = self.0.lock();
        let Some(until) = &mut shared.until else {
            return shared.tx.poll_close(cx, why);
        };
        if until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        shared.tx.poll_close(cx, CloseReason::SessionLost)
    }
}
