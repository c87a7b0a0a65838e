//! The links of a relay: who may resume which, what they hold, and what has happened to them.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::time::timeout;
use uuid::Uuid;

use super::end::LinkEnd;
use super::half::{self, Shared};
use super::stats::{KeptBytes, LinkStats};
use super::wire::{broken, encode};
use crate::{CloseReason, FrameStream, Link, LinkError, PeerKind, forward};
use jsonrpc::framing::Decoded;
use jsonrpc::{FrameFault, Limits};
use link::{
    Attach, Header, Hello, LinkEvents, LinkSource, LinkTable, LinkTotals, NewKeys, Refusal,
    RefusalCode, ResumeKey, WINDOW, Welcome, longest,
};
use panics::SharedMutex;

/// The links of a relay.
#[derive(Debug, Default)]
pub struct Links {
    table: SharedMutex<LinkTable<Shared>>,
    /// All of them, those to agents too.
    all: SharedMutex<Vec<Weak<Mutex<LinkEnd>>>>,
    pub(super) stats: Arc<LinkStats>,
    /// What the names of new links begin with, and whether connections are only passed on.
    place: OnceLock<LinkPlace>,
}

/// Where the links of a relay of many machines end.
#[derive(Clone, Debug)]
pub enum LinkPlace {
    /// Here: the names of the links begin with that of this place, by which others find it, and
    /// they are of this epoch.
    Here {
        /// The name.
        name: String,
        /// The epoch.
        epoch: String,
    },
    /// Elsewhere: a connection that carries a link is returned as a [`PeerKind::Carrier`].
    Elsewhere,
}

/// A stream whose first message was read.
struct Begun {
    first: Option<Result<Decoded, LinkError>>,
    rx: Box<dyn FrameStream>,
}

impl Links {
    /// Sets what counts the attachments. The first one stays; `false` for another one.
    pub fn set_events(&self, events: Arc<dyn LinkEvents>) -> bool {
        self.stats.set_events(events)
    }

    /// Sets where the links end. The first place stays; `false` for another one.
    pub fn set_place(&self, place: LinkPlace) -> bool {
        self.place.set(place).is_ok()
    }

    /// Serves a connection that was opened to carry a link: the link, if it is a new one. A
    /// connection that resumes one becomes its attachment, and one that is refused is closed.
    pub async fn accept(self: &Arc<Self>, mut carrier: Link, limits: &Arc<Limits>) -> Option<Link> {
        if matches!(self.place.get(), Some(LinkPlace::Elsewhere)) {
            carrier.peer.kind = PeerKind::Carrier;
            return Some(carrier);
        }
        match timeout(limits.handshake, carrier.receive()).await {
            Ok(Some(Ok(Decoded::Frame(first)))) => {
                self.greet(carrier, first.as_bytes(), limits).await
            }
            _ => None,
        }
    }

    /// Serves a connection whose first message shows whether it carries a link. Another one is
    /// returned as it is; one that breaks before is not a client.
    pub(crate) async fn detect(
        self: &Arc<Self>,
        mut client: Link,
        limits: &Arc<Limits>,
    ) -> Option<Link> {
        let Ok(first) = timeout(limits.handshake / 2, client.receive()).await else {
            // One that opens a link would have done so.
            return Some(client);
        };
        match &first {
            Some(Ok(Decoded::Frame(frame))) => {
                if matches!(Header::read(frame.as_bytes()), Ok((Header::Hello(_), _))) {
                    return self.greet(client, frame.as_bytes(), limits).await;
                }
            }
            // An end within a message is a connection that broke.
            Some(Ok(Decoded::Error(error)))
                if matches!(error.fault, FrameFault::TooLong { .. }) => {}
            _ => return None,
        }
        Some(begun(client, first))
    }

    /// Answers the greeting of a client, which is the `first` message on its connection.
    async fn greet(
        self: &Arc<Self>,
        carrier: Link,
        first: &[u8],
        limits: &Arc<Limits>,
    ) -> Option<Link> {
        let (mut carrier, refusal) = match Header::read(first) {
            Ok((Header::Hello(hello), _)) => match self.open(carrier, &hello, limits) {
                Ok((end, link)) => {
                    let greeted = poll_fn(|cx| end.lock().poll_greeted(cx));
                    // A client that does not read is lost, and shows that by itself.
                    let _ = timeout(limits.handshake, greeted).await;
                    end.lock().wake();
                    return link;
                }
                Err(refused) => refused,
            },
            _ => {
                let detail = "the first message is no greeting of a link";
                (carrier, Refusal::new(RefusalCode::Version, detail))
            }
        };
        self.stats.attached(Attach::Refused(refusal.code));
        let (from, detail) = (&carrier.peer.name, &refusal.detail);
        tracing::info!(from, "a link was refused: {detail}");
        let refusal = encode(&Header::Refuse(Box::new(refusal)));
        let closed = async {
            carrier.send(refusal).await?;
            carrier.close(CloseReason::Violation).await
        };
        // A client that does not read is not waited for.
        let _ = timeout(limits.handshake, closed).await;
        None
    }

