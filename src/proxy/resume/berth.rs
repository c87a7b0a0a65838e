//! One conversation's client, connected or not: messages reach it now or when it reconnects.
//!
//! `messages` interprets what passes, `link` is the conversation's side of it, and `store` finds it
//! for a client.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::timeout;

use super::absence::Absence;
use super::history::History;
use super::ids::Ids;
use super::opening::Opening;
use super::questions::Questions;
use crate::auth::Principal;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame, Limits, Scanner};
use crate::transport::{Link, LinkError, Peer, Presence, Watch};

/// Time for closing the link of a client that reconnected over another one.
const FAREWELL: Duration = Duration::from_secs(5);

/// One conversation's client, connected or not.
pub(super) struct Berth {
    pub(super) limits: Arc<Limits>,
    /// For messages to the client.
    pub(super) scanner: Scanner,
    /// The principal that began the conversation, and alone may reconnect to it.
    owner: Option<Arc<Principal>>,
    pub(super) client: Option<Link>,
    /// How many times a client has reconnected.
    pub(super) connection: u32,
    /// Runs while no client is connected.
    absence: Option<Absence>,
    /// No client is expected any more.
    over: bool,
    /// The client's `initialize`, and the agent's answer.
    pub(super) opening: Opening,
    pub(super) ids: Ids,
    pub(super) questions: Questions,
    pub(super) history: History,
    /// Messages to the client that belong to no session, kept while it is disconnected.
    missed: VecDeque<Frame>,
    missed_bytes: usize,
    /// What is sent to the client before anything else.
    pub(super) first: VecDeque<Frame>,
    /// What was received from the client and not handled yet.
    said: VecDeque<Frame>,
    waker: Option<Waker>,
    /// Is told when the client disconnects and reconnects.
    watch: Option<Watch>,
}

impl Berth {
    pub(super) fn new(client: Link, limits: Arc<Limits>) -> Self {
        Self {
            scanner: Scanner::new(Arc::clone(&limits)),
            limits,
            owner: client.peer.principal.clone(),
            client: Some(client),
            connection: 0,
            absence: None,
            over: false,
            opening: Opening::default(),
            ids: Ids::default(),
            questions: Questions::default(),
            history: History::default(),
            missed: VecDeque::new(),
            missed_bytes: 0,
            first: VecDeque::new(),
            said: VecDeque::new(),
            waker: None,
            watch: None,
        }
    }

    /// Sets what is told when the client disconnects and reconnects.
    pub(super) fn watched(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    pub(super) const fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Whether the conversation belongs to that client.
    pub(super) fn is_of(&self, peer: &Peer) -> bool {
        self.owner == peer.principal
    }

    /// Whether a client can reconnect to this session.
    pub(super) fn keeps(&self, session: &str) -> bool {
        !self.over && self.history.has(session)
    }

    /// Whether it waits for a disconnected client, and how many bytes are kept.
    pub(super) fn standing(&self) -> (bool, usize) {
        (self.absence.is_some() && !self.over, self.kept())
    }

    /// Takes a client that has reconnected; `request` is the one that names its session. The link
    /// of an earlier client, if any, is closed.
    ///
    /// # Errors
    /// When the conversation has just ended.
    pub(super) fn board(&mut self, client: Link, request: Frame) -> Result<(), Link> {
        if self.over {
            return Err(client);
        }
        let from = &client.peer.name;
        tracing::info!(from, "the client has reconnected");
        if let Some(watch) = &self.watch {
            watch(Presence::Back(from));
        }
        if let Some(old) = self.client.replace(client) {
            drop(tokio::spawn(send_away(old)));
        }
        self.connection += 1;
        self.absence = None;
        self.history.begin_anew();
        self.questions.begin_anew();
        self.first.clear();
        self.said.clear();
        self.said.push_back(request);
        self.first.extend(self.questions.unsaid(None));
        self.first.append(&mut self.missed);
        self.missed_bytes = 0;
        self.wake();
        Ok(())
    }

    /// The next item received from the client.
    pub(super) fn poll_heard(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Cut, LinkError>>> {
        loop {
            let _ = self.push_first(cx);
            if let Some(frame) = self.said.pop_front() {
                match self.hear(frame) {
                    Some(frame) => return Poll::Ready(Some(Ok(Cut::Frame(frame)))),
                    None => continue,
                }
            }
            let Some(client) = &mut self.client else {
                return self.poll_absence(cx);
            };
            match client.rx.poll_next(cx) {
                Poll::Pending => {
                    self.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(Cut::Frame(frame)))) => self.said.push_back(frame),
                Poll::Ready(None) if client.rx.ended_on_purpose() => {
                    self.over = true;
                    return Poll::Ready(None);
                }
                Poll::Ready(None) => self.lose("ended its stream"),
                Poll::Ready(Some(Err(error @ LinkError::Io { .. }))) => {
                    self.lose(&error.to_string());
                }
                other => return other,
            }
        }
    }

    /// Why the client's link is over, though it is not being read.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.waker = Some(cx.waker().clone());
        match &mut self.client {
            Some(client) => client.rx.poll_over(cx),
            None => Poll::Pending,
        }
    }

