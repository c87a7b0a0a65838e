//! Receives the messages from the agent: streams of events, opened again when they break.
//!
//! A stream whose server gives its events ids is resumed after the last one. Where that is not
//! possible, messages may be missing, and the link ends with an error; a session's stream that the
//! server has ended in good order only fails the requests of that session. A relay that ends the
//! conversation sends a closing comment on each stream, and that stream is not opened again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CACHE_CONTROL, HeaderName, HeaderValue};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::Refusal;
use super::exchange::Exchange;
use super::sessions::{self, Session};
use super::site::Silence;
use super::sse::{Event, Sse};
use crate::jsonrpc::framing::{Cut, too_long};
use crate::jsonrpc::reply::{self, Delivered, Reason, Source};
use crate::jsonrpc::{Frame, Kind, Scanner, Shape};
use crate::transport::http::content::{self, is_of};
use crate::transport::http::names::{self, FAREWELL};
use crate::transport::{LinkError, parting};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a server may take for the head of a stream.
const HEAD: Duration = Duration::from_secs(30);
/// How long a stream that cannot be opened is tried.
const GIVE_UP: Duration = Duration::from_secs(60);
/// The pause before a stream is opened again when the server names none; doubled each time.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest of these: servers keep a client that is gone for half a minute or so, and one that comes
/// when the network is back must not be too late.
const RARELY: Duration = Duration::from_secs(4);
/// Longest wait between two tries, whatever the server asks for.
const LONGEST: Duration = Duration::from_secs(15);
/// How long to wait for the first bytes of a server that reports that it is ready.
const GREETING: Duration = Duration::from_secs(1);
/// How long a stream is out of reach before a warning is logged.
const NOTICE: Duration = Duration::from_secs(2);
/// Comments that follow sooner on another, or on a stream's beginning, do not show an interval.
const APART: Duration = Duration::from_secs(1);

/// One stream.
pub(super) struct Stream {
    exchange: Arc<Exchange>,
    /// `None`: the connection's own.
    session: Option<Session>,
    events: Sse,
    scanner: Scanner,
    /// The pool it was opened with.
    path: CancellationToken,
    /// It was requested before.
    asked: bool,
}

/// How the reading of a stream ended.
enum End {
    /// The server ended it.
    Clean,
    Broken(String),
    /// A keep-alive is missing.
    Silent(Duration),
    /// The server has closed the conversation, with its error, if there was one.
    Farewell(Option<LinkError>),
    /// The receiving queue has ended.
    Unheard,
}

/// The result of opening a stream.
pub(super) enum Opened {
    Open(Incoming),
    /// The server has no such stream.
    Absent(Refusal),
    /// Nothing on this link can succeed any more.
    Over(String),
    /// The server rejects the credentials.
    Barred(Refusal),
    /// It may succeed later.
    Later(String, Option<Duration>),
    /// Nothing listens there.
    Refused(String),
}

/// Opens a stream and passes on its events, in a task that ends with the link.
pub(super) fn spawn(
    exchange: &Arc<Exchange>,
    session: Option<Session>,
    ready: watch::Sender<bool>,
) {
    let stream = Stream::new(exchange, session);
    let over = exchange.over.clone();
    tokio::spawn(async move { over.run_until_cancelled_owned(stream.run(ready)).await });
}

impl Stream {
    pub(super) fn new(exchange: &Arc<Exchange>, session: Option<Session>) -> Self {
        Self {
            exchange: Arc::clone(exchange),
            session,
            events: Sse::new(exchange.site.limits.frame_from_network),
            scanner: Scanner::new(Arc::clone(&exchange.site.limits)),
            path: exchange.site.path(),
            asked: false,
        }
    }

    async fn run(mut self, ready: watch::Sender<bool>) {
        let Ok(body) = self.open_patiently().await else {
            // Requests that wait for the stream need not wait any more.
            let _ = ready.send(true);
            return;
        };
        let _ = ready.send(true);
        self.follow(body).await;
    }

    /// Passes on the events of an open stream, and reopens it after breaks.
    pub(super) async fn follow(mut self, mut body: Incoming) {
        loop {
            let end = self.read(body).await;
            let (clean, silent) = (matches!(end, End::Clean), matches!(end, End::Silent(_)));
            let how = match end {
                End::Unheard => return,
                End::Farewell(fault) => return self.part(fault).await,
                End::Clean => "the server has ended it".to_owned(),
                End::Broken(why) => why,
                End::Silent(patience) => {
                    let (to, how) = (&self.exchange.to, format!("nothing came for {patience:?}"));
                    if self.exchange.site.renew(&self.path) {
                        tracing::warn!(%to, "{how}; connecting to the server again");
                    }
                    how
                }
            };
            if self.events.last_id().is_empty() && !self.exchange.drops_repeats() {
                return self.lose(clean, &how);
            }
            tracing::debug!(to = %self.exchange.to, how, "a stream is opened again");
            self.events.reopened();
            let pause = self.pause(PAUSE, self.events.retry());
            match self
                .reopen(if silent { Duration::ZERO } else { pause }, &how)
                .await
            {
                Ok(again) => body = again,
                Err(_) if clean => return self.lose(true, &how),
                Err(why) => {
                    return self.lose(
                        false,
                        &format!("{how}, and cannot be resumed: {why}"),
                    );
                }
            }
        }
    }

