//! The link of a client whose sessions are claimed for this host, before a request enters one and
//! before an answer names a new one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::sessions::{Claim, LEAST_STOP, OwnedSessions};
use crate::auth::Principal;
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{
    CloseReason, Frame, IdBuf, Kind, Limits, PendingRequests, Scanned, Scanner, named_session,
};
use crate::transport::process::Lease;
use crate::transport::{FrameSink, FrameStream, Link, LinkError, forward};

/// Requests that enter a session that there is.
pub(super) const ENTERS: [&str; 2] = ["session/load", "session/resume"];
/// Requests whose answer names a new one.
const OPENS: [&str; 2] = ["session/new", "session/fork"];

/// Time to report the loss of a session to the client.
const CLOSING: Duration = Duration::from_secs(20);

/// Most sessions of a client.
const MAX_SESSIONS: usize = 4096;

/// What both halves of a link share.
struct Shared {
    sessions: Arc<OwnedSessions>,
    who: Arc<Principal>,
    agent: String,
    /// The time in which the agent is stopped.
    stop: Duration,
    lease: Lease,
    tx: Box<dyn FrameSink>,
    scanner: Scanner,
    claims: Vec<(Claim, Pin<Box<WaitForCancellationFutureOwned>>)>,
    /// The requests whose answers name new sessions.
    opening: PendingRequests<()>,
    /// The request that enters a session, and the answer that names one, while it is claimed.
    entering: Option<(Claiming, Frame, IdBuf)>,
    named: Option<(Claiming, Frame, IdBuf)>,
    /// Errors for the client.
    refused: VecDeque<Frame>,
    /// Of the task that reads, when it waits for a claim.
    reader: Option<Waker>,
    /// Set when a session was lost: a client that is away then is not awaited, so that another client
    /// can have the session here again.
    until: Option<Pin<Box<Sleep>>>,
}

type Claiming = BoxFuture<'static, Result<Claim, String>>;

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
    let shared = Arc::new(Mutex::new(Shared {
        sessions,
        who,
        agent: agent.to_owned(),
        // Its stdin is closed, then come two signals.
        stop: (limits.stop_grace * 2 + Duration::from_secs(2)).max(LEAST_STOP),
        lease,
        tx: client.tx,
        scanner: Scanner::new(Arc::clone(limits)),
        claims: Vec::new(),
        opening: PendingRequests::new(limits.in_flight),
        entering: None,
        named: None,
        refused: VecDeque::new(),
        reader: None,
        until: None,
    }));
    Link {
        rx: Box::new(OwnedStream {
            rx: client.rx,
            shared: Arc::clone(&shared),
        }),
        tx: Box::new(OwnedSink(shared)),
        ..client
    }
}

impl Shared {
    fn claim(&self, session: &str) -> Claiming {
        if self.claims.len() >= MAX_SESSIONS {
            let why = format!("the client has {MAX_SESSIONS} sessions already");
            return Box::pin(std::future::ready(Err(why)));
        }
        let (sessions, who) = (Arc::clone(&self.sessions), Arc::clone(&self.who));
        let (agent, lease) = (self.agent.clone(), self.lease.clone());
        Box::pin(sessions.claim(who, session.to_owned(), agent, self.stop, lease))
    }

    fn hold(&mut self, claim: Claim) {
        let lost = Box::pin(claim.lost.clone().cancelled_owned());
        self.claims.push((claim, lost));
        // It waits for the loss of this one, too.
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    /// The error when one of the sessions is not this host's any more.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.reader = Some(cx.waker().clone());
        let mut claims = self.claims.iter_mut();
        if claims.any(|(_, lost)| lost.as_mut().poll(cx).is_ready()) {
            let what = "this host has lost a session of the client: it could not reach NATS for \
                        the time of a lease, or another host has it";
            self.until.get_or_insert_with(|| Box::pin(sleep(CLOSING)));
            // The client does not wait until the agent has stopped; one that is away receives it
            // when it connects again.
            let _ = self.tx.poll_close(cx, CloseReason::SessionLost);
            return Poll::Ready(LinkError::Unavailable(what.to_owned()));
        }
        Poll::Pending
    }

