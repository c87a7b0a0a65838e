//! A client's link that ends when the client's credentials become invalid, and that is read no
//! faster than the client's rate limit. A link that needs neither is returned unchanged.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use auth::{Gate, Principal, RateLimit};
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Limits};
use transport::{FrameSink, FrameStream, Link, LinkError, SinkPoll, current_time, forward};

/// From this rate on, which is the default, there is no limit.
const UNLIMITED: usize = 1 << 30;
/// Seconds' worth of messages that may come at once; of bytes, it is one second's.
const BURST: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

/// Receives from the client.
struct GuardedStream {
    rx: Box<dyn FrameStream>,
    gate: Gate,
    principal: Arc<Principal>,
    /// Ready when the relay that has authenticated the client says that it is not valid any more.
    withdrawn: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    recheck: Duration,
    next_check: Pin<Box<Sleep>>,
    rate: Option<ClientRate>,
    revoked: Arc<AtomicBool>,
}

/// Sends to the client.
struct GuardedSink {
    tx: Box<dyn FrameSink>,
    revoked: Arc<AtomicBool>,
}

/// The rate limit of a client.
struct ClientRate {
    /// How long a message takes at the limit's rate, and how many bytes a second are allowed.
    message: Duration,
    bytes: f64,
    limits: [RateLimit; 2],
    wait: Option<Pin<Box<Sleep>>>,
}

/// Guards the link of an admitted client.
pub fn guarded(client: Link, gate: &Gate, limits: &Limits) -> Link {
    let Some(principal) = client.peer.principal.clone() else {
        return client;
    };
    let rate = ClientRate::of(limits);
    let is_checked = principal.key.is_some() || principal.expires.is_some();
    if rate.is_none() && !is_checked && principal.withdrawn.is_none() {
        return client;
    }
    let withdrawn = principal.withdrawn.as_deref().cloned();
    let withdrawn = withdrawn.map(|token| Box::pin(token.cancelled_owned()));
    let revoked = Arc::new(AtomicBool::new(false));
    Link {
        rx: Box::new(GuardedStream {
            rx: client.rx,
            gate: gate.clone(),
            principal,
            withdrawn,
            recheck: limits.credential_check,
            next_check: Box::pin(sleep(limits.credential_check)),
            rate,
            revoked: Arc::clone(&revoked),
        }),
        tx: Box::new(GuardedSink {
            tx: client.tx,
            revoked,
        }),
        ..client
    }
}

impl GuardedStream {
    /// Whether the credentials have just become invalid.
    fn is_revoked(&mut self, cx: &mut Context<'_>) -> bool {
        let withdrawn = self.withdrawn.as_mut();
        if withdrawn.is_some_and(|told| told.as_mut().poll(cx).is_ready()) {
            self.revoked.store(true, Ordering::Relaxed);
            return true;
        }
        while self.next_check.as_mut().poll(cx).is_ready() {
            if !self.gate.is_still_valid(&self.principal, current_time()) {
                self.revoked.store(true, Ordering::Relaxed);
                return true;
            }
            let next = Instant::now() + self.recheck;
            self.next_check.as_mut().reset(next);
        }
        false
    }

    fn revoked_error(&self) -> LinkError {
        LinkError::Refused(format!(
            "the credentials of {} are no longer valid",
            self.principal
        ))
    }
}

impl FrameStream for GuardedStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        if self.revoked.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        if self.is_revoked(cx) {
            return Poll::Ready(Some(Err(self.revoked_error())));
        }
        if let Some(rate) = &mut self.rate
            && rate.poll(cx).is_pending()
        {
            return self.rx.poll_lost(cx).map(|error| Some(Err(error)));
        }
        let received = ready!(self.rx.poll_next(cx));
        if let (Some(rate), Some(Ok(Decoded::Frame(frame)))) = (&mut self.rate, &received) {
            rate.count(frame.len());
        }
        Poll::Ready(received)
    }

    // Also while the client is held back by its rate limit.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        if !self.revoked.load(Ordering::Relaxed) && self.is_revoked(cx) {
            return Poll::Ready(self.revoked_error());
        }
        self.rx.poll_lost(cx)
    }

    fn ended_cleanly(&self) -> bool {
        self.revoked.load(Ordering::Relaxed) || self.rx.ended_cleanly()
    }

    forward!(self => self.rx; has_progressed, tells_loss);
}

impl FrameSink for GuardedSink {
    forward!(self => self.tx; poll_ready, start_send, poll_flush);

    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        let why = if self.revoked.load(Ordering::Relaxed) {
            CloseReason::Unauthorized
        } else {
            why
        };
        self.tx.poll_close(cx, why)
    }
}

impl ClientRate {
    /// `None` without a limit.
    fn of(limits: &Limits) -> Option<Self> {
        let (messages, bytes) = (limits.client_messages, limits.client_bytes);
        if messages >= UNLIMITED && bytes >= UNLIMITED {
            return None;
        }
        let message = SECOND / u32::try_from(messages).unwrap_or(u32::MAX);
        let limit = |burst| RateLimit::new(message, burst);
        Some(Self {
            message,
            bytes: bytes as f64,
            limits: [limit(SECOND * BURST), limit(SECOND)],
            wait: None,
        })
    }

    fn count(&mut self, bytes: usize) {
        let costs = [
            self.message,
            Duration::from_secs_f64(bytes as f64 / self.bytes),
        ];
        let now = Instant::now();
        let waits = self.limits.iter_mut().zip(costs);
        let waits = waits.map(|(limit, cost)| limit.charge(cost, now.into_std()));
        let wait = waits.max().unwrap_or_default();
        self.wait = (!wait.is_zero()).then(|| Box::pin(sleep(wait)));
    }

    /// Ready when the client may be read again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Poll::Ready(())
    }
}
