//! What the tasks of one link share: the server, what was heard, which sessions there are, and the
//! end of it all.
//!
//! Not here: the tasks themselves (see `post`, `stream`).

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
/// How long the other streams have once the server has said farewell on the connection's.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long the server has for our leave.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a sign of life may be late.
const LATE: Duration = Duration::from_secs(10);

/// What the tasks of one link share.
pub(super) struct Exchange {
    pub(super) to: Endpoint,
    pub(super) site: Site,
    pub(super) way: Way,
    pub(super) heard: Queue<Result<Cut, LinkError>>,
    sessions: Mutex<Sessions>,
    /// The `GRACE` of a server of ours, which drops repeated POSTs.
    pub(super) told_grace: OnceLock<Duration>,
    /// The number of the next POST.
    pub(super) posts: AtomicU64,
    /// The longest time between two signs of life on a silent stream, once that is known.
    pub(super) interval: Mutex<Option<Duration>>,
    /// Told when a session's stream is gone.
    pub(super) fewer: Notify,
    /// Cancelled when the link is over, for whatever reason.
    pub(super) over: CancellationToken,
}

/// Whose HTTP is spoken.
#[derive(Debug)]
pub(super) enum Way {
    /// ACP's Streamable HTTP.
    Streamable {
        /// What the server calls the connection, once it has begun.
        connection: OnceLock<HeaderValue>,
    },
    /// elephant.ai's; the client's name is in the address, and sessions are not told apart.
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

    /// Whether a POST that the server has taken may be repeated: it is delivered once.
    pub(super) fn drops_repeats(&self) -> bool {
        self.told_grace.get().is_some()
    }

    /// How long a server that is out of reach keeps the conversation, as far as that is known.
    pub(super) fn grace(&self) -> Duration {
        let own = self.site.limits.http_grace;
        self.told_grace.get().map_or(own, |told| own.min(*told))
    }

    /// A server that says nothing of its interval has sent two signs of life this far apart.
    pub(super) fn learn(&self, gap: Duration) {
        let mut interval = self.interval.lock();
        let known = interval.unwrap_or(self.site.limits.http_keepalive);
        *interval = Some(known.max(gap));
    }

    /// How long a stream may be silent; after it: the stream is lost. `None` where the server has
    /// shown no interval of signs of life.
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

    /// The headers that say what a request belongs to.
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

    /// Says an error to the client whose request failed here.
    pub(super) fn fail(&self, id: &IdBuf, reason: &Reason) {
        let error = reply::error(id.as_id(), reason);
        let length = error.len();
        // There is one for each request at most, so they have a bound already.
        self.heard.put(Ok(Cut::Frame(error)), length);
    }

    /// Ends the link: the server cannot be reached any more, or something was missed.
    pub(super) fn lost(&self, context: &'static str, why: impl Into<String>) {
        let source = io::Error::other(why.into());
        self.end_with(LinkError::Io { context, source });
    }

    /// Ends the link: the server does not want us, or is not what it was taken for.
    pub(super) fn refused(&self, why: impl Into<String>) {
        self.end_with(LinkError::Refused(why.into()));
    }

    /// Ends the link before it has begun: the server serves nobody at present.
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

    /// Ends the link as its server does, once the last words on sessions' streams are heard, which
    /// come on sockets of their own.
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
            tracing::warn!(to = %self.to, "the last words of a session were not heard in time");
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

    /// The error is heard by all who still wait for something.
    fn end_with(&self, error: LinkError) {
        if !self.over.is_cancelled() {
            self.heard.end_with(Err(error));
            self.over.cancel();
        }
    }

    /// Takes leave of the server, so that it lets go of the agent.
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
            Ok(Ok(answer)) => tracing::debug!(status = %answer.status(), "leave was not taken"),
            Ok(Err(silence)) => tracing::debug!(%silence, "leave could not be taken"),
            Err(_) => tracing::debug!("leave was not answered in time"),
        }
    }
}

/// Waits until a stream is open, for as long as it makes sense.
pub(super) async fn opened(mut ready: watch::Receiver<bool>) {
    // Who opens it is gone when the link is over, and then nobody has to wait either.
    let _ = timeout(OPENING, ready.wait_for(|ready| *ready)).await;
}
