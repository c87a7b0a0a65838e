//! The state that the tasks of one link share: the server, received messages, sessions, and the end
//! of the link.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Refusal};
use super::queue::Queue;
use super::sessions::{self, Session, Sessions};
use super::site::Site;
use super::stream;
use crate::jsonrpc::IdBuf;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::reply::{self, Reason};
use crate::transport::http::names::{CONNECTION, SESSION};
use crate::transport::{Endpoint, LinkError, failure};

/// Streams of sessions that may be open at a time. Over HTTP/1.1 each is a connection.
const STREAMS: usize = 256;
/// How long a message waits for the stream on which its answer will come. Some servers send the
/// head of a stream only with its first event.
const OPENING: Duration = Duration::from_secs(2);
/// How long the other streams have once the server has closed the connection's.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long the server has to answer the closing `DELETE`.
const LEAVE: Duration = Duration::from_secs(2);
/// How late a keep-alive may be.
const LATE: Duration = Duration::from_secs(10);

/// The state that the tasks of one link share.
pub(super) struct Exchange {
    pub(super) to: Endpoint,
    pub(super) site: Site,
    pub(super) way: Way,
    pub(super) heard: Queue<Result<Cut, LinkError>>,
    sessions: Mutex<Sessions>,
    /// The `GRACE` of an acp-relay server, which drops repeated POSTs.
    pub(super) told_grace: OnceLock<Duration>,
    /// The number of the next POST.
    pub(super) posts: AtomicU64,
    /// The longest time between two keep-alives on a silent stream, once that is known.
    pub(super) interval: Mutex<Option<Duration>>,
    /// Notified when a session's stream is closed.
    pub(super) fewer: Notify,
    /// Cancelled when the link has ended, for whatever reason.
    pub(super) over: CancellationToken,
}

/// The HTTP interface of the server.
#[derive(Debug)]
pub(super) enum Way {
    /// ACP's Streamable HTTP.
    Streamable {
        /// The server's id of the connection, once it is open.
        connection: OnceLock<HeaderValue>,
    },
    /// elephant.ai's; the client's name is in the address, and all sessions share one stream.
    Elephant,
}

impl Exchange {
    pub(super) fn new(to: &Endpoint, site: Site, way: Way) -> Self {
        Self {
            to: to.clone(),
            site,
            way,
            heard: Queue::default(),
            sessions: Mutex::default(),
            told_grace: OnceLock::new(),
            posts: AtomicU64::new(0),
            interval: Mutex::default(),
            fewer: Notify::new(),
            over: CancellationToken::new(),
        }
    }

