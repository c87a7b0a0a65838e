//! The loop that reads both sides, passes frames to the conversation, and writes both sides.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::login::Logins;
use super::timer::Timer;
use super::writer::{Writer, Written};
use super::{ConnectRefusal, End};
use conversation::{Cause, Command, Conversation, DialectOptions, LinkTraits, Note, Outbox};
use jsonrpc::framing::Decoded;
use jsonrpc::{Frame, Limits, Side};
use link::Retention;
use observe::{Event, Observers};
use panics::{self, Place};
use policy::MessagePolicy;
use transport::{
    FrameStream, Link, LinkError, LinkGuard, PeerKind, Restart, Restarts, SessionClaims, StopStep,
};

/// Bytes read from a side before the results are written. The messages share their memory with the
/// read buffer, so it can be reused once they were sent.
const READ_BUDGET: usize = 32 << 10;

/// Rounds of a conversation before other tasks run. One that always has work takes the time of two
/// read budgets each way, some hundred microseconds.
const ROUNDS: usize = 2;

/// Time a client may take for each message once the conversation is ending.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The same once [`Limits::drain`] is over, or the relay is asked not to wait: time for a reading
/// client to take the last messages.
const SHORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Time a client may take for all of them then.
const OVERTIME: Duration = Duration::from_secs(3);

/// Asks a conversation to end.
#[derive(Clone, Debug, Default)]
pub struct StopSignals {
    /// End gracefully: the agent gets its grace period.
    pub requested: CancellationToken,
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
    mut agent: Link,
    limits: Arc<Limits>,
    dialects: DialectOptions,
    policy: Option<Box<MessagePolicy>>,
    mut observers: Observers,
    stop: &StopSignals,
) -> impl Future<Output = End> + Send + use<> {
    let marker = observers.marker();
    let names_agent = client.peer.kind == PeerKind::Parent;
    let agent_name = names_agent.then(|| agent.peer.name.clone());
    let mut outbox = Outbox::new(&limits);
    outbox.set_needs(observers.needs());
    let (drain, stop_grace) = (limits.drain, limits.stop_grace);
    let retention = Retention {
        idle: limits.reconnect_grace,
        limit: limits.reconnect_turn,
    };
    let logins = Logins::new(agent.login.take());
    let mut relay = RelayLoop {
        drain,
        stop_grace,
        drained: None,
        close_grace: (client.peer.kind == PeerKind::Remote && client.peer.half_close)
            .then_some(limits.close_grace),
        closing: None,
        outbox,
        blocked_since: [None; 2],
        idle: [false; 2],
        counts_time: observers.needs().summaries,
        conversation: Conversation::new(
            limits,
            link_traits(&client, &agent),
            dialects,
            Instant::now().into_std(),
        )
        .with_policy(policy)
        .claiming(client.sessions.is_some())
        .with_longest([client.peer.longest, agent.peer.longest])
        .with_log_redaction(agent.guard.log_redaction())
        .with_restarts(agent.guard.restarts() == Restarts::Always)
        .with_marker(marker)
        .with_agent_name(agent_name)
        .with_login(logins.role()),
        logins,
        observers,
        sessions: client.sessions,
        is_claiming: false,
        readers: [client.rx, agent.rx],
        writers: [
            Writer::new(Side::Client, client.tx),
            Writer::new(Side::Agent, agent.tx),
        ],
        holds: [client.guard, agent.guard],
        exited: false,
        restart: None,
        refused: None,
        client_error: None,
        timer: Timer::default(),
        client_deadline: None,
        client_state: (false, 0),
        retention,
        turn_ended: None,
        agent_away: None,
        stops: [
            Box::pin(stop.requested.clone().cancelled_owned()),
            Box::pin(stop.forced.clone().cancelled_owned()),
        ],
        unrecorded: stop.unrecorded.clone(),
        stopped: [false; 2],
        current: None,
        has_failed: false,
    };
    poll_fn(move |cx| {
        let turn = match relay.has_failed {
            true => None,
            false => panics::catch(Place::Conversation, || relay.turn(cx)),
        };
        turn.unwrap_or_else(|| relay.poll_failed(cx))
    })
}