    #[expect(clippy::result_large_err, reason = "once for each connection")]
    fn open(
        self: &Arc<Self>,
        carrier: Link,
        hello: &Hello,
        limits: &Arc<Limits>,
    ) -> Result<(Shared, Option<Link>), (Link, Refusal)> {
        let Some(principal) = carrier.peer.principal.clone() else {
            let detail = "a link is kept for clients that have authenticated";
            return Err((carrier, Refusal::new(RefusalCode::Auth, detail)));
        };
        let new_end = |other: Option<&Shared>| {
            let other = other.map(|end| end.lock());
            let kept = KeptBytes::new(&self.stats, other.as_ref().map(|end| &end.kept));
            Arc::new(Mutex::new(LinkEnd::new(None, Arc::clone(limits), kept)))
        };
        let mut table = self.table.lock();
        let (mut welcome, end) =
            match table.open(hello, &principal, new_keys(self.place.get()), new_end) {
                Ok((welcome, end)) => (welcome, Arc::clone(end)),
                Err(refusal) => return Err((carrier, refusal)),
            };
        let mut peer = carrier.peer.clone();
        peer.longest = longest(hello.max);
        let is_resumed = welcome.resumed;
        let link = welcome.link.clone();
        welcome.max = Some(limits.frame_from_network as u64);
        welcome.direct = peer.is_direct;
        welcome.grace_ms = u64::try_from(limits.reconnect_grace.as_millis()).unwrap_or(u64::MAX);
        if let Err((carrier, refusal)) = attach(&end, carrier, hello, welcome) {
            if !is_resumed {
                table.remove(&link);
            }
            return Err((carrier, refusal));
        }
        drop(table);
        if is_resumed {
            return Ok((end, None));
        }
        self.watch(&end);
        let links = Arc::downgrade(self);
        let forget = move || {
            if let Some(links) = links.upgrade() {
                links.table.lock().remove(&link);
            }
        };
        let link = half::link(&end, peer, forget);
        Ok((end, Some(link)))
    }

    /// Counts a link as long as it lives.
    pub(super) fn watch(&self, end: &Shared) {
        let mut all = self.all.lock();
        all.retain(|end| end.strong_count() > 0);
        all.push(Arc::downgrade(end));
    }
}

impl LinkSource for Links {
    fn totals(&self) -> LinkTotals {
        let mut totals = LinkTotals::default();
        for end in self.all.lock().iter().filter_map(Weak::upgrade) {
            let end = end.lock();
            totals.to_agents += usize::from(end.dialer.is_some());
            totals.away += usize::from(end.away_since.is_some());
            totals.unacked += end.state.sent().bytes();
        }
        totals
    }
}

impl FrameStream for Begun {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.rx.poll_next(cx),
        }
    }

    forward!(self => self.rx; poll_lost, ended_cleanly, has_progressed, tells_loss);
}

/// A link whose first message was read before.
pub(crate) fn begun(mut link: Link, first: Option<Result<Decoded, LinkError>>) -> Link {
    link.rx = Box::new(Begun { first, rx: link.rx });
    link
}

/// Begins an attachment with the server's greeting.
#[expect(clippy::result_large_err, reason = "once for each connection")]
fn attach(
    end: &Shared,
    carrier: Link,
    hello: &Hello,
    welcome: Welcome,
) -> Result<(), (Link, Refusal)> {
    let mut end = end.lock();
    end.replace();
    let rx = end.state.expected();
    let welcome = Welcome {
        rx,
        window: WINDOW,
        ..welcome
    };
    let greeting = encode(&Header::Welcome(Box::new(welcome)));
    // A process that only ends the link does not know the number.
    let peer_rx = match hello.rx {
        0 => end.state.sent().first(),
        known => known,
    };
    let numbers = (hello.generation, peer_rx, hello.window);
    end.attach(carrier, numbers, Some(greeting))
        .map_err(|(carrier, error)| {
            let refusal = Refusal {
                rx,
                ..Refusal::new(RefusalCode::Gap, error.to_string())
            };
            // Without these numbers there is no way on.
            end.fail(broken(error));
            (carrier, refusal)
        })
}

/// Names and keys of 244 random bits.
fn new_keys(place: Option<&LinkPlace>) -> NewKeys {
    let random = || Uuid::new_v4().simple().to_string();
    let (link, epoch) = match place {
        Some(LinkPlace::Here { name, epoch }) => (format!("{name}.{}", random()), epoch.clone()),
        _ => (random(), random()),
    };
    NewKeys {
        link,
        epoch,
        key: ResumeKey(random() + &random()),
    }
}