    /// Opens a stream that was open, and warns when that takes long.
    async fn reopen(&mut self, pause: Duration, how: &str) -> Result<Incoming, String> {
        let (exchange, own) = (Arc::clone(&self.exchange), self.session.is_none());
        let opening = async {
            sleep(pause).await;
            self.open_patiently().await
        };
        tokio::pin!(opening);
        if let Ok(opened) = timeout(NOTICE, &mut opening).await {
            return opened;
        }
        if own {
            let (to, grace) = (&exchange.to, exchange.grace());
            let most = GIVE_UP.max(grace);
            tracing::warn!(
                %to,
                "waiting for the server ({how}): for {most:?} at most, for {grace:?} where nothing listens"
            );
        }
        opening.await
    }

    /// Opens the stream, with retries; the error says why the server has none or the link has
    /// ended.
    async fn open_patiently(&mut self) -> Result<Incoming, String> {
        let grace = self.exchange.grace();
        let give_up = Instant::now() + GIVE_UP.max(grace);
        let (mut pause, mut refused_since) = (PAUSE, None);
        loop {
            let (why, asked) = match self.open().await {
                Opened::Open(body) => return Ok(body),
                Opened::Absent(refusal) => {
                    let words = refusal.words;
                    tracing::debug!(to = %self.exchange.to, words, "there is no such stream");
                    self.forget();
                    return Err(words);
                }
                Opened::Barred(refusal) => {
                    let words = refusal.words.clone();
                    self.exchange.turned_away(refusal);
                    return Err(words);
                }
                Opened::Over(why) => {
                    self.exchange.refused(why.clone());
                    return Err(why);
                }
                Opened::Later(why, asked) => {
                    refused_since = None;
                    (why, asked)
                }
                Opened::Refused(why) => {
                    refused_since.get_or_insert_with(Instant::now);
                    (why, None)
                }
            };
            let until = refused_since.map_or(give_up, |since| give_up.min(since + grace));
            let now = Instant::now();
            if now >= until {
                self.exchange
                    .lost("opening a stream of messages", why.clone());
                return Err(why);
            }
            sleep_until(until.min(now + self.pause(pause, asked))).await;
            pause = (pause * 2).min(RARELY);
        }
    }

