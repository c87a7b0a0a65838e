//! Posts the messages to the agent.
//!
//! Requests go one after the other, in their order. Answers have a lane of their own: a server may
//! hold the POST of a request until the agent, which waits for one of these answers, has finished
//! it.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Response, StatusCode};
use tokio::time::{Instant, sleep, timeout};

use super::answer::{self, Refusal};
use super::exchange::{Exchange, Way, opened};
use super::queue::Queue;
use super::sessions::{self, Session};
use super::site::Silence;
use super::stream;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::reply::{self, Delivered, Reason, Source};
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Shape, scan};
use crate::transport::failure;
use crate::transport::http::content::{self, is_of};
use crate::transport::http::names::{self, CONNECTION};

/// How long a server may take for the status of a POST. `initialize` may start the agent.
const STATUS: Duration = Duration::from_secs(120);
/// How often a message is tried that has certainly not been accepted.
const TRIES: u32 = 4;
/// Longest wait that a busy server may ask for. When it asks for more, the message fails.
const WAIT: Duration = Duration::from_secs(30);
/// The pause when it asks for none; doubled with each try.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest of these pauses.
const RARELY: Duration = Duration::from_secs(4);

/// A message and its envelope, when it is a single message.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) frame: Frame,
    pub(super) at: Option<Envelope>,
}

/// Why a message was not accepted.
enum Failure {
    /// The server refused it.
    Refused(Refusal),
    /// There was no answer.
    Silent(Silence),
    /// There was no answer in time.
    Late,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => f.write_str(&refusal.words),
            Self::Silent(silence) => write!(f, "{silence}"),
            Self::Late => write!(f, "its server did not answer within {STATUS:?}"),
        }
    }
}

impl Failure {
    /// Whether the same may succeed later, or elsewhere: the server is busy, or did not answer.
    fn is_passing(&self) -> bool {
        match self {
            Self::Refused(refusal) => failure::is_passing(refusal.status),
            Self::Silent(_) | Self::Late => true,
        }
    }
}

impl Said {
    pub(super) fn new(frame: Frame, exchange: &Exchange) -> Self {
        let at = match scan(&frame, &exchange.site.limits) {
            Shape::One(at) => Some(at),
            Shape::Batch | Shape::Bad(_) => None,
        };
        Self { frame, at }
    }

    pub(super) fn is_answer(&self) -> bool {
        self.at.is_some_and(|at| at.kind.is_answer())
    }

    /// The id of a request.
    fn asks(&self) -> Option<IdBuf> {
        let at = self.at.filter(|at| at.kind == Kind::Request)?;
        Some(at.id(&self.frame).to_owned())
    }
}

/// Posts the messages of one lane, until it has ended or the link is closed.
pub(super) async fn post_all(exchange: &Arc<Exchange>, lane: &Queue<Said>) {
    while let Some(said) = lane.take().await {
        let went_on = if exchange.has_begun() {
            exchange.say(&said).await
        } else {
            exchange.begin(&said).await
        };
        if went_on.is_break() {
            break;
        }
    }
}

