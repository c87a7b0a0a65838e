//! The loop that reads both sides, passes frames to the conversation, and writes both sides.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::alarm::Alarm;
use super::parting::Parting;
use super::pauses::Pauses;
use super::writer::{Writer, Written};
use super::{End, Refused};
use crate::conversation::{Core, Manners, Note, Order, Outbox, Speech};
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Limits, Side};
use crate::observe::{Fact, Sight, Taps};
use crate::policy::Border;
use crate::transport::{FrameStream, Hold, Link, LinkError, PeerKind, StopStep};

/// Bytes read from a side before the results are written. The messages share their memory with the
/// read buffer, so it can be reused once they were sent.
const BITE: usize = 32 << 10;

/// Rounds of a conversation before other tasks run. One that always has work takes the time of two
/// read budgets each way, some hundred microseconds.
const TURNS: usize = 2;

/// Time a client may take for each message once the conversation is ending.
const LINGER: Duration = Duration::from_secs(30);

/// The same once [`Limits::drain`] is over, or the relay is told not to wait: time for a reading
/// client to take the last messages.
const SHORT_LINGER: Duration = Duration::from_millis(500);

/// Time a client may take for all of them then.
const OVERTIME: Duration = Duration::from_secs(3);

/// How a conversation is told to end.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// End gracefully: the agent gets its grace period.
    pub asked: CancellationToken,
    /// Do not wait.
    pub forced: CancellationToken,
    /// The cause is a failed recording, and not a shutdown of the relay.
    pub unrecorded: CancellationToken,
}

/// Relays a conversation between two links until it is over.
///
/// Dropping the future ends it at once: both links are closed and the agent's processes killed.
///
/// Not an `async fn`, whose future would hold the arguments besides what is made of them: there is
/// one for each client, and most are idle.
pub fn run(
    client: Link,
    agent: Link,
    limits: Arc<Limits>,
    speech: Speech,
    border: Option<Box<Border>>,
    mut taps: Taps,
    stop: &Stop,
) -> impl Future<Output = End> + Send + use<> {
    let marker = taps.marker();
    let drain = limits.drain;
    let mut conversation = Conversation {
        drain,
        drained: None,
        parting: Parting::of(&client, limits.last_words),
        outbox: outbox(&limits, &taps),
        pauses: Pauses::default(),
        silent: [false; 2],
        counted: taps.want_facts(),
        core: Core::new(limits, manners(&client, &agent), speech)
            .with_border(border)
            .with_discretion(agent.hold.discretion())
            .with_marker(marker),
        taps,
        readers: [client.rx, agent.rx],
        writers: [
            Writer::new(Side::Client, client.tx),
            Writer::new(Side::Agent, agent.tx),
        ],
        holds: [client.hold, agent.hold],
        exited: false,
        refused: None,
        unsaid: None,
        alarm: Alarm::default(),
        linger: None,
        stops: [
            Box::pin(stop.asked.clone().cancelled_owned()),
            Box::pin(stop.forced.clone().cancelled_owned()),
        ],
        unrecorded: stop.unrecorded.clone(),
        stopped: [false; 2],
    };
    poll_fn(move |cx| {
        let end = conversation.poll(cx);
        if conversation.counted {
            let sides = [Side::Client, Side::Agent];
            let waits = sides.map(|side| conversation.outbox.waiting_bytes(side));
            conversation.taps.learn(&Fact::Waits(waits));
        }
        conversation.taps.rest();
        end
    })
}

struct Conversation {
    core: Core,
    /// [`Limits::drain`], and when it is over.
    drain: Duration,
    drained: Option<Instant>,
    outbox: Outbox,
    taps: Taps,
    /// Whether statistics are wanted, which cost a look at the clock.
    counted: bool,
    pauses: Pauses,
    /// Sides without input since the task was woken; they wake it when they have some.
    silent: [bool; 2],
    readers: [Box<dyn FrameStream>; 2],
    writers: [Writer; 2],
    holds: [Box<dyn Hold>; 2],
    exited: bool,
    /// The agent's server refused the connection.
    refused: Option<Refused>,
    unsaid: Option<String>,
    alarm: Alarm,
    /// When to give up on a client that does not take what is queued for it.
    linger: Option<Instant>,
    /// How a closed client's link ends.
    parting: Parting,
    stops: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    unrecorded: CancellationToken,
    stopped: [bool; 2],
}