    /// Whether another message for the client can be accepted.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.push_first(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(client) = &mut self.client {
            match client.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(()),
                Poll::Ready(Err(error)) => self.fail(&error, cx),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.over || self.kept() < self.limits.kept_for_return {
            return Poll::Ready(());
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.push_first(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(client) = &mut self.client {
            match client.tx.poll_flush(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.fail(&error, cx),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<()> {
        self.over = true;
        let Some(client) = &mut self.client else {
            return Poll::Ready(());
        };
        client.tx.poll_close(cx, why).map(|_| ())
    }

    /// The conversation no longer needs a client.
    pub(super) const fn close(&mut self) {
        self.over = true;
    }

    /// Sends a message to the client, or keeps it for the next one.
    pub(super) fn tell(&mut self, frame: Frame) {
        if !self.first.is_empty() {
            self.first.push_back(frame);
            return;
        }
        match &mut self.client {
            Some(client) => {
                if let Err(error) = client.tx.start_send(frame) {
                    self.lose(&error.to_string());
                }
            }
            None => {
                self.missed_bytes += frame.len();
                self.missed.push_back(frame);
            }
        }
    }

    /// Sends what comes before anything else.
    fn push_first(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut moved = false;
        while let Some(client) = &mut self.client
            && !self.first.is_empty()
        {
            match client.tx.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    self.fail(&error, cx);
                    break;
                }
                Poll::Pending => return Poll::Pending,
            }
            if let Some(frame) = self.first.pop_front()
                && let Err(error) = client.tx.start_send(frame)
            {
                self.lose(&error.to_string());
                break;
            }
            moved = true;
        }
        if moved
            && let Some(client) = &mut self.client
            && let Poll::Ready(Err(error)) = client.tx.poll_flush(cx)
        {
            self.fail(&error, cx);
        }
        Poll::Ready(())
    }

    /// The client can be sent nothing any more. It may have left on purpose.
    fn fail(&mut self, error: &LinkError, cx: &mut Context<'_>) {
        while let Some(client) = &mut self.client {
            match client.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Cut::Frame(frame)))) => self.said.push_back(frame),
                Poll::Ready(Some(Ok(Cut::Flaw(_)))) => {}
                Poll::Ready(None) if client.rx.ended_on_purpose() => {
                    self.over = true;
                    self.client = None;
                }
                _ => break,
            }
        }
        self.lose(&error.to_string());
    }

    /// The client's link has ended or failed.
    fn lose(&mut self, how: &str) {
        if self.client.take().is_none() {
            return;
        }
        if !self.first.is_empty() {
            self.first.clear();
            self.history.doubt();
        }
        let within = self.limits.return_grace;
        tracing::info!(how, ?within, "the client has disconnected; its agent is kept");
        if let Some(watch) = &self.watch {
            watch(Presence::Lost(how));
        }
        self.absence = Some(Absence::begin(self.is_busy(), &self.limits));
        self.wake();
    }

    /// Restarts the timer for an agent that has just begun to wait for its client.
    pub(super) fn rest(&mut self) {
        let busy = self.is_busy();
        if let Some(absence) = &mut self.absence {
            absence.count_on(busy, &self.limits);
            self.wake();
        }
    }

    /// Whether the agent has work that needs no client.
    fn is_busy(&self) -> bool {
        self.ids.in_turn() && self.questions.is_empty()
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll_absence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        self.waker = Some(cx.waker().clone());
        let waits = match &mut self.absence {
            Some(absence) => absence.poll(cx).is_pending(),
            None => true,
        };
        if waits && !self.over {
            return Poll::Pending;
        }
        self.over = true;
        tracing::info!("no client reconnected to the agent");
        Poll::Ready(None)
    }

    fn kept(&self) -> usize {
        self.history.bytes() + self.questions.bytes() + self.missed_bytes
    }
}

/// Closes the link of a client that reconnected over another one.
async fn send_away(mut old: Link) {
    let closed = poll_fn(|cx| old.tx.poll_close(cx, Farewell::Replaced));
    // A link that is not closed in time is dropped.
    let _ = timeout(FAREWELL, closed).await;
}
