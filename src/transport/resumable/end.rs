//! One end of a resumable link: reads and writes the current attachment, and gets or awaits the next
//! one.

use std::future::Future as _;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Buf as _;
use tokio::time::{Instant, Sleep, sleep_until};

use super::attachment::{Attachment, Fault, Stderr};
use super::dialer::Dialer;
use super::outages::OutageLog;
use super::stats::KeptBytes;
use super::watchdog::LinkWatchdog;
use super::wire::{broken, encode, with_header};
use crate::liveness::Due;
use crate::{Link, LinkError, Presence, PresenceCallback, SinkPoll, StopStep, closing};
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Frame, Limits};
use link::{Attach, AttachError, CLIENT_DIED, End, Header, LinkState, Received, WINDOW};

/// Bytes that are read before other work is done.
const READ_BUDGET: usize = 64 << 10;
/// Time for the answer to a ping, once the network may have changed.
const PROBE: Duration = Duration::from_secs(3);

/// One end.
pub(super) struct LinkEnd {
    pub(super) state: LinkState,
    attachment: Option<Attachment>,
    /// How the client's end gets the next attachment; the server's end awaits it.
    pub(super) dialer: Option<Dialer>,
    limits: Arc<Limits>,
    /// The bytes that wait without an attachment.
    pub(super) kept: KeptBytes,
    /// Since when there has been no attachment.
    pub(super) away_since: Option<Instant>,
    /// The peer has sent something, so that it knows the link; until then it is awaited for the time
    /// of a handshake only.
    is_known: bool,
    unknown_timer: Option<Pin<Box<Sleep>>>,
    outages: OutageLog,
    /// The conversation has ended for this reason, which the peer is told.
    closing: Option<CloseReason>,
    /// The end was written on the current attachment.
    end_sent: bool,
    /// The close code with which the peer has ended the link.
    peer_end: Option<u16>,
    /// There will be no further attachment.
    failed: bool,
    /// Why the link has ended, until that is reported.
    error: Option<LinkError>,
    began: Instant,
    ack_timer: Option<Pin<Box<Sleep>>>,
    waker: Option<Waker>,
    pub(super) watch: Option<PresenceCallback>,
    pub(super) stderr: Option<Stderr>,
    /// The process that ends the link if this one is killed.
    pub(super) watchdog: Option<LinkWatchdog>,
    /// Attachments that were given up, which a broken receiver still reads.
    #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
    stale: Vec<Attachment>,
}

impl LinkEnd {
    pub(super) fn new(dialer: Option<Dialer>, limits: Arc<Limits>, kept: KeptBytes) -> Self {
        Self {
            state: LinkState::default(),
            attachment: None,
            dialer,
            limits,
            kept,
            away_since: None,
            is_known: false,
            unknown_timer: None,
            outages: OutageLog::default(),
            closing: None,
            end_sent: false,
            peer_end: None,
            failed: false,
            error: None,
            began: Instant::now(),
            ack_timer: None,
            waker: None,
            watch: None,
            stderr: None,
            watchdog: None,
            #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
            stale: Vec::new(),
        }
    }

    /// Begins attachment number `generation`, whose peer expects message `rx` next and allows
    /// `window` bytes in flight. `greeting` is the first message on it, if this end writes one.
    ///
    /// # Errors
    /// The numbers do not fit; nothing has changed then.
    #[expect(clippy::result_large_err, reason = "once for each connection")]
    pub(super) fn attach(
        &mut self,
        link: Link,
        (generation, rx, window): (u64, u64, u64),
        greeting: Option<Frame>,
    ) -> Result<(), (Link, AttachError)> {
        // After the peer's end there is only that to be answered.
        if self.peer_end.is_none()
            && let Err(error) = self.state.attach(generation, rx, window)
        {
            return Err((link, error));
        }
        self.settle();
        match self.away_since.take() {
            Some(since) => self.restored(&link.peer.name, since),
            None if !self.is_known => self.kept.stats().attached(Attach::New),
            None => {}
        }
        // A client shows with an acknowledgement that it was welcomed.
        let first = greeting.unwrap_or_else(|| self.acknowledgement());
        let mut attachment = Attachment::new(link, first, self.limits.http_keepalive);
        attachment.capture(self.stderr.clone());
        self.end_sent = false;
        self.attachment = Some(attachment);
        self.wake();
        Ok(())
    }

    /// Drops the current attachment before another one begins. With that, [`LinkState::expected`] is
    /// what the next one begins with.
    pub(super) fn replace(&mut self) {
        self.lose("the client has connected again");
    }