impl Conversation {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.silent = [false; 2];
        self.hear_stop(cx);
        self.hear_exit(cx);
        self.obey();
        for _ in 0..TURNS {
            let mut moved = self.read(Side::Agent, cx);
            moved |= self.read(Side::Client, cx);
            moved |= self.write(Side::Client, cx);
            moved |= self.write(Side::Agent, cx);
            moved |= self.hear_time(cx);
            self.obey();
            if let Some(end) = self.ended(cx) {
                return Poll::Ready(end);
            }
            if !moved && !self.alarm_is_stale() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads `side` until it has nothing more, there is no room for it, or it is time to write.
    fn read(&mut self, side: Side, cx: &mut Context<'_>) -> bool {
        if self.silent[side as usize] {
            return false;
        }
        let mut moved = false;
        let (mut bytes, mut messages) = (0, 0);
        let now = Instant::now().into_std();
        let open = !self.writers[Side::Client as usize].is_closed();
        while bytes < BITE
            && self.core.listens_to(side)
            && self.outbox.may_read(side)
            && (open || side == Side::Agent)
            && self.taps.poll_room(cx).is_ready()
        {
            let Poll::Ready(heard) = self.readers[side as usize].poll_next(cx) else {
                self.silent[side as usize] = true;
                break;
            };
            moved = true;
            match heard {
                Some(Ok(Cut::Frame(frame))) => {
                    bytes += frame.len();
                    messages += 1;
                    self.taps.see(&Sight::Heard(side, &frame));
                    self.core.handle_frame(side, frame, now, &mut self.outbox);
                    if let Some(envelope) = self.outbox.envelope() {
                        self.taps.see(&Sight::Opened(envelope));
                    }
                }
                Some(Ok(Cut::Flaw(flaw))) => {
                    self.core.handle_flaw(side, *flaw, now, &mut self.outbox)
                }
                Some(Err(error)) => self.broke_off(side, error, now),
                None => {
                    self.core
                        .handle_eof(side, "ended its stream".to_owned(), now, &mut self.outbox)
                }
            }
            // Notes have no bound of their own, so they must not accumulate.
            self.obey();
        }
        if self.counted && messages > 0 {
            let took = Instant::now().into_std().saturating_duration_since(now);
            self.taps.learn(&Fact::Worked {
                from: side,
                messages,
                took,
            });
        }
        let held = !self.outbox.may_read(side) || self.taps.poll_room(cx).is_pending();
        if held
            && self.core.listens_to(side)
            && let Poll::Ready(error) = self.readers[side as usize].poll_over(cx)
        {
            moved = true;
            self.broke_off(side, error, now);
            self.obey();
        }
        if let Some(span) = self.pauses.mark(side, held, now) {
            self.taps.learn(&Fact::Paused(side, span));
        }
        moved
    }

    fn broke_off(&mut self, side: Side, error: LinkError, now: std::time::Instant) {
        let refused = match error {
            LinkError::Unavailable(_) => Some(Refused::Unavailable),
            LinkError::Forbidden(_) => Some(Refused::Forbidden),
            LinkError::Refused(_) => Some(Refused::Protocol),
            _ => None,
        };
        if side == Side::Agent {
            self.refused = self.refused.or(refused);
        }
        let how = format!("broke off: {error}");
        if matches!(error, LinkError::Io { .. } | LinkError::Unavailable(_)) {
            self.core.handle_lost(side, how, now, &mut self.outbox);
        } else {
            let flaw = error.into_flaw().map(|flaw| *flaw);
            self.core
                .handle_broken(side, how, flaw, now, &mut self.outbox);
        }
    }

    fn write(&mut self, side: Side, cx: &mut Context<'_>) -> bool {
        match self.writers[side as usize].poll(cx, &mut self.outbox, &mut self.taps) {
            Written::Nothing => false,
            Written::Some => {
                self.linger = None;
                true
            }
            Written::Failed(error) => {
                let now = Instant::now().into_std();
                if side == Side::Client && !error.is_departure() {
                    self.unsaid = Some(error.to_string());
                }
                self.core.handle_deaf(
                    side,
                    format!("cannot be reached: {error}"),
                    now,
                    &mut self.outbox,
                );
                true
            }
        }
    }

    fn hear_exit(&mut self, cx: &mut Context<'_>) {
        if self.exited {
            return;
        }
        let hold = &mut self.holds[Side::Agent as usize];
        if let Poll::Ready(exit) = hold.poll_exit(cx) {
            self.exited = true;
            let tail = hold.stderr_tail();
            self.core
                .handle_exit(exit, tail, Instant::now().into_std(), &mut self.outbox);
        }
    }

    fn hear_stop(&mut self, cx: &mut Context<'_>) {
        for (stop, stopped) in self.stops.iter_mut().zip(&mut self.stopped) {
            if !*stopped && stop.as_mut().poll(cx).is_ready() {
                *stopped = true;
                self.linger = None;
                let now = Instant::now();
                // The second does not wait.
                let drained = now + mem::take(&mut self.drain);
                self.drained = Some(drained);
                let now = now.into_std();
                if self.unrecorded.is_cancelled() {
                    self.core.handle_unrecorded(now, &mut self.outbox);
                } else {
                    self.core.handle_stop(now, &mut self.outbox);
                }
            }
        }
    }

    fn hear_time(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.client_is_awaited() {
            self.linger = None;
        } else if self.linger.is_none() {
            self.linger = Some(self.linger_until(Instant::now()));
        }
        self.alarm.set(self.due());
        if !self.alarm.poll(cx) {
            return false;
        }
        let now = Instant::now();
        if self.linger.is_some_and(|until| until <= now) {
            self.linger = None;
            self.writers[Side::Client as usize].give_up();
            let how = "takes nothing any more".to_owned();
            self.core
                .handle_deaf(Side::Client, how, now.into_std(), &mut self.outbox);
        }
        if self
            .core
            .poll_timeout()
            .is_some_and(|at| at <= now.into_std())
        {
            // What is available is read first, so that a deadline cannot cut it off.
            while self.read(Side::Agent, cx) {}
            self.core.handle_timeout(now.into_std(), &mut self.outbox);
        }
        true
    }

    /// Only the client keeps the conversation from ending.
    fn client_is_awaited(&self) -> bool {
        self.core.is_ending() && self.writers[Side::Client as usize].waits(&self.outbox)
    }

    fn linger_until(&self, now: Instant) -> Instant {
        let long = now + LINGER;
        self.drained.map_or(long, |drained| {
            let short = drained.max(now + SHORT_LINGER);
            long.min(short).min(drained + OVERTIME)
        })
    }

    /// Executes the conversation's commands and passes its notes to the observers.
    fn obey(&mut self) {
        while let Some(order) = self.outbox.pop_order() {
            self.holds[Side::Agent as usize].signal(match order {
                Order::Terminate => StopStep::Terminate,
                Order::Kill => StopStep::Kill,
            });
        }
        while let Some(gist) = self.outbox.pop_gist() {
            self.taps.learn(&Fact::Passed(&gist));
        }
        while let Some(note) = self.outbox.pop_note() {
            self.taps.see(&Sight::Note(&note));
        }
        let waiting = [Side::Client, Side::Agent].map(|side| self.outbox.waiting(side));
        self.taps.see(&Sight::Settled(waiting));
    }

    fn ended(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let cause = self.core.over()?.clone();
        let gone = self.writers[Side::Client as usize].is_closed() && self.see_off(cx);
        if gone {
            self.taps
                .learn(&Fact::Over(&cause, Instant::now().into_std()));
        }
        gone.then(|| End {
            cause,
            exit: self.core.exit(),
            lost: self.core.has_lost_agent(),
            answered: self.core.has_agent_answered(),
            refused: self.refused,
            unsaid: self.unsaid.take(),
            counts: self.taps.counts().clone(),
        })
    }

    /// Reads what a closed client still sends; `true` when its link may be dropped.
    fn see_off(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.parting.begin() else {
            return true;
        };
        while self.core.listens_to(Side::Client) && Instant::now() < until {
            match self.readers[Side::Client as usize].poll_next(cx) {
                Poll::Ready(Some(Ok(_))) => {
                    self.taps
                        .see(&Sight::Note(&Note::Undeliverable { to: Side::Agent }));
                }
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
        true
    }

    fn due(&self) -> Option<Instant> {
        let core = self.core.poll_timeout().map(Instant::from_std);
        let parting = self.parting.end();
        [core, self.linger, parting].into_iter().flatten().min()
    }

    /// Whether the timer has to be set anew.
    fn alarm_is_stale(&self) -> bool {
        self.due() != self.alarm.at() || self.client_is_awaited() != self.linger.is_some()
    }
}

/// The properties of the two links.
fn manners(client: &Link, agent: &Link) -> Manners {
    Manners {
        client_half_close: client.peer.half_close,
        agent_half_close: agent.peer.half_close,
        agent_is_child: agent.peer.kind == PeerKind::Child,
        agent_is_played: agent.peer.kind == PeerKind::Played,
        announce_exit: client.peer.kind == PeerKind::Remote,
    }
}

/// An outbox for the wishes of the observers.
fn outbox(limits: &Limits, taps: &Taps) -> Outbox {
    let mut outbox = Outbox::new(limits);
    if taps.want_facts() {
        outbox.want_gists();
    }
    if taps.want_envelopes() {
        outbox.want_envelopes();
    }
    if taps.want_trails() {
        outbox.want_trails();
    }
    outbox
}