struct RelayLoop {
    conversation: Conversation,
    /// [`Limits::drain`] and [`Limits::stop_grace`], and when the first is over.
    drain: Duration,
    stop_grace: Duration,
    drained: Option<Instant>,
    outbox: Outbox,
    observers: Observers,
    logins: Logins,
    /// Whether statistics are needed, which cost a look at the clock.
    counts_time: bool,
    /// Since when each side is not read because of backpressure.
    blocked_since: [Option<std::time::Instant>; 2],
    /// Sides without input since the task was woken; they wake it when they have some.
    idle: [bool; 2],
    /// Claims the client's sessions, and whether one is being claimed.
    sessions: Option<Box<dyn SessionClaims>>,
    is_claiming: bool,
    readers: [Box<dyn FrameStream>; 2],
    writers: [Writer; 2],
    holds: [Box<dyn LinkGuard>; 2],
    exited: bool,
    /// The agent that is being started again.
    restart: Option<Restart>,
    /// The agent's server refused the connection.
    refused: Option<ConnectRefusal>,
    client_error: Option<String>,
    timer: Timer,
    /// When to give up on a client that does not take what is queued for it.
    client_deadline: Option<Instant>,
    /// Whether the client is disconnected, and how many messages it has not acknowledged.
    client_state: (bool, usize),
    /// How long a peer is waited for whose connection is lost, and since when no request of the
    /// client has been open meanwhile.
    retention: Retention,
    turn_ended: Option<Instant>,
    /// Since when the agent's connection is lost, as the conversation knows it.
    agent_away: Option<Instant>,
    /// For how long a client is read once everything was sent, and until when: a socket that is
    /// closed with unread bytes is reset, and a client on a network could lose the last messages.
    close_grace: Option<Duration>,
    closing: Option<Instant>,
    stops: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    unrecorded: CancellationToken,
    stopped: [bool; 2],
    /// The client's frame that is being handled.
    current: Option<Frame>,
    /// After a panic, only errors are sent to the client.
    has_failed: bool,
}

