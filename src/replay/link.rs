//! A link to a recording that plays the agent: `replay:`.
//!
//! A task gives the actor what the client and the live agent (if there is one) send, and sends the
//! actor's frames when they are due.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::PollSender;
use tokio_util::task::AbortOnDropHandle;

use super::{Actor, ActorAction, Script};
use jsonrpc::framing::Decoded;
use jsonrpc::{Frame, Side};
use panics::{self, Place};
use transport::replay::{ReplayAddress, Unmatched};
use transport::{
    AddedTransport, CloseReason, Endpoint, FrameSink, FrameStream, Link, LinkError, LinkGuard,
    OpenError, OpenErrorKind, Peer, PeerKind, QueuedLink, Setup, SinkPoll, forward, registry,
};

/// Queued frames of the actor and for the live agent, beyond which no more are accepted.
const MAX_QUEUED: usize = 256;

/// How long the live agent may take to exit after the client has closed, if it owes no response.
const GRACE: Duration = Duration::from_millis(500);

/// What the client does.
enum FromClient {
    Sends(Frame),
    Closes(CloseReason),
}

struct Receiver(mpsc::Receiver<Frame>);

struct Sender(PollSender<FromClient>);

/// Ends the task with the link, and keeps the live agent alive until then. Its exit does not end the
/// link.
struct Guard {
    _task: AbortOnDropHandle<()>,
    live: Option<Box<dyn LinkGuard>>,
}

/// The transport for `replay:FILE`.
pub const TRANSPORT: AddedTransport = AddedTransport {
    check: |to| open(to).map(drop),
    connect: |to, setup| Box::pin(connect(to, setup)),
    listen: |at, _| {
        Box::pin(ready(Err(OpenError::new(
            OpenErrorKind::Usage,
            at,
            "a recording plays the agent; no client can connect from it",
        )
        .with_remedy(
            "To play the client, use `acp-relay replay client FILE`",
        ))))
    },
};

/// Reads the recording, to be played once.
fn open(to: &Endpoint) -> Result<(Peer, Actor), OpenError> {
    let address = address(to)?;
    let unread = |what: String| OpenError::new(OpenErrorKind::NoInput, to, what);
    let script =
        Script::open(&address.path, address.edge).map_err(|error| unread(error.to_string()))?;
    let rules = address.rules().map_err(unread)?;
    if rules.unmatched == Unmatched::Forward && address.forward.is_none() {
        let what = "the agent to forward to is missing; name it with forward=ENDPOINT";
        return Err(OpenError::new(OpenErrorKind::Usage, to, what));
    }
    let kind = match address.edge {
        Side::Client => PeerKind::Replayed,
        // A relay stood between that form of the messages and the client, and does so again.
        Side::Agent => PeerKind::Remote,
    };
    let peer = Peer {
        kind,
        ..Peer::remote(to.to_string(), true)
    };
    Ok((peer, Actor::new(Arc::new(script), rules)))
}

/// Opens a link to the recording, and to the live agent that what was not recorded is forwarded to.
async fn connect(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    let (peer, actor) = open(to)?;
    let (mut live, mut guard) = (None, None);
    if let Some(agent) = &address(to)?.forward {
        let link = registry::connect(agent, setup).await?;
        live = Some((QueuedLink::new(link.rx, link.tx), link.peer.half_close));
        guard = Some(link.guard);
    }
    let (to_actor, from_client) = mpsc::channel(MAX_QUEUED);
    let (to_client, from_actor) = mpsc::channel(1);
    let playing = Box::pin(play(actor, from_client, to_client, live));
    let playing = panics::confine(Place::Conversation, playing).map(drop);
    let guard = Guard {
        _task: AbortOnDropHandle::new(tokio::spawn(playing)),
        live: guard,
    };
    let sender = Sender(PollSender::new(to_actor));
    Ok(Link::new(peer, Receiver(from_actor), sender, guard))
}

fn address(to: &Endpoint) -> Result<&ReplayAddress<Endpoint>, OpenError> {
    match to {
        Endpoint::Replay(address) => Ok(address),
        _ => Err(OpenError::new(
            OpenErrorKind::Usage,
            to,
            "it is no recording",
        )),
    }
}

async fn play(
    mut actor: Actor,
    mut from_client: mpsc::Receiver<FromClient>,
    to_client: mpsc::Sender<Frame>,
    mut live: Option<(QueuedLink, bool)>,
) {
    let started = Instant::now();
    // The client has closed its stream, for this reason; when the wait for the live agent is over.
    let (mut close_reason, mut grace) = (None, None);
    loop {
        let now = started.elapsed();
        let action = actor.next(now);
        while let Some(remark) = actor.notice() {
            tracing::warn!("replay: {remark}");
        }
        let ends = action == ActorAction::Close;
        let until = match action {
            ActorAction::Send(frame) => {
                if to_client.send(frame).await.is_err() {
                    return;
                }
                continue;
            }
            ActorAction::Forward(frame) => {
                match &mut live {
                    Some((live, _)) => live.queue.push_back(frame),
                    None => actor.lose_live(),
                }
                continue;
            }
            ActorAction::Wait(until) => until,
            ActorAction::Close if live.is_some() && close_reason.is_some() => {
                Some(*grace.get_or_insert(now + GRACE)).filter(|until| now < *until)
            }
            ActorAction::Close => None,
        };
        if ends && until.is_none() {
            return;
        }
        let queued = live.as_ref().map_or(0, |(live, _)| live.queue.len());
        let has_room = actor.backlog() + queued < MAX_QUEUED;
        let reads = actor.backlog() < MAX_QUEUED;
        let from_live = poll_fn(|cx| match &mut live {
            Some((live, half_close)) => {
                let closes = close_reason.filter(|_| ends || *half_close);
                live.poll(cx, closes, reads)
            }
            None => Poll::Pending,
        });
        tokio::select! {
            event = from_client.recv(), if close_reason.is_none() && has_room => match event {
                Some(FromClient::Sends(frame)) => actor.receive(&frame, started.elapsed()),
                other => {
                    let reason = match other {
                        Some(FromClient::Closes(reason)) => reason,
                        _ => CloseReason::Done,
                    };
                    close_reason = Some(reason);
                    actor.end();
                }
            },
            frame = from_live => match frame {
                Some(frame) => actor.receive_live(&frame),
                None => {
                    if close_reason.is_none() {
                        tracing::warn!("the live agent behind the recording has exited");
                    }
                    actor.lose_live();
                    live = None;
                }
            },
            () = sleep_until(started + until.unwrap_or_default()), if until.is_some() => {}
        }
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let frame = ready!(self.0.poll_recv(cx));
        Poll::Ready(frame.map(|frame| Ok(Decoded::Frame(frame))))
    }

    forward!(self => (); poll_lost, ended_cleanly, has_progressed, tells_loss);
}

/// An actor that has closed takes what is sent to it, and ignores it.
impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        self.0.poll_reserve(cx).map(|_| Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let _ = self.0.send_item(FromClient::Sends(frame));
        Ok(())
    }

    forward!(self => (); poll_flush);

    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        if ready!(self.0.poll_reserve(cx)).is_ok() {
            let _ = self.0.send_item(FromClient::Closes(why));
            self.0.close();
        }
        Poll::Ready(Ok(()))
    }
}

impl LinkGuard for Guard {
    fn stderr_tail(&self) -> String {
        let live = self.live.as_ref();
        live.map(|live| live.stderr_tail()).unwrap_or_default()
    }

    forward!(self => ();
        poll_exit, signal, capture_stderr, watch_presence, longest, away, unacknowledged,
        log_redaction, restart, restarts, is_relay);
}