    pub(super) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock()
    }

    /// Whether a POST that the server has accepted may be repeated: it is delivered once.
    pub(super) fn drops_repeats(&self) -> bool {
        self.told_grace.get().is_some()
    }

    /// How long a server that is out of reach keeps the conversation, as far as that is known.
    pub(super) fn grace(&self) -> Duration {
        let own = self.site.limits.http_grace;
        self.told_grace.get().map_or(own, |told| own.min(*told))
    }

    /// Records the gap between two keep-alives of a server that does not announce its interval.
    pub(super) fn learn(&self, gap: Duration) {
        let mut interval = self.interval.lock();
        let known = interval.unwrap_or(self.site.limits.http_keepalive);
        *interval = Some(known.max(gap));
    }

    /// How long a stream may be silent; after that it counts as lost. `None` where the server's
    /// interval of keep-alives is unknown.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.interval.lock().map(|interval| interval + LATE)
    }

    /// Whether messages may be sent: over Streamable HTTP, whether `initialize` was answered.
    pub(super) fn has_begun(&self) -> bool {
        match &self.way {
            Way::Streamable { connection } => connection.get().is_some(),
            Way::Elephant => true,
        }
    }

    /// The headers that name the connection and the session of a request.
    pub(super) fn belonging(&self, session: Option<&Session>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Way::Streamable { connection } = &self.way {
            if let Some(connection) = connection.get() {
                headers.insert(CONNECTION, connection.clone());
            }
            if let Some(session) = session.and_then(sessions::header) {
                headers.insert(SESSION, session);
            }
        }
        headers
    }

    /// Opens a session's stream unless there is one; `None` when there are too many.
    pub(super) fn attend(self: &Arc<Self>, session: &Session) -> Option<watch::Receiver<bool>> {
        if matches!(self.way, Way::Elephant) || sessions::header(session).is_none() {
            return Some(watch::channel(true).1);
        }
        let mut sessions = self.sessions();
        if let Some(opened) = sessions.streams.get(session) {
            return Some(opened.clone());
        }
        if sessions.streams.len() >= STREAMS {
            return None;
        }
        let (ready, opened) = watch::channel(false);
        sessions.streams.insert(Arc::clone(session), opened.clone());
        stream::spawn(self, Some(Arc::clone(session)), ready);
        Some(opened)
    }

    /// Sends an error to the client for a request that failed here.
    pub(super) fn fail(&self, id: &IdBuf, reason: &Reason) {
        let error = reply::error(id.as_id(), reason);
        let length = error.len();
        // There is one for each request at most, so they are bounded already.
        self.heard.put(Ok(Cut::Frame(error)), length);
    }

    /// Ends the link: the server cannot be reached any more, or messages may be missing.
    pub(super) fn lost(&self, context: &'static str, why: impl Into<String>) {
        let source = io::Error::other(why.into());
        self.end_with(LinkError::Io { context, source });
    }

    /// Ends the link: the server refuses it, or does not serve ACP.
    pub(super) fn refused(&self, why: impl Into<String>) {
        self.end_with(LinkError::Refused(why.into()));
    }

    /// Ends the link before it has begun: the server is unavailable at present.
    pub(super) fn unavailable(&self, why: impl Into<String>) {
        self.end_with(LinkError::Unavailable(why.into()));
    }

    /// Ends the link for a refusal after which nothing can succeed.
    pub(super) fn turned_away(&self, refusal: Refusal) {
        let words = refusal.words;
        self.end_with(match refusal.status.as_u16() {
            401 | 403 => LinkError::Forbidden(format!("{words}. {}", failure::CHECK_TOKEN)),
            _ => LinkError::Refused(words),
        });
    }

    /// Ends the link as its server does, once the last messages on sessions' streams are received,
    /// which come on sockets of their own.
    pub(super) async fn dismissed(&self, fault: Option<LinkError>) {
        let all_heard = async {
            loop {
                let fewer = self.fewer.notified();
                tokio::pin!(fewer);
                fewer.as_mut().enable();
                if self.sessions().streams.is_empty() {
                    return;
                }
                fewer.await;
            }
        };
        if timeout(LAST_WORDS, all_heard).await.is_err() {
            tracing::warn!(to = %self.to, "the last messages of a session did not arrive in time");
        }
        match fault {
            Some(fault) => self.end_with(fault),
            None if self.over.is_cancelled() => {}
            None => {
                self.heard.end();
                self.over.cancel();
            }
        }
    }

    /// The error reaches all requests that are still open.
    fn end_with(&self, error: LinkError) {
        if !self.over.is_cancelled() {
            self.heard.end_with(Err(error));
            self.over.cancel();
        }
    }

    /// Tells the server that the client leaves, so that it releases the agent.
    pub(super) async fn leave(&self) {
        let Way::Streamable { connection } = &self.way else {
            return;
        };
        if connection.get().is_none() {
            return;
        }
        let asked = self
            .site
            .ask(Method::DELETE, self.belonging(None), Bytes::new());
        match timeout(LEAVE, asked).await {
            Ok(Ok(answer)) if answer.status().is_success() => {
                answer::forget(answer).await;
            }
            Ok(Ok(answer)) => tracing::debug!(status = %answer.status(), "the DELETE was refused"),
            Ok(Err(silence)) => tracing::debug!(%silence, "the DELETE could not be sent"),
            Err(_) => tracing::debug!("the DELETE was not answered in time"),
        }
    }
}

/// Waits until a stream is open, up to a limit.
pub(super) async fn opened(mut ready: watch::Receiver<bool>) {
    // When the link has ended, the sender is dropped and the wait ends.
    let _ = timeout(OPENING, ready.wait_for(|ready| *ready)).await;
}
