//! One conversation's client, there or not: what it is told, now or when it comes back.
//!
//! Not here: what the messages mean that pass (see `passing`), how the conversation sees the berth
//! (see `line`), and how a client finds it (see `harbour`).

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

/// Time the link of a client that came back elsewhere has to be closed.
const FAREWELL: Duration = Duration::from_secs(5);

/// One conversation's client, there or not.
pub(super) struct Berth {
    pub(super) limits: Arc<Limits>,
    /// Of what is said to the client.
    pub(super) scanner: Scanner,
    /// Who began the conversation, and alone may come back to it.
    owner: Option<Arc<Principal>>,
    pub(super) client: Option<Link>,
    /// How many times a client has come back.
    pub(super) connection: u32,
    /// Nobody is there.
    absence: Option<Absence>,
    /// No client is expected any more.
    over: bool,
    /// What the client asked first, and what the agent answered.
    pub(super) opening: Opening,
    pub(super) ids: Ids,
    pub(super) questions: Questions,
    pub(super) history: History,
    /// Messages to the client that belong to no session, kept while nobody is there.
    missed: VecDeque<Frame>,
    missed_bytes: usize,
    /// What the client is told before anything else.
    pub(super) first: VecDeque<Frame>,
    /// What the client has said to others on our side.
    said: VecDeque<Frame>,
    waker: Option<Waker>,
    /// Learns when the client is gone and when it is back.
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

    /// Has `watch` learn when the client is gone and when it is back.
    pub(super) fn watched(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    pub(super) const fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Whether the conversation is that client's.
    pub(super) fn is_of(&self, peer: &Peer) -> bool {
        self.owner == peer.principal
    }

    /// Whether a client can come back for this session.
    pub(super) fn keeps(&self, session: &str) -> bool {
        !self.over && self.history.has(session)
    }

    /// Whether its client is away and waited for, and how many bytes are kept.
    pub(super) fn standing(&self) -> (bool, usize) {
        (self.absence.is_some() && !self.over, self.kept())
    }

    /// Takes a client that has come back; `request` is what it asked for its session with. The one
    /// that was here before, if any, is sent away.
    ///
    /// # Errors
    /// When the conversation has just ended.
    pub(super) fn board(&mut self, client: Link, request: Frame) -> Result<(), Link> {
        if self.over {
            return Err(client);
        }
        let from = &client.peer.name;
        tracing::info!(from, "the client is back");
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

    /// The next thing heard of the client.
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

    /// Why the client's link is over, though nobody reads it.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.waker = Some(cx.waker().clone());
        match &mut self.client {
            Some(client) => client.rx.poll_over(cx),
            None => Poll::Pending,
        }
    }

    /// Whether another message for the client can be taken.
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

    /// Nobody waits for the conversation behind the berth any more.
    pub(super) const fn close(&mut self) {
        self.over = true;
    }

    /// Tells the client, or keeps it for the next one.
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

    /// Tells the client what comes before anything else.
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

    /// Nothing can be said to the client any more. It may have left on purpose.
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
        tracing::info!(how, ?within, "the client is gone; its agent is kept");
        if let Some(watch) = &self.watch {
            watch(Presence::Lost(how));
        }
        self.absence = Some(Absence::begin(self.is_busy(), &self.limits));
        self.wake();
    }

    /// Counts anew how long an agent is kept that has just begun to wait for its client.
    pub(super) fn rest(&mut self) {
        let busy = self.is_busy();
        if let Some(absence) = &mut self.absence {
            absence.count_on(busy, &self.limits);
            self.wake();
        }
    }

    /// Whether the agent has something to do that needs no client.
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
        tracing::info!("nobody came back for the agent");
        Poll::Ready(None)
    }

    fn kept(&self) -> usize {
        self.history.bytes() + self.questions.bytes() + self.missed_bytes
    }
}

/// Closes the link of a client that came back over another one.
async fn send_away(mut old: Link) {
    let closed = poll_fn(|cx| old.tx.poll_close(cx, Farewell::Replaced));
    // A link that is not closed in time is dropped.
    let _ = timeout(FAREWELL, closed).await;
}