impl Exchange {
    /// Opens the connection with the client's `initialize`, whose answer is in the POST's response.
    async fn begin(self: &Arc<Self>, said: &Said) -> ControlFlow<()> {
        let method = said.at.map(|at| at.method(&said.frame));
        let Some(id) = said
            .asks()
            .filter(|_| method.as_deref() == Some("initialize"))
        else {
            let what = "the first message to this agent has to be \"initialize\"";
            match said.asks() {
                Some(id) => self.fail(&id, &Reason::new(reply::INVALID_REQUEST, what)),
                None => tracing::warn!(to = %self.to, "a message was dropped: {what}"),
            }
            return ControlFlow::Continue(());
        };
        let answer = match self.post(said, None).await {
            Ok(answer) => answer,
            Err(failure) => {
                let (passing, why) = (failure.is_passing(), failure.to_string());
                let answered = matches!(&failure, Failure::Refused(refusal)
                    if self.answer_to(&id, &refusal.body).is_some());
                // Logged also when the client has left by now: the cause of the missing agent is
                // here.
                tracing::warn!(to = %self.to, "the agent did not get \"initialize\": {why}");
                let next = self.give_up(said, failure);
                if next.is_break() {
                    return next;
                }
                // There is no connection, as when a WebSocket is not opened; unless the agent
                // itself answered, and the client may try again.
                match (passing, answered) {
                    (true, _) => self.unavailable(why),
                    (false, false) => self.refused(why),
                    (false, true) => return ControlFlow::Continue(()),
                }
                return ControlFlow::Break(());
            }
        };
        let (head, body) = answer.into_parts();
        if let Some(what) = unusable(&head) {
            self.refused(what);
            return ControlFlow::Break(());
        }
        let max = self.site.limits.frame_from_network;
        let body = match timeout(STATUS, answer::whole(body, max)).await {
            Ok(Ok(body)) => Frame::new(body),
            Ok(Err(why)) => {
                self.lost("reading the answer to \"initialize\"", why);
                return ControlFlow::Break(());
            }
            Err(_) => return self.give_up(said, Failure::Late),
        };
        let Some(at) = self.answer_to(&id, &body) else {
            self.refused("its answer to \"initialize\" is not a JSON-RPC answer");
            return ControlFlow::Break(());
        };
        let connection = head.headers.get(CONNECTION).cloned();
        if connection.is_none() && at.kind != Kind::Error {
            self.refused(
                "its server gave no Acp-Connection-Id; it does not speak ACP's Streamable HTTP",
            );
            return ControlFlow::Break(());
        }
        let length = body.len();
        let heard = self.heard.push(Ok(Cut::Frame(body)), length).await;
        if let (Way::Streamable { connection: known }, Some(connection)) = (&self.way, connection) {
            // Only this lane opens the connection, so these are set once.
            let _ = known.set(connection);
            if let Some(grace) = names::time(&head.headers, &names::GRACE) {
                let _ = self.told_grace.set(grace);
            }
            let (ready, is_ready) = tokio::sync::watch::channel(false);
            stream::spawn(self, None, ready);
            opened(is_ready).await;
        }
        if heard {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Posts one message of an open connection.
    async fn say(self: &Arc<Self>, said: &Said) -> ControlFlow<()> {
        let session = said
            .at
            .and_then(|at| self.sessions().of_said(&said.frame, &at));
        if let Some(session) = &session {
            match self.attend(session) {
                Some(ready) => opened(ready).await,
                None => {
                    let what = "too many sessions are open over this connection";
                    return self.refuse(said, &Reason::new(reply::OVERLOADED, what));
                }
            }
        }
        match self.post(said, session.as_ref()).await {
            Ok(answer) => self.taken(said, answer).await,
            Err(Failure::Refused(refusal))
                if session.is_some() && refusal.status == StatusCode::NOT_FOUND =>
            {
                self.say_without_session(said, refusal).await
            }
            Err(failure) => self.give_up(said, failure),
        }
    }

    /// A 404 may be about the session: the official Python server does not know one that is only
    /// being loaded. Without it, the same message shows whether the connection is known.
    async fn say_without_session(
        self: &Arc<Self>,
        said: &Said,
        refusal: Refusal,
    ) -> ControlFlow<()> {
        match self.post(said, None).await {
            Ok(answer) => self.taken(said, answer).await,
            Err(Failure::Refused(again)) if !again.ends_the_link() => {
                self.refuse(said, &refusal.reason())
            }
            Err(failure) => self.give_up(said, failure),
        }
    }

    /// Handles the response to an accepted message. In ACP the POST is answered with 202 and an
    /// empty body, and the answer comes in a stream; servers derived from MCP answer in the
    /// response.
    async fn taken(self: &Arc<Self>, said: &Said, answer: Response<Incoming>) -> ControlFlow<()> {
        let answers_here =
            answer.status() != StatusCode::ACCEPTED && matches!(self.way, Way::Streamable { .. });
        let Some(id) = said.asks().filter(|_| answers_here) else {
            answer::forget(answer).await;
            return ControlFlow::Continue(());
        };
        if is_of(answer.headers(), "text/event-stream") {
            let what = "its server answers a POST with a stream of events of its own, which ACP's \
                        Streamable HTTP does not have";
            let reason = Reason::new(reply::PEER_LOST, what)
                .at(Source::Agent)
                .delivered(Delivered::Yes);
            return self.refuse(said, &reason);
        }
        if !is_of(answer.headers(), "application/json") {
            answer::forget(answer).await;
            return ControlFlow::Continue(());
        }
        let max = self.site.limits.frame_from_network;
        let failure = match timeout(STATUS, answer::whole(answer.into_body(), max)).await {
            Ok(Ok(body)) => {
                let body = Frame::new(body);
                let Some(at) = self.answer_to(&id, &body) else {
                    return ControlFlow::Continue(());
                };
                self.sessions().settle(&id);
                let new = sessions::named(&body, &at).filter(|_| at.kind == Kind::Result);
                if let Some(session) = new
                    && self.attend(&session).is_none()
                {
                    tracing::warn!(to = %self.to, "too many sessions for one connection");
                }
                let length = body.len();
                return match self.heard.push(Ok(Cut::Frame(body)), length).await {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                };
            }
            Ok(Err(why)) => Failure::Silent(Silence::Lost(why)),
            Err(_) => Failure::Late,
        };
        self.give_up(said, failure)
    }

    /// Posts until the server has accepted it, or until another try would be harmful or useless. A
    /// server that drops repeats is tried for as long as it keeps the conversation.
    async fn post(
        &self,
        said: &Said,
        session: Option<&Session>,
    ) -> Result<Response<Incoming>, Failure> {
        let (mut pause, mut tried, mut cut_since) = (PAUSE, 0, None);
        let number = self.posts.fetch_add(1, Ordering::Relaxed);
        loop {
            let mut headers = self.belonging(session);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            if self.drops_repeats() {
                headers.insert(names::REPEAT, number.into());
            }
            let path = self.site.path();
            let sent = tokio::select! {
                sent = self.send(headers, said.frame.clone().into_bytes()) => sent,
                () = path.cancelled(), if self.drops_repeats() => {
                    Err(Failure::Silent(Silence::Lost("its streams are silent".to_owned())))
                }
            };
            let failure = match sent {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let cut = matches!(failure, Failure::Silent(_)) && self.drops_repeats();
            let again = match &failure {
                _ if cut => cut_since.get_or_insert_with(Instant::now).elapsed() < self.grace(),
                // The second copy of an answer has no effect.
                Failure::Silent(Silence::Lost(_)) => said.is_answer(),
                Failure::Silent(_) => true,
                Failure::Refused(refusal) => refusal.is_busy(),
                Failure::Late => false,
            };
            tried += u32::from(!cut);
            let asked = match &failure {
                Failure::Refused(refusal) => refusal.retry_after.unwrap_or(pause),
                _ => pause,
            };
            if !again || tried == TRIES || asked > WAIT {
                return Err(failure);
            }
            sleep(asked).await;
            pause = (pause * 2).min(RARELY);
        }
    }

    async fn send(&self, headers: HeaderMap, body: Bytes) -> Result<Response<Incoming>, Failure> {
        match timeout(STATUS, self.site.ask(Method::POST, headers, body)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(answer),
            Ok(Ok(answer)) => Err(Failure::Refused(Refusal::read(answer).await)),
            Ok(Err(silence)) => Err(Failure::Silent(silence)),
            Err(_) => Err(Failure::Late),
        }
    }

    /// Decides about a message that was not accepted, and about the link.
    fn give_up(&self, said: &Said, failure: Failure) -> ControlFlow<()> {
        let asks = said.asks();
        let reason = match failure {
            Failure::Refused(refusal) if refusal.ends_the_link() => {
                // For other open requests it is unknown how far they got; for this one it is known.
                if let Some(id) = &asks {
                    self.sessions().settle(id);
                    self.fail(id, &refusal.last_reason());
                }
                self.turned_away(refusal);
                return ControlFlow::Break(());
            }
            Failure::Refused(refusal) => {
                if let Some(id) = &asks
                    && let Some(at) = self.answer_to(id, &refusal.body)
                    && at.kind == Kind::Error
                {
                    self.sessions().settle(id);
                    let length = refusal.body.len();
                    self.heard.put(Ok(Cut::Frame(refusal.body)), length);
                    return ControlFlow::Continue(());
                }
                return self.refuse(said, &refusal.reason());
            }
            Failure::Silent(silence) => {
                let reason = Reason::new(reply::PEER_LOST, silence.to_string());
                match silence {
                    Silence::Unsent(_) | Silence::Refused(_) => reason.retryable(),
                    Silence::Lost(_) => reason.delivered(Delivered::Unknown),
                }
            }
            Failure::Late => {
                Reason::new(reply::TIMEOUT, failure.to_string()).delivered(Delivered::Unknown)
            }
        };
        if asks.is_none() {
            // The loss would go unnoticed, and the agent may wait for it for ever.
            self.lost("posting to the agent's server", reason.message);
            return ControlFlow::Break(());
        }
        self.refuse(said, &reason.at(Source::Agent))
    }

    /// Reports why a message was not accepted: to the client if it was a request, else to the log.
    fn refuse(&self, said: &Said, reason: &Reason) -> ControlFlow<()> {
        if let Some(id) = said.asks() {
            self.sessions().settle(&id);
            self.fail(&id, reason);
        } else {
            let why = &reason.message;
            tracing::warn!(to = %self.to, "a message to the agent was lost: {why}");
        }
        ControlFlow::Continue(())
    }

    /// The envelope of `body`, if it answers the request.
    fn answer_to(&self, id: &IdBuf, body: &Frame) -> Option<Envelope> {
        let Shape::One(at) = scan(body, &self.site.limits) else {
            return None;
        };
        let answers = at.kind.is_answer();
        (answers && at.id(body).to_owned() == *id).then_some(at)
    }
}

/// What is wrong with the head of a response to `initialize`, if anything is.
fn unusable(head: &Parts) -> Option<String> {
    if head.status == StatusCode::OK && is_of(&head.headers, "application/json") {
        return None;
    }
    Some(format!(
        "its server answered \"initialize\" with {} and {} instead of 200 and JSON; check the \
         address",
        head.status,
        content::spelled(&head.headers)
    ))
}
