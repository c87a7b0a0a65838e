//! Receives the messages from the agent: streams of events, opened again when they break.
//!
//! A stream whose server gives its events ids is resumed after the last one. Where that is not
//! possible, messages may be missing, and the link ends with an error; a session's stream that the
//! server has ended in good order only fails the requests of that session. A relay that ends the
//! conversation sends a closing comment on each stream, and that stream is not opened again.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CACHE_CONTROL, HeaderValue};
use hyper::{Method, Response};
use hyper_util::client::legacy::connect::capture_connection;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::sessions::{self, Session};
use super::shared::{Api, Failure, Shared};
use crate::http::client::{NoResponse, SOONEST_RETRY, ServerRefusal, SseEvent, SseReader};
use crate::http::headers::{self, CLOSE, LAST_EVENT_ID, content_type, is_type};
use crate::{LinkError, closing};
use jsonrpc::framing::{Decoded, too_long};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Frame, Kind, Scanned, Scanner};

/// Streams of sessions that may be open at a time. Over HTTP/1.1 each is a connection.
const MAX_STREAMS: usize = 256;
/// How long a server may take to be connected for a stream, and a relay or elephant.ai also for its
/// head. Others may send the head with the first event, whenever that is.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// From this time on, a connected server has not refused a stream but waited for its first event.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// How long a stream that cannot be opened is tried.
pub(super) const GIVE_UP: Duration = Duration::from_secs(30);
/// The pause before a stream is opened again when the server names none; doubled each time. A
/// message that waits for the stream ends a longer one.
pub(super) const PAUSE: Duration = Duration::from_millis(500);
/// Longest of these: servers keep a client that is gone for half a minute or so, and one that comes
/// when the network is back must not be too late.
const MAX_PAUSE: Duration = Duration::from_secs(4);
/// Longest wait between two tries, whatever the server asks for.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// How long to wait for the first bytes of a server that reports that it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a stream is out of reach before a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(2);
/// Comments that follow sooner on another, or on a stream's beginning, do not show an interval.
const MIN_GAP: Duration = Duration::from_secs(1);

/// One stream.
pub(super) struct Stream {
    shared: Arc<Shared>,
    /// `None`: the connection's own.
    session: Option<Session>,
    events: SseReader,
    scanner: Scanner,
    /// The pool it was opened with.
    pool_token: CancellationToken,
    /// It was requested before.
    requested: bool,
    /// It was opened again although its server numbers no events, and a warning was logged.
    is_gap_logged: bool,
}