impl RelayLoop {
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let end = self.poll(cx);
        if self.counts_time {
            let sides = [Side::Client, Side::Agent];
            let waits = sides.map(|side| self.outbox.waiting_bytes(side));
            self.observers.on_event(&Event::Queued(waits));
            let away = sides.map(|side| self.holds[side as usize].away());
            let away = away.map(|away| away.map(|(since, bytes)| (since.into_std(), bytes)));
            self.observers.on_event(&Event::Away(away));
            let silent = self.conversation.silent_requests();
            self.observers.on_event(&Event::Silent(silent));
        }
        self.observers.flush();
        end
    }

    /// After a panic: sends the client an error for each open request, and ends.
    fn poll_failed(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let sent = panics::catch(Place::Conversation, || {
            if !mem::replace(&mut self.has_failed, true) {
                self.end_others();
            }
            self.send_errors(cx)
        });
        match sent {
            Some(Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(self.end(Cause::Panicked)),
        }
    }

    /// Queues the errors for the client, and ends the agent and the observers.
    fn end_others(&mut self) {
        let current = self.current.take();
        self.conversation
            .answer_after_panic(current.as_ref(), &mut self.outbox);
        let now = Instant::now();
        self.client_deadline = Some(now + OVERTIME);
        let mut observers = self.observers.take();
        self.restart = None;
        self.readers[Side::Agent as usize] = Box::new(());
        self.writers[Side::Agent as usize] = Writer::new(Side::Agent, Box::new(()));
        self.holds[Side::Agent as usize] = Box::new(());
        observers.on_event(&Event::Ended(&Cause::Panicked, now.into_std()));
    }

    fn send_errors(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let writer = &mut self.writers[Side::Client as usize];
        while let Written::Some = writer.poll(cx, &mut self.outbox, &mut self.observers) {}
        if writer.is_closed() && self.poll_closing(cx) {
            return Poll::Ready(());
        }
        self.timer.set(self.closing.or(self.client_deadline));
        match self.timer.poll(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.idle = [false; 2];
        if let Some(longest) = self.holds[Side::Client as usize].longest() {
            self.conversation.set_longest(Side::Client, longest);
        }
        self.poll_stop(cx);
        self.poll_exit(cx);
        self.process_outbox();
        for _ in 0..ROUNDS {
            let mut moved = self.poll_restart(cx);
            moved |= self.read(Side::Agent, cx);
            moved |= self.read(Side::Client, cx);
            if self.poll_claims(cx) {
                moved = true;
                self.process_outbox();
            }
            moved |= self
                .logins
                .poll(&mut self.conversation, &mut self.outbox, cx);
            moved |= self.write(Side::Client, cx);
            moved |= self.write(Side::Agent, cx);
            moved |= self.update_agent_away();
            moved |= self.poll_timer(cx);
            self.process_outbox();
            if let Some(end) = self.ended(cx) {
                return Poll::Ready(end);
            }
            if !moved && !self.timer_is_stale() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads `side` until it has nothing more, there is no room for it, or it is time to write.
    fn read(&mut self, side: Side, cx: &mut Context<'_>) -> bool {
        if self.idle[side as usize] || self.is_restarting(side) {
            return false;
        }
        let mut moved = false;
        let (mut bytes, mut messages) = (0, 0);
        let now = Instant::now().into_std();
        let open = !self.writers[Side::Client as usize].is_closed();
        while bytes < READ_BUDGET
            && self.conversation.reads(side)
            && self.outbox.may_read(side)
            && !self.conversation.is_claiming(side)
            && (open || side == Side::Agent)
            && !self.is_restarting(side)
            && self.observers.poll_ready(cx).is_ready()
        {
            let Poll::Ready(received) = self.readers[side as usize].poll_next(cx) else {
                self.idle[side as usize] = true;
                break;
            };
            moved = true;
            match received {
                Some(Ok(Decoded::Frame(frame))) => {
                    bytes += frame.len();
                    messages += 1;
                    self.observers.on_event(&Event::Received(side, &frame));
                    if side == Side::Agent && self.conversation.awaits_version() {
                        let is_relay = self.holds[side as usize].is_relay();
                        self.conversation.set_agent_is_relay(is_relay);
                    }
                    self.current = (side == Side::Client).then(|| frame.clone());
                    panics::panic_point("conversation", frame.as_bytes());
                    self.conversation
                        .handle_frame(side, frame, now, &mut self.outbox);
                    self.current = None;
                    if let Some(envelope) = self.outbox.envelope() {
                        self.observers.on_event(&Event::Parsed(envelope));
                    }
                }
                Some(Ok(Decoded::Error(error))) => {
                    self.conversation
                        .handle_frame_error(side, *error, now, &mut self.outbox)
                }
                Some(Err(error)) => self.handle_link_error(side, error, now),
                None => self.conversation.handle_eof(
                    side,
                    "ended its stream".to_owned(),
                    now,
                    &mut self.outbox,
                ),
            }
            // Notes have no bound of their own, so they must not accumulate.
            self.process_outbox();
        }
        if self.counts_time && messages > 0 {
            let took = Instant::now().into_std().saturating_duration_since(now);
            self.observers.on_event(&Event::Processed {
                from: side,
                messages,
                took,
            });
        }
        let blocked = !self.outbox.may_read(side)
            || self.conversation.is_claiming(side)
            || self.observers.poll_ready(cx).is_pending();
        if blocked
            && self.conversation.reads(side)
            && let Poll::Ready(error) = self.readers[side as usize].poll_lost(cx)
        {
            moved = true;
            self.handle_link_error(side, error, now);
            self.process_outbox();
        }
        let since = &mut self.blocked_since[side as usize];
        if blocked {
            since.get_or_insert(now);
        } else if let Some(since) = since.take() {
            let span = now.saturating_duration_since(since);
            self.observers.on_event(&Event::Paused(side, span));
        }
        moved
    }

    /// Claims the sessions that messages wait for.
    fn poll_claims(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(sessions) = &mut self.sessions else {
            return false;
        };
        let mut moved = false;
        loop {
            if self.is_claiming {
                let Poll::Ready(claimed) = sessions.poll_claimed(cx) else {
                    return moved;
                };
                self.is_claiming = false;
                moved = true;
                let now = Instant::now().into_std();
                self.conversation
                    .handle_claimed(claimed, now, &mut self.outbox);
            }
            for session in self.conversation.released() {
                sessions.release(&session);
            }
            let Some(session) = self.conversation.next_claim() else {
                return moved;
            };
            sessions.claim(&session);
            self.is_claiming = true;
        }
    }

    fn handle_link_error(&mut self, side: Side, error: LinkError, now: std::time::Instant) {
        let refused = match error {
            LinkError::Unavailable(_) => Some(ConnectRefusal::Unavailable),
            LinkError::Forbidden(_) => Some(ConnectRefusal::Forbidden),
            LinkError::Refused(_) => Some(ConnectRefusal::Protocol),
            _ => None,
        };
        if side == Side::Agent {
            self.refused = self.refused.or(refused);
        }
        let how = format!("broke off: {error}");
        if side == Side::Agent && matches!(error, LinkError::SessionLost(_)) {
            // Its client has to know, and may find the session on another host.
            self.conversation.forbid_restarts();
        }
        // A server that does not know the conversation any more has lost it.
        let forgets = matches!(error, LinkError::Refused(_)) && self.conversation.is_restartable();
        if forgets
            || matches!(
                error,
                LinkError::Io { .. }
                    | LinkError::Unavailable(_)
                    | LinkError::SessionLost(_)
                    | LinkError::Killed
            )
        {
            self.conversation
                .handle_lost(side, how, now, &mut self.outbox);
        } else {
            let frame_error = error.into_frame_error().map(|error| *error);
            self.conversation
                .handle_invalid(side, how, frame_error, now, &mut self.outbox);
        }
    }

    fn write(&mut self, side: Side, cx: &mut Context<'_>) -> bool {
        if self.is_restarting(side) {
            return false;
        }
        match self.writers[side as usize].poll(cx, &mut self.outbox, &mut self.observers) {
            Written::Nothing => false,
            Written::Some => {
                self.client_deadline = None;
                true
            }
            Written::Failed(error) => {
                let now = Instant::now().into_std();
                if side == Side::Client && !error.is_disconnect() {
                    self.client_error = Some(error.to_string());
                }
                self.conversation.handle_unwritable(
                    side,
                    format!("cannot be reached: {error}"),
                    now,
                    &mut self.outbox,
                );
                true
            }
        }
    }

    fn is_restarting(&self, side: Side) -> bool {
        side == Side::Agent && self.restart.is_some()
    }

    /// Replaces the agent's link by that of the agent that was started again.
    fn poll_restart(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(restart) = &mut self.restart else {
            return false;
        };
        let Poll::Ready(restarted) = restart.as_mut().poll(cx) else {
            return false;
        };
        self.restart = None;
        match restarted {
            Ok(link) => {
                self.readers[Side::Agent as usize] = link.rx;
                self.writers[Side::Agent as usize] = Writer::new(Side::Agent, link.tx);
                self.holds[Side::Agent as usize] = link.guard;
                self.logins.replace(link.login);
                self.idle[Side::Agent as usize] = false;
                self.exited = false;
                self.refused = None;
                self.conversation
                    .set_longest(Side::Agent, link.peer.longest);
            }
            Err(why) => self.fail_restart(&why),
        }
        true
    }

    fn fail_restart(&mut self, why: &str) {
        let now = Instant::now().into_std();
        self.conversation
            .handle_not_restarted(why, now, &mut self.outbox);
    }

    fn poll_exit(&mut self, cx: &mut Context<'_>) {
        if self.exited || self.is_restarting(Side::Agent) {
            return;
        }
        let hold = &mut self.holds[Side::Agent as usize];
        if let Poll::Ready(exit) = hold.poll_exit(cx) {
            self.exited = true;
            let tail = hold.stderr_tail();
            self.conversation
                .handle_exit(exit, tail, Instant::now().into_std(), &mut self.outbox);
        }
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) {
        for (stop, stopped) in self.stops.iter_mut().zip(&mut self.stopped) {
            if !*stopped && stop.as_mut().poll(cx).is_ready() {
                *stopped = true;
                self.client_deadline = None;
                let now = Instant::now();
                // The second does not wait.
                let drained = now + mem::take(&mut self.drain);
                self.drained = Some(drained);
                let now = now.into_std();
                let cause = match self.unrecorded.is_cancelled() {
                    true => Cause::Unrecorded,
                    false => Cause::Stopped,
                };
                self.conversation.handle_stop(cause, now, &mut self.outbox);
            }
        }
    }

    /// Until when a lost peer is waited for.
    fn lost_until(&self, side: Side) -> Option<Instant> {
        let (lost, _) = self.holds[side as usize].away()?;
        Some(self.retention.until(lost, self.turn_ended))
    }

    /// Gives up a peer that has not connected again in time.
    fn poll_lost(&mut self, now: Instant) {
        for side in [Side::Client, Side::Agent] {
            if self.conversation.reads(side) && self.lost_until(side).is_some_and(|at| at <= now) {
                let how = "was lost and has not come back in time (--limit reconnect-grace, \
                           reconnect-turn)";
                self.conversation.handle_lost(
                    side,
                    how.to_owned(),
                    now.into_std(),
                    &mut self.outbox,
                );
            }
        }
    }

    /// Tells the conversation when the agent's connection is lost and restored.
    fn update_agent_away(&mut self) -> bool {
        let away = self.holds[Side::Agent as usize].away();
        let since = away.map(|(since, _)| since);
        let has_changed = since != mem::replace(&mut self.agent_away, since);
        if has_changed {
            let (since, now) = (since.map(Instant::into_std), Instant::now().into_std());
            self.conversation
                .handle_agent_away(since, now, &mut self.outbox);
        }
        has_changed
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        match self.conversation.in_turn() {
            true => self.turn_ended = None,
            false if self.turn_ended.is_none() => self.turn_ended = Some(Instant::now()),
            false => {}
        }
        // A client that has returned or takes something gets its time again.
        let hold = &self.holds[Side::Client as usize];
        let state = (hold.away().is_some(), hold.unacknowledged());
        let has_changed = state != mem::replace(&mut self.client_state, state);
        if has_changed {
            let now = Instant::now().into_std();
            self.conversation.set_client_away(state.0, now);
        }
        if !self.client_is_awaited() || has_changed {
            self.client_deadline = None;
        }
        if self.client_is_awaited() && self.client_deadline.is_none() {
            self.client_deadline = Some(self.client_deadline_at(Instant::now()));
        }
        self.shorten_drain(state.0);
        self.timer.set(self.due());
        if !self.timer.poll(cx) {
            return false;
        }
        let now = Instant::now();
        self.poll_lost(now);
        if self.client_deadline.is_some_and(|until| until <= now) {
            self.client_deadline = None;
            self.writers[Side::Client as usize].abandon();
            let how = "takes nothing any more".to_owned();
            self.conversation.handle_unwritable(
                Side::Client,
                how,
                now.into_std(),
                &mut self.outbox,
            );
        }
        if self
            .conversation
            .poll_timeout()
            .is_some_and(|at| at <= now.into_std())
        {
            // What is available is read first, so that a deadline cannot cut it off.
            while self.read(Side::Agent, cx) {}
            self.conversation
                .handle_timeout(now.into_std(), &mut self.outbox);
        }
        true
    }

    /// Only the client keeps the conversation from ending.
    fn client_is_awaited(&self) -> bool {
        self.conversation.is_ending() && self.writers[Side::Client as usize].waits(&self.outbox)
    }

    fn client_deadline_at(&self, now: Instant) -> Instant {
        let long = match self.lost_until(Side::Client) {
            // It cannot come back once the relay is stopping.
            Some(_) if self.drained.is_some() => return now + SHORT_TIMEOUT,
            Some(until) => until,
            None => now + CLIENT_TIMEOUT,
        };
        self.drained.map_or(long, |drained| {
            let short = drained.max(now + SHORT_TIMEOUT);
            long.min(short).min(drained + OVERTIME)
        })
    }

    /// A client that is away cannot connect again to a relay that stops, so it does not receive the
    /// end of its turns.
    fn shorten_drain(&mut self, client_is_away: bool) {
        let Some(drained) = self.drained.filter(|_| client_is_away) else {
            return;
        };
        let soon = Instant::now() + self.stop_grace;
        if soon < drained {
            self.drained = Some(soon);
            self.conversation.shorten_drain(soon.into_std());
        }
    }

    /// Executes the conversation's commands and passes its notes to the observers.
    fn process_outbox(&mut self) {
        while let Some(order) = self.outbox.pop_command() {
            let hold = &mut self.holds[Side::Agent as usize];
            match order {
                Command::Terminate => hold.signal(StopStep::Terminate),
                Command::Kill => hold.signal(StopStep::Kill),
                Command::RestartAgent => {
                    hold.signal(StopStep::Kill);
                    self.restart = hold.restart();
                    if self.restart.is_none() {
                        self.fail_restart("its address is not known any more");
                    }
                }
            }
        }
        while let Some(summary) = self.outbox.pop_summary() {
            self.observers.on_event(&Event::Forwarded(&summary));
        }
        while let Some(note) = self.outbox.pop_note() {
            self.observers.on_event(&Event::Note(&note));
        }
        let waiting = [Side::Client, Side::Agent].map(|side| self.outbox.waiting(side));
        self.observers.on_event(&Event::Settled(waiting));
    }

    fn ended(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let cause = self.conversation.end_cause()?.clone();
        let closed = self.writers[Side::Client as usize].is_closed() && self.poll_closing(cx);
        if closed {
            self.observers
                .on_event(&Event::Ended(&cause, Instant::now().into_std()));
        }
        closed.then(|| self.end(cause))
    }

    fn end(&mut self, cause: Cause) -> End {
        End {
            cause,
            exit: self.conversation.exit(),
            lost: self.conversation.has_lost_agent(),
            answered: self.conversation.has_agent_answered(),
            agent_error: self.conversation.agent_error(),
            refused: self.refused,
            client_error: self.client_error.take(),
            counts: self.observers.counts().clone(),
        }
    }

    /// Reads what a closed client still sends; `true` when its link may be dropped.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(grace) = self.close_grace else {
            return true;
        };
        let until = *self.closing.get_or_insert_with(|| Instant::now() + grace);
        while self.conversation.reads(Side::Client) && Instant::now() < until {
            match self.readers[Side::Client as usize].poll_next(cx) {
                Poll::Ready(Some(Ok(_))) => {
                    self.observers
                        .on_event(&Event::Note(&Note::Undeliverable { to: Side::Agent }));
                }
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
        true
    }

    fn due(&self) -> Option<Instant> {
        let core = self.conversation.poll_timeout().map(Instant::from_std);
        let lost = [Side::Client, Side::Agent].map(|side| {
            let waits = self.conversation.reads(side);
            self.lost_until(side).filter(|_| waits)
        });
        [core, self.client_deadline, self.closing, lost[0], lost[1]]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the timer has to be set anew.
    fn timer_is_stale(&self) -> bool {
        self.due() != self.timer.at() || self.client_is_awaited() != self.client_deadline.is_some()
    }
}

/// The properties of the two links.
fn link_traits(client: &Link, agent: &Link) -> LinkTraits {
    LinkTraits {
        client_on_stdio: client.peer.kind == PeerKind::Parent,
        client_half_close: client.peer.half_close,
        agent_half_close: agent.peer.half_close,
        agent_is_child: agent.peer.kind == PeerKind::Child,
        agent_is_replayed: agent.peer.kind == PeerKind::Replayed,
        announce_exit: client.peer.kind == PeerKind::Remote,
        agent_restarts: agent.guard.restarts() != Restarts::Never,
        agent_is_relay: agent.guard.is_relay(),
    }
}
