//! The state that the tasks of one link share: the server, received messages, sessions, and the end
//! of the link.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response, Uri};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::sessions::{self, Session, Sessions};
use crate::http::client::{HttpClient, NoResponse, ServerRefusal, discard};
use crate::http::headers::{CONNECTION_ID, SESSION_ID};
use crate::http::queue::{Queue, Received};
use crate::{Endpoint, LinkError, open_error};
use jsonrpc::framing::Decoded;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Frame, IdBuf};
use panics::{self, Place};

/// Messages that may wait in a queue, and their bytes.
const MAX_ITEMS: usize = 256;
const MAX_BYTES: usize = 256 << 10;

/// How long a message waits for the stream on which its answer will come. Some servers send the
/// head of a stream only with its first event.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the other streams have once the server has closed the connection's.
const CLOSE_GRACE: Duration = Duration::from_secs(10);
/// How long the server has to answer the closing `DELETE`.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How late a keep-alive may be.
const LATENESS: Duration = Duration::from_secs(10);

/// The state that the tasks of one link share.
pub(super) struct Shared {
    /// Whether the client may know the address, which is then in the error of its `initialize`.
    names_agent: bool,
    pub(super) to: Endpoint,
    pub(super) client: HttpClient,
    pub(super) api: Api,
    pub(super) received: Arc<Queue<Received>>,
    sessions: Mutex<Sessions>,
    /// The message of the error that `initialize` was last answered with.
    pub(super) not_initialized: Mutex<Option<String>>,
    /// The `GRACE` of an acp-relay server, which drops repeated POSTs.
    pub(super) server_grace: OnceLock<Duration>,
    /// The number of the next POST.
    pub(super) next_post: AtomicU64,
    /// The longest time between two keep-alives on a silent stream, once that is known.
    pub(super) keepalive: Mutex<Option<Duration>>,
    /// How many streams are being opened again: a message that is posted now could have its answer
    /// lost.
    pub(super) cut: watch::Sender<usize>,
    /// How many streams the server has just refused to open, and may open later.
    pub(super) refused: watch::Sender<usize>,
    /// Changes when a message waits for these.
    pub(super) awaited: watch::Sender<()>,
    /// The tasks that read sessions' streams.
    pub(super) session_streams: TaskTracker,
    /// Cancelled when the link has ended, for whatever reason.
    pub(super) ended: CancellationToken,
}

/// The HTTP interface of the server.
#[derive(Debug)]
pub(super) enum Api {
    /// ACP's Streamable HTTP.
    Streamable {
        url: Uri,
        /// The server's id of the connection, once it is open.
        connection: OnceLock<HeaderValue>,
    },
    /// elephant.ai's; the client's name is in the addresses, and all sessions share one stream.
    Elephant { posts: Uri, streams: Uri },
}

/// Why a request was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The server refused it.
    #[error("{}", .0.text)]
    Refused(ServerRefusal),
    /// There was no answer.
    #[error("{0}")]
    NoAnswer(NoResponse),
    /// There was no answer within this time.
    #[error("its server did not answer within {0:?}")]
    Timeout(Duration),
}

impl Failure {
    /// Whether the same may succeed later, or elsewhere: the server is busy, or did not answer.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(refusal) => open_error::is_transient(refusal.status),
            Self::NoAnswer(_) | Self::Timeout(_) => true,
        }
    }
}

/// A queue of a link.
pub(super) fn new_queue<T>() -> Queue<T> {
    Queue::new(MAX_ITEMS, MAX_BYTES)
}