    /// Ready when the greeting was written. Only the conversation polls a link otherwise, and that
    /// begins when its agent has started.
    pub(super) fn poll_greeted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Err(fault) = self.write(cx) {
            self.end_attachment(fault);
        }
        let attachment = self.attachment.as_ref();
        if attachment.is_some_and(|attachment| !attachment.is_greeted()) {
            return Poll::Pending;
        }
        // What waits for the socket is the conversation's.
        self.wake();
        Poll::Ready(())
    }

    /// Ends the link: there will be no further attachment. A peer that is attached is told why, if
    /// it reads.
    pub(super) fn fail(&mut self, error: LinkError) {
        if let Some(attachment) = self.attachment.take() {
            attachment.end(&error);
        }
        self.kept.set(0);
        self.away_since = None;
        self.failed = true;
        self.error = Some(error);
        self.wake();
    }

    /// The next message of the peer.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Decoded, LinkError>>> {
        for driven in [false, true] {
            let began = self.began;
            if let Some(frame) = self.state.take(|| began.elapsed()) {
                return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
            }
            if let Some(error) = self.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if self.failed || self.peer_end.is_some() {
                return Poll::Ready(None);
            }
            if !driven {
                self.drive(cx);
            }
        }
        Poll::Pending
    }

    /// Why the link has ended, while its messages are not taken.
    pub(super) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.drive(cx);
        match self.error.take_if(|_| self.failed) {
            Some(error) => Poll::Ready(error),
            None => Poll::Pending,
        }
    }

    /// Whether the peer has said that it is done.
    pub(super) fn ended_cleanly(&self) -> bool {
        self.peer_end == Some(1000)
    }

    /// Ready when another message can be sent.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        for driven in [false, true] {
            if self.failed || self.peer_end.is_some() {
                return Poll::Ready(Err(LinkError::broken_pipe("writing to the peer")));
            }
            if self.has_room() {
                return Poll::Ready(Ok(()));
            }
            if !driven {
                self.drive_writer(cx);
            }
        }
        Poll::Pending
    }

    /// Sends a message: now, or over the next attachment.
    pub(super) fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if !frame.is_text() && simdutf8::basic::from_utf8(frame.as_bytes()).is_err() {
            return Err(LinkError::Io {
                context: "sending a message that is not UTF-8",
                source: io::ErrorKind::InvalidData.into(),
            });
        }
        if self.attachment.is_none() {
            self.kept.set(self.kept.bytes() + frame.weight());
        }
        self.state.send(frame).map_err(broken)?;
        Ok(())
    }

    /// Ready when the current attachment has taken all messages, or there is none, so that they are
    /// kept for the next one.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let written = self.write(cx);
        if written.is_err() || self.state.has_unwritten() {
            written.unwrap_or_else(|fault| self.end_attachment(fault));
            self.drive_writer(cx);
        }
        let is_done = |attachment: &Attachment| {
            !attachment.is_unflushed() && (self.peer_end.is_some() || !self.state.has_unwritten())
        };
        match self.attachment.as_ref().is_none_or(is_done) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Tells the peer that the link ends, and waits until it has answered.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> Poll<()> {
        self.closing.get_or_insert(why);
        self.drive_writer(cx);
        if !self.is_over() {
            return Poll::Pending;
        }
        match &mut self.attachment {
            Some(attachment) => attachment.poll_close(cx, why),
            None => Poll::Ready(()),
        }
    }

    /// The conversation has ended: a peer that was not told so is, as far as that is possible at
    /// once.
    pub(super) fn drop_conversation(&mut self) {
        let is_told = self.failed || self.peer_end.is_some();
        if let Some(watchdog) = self.watchdog.take().filter(|_| is_told) {
            watchdog.dismiss();
        }
        self.closing.get_or_insert(CloseReason::PeerFailed);
        let _ = self.write(&mut Context::from_waker(Waker::noop()));
        self.attachment = None;
        self.kept.set(0);
        self.failed = true;
    }

    /// Has the processes of attachments pass on their stderr.
    pub(super) fn capture_stderr(&mut self, stderr: Stderr) {
        if let Some(attachment) = &mut self.attachment {
            attachment.capture(Some(Arc::clone(&stderr)));
        }
        self.stderr = Some(stderr);
    }

    /// Signals the processes of the attachment.
    pub(super) fn signal(&mut self, step: StopStep) {
        if let Some(attachment) = &mut self.attachment {
            attachment.signal(step);
        }
    }

    /// Whether both ends have said that the link ends, or nothing more can be said.
    fn is_over(&self) -> bool {
        let is_told = || match &self.attachment {
            Some(attachment) => self.end_sent && !attachment.is_unflushed(),
            None => true,
        };
        self.failed || (self.peer_end.is_some() && is_told())
    }

    fn has_room(&self) -> bool {
        let limit = match self.kept.is_full() {
            true => READ_BUDGET.min(self.limits.link_bytes),
            false => self.limits.link_bytes,
        };
        self.state.has_room(limit)
    }

    /// Gets an attachment if there is none, and reads and writes the one there is.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if !self
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            self.waker = Some(cx.waker().clone());
        }
        while !self.is_over() {
            if self.attachment.is_some() {
                match self.exchange(cx) {
                    Ok(()) => return,
                    Err(fault) => self.end_attachment(fault),
                }
                continue;
            }
            let Some(dialer) = &mut self.dialer else {
                if self.poll_unknown(cx).is_pending() {
                    return;
                }
                self.fail(broken("the client was lost before it had sent anything"));
                continue;
            };
            if let Some(line) = self.outages.take_due(Instant::now()) {
                tracing::warn!("{line}");
            }
            match dialer.poll(self.state.expected(), cx) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Ready(Ok((link, welcome))) => {
                    let numbers = (welcome.generation, welcome.rx, welcome.window);
                    if let Some(watchdog) = &mut self.watchdog {
                        watchdog.update(&dialer.known);
                    }
                    if let Err((_, error)) = self.attach(link, numbers, None) {
                        self.fail(broken(error));
                    }
                }
            }
        }
    }

    /// Drives the link while it is written. What comes meanwhile wakes the task, which may have read
    /// the link already.
    fn drive_writer(&mut self, cx: &mut Context<'_>) {
        let before = (self.state.expected(), self.peer_end, self.failed);
        self.drive(cx);
        if (self.state.expected(), self.peer_end, self.failed) != before {
            cx.waker().wake_by_ref();
        }
    }

    /// Ready when a lost client that may not know the link has been awaited for long enough.
    fn poll_unknown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_known {
            return Poll::Pending;
        }
        let until = Instant::now() + self.limits.handshake;
        let timer = self
            .unknown_timer
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        timer.as_mut().poll(cx)
    }

    /// Reads what has come, and writes what is due.
    fn exchange(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
        self.read_stale(cx)?;
        let mut budget = READ_BUDGET;
        while let Some(attachment) = &mut self.attachment {
            if budget == 0 {
                cx.waker().wake_by_ref();
                break;
            }
            let Poll::Ready(frame) = attachment.poll_next(cx) else {
                break;
            };
            let frame = frame?;
            budget = budget.saturating_sub(frame.len());
            self.handle(frame)?;
        }
        self.write(cx)?;
        self.poll_timers(cx)
    }

    #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
    fn read_stale(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        for mut attachment in mem::take(&mut self.stale) {
            while let Poll::Ready(Ok(frame)) = attachment.poll_next(cx) {
                self.handle(frame)?;
            }
            self.stale.push(attachment);
        }
        Ok(())
    }

    /// Handles a message of the link.
    fn handle(&mut self, frame: Frame) -> Result<(), Fault> {
        self.is_known = true;
        let generation = self.state.generation();
        let mut bytes = frame.into_bytes();
        let read = Header::read(&bytes).map_err(|error| Fault::Broken(broken(error)))?;
        match read {
            (Header::Data { seq, ack }, begin) => {
                self.acknowledged(ack, None)?;
                bytes.advance(begin);
                match self.state.receive(generation, seq, Frame::new(bytes)) {
                    Received::Next | Received::Duplicate | Received::Stale => {}
                    Received::Gap => {
                        return Err(Fault::Lost(format!(
                            "message {seq} came before message {}",
                            self.state.expected()
                        )));
                    }
                    Received::Flood => {
                        return Err(Fault::Broken(broken("more than the window was sent")));
                    }
                }
            }
            (Header::Ack { ack, window }, _) => self.acknowledged(ack, Some(window))?,
            (Header::Ping(nonce), _) => {
                // It comes when nothing else does.
                self.state.shrink();
                self.control(&Header::Pong(nonce));
            }
            (Header::Pong(_) | Header::Unknown, _) => {}
            (Header::End(end), _) => {
                self.peer_end = Some(end.code);
                if end.reason == CLIENT_DIED && self.dialer.is_none() {
                    self.error = Some(LinkError::Killed);
                }
                // Why a server ends a link is only known from its code.
                if self.dialer.is_some() && self.closing.is_none() {
                    self.error = closing::close_error(end.code, end.reason.as_bytes());
                }
            }
            (Header::Hello(_) | Header::Welcome(_) | Header::Refuse(_), _) => {
                return Err(Fault::Broken(broken("a greeting on an open link")));
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, ack: u64, window: Option<u64>) -> Result<(), Fault> {
        let generation = self.state.generation();
        let acknowledged = self.state.acknowledged(generation, ack, window);
        self.settle();
        acknowledged.map_err(|error| Fault::Broken(broken(error)))
    }

    fn control(&mut self, header: &Header) {
        if let Some(attachment) = &mut self.attachment {
            attachment.control(header);
        }
    }

    /// Writes what is due, as far as the attachment takes it at once.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        while let Some(attachment) = &mut self.attachment {
            let Poll::Ready(ready) = attachment.poll_ready(cx) else {
                return Ok(());
            };
            ready?;
            let Some(frame) = self.next_frame() else {
                break;
            };
            if let Some(attachment) = &mut self.attachment {
                attachment.start_send(frame)?;
            }
        }
        match &mut self.attachment {
            Some(attachment) => attachment.flush(cx),
            None => Ok(()),
        }
    }

    /// What is written next.
    fn next_frame(&mut self) -> Option<Frame> {
        if let Some(frame) = self.attachment.as_mut()?.next_control() {
            return Some(frame);
        }
        let has_peer = self.peer_end.is_none();
        if has_peer && let Some((seq, ack, frame)) = self.state.next_to_write() {
            return Some(with_header(seq, ack, &frame));
        }
        let ends = !has_peer || (self.closing.is_some() && !self.state.has_unwritten());
        if ends && !mem::replace(&mut self.end_sent, true) {
            let (code, reason) = closing::code(self.closing.unwrap_or(CloseReason::Done));
            let reason = reason.to_owned();
            return Some(encode(&Header::End(Box::new(End { code, reason }))));
        }
        let due = self.state.ack_due()?;
        (due <= self.began.elapsed()).then(|| self.acknowledgement())
    }

    fn acknowledgement(&mut self) -> Frame {
        let (ack, window) = (self.state.acknowledge(), WINDOW);
        encode(&Header::Ack { ack, window })
    }

    /// Runs the timers of the attachment: an acknowledgement may become due, or a sign of life.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        // One that is due by now waits for the socket.
        let due = self.state.ack_due();
        if let Some(due) = due.filter(|due| *due > self.began.elapsed()) {
            // One that runs out early is set again: most acknowledgements go with messages.
            let timer = self
                .ack_timer
                .get_or_insert_with(|| Box::pin(sleep_until(self.began + due)));
            if timer.as_mut().poll(cx).is_ready() {
                self.ack_timer = None;
                cx.waker().wake_by_ref();
            }
        }
        if let Some(dialer) = &mut self.dialer
            && dialer.poll_network(cx)
            && let Some(attachment) = &mut self.attachment
        {
            attachment.liveness.suspect(PROBE);
            self.control(&Header::Ping(0));
            self.write(cx)?;
        }
        while let Some(attachment) = &mut self.attachment {
            let is_full = attachment.is_unflushed();
            let Poll::Ready(due) = attachment.liveness.poll(is_full, cx) else {
                break;
            };
            match due {
                Due::Ping => {
                    self.state.shrink();
                    self.control(&Header::Ping(0));
                }
                Due::Pong => self.control(&Header::Pong(0)),
                Due::Loss => return Err(attachment.liveness.loss().into()),
            }
            self.write(cx)?;
        }
        Ok(())
    }

    fn end_attachment(&mut self, fault: Fault) {
        match fault {
            Fault::Lost(why) => self.lose(&why),
            Fault::Broken(error) => self.fail(error),
        }
    }

    /// The current attachment is lost, if there is one.
    fn lose(&mut self, why: &str) {
        let Some(attachment) = self.attachment.take() else {
            return;
        };
        if self.is_over() {
            return;
        }
        self.state.detach();
        let name = attachment.name().to_owned();
        self.away_since = Some(Instant::now());
        match &mut self.dialer {
            Some(dialer) => {
                dialer.restart(why, attachment.is_good);
                self.outages.begin(format!(
                    "the connection to {name} is lost ({why}); connecting again, and the agent \
                     runs on"
                ));
            }
            None => tracing::info!(
                from = name,
                how = why,
                "the client is lost; its agent is kept"
            ),
        }
        if let Some(watch) = &self.watch {
            watch(Presence::Lost(why));
        }
        self.kept.set(unacknowledged(&self.state));
        #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
        self.stale.push(attachment);
    }

    fn restored(&mut self, name: &str, since: Instant) {
        let away = since.elapsed();
        self.kept.stats().attached(Attach::Resumed(away));
        if self.dialer.is_some() {
            if self.outages.end() {
                tracing::warn!(
                    "the connection to {name} is restored after {away:.1?}; nothing is lost"
                );
            }
        } else {
            tracing::info!(
                from = name,
                "the client has connected again after {away:.1?}"
            );
        }
        if let Some(watch) = &self.watch {
            watch(Presence::Restored(name));
        }
    }

    /// Releases what waited without an attachment and is acknowledged by now.
    fn settle(&mut self) {
        if self.kept.bytes() > 0 {
            let left = unacknowledged(&self.state);
            self.kept.set(left.min(self.kept.bytes()));
        }
    }

    pub(super) fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

jsonrpc::opaque_debug!(LinkEnd(state));

/// What the messages take that the peer has not acknowledged, in bytes.
fn unacknowledged(state: &LinkState) -> usize {
    state.sent().bytes()
}
