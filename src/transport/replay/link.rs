//! A link to a recording that plays the agent.
//!
//! Frames given to the sink are handled by the actor at once; the stream yields the actor's frames
//! when they are due. The stream also drives the live agent, if there is one.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::super::{
    CloseReason, FrameSink, FrameStream, Link, LinkError, LinkGuard, Peer, PeerKind,
};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Decoded;
use crate::recording::replay::{Actor, ActorAction};

/// Queued frames of the actor and for the live agent, beyond which no more are accepted.
const MAX_QUEUED: usize = 256;

/// How long the live agent may take to exit after the client has closed, if it owes no response.
const GRACE: Duration = Duration::from_millis(500);

/// The state shared by the two halves.
struct State {
    actor: Actor,
    /// Number of frames queued for the live agent.
    forwarding: usize,
    started: Instant,
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
    /// The client has closed its stream, for this reason.
    close_reason: Option<CloseReason>,
}

type Shared = Arc<Mutex<State>>;

struct Receiver {
    state: Shared,
    timer: Option<Pin<Box<Sleep>>>,
    live: Option<Live>,
    ended: bool,
}

/// The live agent, and the frames for it.
struct Live {
    rx: Box<dyn FrameStream>,
    tx: Box<dyn FrameSink>,
    half_close: bool,
    queue: VecDeque<Frame>,
    /// The stream to it is to be closed, for this reason.
    closing: Option<CloseReason>,
    /// The stream to it was closed.
    closed: bool,
    grace: Option<Pin<Box<Sleep>>>,
}

struct Sender(Shared);

/// Keeps the live agent alive. Its exit does not end the link.
struct LiveGuard(Option<Box<dyn LinkGuard>>);

/// Opens a link to the recording that `actor` plays.
pub(super) fn open(name: String, kind: PeerKind, actor: Actor, live: Option<Link>) -> Link {
    let state = Arc::new(Mutex::new(State {
        actor,
        forwarding: 0,
        started: Instant::now(),
        read_waker: None,
        write_waker: None,
        close_reason: None,
    }));
    let (live, hold) = match live {
        Some(link) => {
            let live = Live {
                rx: link.rx,
                tx: link.tx,
                half_close: link.peer.half_close,
                queue: VecDeque::new(),
                closing: None,
                closed: false,
                grace: None,
            };
            (Some(live), Some(link.guard))
        }
        None => (None, None),
    };
    Link {
        peer: Peer {
            kind,
            ..Peer::remote(name, true)
        },
        rx: Box::new(Receiver {
            state: Arc::clone(&state),
            timer: None,
            live,
            ended: false,
        }),
        tx: Box::new(Sender(state)),
        guard: Box::new(LiveGuard(hold)),
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut state = self.state.lock();
        loop {
            if let Some(live) = &mut self.live
                && !live.serve(cx, &mut state.actor)
            {
                if live.closing.is_none() {
                    tracing::warn!("the live agent behind the recording has exited");
                }
                state.actor.lose_live();
                self.live = None;
            }
            state.forwarding = self.live.as_ref().map_or(0, |live| live.queue.len());
            let now = state.started.elapsed();
            let step = state.actor.next(now);
            while let Some(remark) = state.actor.notice() {
                tracing::warn!("replay: {remark}");
            }
            match step {
                ActorAction::Send(frame) => {
                    if let Some(waker) = state.write_waker.take() {
                        waker.wake();
                    }
                    return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
                }
                ActorAction::Forward(frame) => match &mut self.live {
                    Some(live) => live.queue.push_back(frame),
                    None => state.actor.lose_live(),
                },
                ActorAction::Close => {
                    if let (Some(live), Some(reason)) = (&mut self.live, state.close_reason) {
                        if live.closing.is_none() {
                            live.closing = Some(reason);
                            continue;
                        }
                        let grace = live.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
                        if grace.as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                    self.ended = true;
                    return Poll::Ready(None);
                }
                ActorAction::Wait(until) => {
                    if let (Some(live), Some(reason)) = (&mut self.live, state.close_reason)
                        && live.half_close
                        && live.closing.is_none()
                    {
                        live.closing = Some(reason);
                        continue;
                    }
                    if state.has_room()
                        && let Some(waker) = state.write_waker.take()
                    {
                        waker.wake();
                    }
                    state.read_waker = Some(cx.waker().clone());
                    self.timer = until.map(|until| Box::pin(sleep_until(state.started + until)));
                    let Some(timer) = &mut self.timer else {
                        return Poll::Pending;
                    };
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl Live {
    /// Sends and receives what is ready; `false` when the agent is lost.
    fn serve(&mut self, cx: &mut Context<'_>, actor: &mut Actor) -> bool {
        while !self.queue.is_empty() {
            match self.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return false,
                Poll::Pending => break,
            }
            if let Some(frame) = self.queue.pop_front()
                && self.tx.start_send(frame).is_err()
            {
                return false;
            }
        }
        match self.tx.poll_flush(cx) {
            Poll::Ready(Err(_)) => return false,
            Poll::Ready(Ok(())) if self.queue.is_empty() && !self.closed => {
                if let Some(why) = self.closing {
                    match self.tx.poll_close(cx, why) {
                        Poll::Ready(Err(_)) => return false,
                        closed => self.closed = closed.is_ready(),
                    }
                }
            }
            _ => {}
        }
        while actor.backlog() < MAX_QUEUED {
            match self.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Decoded::Frame(frame)))) => actor.receive_live(&frame),
                Poll::Ready(Some(Ok(Decoded::Error(error)))) => {
                    tracing::warn!("a message of the live agent behind the recording: {error}");
                }
                Poll::Ready(Some(Err(_)) | None) => return false,
                Poll::Pending => break,
            }
        }
        true
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut state = self.0.lock();
        if state.has_room() {
            return Poll::Ready(Ok(()));
        }
        state.write_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let mut state = self.0.lock();
        let now = state.started.elapsed();
        state.actor.receive(&frame, now);
        state.wake();
        Ok(())
    }

    fn poll_close(
        &mut self,
        _cx: &mut Context<'_>,
        why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        self.0.lock().close(why);
        Poll::Ready(Ok(()))
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.actor.backlog() + self.forwarding < MAX_QUEUED
    }

    /// The client closes its stream.
    fn close(&mut self, why: CloseReason) {
        self.close_reason.get_or_insert(why);
        self.actor.end();
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.read_waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().close(CloseReason::Done);
    }
}

impl LinkGuard for LiveGuard {
    fn stderr_tail(&self) -> String {
        self.0
            .as_ref()
            .map(|hold| hold.stderr_tail())
            .unwrap_or_default()
    }
}