/// A stream that is being opened again, or refused, is counted there while this exists.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn at(counter: &watch::Sender<usize>) -> Self {
        counter.send_modify(|count| *count += 1);
        Self(counter.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// How the reading of a stream ended.
enum End {
    /// The server ended it.
    Clean,
    Broken(String),
    /// A keep-alive is missing.
    Silent(Duration),
    /// The server has closed the conversation, with its error, if there was one.
    Closed(Option<LinkError>),
    /// The receiving queue has ended.
    LinkEnded,
}

impl Shared {
    /// Opens a session's stream unless there is one; `None` when there are too many.
    pub(super) fn open_stream(
        self: &Arc<Self>,
        session: &Session,
    ) -> Option<watch::Receiver<bool>> {
        if matches!(self.api, Api::Elephant { .. }) || sessions::header(session).is_none() {
            return Some(watch::channel(true).1);
        }
        let mut sessions = self.sessions();
        if let Some(opened) = sessions.streams.get(session) {
            return Some(opened.clone());
        }
        if sessions.streams.len() >= MAX_STREAMS {
            return None;
        }
        let (ready, opened) = watch::channel(false);
        sessions.streams.insert(Arc::clone(session), opened.clone());
        spawn(self, Some(Arc::clone(session)), ready);
        Some(opened)
    }

    /// Records an answer of the agent, which may name a new session.
    pub(super) fn note_answer(self: &Arc<Self>, frame: &Frame, at: &Envelope) {
        self.sessions().client_requests.remove(at.id(frame));
        let new = sessions::session_of(frame, at).filter(|_| at.kind == Kind::Result);
        if let Some(session) = new
            && self.open_stream(&session).is_none()
        {
            tracing::warn!(to = %self.to, "too many sessions for one connection");
        }
    }
}

/// Opens a stream and passes on its events, in a task that ends with the link.
pub(super) fn spawn(shared: &Arc<Shared>, session: Option<Session>, ready: watch::Sender<bool>) {
    let is_own = session.is_none();
    let (stream, ended) = (Stream::new(shared, session), shared.ended.clone());
    let reading = ended.run_until_cancelled_owned(stream.run(ready));
    let reading = Arc::clone(shared).until_panic(Box::pin(reading));
    if is_own {
        tokio::spawn(reading);
    } else {
        shared.session_streams.spawn(reading);
    }
}

impl Stream {
    pub(super) fn new(shared: &Arc<Shared>, session: Option<Session>) -> Self {
        Self {
            shared: Arc::clone(shared),
            session,
            events: SseReader::new(shared.client.limits.frame_from_network),
            scanner: Scanner::new(Arc::clone(&shared.client.limits)),
            pool_token: shared.client.pool_token(),
            requested: false,
            is_gap_logged: false,
        }
    }

    async fn run(mut self, ready: watch::Sender<bool>) {
        let Ok(body) = self.open_with_retries(Instant::now()).await else {
            // Requests that wait for the stream need not wait any more.
            let _ = ready.send(true);
            return;
        };
        let _ = ready.send(true);
        self.follow(body).await;
    }

    /// Passes on the events of an open stream, and reopens it after breaks.
    pub(super) async fn follow(mut self, mut body: Incoming) {
        let mut usual = PAUSE;
        loop {
            let (opened, mut silent_for) = (Instant::now(), Duration::ZERO);
            let (is_clean, how) = match self.read(body).await {
                End::LinkEnded => return,
                End::Closed(fault) => return self.close(fault).await,
                End::Clean => (true, "the server has ended it".to_owned()),
                End::Broken(why) => (false, why),
                End::Silent(silence) => {
                    let (to, how) = (&self.shared.to, format!("nothing came for {silence:?}"));
                    if self.shared.client.reset_pool(&self.pool_token) {
                        tracing::warn!(%to, "{how}; connecting to the server again");
                    }
                    silent_for = silence;
                    (false, how)
                }
            };
            // Subscribed before the stream counts as cut, so that no message is missed.
            let (awaited, mut cut) = (self.shared.awaited.subscribe(), None);
            if !self.is_resumable() {
                // The next message of a session opens its stream.
                let is_opened_again = self.session.is_some() && is_clean;
                let is_elephant = matches!(self.shared.api, Api::Elephant { .. });
                if is_opened_again || is_elephant || !self.shared.sessions().is_idle() {
                    return self.handle_lost(is_clean, &how);
                }
                cut = Some(Counted::at(&self.shared.cut));
                usual = match opened.elapsed() > MAX_WAIT {
                    true => PAUSE,
                    false => (usual * 2).min(MAX_WAIT),
                };
                if !std::mem::replace(&mut self.is_gap_logged, true) {
                    let to = &self.shared.to;
                    tracing::warn!(
                        %to,
                        "a stream of messages is opened again ({how}): no request is open, but a \
                         notification may be lost, because the server does not number its events"
                    );
                }
            }
            tracing::debug!(to = %self.shared.to, how, "a stream is opened again");
            self.events.reopened();
            let now = Instant::now();
            let lost = now.checked_sub(silent_for).unwrap_or(now);
            let pause = match silent_for.is_zero() {
                false => Duration::ZERO,
                true => self.pause(usual, self.events.retry()),
            };
            let reopened = self.reopen(pause, awaited, &how, lost).await;
            drop(cut);
            body = match reopened {
                Ok(again) => again,
                Err(_) if is_clean => return self.handle_lost(true, &how),
                Err(why) => {
                    let how = format!("{how}, and cannot be resumed: {why}");
                    return self.handle_lost(false, &how);
                }
            };
        }
    }

    /// Opens a stream that was open, and warns when that takes long.
    async fn reopen(
        &mut self,
        pause: Duration,
        mut awaited: watch::Receiver<()>,
        how: &str,
        lost: Instant,
    ) -> Result<Incoming, String> {
        let (to, grace) = (self.shared.to.clone(), self.shared.grace());
        let is_own = self.session.is_none();
        let opening = async {
            sleep(pause.min(PAUSE)).await;
            let _ = timeout(pause.saturating_sub(PAUSE), awaited.changed()).await;
            self.open_with_retries(lost).await
        };
        tokio::pin!(opening);
        if let Ok(opened) = timeout(WARN_AFTER, &mut opening).await {
            return opened;
        }
        if is_own {
            let max = GIVE_UP.max(grace);
            tracing::warn!(
                %to,
                "waiting for the server ({how}): for {max:?} at most, for {grace:?} where nothing listens"
            );
        }
        opening.await
    }

    /// Opens the stream, with retries; the error is the reason why the server has none or the link
    /// has ended. `lost` is since when there is no stream.
    async fn open_with_retries(&mut self, lost: Instant) -> Result<Incoming, String> {
        let grace = self.shared.grace();
        let mut give_up = lost + GIVE_UP.max(grace);
        let (mut pause, mut refused_since, mut known) = (PAUSE, None, None);
        let mut refused = None;
        loop {
            let asked = Instant::now();
            let opened = self.open(give_up).await;
            let is_over = matches!(opened, Err(Failure::Timeout(_)));
            let failure = match opened {
                Ok(answer) => {
                    return self.events_of(answer).inspect_err(|why| {
                        let _ = self.shared.end(LinkError::Refused(why.clone()));
                    });
                }
                Err(failure) => failure,
            };
            let mut retry_after = None;
            let is_unsent = matches!(failure, Failure::NoAnswer(NoResponse::Unsent(_)));
            let nothing_listens = match &failure {
                Failure::Refused(refusal) if !failure.is_transient() => {
                    self.refused(refusal);
                    return Err(refusal.text.clone());
                }
                Failure::Refused(refusal) => {
                    retry_after = refusal.retry_after;
                    if !self.is_resumable() {
                        refused.get_or_insert_with(|| Counted::at(&self.shared.refused));
                    }
                    false
                }
                Failure::NoAnswer(error) => error.is_refused(),
                Failure::Timeout(_) => false,
            };
            refused_since = nothing_listens.then(|| refused_since.unwrap_or_else(Instant::now));
            // An attempt that was cut short shows nothing.
            let why = known
                .filter(|_| is_over)
                .unwrap_or_else(|| failure.to_string());
            let now = Instant::now();
            if !is_over && !is_unsent && asked + HEAD_WAIT <= now {
                give_up = now + GIVE_UP.max(grace);
            }
            let until = refused_since.map_or(give_up, |since| give_up.min(since + grace));
            if now >= until {
                let _ = self
                    .shared
                    .end_lost("opening a stream of messages", why.clone());
                return Err(why);
            }
            known = Some(why);
            sleep_until(until.min(now + self.pause(pause, retry_after))).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Whether nothing is lost while the stream is not there.
    fn is_resumable(&self) -> bool {
        !self.events.last_id().is_empty() || self.shared.may_repeat_posts()
    }

    /// Requests the stream once, which is connected before `until`.
    pub(super) async fn open(&mut self, until: Instant) -> Result<Response<Incoming>, Failure> {
        let shared = &self.shared;
        self.pool_token = shared.client.pool_token();
        let mut request = shared.request(Method::GET, self.session.as_ref(), Bytes::new());
        let fields = request.headers_mut();
        fields.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let last = self.events.last_id();
        if !last.is_empty()
            && let Ok(last) = HeaderValue::from_bytes(last)
        {
            fields.insert(LAST_EVENT_ID, last);
        }
        let again = std::mem::replace(&mut self.requested, true);
        if again && last.is_empty() && shared.may_repeat_posts() {
            fields.insert(headers::IDEMPOTENCY_KEY, HeaderValue::from_static("stream"));
        }
        let until = until.min(Instant::now() + HEAD_TIMEOUT);
        let connection = capture_connection(&mut request);
        let awaits_events =
            matches!(shared.api, Api::Streamable { .. }) && !shared.may_repeat_posts();
        let late = async {
            sleep_until(until).await;
            if awaits_events && connection.connection_metadata().is_some() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            answer = shared.send(request, Duration::MAX) => answer,
            () = late => Err(Failure::Timeout(HEAD_TIMEOUT)),
            () = self.pool_token.cancelled() => {
                let silence = NoResponse::Lost("its connections are silent".to_owned());
                Err(Failure::NoAnswer(silence))
            }
        }
    }

    /// The stream of events that an answer is; else what it is instead.
    pub(super) fn events_of(&self, answer: Response<Incoming>) -> Result<Incoming, String> {
        let (status, fields) = (answer.status(), answer.headers());
        if let Some(keepalive) = headers::time(fields, &headers::KEEPALIVE) {
            *self.shared.keepalive.lock() = Some(keepalive);
        }
        if is_type(fields, "text/event-stream") {
            return Ok(answer.into_body());
        }
        let kind = content_type(fields);
        Err(format!(
            "its server answered {status} and {kind} instead of a stream of events"
        ))
    }

    /// The server has no such stream. Older servers have one stream for all, and each refuses
    /// another in its own way.
    fn refused(&self, refusal: &ServerRefusal) {
        if self.session.is_none() || refusal.is_forbidden() {
            let _ = self.shared.rejected(refusal);
        } else {
            let why = &refusal.text;
            tracing::debug!(to = %self.shared.to, why, "there is no such stream");
            self.remove_stream();
        }
    }

    /// Reads until the stream's end.
    async fn read(&mut self, mut body: Incoming) -> End {
        let opened = Instant::now();
        // When the last comment came, unless an event came since.
        let mut last_comment: Option<Instant> = None;
        loop {
            while let Some(event) = self.events.next() {
                last_comment = None;
                // One of another name is a sign of life and no message.
                if matches!(self.events.last_name(), b"" | b"message") && !self.forward(event).await
                {
                    return End::LinkEnded;
                }
            }
            if let Some((code, why)) = close_comment(self.events.last_comment()) {
                return End::Closed(closing::close_error(code, why));
            }
            if self.events.take_commented() {
                let apart = |since: &Instant| since.elapsed() >= MIN_GAP;
                if let Some(before) = last_comment.filter(apart) {
                    self.shared.observe_gap(before.elapsed());
                }
                last_comment = Some(Instant::now()).filter(|_| apart(&opened));
            }
            let max_silence = self.shared.max_silence().unwrap_or(Duration::MAX);
            let Ok(part) = timeout(max_silence, body.frame()).await else {
                return End::Silent(max_silence);
            };
            match part {
                Some(Ok(part)) => {
                    if let Ok(data) = part.into_data() {
                        self.events.feed(data);
                    }
                }
                Some(Err(fault)) => return End::Broken(format!("it broke off ({fault})")),
                None => return End::Clean,
            }
        }
    }

    /// Waits for the first bytes of a stream, for servers that report that it is ready.
    pub(super) async fn wait_ready(&mut self, body: &mut Incoming) -> Result<(), String> {
        match timeout(READY_TIMEOUT, body.frame()).await {
            Ok(Some(Ok(part))) => {
                if let Ok(data) = part.into_data() {
                    self.events.feed(data);
                }
                Ok(())
            }
            Ok(Some(Err(fault))) => Err(fault.to_string()),
            Ok(None) => Err("it ended at once".to_owned()),
            // The documentation does not promise them.
            Err(_) => Ok(()),
        }
    }

    async fn forward(&mut self, event: SseEvent) -> bool {
        let (cut, length) = match event {
            SseEvent::Whole(data) => {
                let length = data.len();
                let mut frame = Frame::new(data);
                self.note(&mut frame);
                (Decoded::Frame(frame), length)
            }
            SseEvent::TooLong(head) => {
                let limits = &self.shared.client.limits;
                let max = limits.frame_from_network;
                (Decoded::Error(too_long(&head, max, limits)), head.len())
            }
        };
        self.shared
            .received
            .push(Ok::<_, LinkError>(cut), length)
            .await
    }

    /// Records what a message changes for the link.
    fn note(&mut self, frame: &mut Frame) {
        let shared = &self.shared;
        let Scanned::Message(at) = self.scanner.scan(frame) else {
            return;
        };
        match at.kind {
            Kind::Notification => {}
            Kind::Request => shared
                .sessions()
                .remember(frame, &at, self.session.as_ref()),
            Kind::Result | Kind::Error => shared.note_answer(frame, &at),
        }
    }

    /// Handles a stream that is lost for good.
    fn handle_lost(&self, clean: bool, how: &str) {
        let shared = &self.shared;
        let Some(session) = self.session.as_ref().filter(|_| clean) else {
            let what = format!("{how}; messages may have been lost");
            let _ = shared.end_lost("the stream of messages", what);
            return;
        };
        self.remove_stream();
        let requests = shared.sessions().take_requests(session);
        for id in requests {
            let what = "the agent's server has ended the session's stream of messages";
            let reason = Reason::new(reply::PEER_LOST, what)
                .at(ErrorSource::Agent)
                .delivered(Delivered::Unknown);
            shared.fail(&id, &reason);
        }
    }

    /// The conversation has ended: the error on the connection's stream counts.
    async fn close(&self, fault: Option<LinkError>) {
        match self.session {
            Some(_) => self.remove_stream(),
            None => self.shared.closed_by_server(fault).await,
        }
    }

    /// Removes the session's stream; the session's next message opens it again.
    fn remove_stream(&self) {
        if let Some(session) = &self.session {
            self.shared.sessions().streams.remove(session);
        }
    }

    /// The pause: what the server asked for, within bounds, or between half of `usual` and all of
    /// it, so that the clients of a server that has come back do not reconnect all at once.
    fn pause(&self, usual: Duration, retry_after: Option<Duration>) -> Duration {
        let part = Uuid::new_v4().as_bytes()[0];
        let usual = usual.mul_f64(0.5 + f64::from(part) / 512.0);
        let asked = |after: Duration| after.clamp(SOONEST_RETRY, MAX_WAIT);
        retry_after.map_or(usual, asked)
    }
}

/// The code and the reason in a closing comment.
fn close_comment(comment: &[u8]) -> Option<(u16, &[u8])> {
    let text = comment.strip_prefix(CLOSE.as_bytes())?;
    let (code, why) = text.split_at(text.iter().position(|&byte| byte == b' ')?);
    let code = std::str::from_utf8(code).ok()?.parse().ok()?;
    Some((code, why.trim_ascii()))
}
