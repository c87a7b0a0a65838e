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

use super::super::{Farewell, FrameSink, FrameStream, Hold, Link, LinkError, Peer, PeerKind};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Cut;
use crate::recording::replay::{Actor, Cue};

/// Queued frames of the actor and for the live agent, beyond which no more are accepted.
const BACKLOG: usize = 256;

/// How long the live agent may take to exit after the client has closed, if it owes no response.
const GRACE: Duration = Duration::from_millis(500);

/// The state shared by the two halves.
struct Stage {
    actor: Actor,
    /// Number of frames queued for the live agent.
    waiting: usize,
    began: Instant,
    ear: Option<Waker>,
    mouth: Option<Waker>,
    /// The client has closed its stream, for this reason.
    farewell: Option<Farewell>,
}

type Shared = Arc<Mutex<Stage>>;

struct Ear {
    stage: Shared,
    timer: Option<Pin<Box<Sleep>>>,
    live: Option<Live>,
    over: bool,
}

/// The live agent, and the frames for it.
struct Live {
    rx: Box<dyn FrameStream>,
    tx: Box<dyn FrameSink>,
    half_close: bool,
    waiting: VecDeque<Frame>,
    /// The stream to it is to be closed, for this reason.
    closing: Option<Farewell>,
    /// The stream to it was closed.
    closed: bool,
    grace: Option<Pin<Box<Sleep>>>,
}

struct Mouth(Shared);

/// Keeps the live agent alive. Its exit does not end the link.
struct Kept(Option<Box<dyn Hold>>);

/// Opens a link to the recording that `actor` plays.
pub(super) fn open(name: String, kind: PeerKind, actor: Actor, live: Option<Link>) -> Link {
    let stage = Arc::new(Mutex::new(Stage {
        actor,
        waiting: 0,
        began: Instant::now(),
        ear: None,
        mouth: None,
        farewell: None,
    }));
    let (live, hold) = match live {
        Some(link) => {
            let live = Live {
                rx: link.rx,
                tx: link.tx,
                half_close: link.peer.half_close,
                waiting: VecDeque::new(),
                closing: None,
                closed: false,
                grace: None,
            };
            (Some(live), Some(link.hold))
        }
        None => (None, None),
    };
    Link {
        peer: Peer {
            name,
            half_close: true,
            kind,
            principal: None,
            wanted_agent: None,
        },
        rx: Box::new(Ear {
            stage: Arc::clone(&stage),
            timer: None,
            live,
            over: false,
        }),
        tx: Box::new(Mouth(stage)),
        hold: Box::new(Kept(hold)),
    }
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut stage = self.stage.lock();
        loop {
            if let Some(live) = &mut self.live
                && !live.serve(cx, &mut stage.actor)
            {
                if live.closing.is_none() {
                    tracing::warn!("the live agent behind the recording has exited");
                }
                stage.actor.lose_live();
                self.live = None;
            }
            stage.waiting = self.live.as_ref().map_or(0, |live| live.waiting.len());
            let now = stage.began.elapsed();
            let cue = stage.actor.next(now);
            while let Some(remark) = stage.actor.remark() {
                tracing::warn!("replay: {remark}");
            }
            match cue {
                Cue::Say(frame) => {
                    if let Some(mouth) = stage.mouth.take() {
                        mouth.wake();
                    }
                    return Poll::Ready(Some(Ok(Cut::Frame(frame))));
                }
                Cue::Forward(frame) => match &mut self.live {
                    Some(live) => live.waiting.push_back(frame),
                    None => stage.actor.lose_live(),
                },
                Cue::Close => {
                    if let (Some(live), Some(farewell)) = (&mut self.live, stage.farewell) {
                        if live.closing.is_none() {
                            live.closing = Some(farewell);
                            continue;
                        }
                        let grace = live.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
                        if grace.as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                    self.over = true;
                    return Poll::Ready(None);
                }
                Cue::Wait(until) => {
                    if let (Some(live), Some(farewell)) = (&mut self.live, stage.farewell)
                        && live.half_close
                        && live.closing.is_none()
                    {
                        live.closing = Some(farewell);
                        continue;
                    }
                    if stage.has_room()
                        && let Some(mouth) = stage.mouth.take()
                    {
                        mouth.wake();
                    }
                    stage.ear = Some(cx.waker().clone());
                    self.timer = until.map(|until| Box::pin(sleep_until(stage.began + until)));
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
        while !self.waiting.is_empty() {
            match self.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return false,
                Poll::Pending => break,
            }
            if let Some(frame) = self.waiting.pop_front()
                && self.tx.start_send(frame).is_err()
            {
                return false;
            }
        }
        match self.tx.poll_flush(cx) {
            Poll::Ready(Err(_)) => return false,
            Poll::Ready(Ok(())) if self.waiting.is_empty() && !self.closed => {
                if let Some(why) = self.closing {
                    match self.tx.poll_close(cx, why) {
                        Poll::Ready(Err(_)) => return false,
                        closed => self.closed = closed.is_ready(),
                    }
                }
            }
            _ => {}
        }
        while actor.backlog() < BACKLOG {
            match self.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Cut::Frame(frame)))) => actor.hear_live(&frame),
                Poll::Ready(Some(Ok(Cut::Flaw(flaw)))) => {
                    tracing::warn!("a message of the live agent behind the recording: {flaw}");
                }
                Poll::Ready(Some(Err(_)) | None) => return false,
                Poll::Pending => break,
            }
        }
        true
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut stage = self.0.lock();
        if stage.has_room() {
            return Poll::Ready(Ok(()));
        }
        stage.mouth = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let mut stage = self.0.lock();
        let now = stage.began.elapsed();
        stage.actor.hear(&frame, now);
        stage.wake();
        Ok(())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
        self.0.lock().end(why);
        Poll::Ready(Ok(()))
    }
}

impl Stage {
    fn has_room(&self) -> bool {
        self.actor.backlog() + self.waiting < BACKLOG
    }

    /// The client closes its stream.
    fn end(&mut self, why: Farewell) {
        self.farewell.get_or_insert(why);
        self.actor.end();
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(ear) = self.ear.take() {
            ear.wake();
        }
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        self.0.lock().end(Farewell::Done);
    }
}

impl Hold for Kept {
    fn stderr_tail(&self) -> String {
        self.0
            .as_ref()
            .map(|hold| hold.stderr_tail())
            .unwrap_or_default()
    }
}