    /// The request that waits for a claim, once it has that.
    fn poll_entering(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        let Some((claiming, _, _)) = &mut self.entering else {
            return Poll::Ready(None);
        };
        let claimed = ready!(claiming.as_mut().poll(cx));
        let entering = self.entering.take();
        Poll::Ready(entering.and_then(|(_, frame, id)| match claimed {
            Ok(claim) => {
                self.hold(claim);
                Some(frame)
            }
            Err(why) => {
                self.refused.push_back(refusal(&id, &why));
                None
            }
        }))
    }

    /// A request of the client, unless it has to wait.
    fn receive(&mut self, frame: Frame) -> Option<Frame> {
        let mut frame = frame;
        let Scanned::Message(at) = self.scanner.scan(&mut frame) else {
            return Some(frame);
        };
        if at.kind != Kind::Request {
            return Some(frame);
        }
        let method = at.method(&frame).into_owned();
        if OPENS.contains(&&*method) {
            // One that has no room is refused by the conversation.
            let _ = self.opening.insert(at.id(&frame), ());
        }
        if ENTERS.contains(&&*method)
            && let Some(session) = named_session(&frame, &at).map(|name| name.into_owned())
        {
            let id = at.id(&frame).to_owned();
            self.entering = Some((self.claim(&session), frame, id));
            return None;
        }
        Some(frame)
    }

    /// A message to the client, unless it has to wait.
    fn send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let mut frame = frame;
        if !self.opening.is_empty()
            && let Scanned::Message(at) = self.scanner.scan(&mut frame)
            && at.kind.is_answer()
            && let Some((id, ())) = self.opening.remove(at.id(&frame))
            && let Some(session) = named_session(&frame, &at).map(|name| name.into_owned())
        {
            self.named = Some((self.claim(&session), frame, id));
            return Ok(());
        }
        self.tx.start_send(frame)
    }

    /// Ready when nothing waits that has to be sent first.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if let Some((claiming, _, _)) = &mut self.named {
            let claimed = ready!(claiming.as_mut().poll(cx));
            if let Some((_, frame, id)) = self.named.take() {
                let answer = match claimed {
                    Ok(claim) => {
                        self.hold(claim);
                        frame
                    }
                    Err(why) => refusal(&id, &why),
                };
                self.refused.push_back(answer);
            }
        }
        while !self.refused.is_empty() {
            ready!(self.tx.poll_ready(cx))?;
            if let Some(frame) = self.refused.pop_front() {
                self.tx.start_send(frame)?;
            }
        }
        self.tx.poll_ready(cx)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_ready(cx))?;
        self.tx.poll_flush(cx)
    }
}

impl FrameStream for OwnedStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let mut shared = self.shared.lock();
        loop {
            if let Poll::Ready(error) = shared.poll_lost(cx) {
                return Poll::Ready(Some(Err(error)));
            }
            if shared.entering.is_some() {
                if let Some(frame) = ready!(shared.poll_entering(cx)) {
                    return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
                }
                // The task that reads is the one that writes.
                let _ = shared.poll_flush(cx);
            }
            match self.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Decoded::Frame(frame)))) => {
                    if let Some(frame) = shared.receive(frame) {
                        return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
                    }
                }
                other => return other,
            }
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
    forward!(self => self.0.lock(); poll_ready, poll_flush);

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.0.lock().send(frame)
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        let mut shared = self.0.lock();
        if let Some(until) = &mut shared.until {
            if until.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            return shared.tx.poll_close(cx, CloseReason::SessionLost);
        }
        ready!(shared.poll_ready(cx))?;
        shared.tx.poll_close(cx, why)
    }
}

fn refusal(id: &IdBuf, why: &str) -> Frame {
    let message = format!("the session cannot be used on this host: {why}");
    reply::error(
        id.as_id(),
        &Reason::new(reply::OVERLOADED, message).retryable(),
    )
}