impl Shared {
    pub(super) fn new(to: &Endpoint, client: HttpClient, api: Api, names_agent: bool) -> Self {
        Self {
            names_agent,
            to: to.clone(),
            sessions: Mutex::new(Sessions::new(&client.limits)),
            client,
            api,
            received: Arc::new(new_queue()),
            not_initialized: Mutex::default(),
            server_grace: OnceLock::new(),
            next_post: AtomicU64::new(0),
            keepalive: Mutex::default(),
            cut: watch::channel(0).0,
            refused: watch::channel(0).0,
            awaited: watch::channel(()).0,
            session_streams: TaskTracker::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock()
    }

    /// Whether a POST that the server has accepted may be repeated: it is delivered once.
    pub(super) fn may_repeat_posts(&self) -> bool {
        self.server_grace.get().is_some()
    }

    /// How long a server that is out of reach keeps the conversation, as far as that is known.
    pub(super) fn grace(&self) -> Duration {
        let own = self.client.limits.http_grace;
        self.server_grace.get().map_or(own, |grace| own.min(*grace))
    }

    /// Records the gap between two keep-alives of a server that does not announce its interval.
    pub(super) fn observe_gap(&self, gap: Duration) {
        let mut keepalive = self.keepalive.lock();
        let known = keepalive.unwrap_or(self.client.limits.http_keepalive);
        *keepalive = Some(known.max(gap));
    }

    /// How long a stream may be silent; after that it counts as lost. `None` where the server's
    /// interval of keep-alives is unknown.
    pub(super) fn max_silence(&self) -> Option<Duration> {
        self.keepalive.lock().map(|interval| interval + LATENESS)
    }

    /// Whether messages may be sent: over Streamable HTTP, whether `initialize` was answered.
    pub(super) fn is_open(&self) -> bool {
        match &self.api {
            Api::Streamable { connection, .. } => connection.get().is_some(),
            Api::Elephant { .. } => true,
        }
    }

    /// A request that names the connection, once it is open, and the session.
    pub(super) fn request(
        &self,
        method: Method,
        session: Option<&Session>,
        body: Bytes,
    ) -> Request<Bytes> {
        let mut request = Request::new(body);
        let url = match &self.api {
            Api::Streamable { url, connection } => {
                let headers = request.headers_mut();
                if let Some(connection) = connection.get() {
                    headers.insert(CONNECTION_ID, connection.clone());
                }
                if let Some(session) = session.and_then(sessions::header) {
                    headers.insert(SESSION_ID, session);
                }
                url
            }
            Api::Elephant { streams, .. } if method == Method::GET => streams,
            Api::Elephant { posts, .. } => posts,
        };
        request.uri_mut().clone_from(url);
        *request.method_mut() = method;
        request
    }

    /// Sends a request once.
    pub(super) async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        match timeout(within, self.client.send(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(answer),
            Ok(Ok(answer)) => Err(Failure::Refused(ServerRefusal::read(answer).await)),
            Ok(Err(silence)) => Err(Failure::NoAnswer(silence)),
            Err(_) => Err(Failure::Timeout(within)),
        }
    }

    /// Passes a message of the agent on, and breaks when the link has ended.
    pub(super) async fn deliver(&self, frame: Frame) -> ControlFlow<()> {
        let length = frame.len();
        match self.received.push(Ok(Decoded::Frame(frame)), length).await {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Sends an error to the client for a request that failed here.
    pub(super) fn fail(&self, id: &IdBuf, reason: &Reason) {
        let error = match self.names_agent && !self.is_open() {
            true => reply::error(id.as_id(), &reason.of(&self.to)),
            false => reply::error(id.as_id(), reason),
        };
        let length = error.len();
        // There is one for each request at most, so they are bounded already.
        self.received.put(Ok(Decoded::Frame(error)), length);
    }

    /// Ends the link: the server cannot be reached any more, or messages may be missing.
    pub(super) fn end_lost(
        &self,
        context: &'static str,
        why: impl Into<String>,
    ) -> ControlFlow<()> {
        let source = io::Error::other(why.into());
        self.end(LinkError::Io { context, source })
    }

    /// Ends the link for a refusal after which nothing can succeed.
    pub(super) fn rejected(&self, refusal: &ServerRefusal) -> ControlFlow<()> {
        let text = refusal.with_remedy();
        self.end(match refusal.is_forbidden() {
            true => LinkError::Forbidden(text),
            false => LinkError::Refused(text),
        })
    }

    /// Ends the link with an error, which reaches all requests that are still open.
    pub(super) fn end(&self, error: LinkError) -> ControlFlow<()> {
        if !self.ended.is_cancelled() {
            self.received.end(Some(Err(error)));
            self.ended.cancel();
        }
        ControlFlow::Break(())
    }

    /// Runs a task of the link; a panic in it ends the link.
    pub(super) async fn until_panic(self: Arc<Self>, task: impl Future + Send + Unpin) {
        if panics::confine(Place::Conversation, task).await.is_none() {
            let why = "a fault of this relay; its log has the place";
            let _ = self.end_lost("exchanging messages over HTTP", why);
        }
    }

    /// Ends the link as its server does, once the last messages on sessions' streams are received,
    /// which come on sockets of their own.
    pub(super) async fn closed_by_server(&self, fault: Option<LinkError>) {
        self.session_streams.close();
        let all_read = timeout(CLOSE_GRACE, self.session_streams.wait());
        if all_read.await.is_err() {
            tracing::warn!(to = %self.to, "the last messages of a session did not arrive in time");
        }
        self.received.end(fault.map(Err));
        self.ended.cancel();
    }

    /// Deletes the open connection, if there is one.
    pub(super) async fn leave(&self) {
        if let Api::Streamable { connection, .. } = &self.api
            && let Some(connection) = connection.get()
        {
            self.delete_connection(connection.clone()).await;
        }
    }

    /// Deletes a connection at the server, so that it releases the agent.
    pub(super) async fn delete_connection(&self, connection: HeaderValue) {
        let mut request = self.request(Method::DELETE, None, Bytes::new());
        request.headers_mut().insert(CONNECTION_ID, connection);
        match self.send(request, LEAVE_TIMEOUT).await {
            Ok(answer) => discard(answer).await,
            Err(failure) => tracing::debug!(error = %failure, "the DELETE was not accepted"),
        }
    }
}

/// Waits until a stream is open, up to a limit.
pub(super) async fn wait_open(mut ready: watch::Receiver<bool>) {
    // When the link has ended, the sender is dropped and the wait ends.
    let _ = timeout(OPEN_TIMEOUT, ready.wait_for(|ready| *ready)).await;
}