    /// Requests the stream once.
    pub(super) async fn open(&mut self) -> Opened {
        let exchange = &self.exchange;
        self.path = exchange.site.path();
        let mut headers = exchange.belonging(self.session.as_ref());
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let last = self.events.last_id();
        if let Some(last) = HeaderValue::from_bytes(last)
            .ok()
            .filter(|_| !last.is_empty())
        {
            headers.insert(LAST_EVENT_ID, last);
        }
        let again = std::mem::replace(&mut self.asked, true);
        if again && last.is_empty() && exchange.drops_repeats() {
            headers.insert(names::REPEAT, HeaderValue::from_static("stream"));
        }
        let asked = exchange.site.ask(Method::GET, headers, Bytes::new());
        let asked = tokio::select! {
            asked = timeout(HEAD, asked) => asked,
            () = self.path.cancelled() => {
                return Opened::Later("its connections are silent".to_owned(), None);
            }
        };
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(silence @ Silence::Refused(_))) => return Opened::Refused(silence.to_string()),
            Ok(Err(silence)) => return Opened::Later(silence.to_string(), None),
            Err(_) => return Opened::Later(format!("no answer within {HEAD:?}"), None),
        };
        if answer.status().is_success() {
            if let Some(told) = names::time(answer.headers(), &names::KEEPALIVE) {
                *exchange.interval.lock() = Some(told);
            }
            return accepted(answer);
        }
        let refusal = Refusal::read(answer).await;
        match refusal.status.as_u16() {
            401 | 403 => Opened::Barred(refusal),
            408 | 429 | 500 | 502..=504 => Opened::Later(refusal.words, refusal.retry_after),
            // Older servers have one stream for all, and each refuses another in its own way.
            _ if self.session.is_some() => Opened::Absent(refusal),
            _ => Opened::Over(refusal.words),
        }
    }

    /// Reads until the stream's end.
    async fn read(&mut self, mut body: Incoming) -> End {
        let opened = Instant::now();
        // When the last comment came, unless an event came since.
        let mut sign: Option<Instant> = None;
        loop {
            while let Some(event) = self.events.next() {
                sign = None;
                if !self.pass_on(event).await {
                    return End::Unheard;
                }
            }
            if let Some((code, why)) = farewell(self.events.last_comment()) {
                return End::Farewell(parting::complaint(code, why));
            }
            if self.events.take_commented() {
                let apart = |since: &Instant| since.elapsed() >= APART;
                if let Some(before) = sign.filter(apart) {
                    self.exchange.learn(before.elapsed());
                }
                sign = Some(Instant::now()).filter(|_| apart(&opened));
            }
            let within = self.exchange.patience().unwrap_or(Duration::MAX);
            let Ok(part) = timeout(within, body.frame()).await else {
                return End::Silent(within);
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
    pub(super) async fn greeted(&mut self, body: &mut Incoming) -> Result<(), String> {
        match timeout(GREETING, body.frame()).await {
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

    async fn pass_on(&mut self, event: Event) -> bool {
        let (cut, length) = match event {
            Event::Whole(data) => {
                let length = data.len();
                let mut frame = Frame::new(data);
                self.note(&mut frame);
                (Cut::Frame(frame), length)
            }
            Event::TooLong(head) => {
                let limits = &self.exchange.site.limits;
                let max = limits.frame_from_network;
                (Cut::Flaw(too_long(&head, max, limits)), head.len())
            }
        };
        self.exchange
            .heard
            .push(Ok::<_, LinkError>(cut), length)
            .await
    }

    /// Records what a message changes for the link.
    fn note(&mut self, frame: &mut Frame) {
        let exchange = &self.exchange;
        let Shape::One(at) = self.scanner.scan(frame) else {
            return;
        };
        match at.kind {
            Kind::Notification => {}
            Kind::Request => exchange
                .sessions()
                .remember(frame, &at, self.session.as_ref()),
            Kind::Result | Kind::Error => {
                exchange.sessions().settle(&at.id(frame).to_owned());
                let new = sessions::named(frame, &at).filter(|_| at.kind == Kind::Result);
                if let Some(session) = new
                    && exchange.attend(&session).is_none()
                {
                    tracing::warn!(to = %exchange.to, "too many sessions for one connection");
                }
            }
        }
    }

    /// Handles a stream that is lost for good.
    fn lose(&self, clean: bool, how: &str) {
        let exchange = &self.exchange;
        let Some(session) = self.session.as_ref().filter(|_| clean) else {
            let what = format!("{how}; messages may have been lost");
            return exchange.lost("the stream of messages", what);
        };
        self.forget();
        let left = exchange.sessions().abandon(session);
        for id in left {
            let what = "the agent's server has ended the session's stream of messages";
            let reason = Reason::new(reply::PEER_LOST, what)
                .at(Source::Agent)
                .delivered(Delivered::Unknown);
            exchange.fail(&id, &reason);
        }
    }

    /// The conversation has ended: the error on the connection's stream counts.
    async fn part(&self, fault: Option<LinkError>) {
        match self.session {
            Some(_) => self.forget(),
            None => self.exchange.dismissed(fault).await,
        }
    }

    /// Removes the session's stream; the session's next message opens it again.
    fn forget(&self) {
        if let Some(session) = &self.session {
            self.exchange.sessions().streams.remove(session);
            self.exchange.fewer.notify_waiters();
        }
    }

    /// The pause: what the server asked for, within bounds, or between half of `usual` and all of
    /// it, so that the clients of a server that has come back do not reconnect all at once.
    fn pause(&self, usual: Duration, asked: Option<Duration>) -> Duration {
        let mut random = [0];
        // Without random numbers, the middle.
        let part = SystemRandom::new()
            .fill(&mut random)
            .map_or(128, |()| random[0]);
        let usual = usual.mul_f64(0.5 + f64::from(part) / 512.0);
        asked.unwrap_or(usual).min(LONGEST)
    }
}

/// The code and the reason in a closing comment.
fn farewell(comment: &[u8]) -> Option<(u16, &[u8])> {
    let said = comment.strip_prefix(FAREWELL.as_bytes())?;
    let (code, why) = said.split_at(said.iter().position(|&byte| byte == b' ')?);
    let code = std::str::from_utf8(code).ok()?.parse().ok()?;
    Some((code, why.trim_ascii()))
}

fn accepted(answer: Response<Incoming>) -> Opened {
    if is_of(answer.headers(), "text/event-stream") {
        return Opened::Open(answer.into_body());
    }
    let (status, kind) = (answer.status(), content::spelled(answer.headers()));
    Opened::Over(format!(
        "its server answered {status} and {kind} instead of a stream of events"
    ))
}
