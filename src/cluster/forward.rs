//! Passes the connection of a client's resumable link on to the host where the link ends.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

use super::gateway::{Gateway, NotOpened};
use super::request::host_of;
use auth::Principal;
use jsonrpc::framing::Decoded;
use jsonrpc::{Frame, Limits};
use link::{Header, Refusal, RefusalCode};
use transport::{FrameSink, FrameStream, Link};

/// Bytes that are passed on before other work is done.
const BUDGET: usize = 64 << 10;
/// Time for what is on its way when one side has ended.
const FLUSH: Duration = Duration::from_secs(2);
/// When a client is to try again.
const RETRY: u64 = 1000;

/// A client's connection, and what it asks for.
#[derive(Debug)]
pub struct Greeted {
    /// The connection.
    pub client: Link,
    greeting: Frame,
    /// The host of the link that it resumes.
    host: Option<String>,
}

/// One direction.
struct Way {
    from: Box<dyn FrameStream>,
    to: Box<dyn FrameSink>,
    is_unflushed: bool,
}

impl Greeted {
    /// Reads what a client's connection is for; `None` for one that breaks before, or greets in no
    /// way that is known.
    pub async fn read(mut client: Link, limits: &Limits) -> Option<Self> {
        let first = timeout(limits.handshake, client.receive()).await;
        let Ok(Some(Ok(Decoded::Frame(greeting)))) = first else {
            return None;
        };
        let (code, why) = match Header::read(greeting.as_bytes()) {
            Ok((Header::Hello(hello), _)) => {
                let host = hello.link.as_deref().map(host_of);
                if host != Some(None) {
                    let host = host.flatten().map(str::to_owned);
                    return Some(Self {
                        client,
                        greeting,
                        host,
                    });
                }
                (RefusalCode::UnknownLink, "there is no such link")
            }
            _ => (
                RefusalCode::Version,
                "the first message is no greeting of a link",
            ),
        };
        refuse(client, code, why, false).await;
        None
    }

    /// Whether it begins a link.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.host.is_none()
    }

    /// Tells the client why there is no link, and that it may try again.
    pub async fn refuse(self, why: &str) {
        refuse(self.client, RefusalCode::Limit, why, true).await;
    }
}

impl Gateway {
    /// Passes a client's connection on to the host where its link ends, until one of them ends.
    pub async fn forward(
        &self,
        greeted: Greeted,
        who: &Arc<Principal>,
        agent: &str,
        limits: &Limits,
    ) {
        let Greeted {
            client,
            greeting,
            host,
        } = greeted;
        let opened = match &host {
            Some(host) => self.resume(host, who, agent, limits).await,
            None => self.begin(who, agent, limits).await.map(|(_, link)| link),
        };
        let mut host = match opened {
            Ok(link) => link,
            Err(error) => {
                let (code, again) = match error {
                    NotOpened::Gone => (RefusalCode::UnknownLink, false),
                    NotOpened::Later(_) => (RefusalCode::Busy, true),
                    NotOpened::Never(_) => (RefusalCode::Auth, false),
                };
                return refuse(client, code, &error.to_string(), again).await;
            }
        };
        if host.send(greeting).await.is_ok() {
            splice(client, host).await;
        }
    }
}

/// Passes messages on in both directions until one side ends. Nothing is closed in order: the ends
/// of the link say themselves when it is over.
async fn splice(client: Link, host: Link) {
    let _guards = (client.guard, host.guard);
    let way = |from, to| Way {
        from,
        to,
        is_unflushed: false,
    };
    let mut ways = [way(client.rx, host.tx), way(host.rx, client.tx)];
    std::future::poll_fn(|cx| {
        let over = ways.iter_mut().any(|way| way.poll(cx).is_ready());
        if over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let flush = std::future::poll_fn(|cx| {
        let pending = ways
            .iter_mut()
            .map(|way| way.to.poll_flush(cx).is_pending());
        match pending.fold(false, |any, one| any | one) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    });
    // A side that takes nothing any more is not waited for.
    let _ = timeout(FLUSH, flush).await;
}

impl Way {
    /// Ready when one of the sides has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut budget = BUDGET;
        loop {
            match self.to.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
            if budget == 0 {
                cx.waker().wake_by_ref();
                break;
            }
            match self.from.poll_next(cx) {
                Poll::Ready(Some(Ok(Decoded::Frame(frame)))) => {
                    budget = budget.saturating_sub(frame.len());
                    if self.to.start_send(frame).is_err() {
                        return Poll::Ready(());
                    }
                    self.is_unflushed = true;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        if self.is_unflushed
            && let Poll::Ready(flushed) = self.to.poll_flush(cx)
        {
            if flushed.is_err() {
                return Poll::Ready(());
            }
            self.is_unflushed = false;
        }
        Poll::Pending
    }
}

/// Refuses a link.
async fn refuse(mut client: Link, code: RefusalCode, why: &str, again: bool) {
    let refusal = Refusal {
        retry_after_ms: again.then_some(RETRY),
        ..Refusal::new(code, why)
    };
    tracing::info!(from = client.peer.name, "a link was refused: {why}");
    let mut bytes = Vec::new();
    Header::Refuse(Box::new(refusal)).write(&mut bytes);
    let _ = timeout(FLUSH, client.send(Frame::new(bytes))).await;
}
