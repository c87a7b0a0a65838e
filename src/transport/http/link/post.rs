//! Posts the messages to the agent.
//!
//! Requests go one after the other, in their order. Answers have a lane of their own: a server may
//! hold the POST of a request until the agent, which waits for one of these answers, has finished
//! it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Response, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::sessions::Session;
use super::shared::{Api, Failure, OPEN_TIMEOUT, Shared, wait_open};
use super::stream;
use crate::LinkError;
use crate::http::client::{NoResponse, ServerRefusal, discard, read_body};
use crate::http::headers::{self, CONNECTION_ID, content_type, is_type};
use crate::http::queue::Queue;
use jsonrpc::framing::Decoded;
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Scanned, member, scan, truncated};

/// The longest text of an error that is repeated, in characters.
const MAX_REASON: usize = 500;

/// How long a server may take for the status of a POST. `initialize` may start the agent.
const STATUS: Duration = Duration::from_secs(120);
/// How often a message is tried that has certainly not been accepted.
const MAX_TRIES: u32 = 4;
/// Longest wait that a busy server may ask for. When it asks for more, the message fails.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The pause when it asks for none; doubled with each try.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest of these pauses.
const MAX_PAUSE: Duration = Duration::from_secs(4);

/// A message and its envelope, when it is a single message.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) frame: Frame,
    pub(super) envelope: Option<Envelope>,
}

impl Outgoing {
    pub(super) fn new(frame: Frame, shared: &Shared) -> Self {
        let envelope = match scan(&frame, &shared.client.limits) {
            Scanned::Message(at) => Some(at),
            Scanned::Batch | Scanned::Invalid(_) => None,
        };
        Self { frame, envelope }
    }

    pub(super) fn is_answer(&self) -> bool {
        self.envelope.is_some_and(|at| at.kind.is_answer())
    }

    /// The id of a request.
    fn request_id(&self) -> Option<IdBuf> {
        let envelope = self.envelope.filter(|at| at.kind == Kind::Request)?;
        Some(envelope.id(&self.frame).to_owned())
    }
}

/// Whether the lane goes on.
type Flow = ControlFlow<()>;

/// Posts the messages of one lane, until it has ended or the link is closed.
pub(super) async fn post_all(shared: &Arc<Shared>, lane: &Queue<Outgoing>) {
    while let Some(message) = lane.take().await {
        let sent = match shared.is_open() {
            true => shared.send_message(&message).await,
            false => shared.initialize(&message).await,
        };
        let flow = sent.unwrap_or_else(|failure| shared.give_up(&message, failure));
        if flow.is_break() {
            break;
        }
    }
}

impl Shared {
    /// Opens the connection with the client's `initialize`, whose answer is in the POST's response.
    async fn initialize(self: &Arc<Self>, message: &Outgoing) -> Result<Flow, Failure> {
        let envelope = message.envelope;
        let is_first = envelope.is_some_and(|at| at.method(&message.frame) == "initialize");
        let Some(id) = message.request_id().filter(|_| is_first) else {
            let reason = match &*self.not_initialized.lock() {
                Some(why) => {
                    let what = format!(
                        "the agent has answered \"initialize\" with an error ({why}): send it again"
                    );
                    Reason::new(reply::PEER_LOST, what).at(ErrorSource::Agent)
                }
                None => {
                    let what = "the first message to this agent has to be \"initialize\"";
                    Reason::new(reply::INVALID_REQUEST, what)
                }
            };
            return Ok(self.refuse(message, &reason));
        };
        let answer = match self.post(message, None).await {
            Ok(answer) => answer,
            Err(failure) => return Ok(self.not_initialized(message, &id, failure)),
        };
        let (head, body) = answer.into_parts();
        if let Some(what) = unusable(&head) {
            return Ok(self.end(LinkError::Refused(what)));
        }
        let body = self.read_answer(body).await?;
        let Some(at) = self.answer_to(&id, &body) else {
            let what = "its answer to \"initialize\" is not a JSON-RPC answer";
            return Ok(self.end(LinkError::Refused(what.to_owned())));
        };
        let connection = head.headers.get(CONNECTION_ID).cloned();
        if connection.is_none() && at.kind != Kind::Error {
            let what =
                "its server gave no Acp-Connection-Id; it does not speak ACP's Streamable HTTP";
            return Ok(self.end(LinkError::Refused(what.to_owned())));
        }
        if let Some(grace) = headers::time(&head.headers, &headers::GRACE) {
            let _ = self.server_grace.set(grace);
        }
        if at.kind == Kind::Error {
            let why = member(body.as_bytes(), "error").and_then(|error| member(error, "message"));
            let why: Option<String> = why.and_then(|why| serde_json::from_slice(why).ok());
            let why = why.as_deref().unwrap_or("no reason");
            *self.not_initialized.lock() = Some(truncated(why, MAX_REASON));
        }
        let flow = self.deliver(body).await;
        let (
            Api::Streamable {
                connection: own, ..
            },
            Some(connection),
        ) = (&self.api, connection)
        else {
            return Ok(flow);
        };
        if at.kind == Kind::Error {
            // The client may try again, with another version of the protocol; that opens another
            // connection, as over a WebSocket.
            self.delete_connection(connection).await;
            return Ok(flow);
        }
        // Only this lane opens the connection, so these are set once.
        let _ = own.set(connection);
        let (ready, is_ready) = watch::channel(false);
        stream::spawn(self, None, ready);
        wait_open(is_ready).await;
        Ok(flow)
    }

    /// Ends the link after an `initialize` that was not accepted, as when a WebSocket is not
    /// opened; unless the agent itself answered, and the client may try again.
    fn not_initialized(&self, message: &Outgoing, id: &IdBuf, failure: Failure) -> Flow {
        let (is_transient, why) = (failure.is_transient(), failure.to_string());
        let is_answered = matches!(&failure, Failure::Refused(refusal)
            if self.answer_to(id, &refusal.body).is_some());
        // Logged also when the client has left by now: the cause of the missing agent is here.
        tracing::warn!(to = %self.to, "the agent did not get \"initialize\": {why}");
        let next = self.give_up(message, failure);
        if next.is_break() || is_answered && !is_transient {
            return next;
        }
        self.end(match is_transient {
            true => LinkError::Unavailable(why),
            false => LinkError::Refused(why),
        })
    }

    /// Posts one message of an open connection.
    async fn send_message(self: &Arc<Self>, message: &Outgoing) -> Result<Flow, Failure> {
        if *self.cut.borrow() > 0 {
            let mut cut = self.cut.subscribe();
            // Also a stream that is cut during the wait is opened soon.
            let none_is_cut = cut.wait_for(|&cut| {
                self.awaited.send_replace(());
                cut == 0
            });
            let _ = timeout(stream::PAUSE + OPEN_TIMEOUT, none_is_cut).await;
        }
        let session = message
            .envelope
            .and_then(|at| self.sessions().of_outgoing(&message.frame, &at));
        if let Some(session) = &session {
            let Some(ready) = self.open_stream(session) else {
                let what = "too many sessions are open over this connection";
                return Ok(self.refuse(message, &Reason::new(reply::OVERLOADED, what)));
            };
            wait_open(ready).await;
        }
        // A session that is being loaded may have no stream before.
        let enters = |at: Envelope| {
            let method = at.method(&message.frame);
            ["session/load", "session/resume"].contains(&&*method)
        };
        if *self.refused.borrow() > 0 && !message.envelope.is_some_and(enters) {
            // What is sent on a stream that there is not would be lost. It opens, the link ends, or
            // the head of the stream comes with the answer.
            let mut refused = self.refused.subscribe();
            let none_is_refused = refused.wait_for(|&refused| refused == 0);
            let _ = timeout(stream::GIVE_UP, none_is_refused).await;
        }
        let answer = match self.post(message, session.as_ref()).await {
            // A 404 may be about the session: the official Python server does not know one that is
            // only being loaded. Without it, the same message shows whether the connection is
            // known.
            Err(Failure::Refused(refusal))
                if session.is_some() && refusal.status == StatusCode::NOT_FOUND =>
            {
                let again = self.post(message, None).await;
                again.map_err(|failure| match failure {
                    Failure::Refused(again) if !again.is_fatal() => {
                        Failure::Refused(ServerRefusal {
                            text: refusal.text,
                            ..again
                        })
                    }
                    failure => failure,
                })?
            }
            answer => answer?,
        };
        self.accepted(message, answer).await
    }

    /// Handles the response to an accepted message. In ACP the POST is answered with 202 and an
    /// empty body, and the answer comes in a stream; servers derived from MCP answer in the
    /// response.
    async fn accepted(
        self: &Arc<Self>,
        message: &Outgoing,
        answer: Response<Incoming>,
    ) -> Result<Flow, Failure> {
        let is_streamable = matches!(self.api, Api::Streamable { .. });
        let id = message.request_id().filter(|_| is_streamable);
        let is_answer = is_type(answer.headers(), "application/json");
        let is_stream = is_type(answer.headers(), "text/event-stream");
        match id.filter(|_| answer.status() != StatusCode::ACCEPTED) {
            Some(_) if is_stream => {
                let what = "its server answers a POST with a stream of events of its own, which \
                            ACP's Streamable HTTP does not have";
                let reason = Reason::new(reply::PEER_LOST, what)
                    .at(ErrorSource::Agent)
                    .delivered(Delivered::Yes);
                return Ok(self.refuse(message, &reason));
            }
            Some(id) if is_answer => {
                let body = self.read_answer(answer.into_body()).await?;
                if let Some(at) = self.answer_to(&id, &body) {
                    self.note_answer(&body, &at);
                    return Ok(self.deliver(body).await);
                }
            }
            _ => discard(answer).await,
        }
        Ok(Flow::Continue(()))
    }

    /// The body of a response that may hold an answer.
    async fn read_answer(&self, body: Incoming) -> Result<Frame, Failure> {
        let max = self.client.limits.frame_from_network;
        match timeout(STATUS, read_body(body, max)).await {
            Ok(Ok(body)) => Ok(Frame::new(body)),
            Ok(Err(why)) => Err(Failure::NoAnswer(NoResponse::Lost(why))),
            Err(_) => Err(Failure::Timeout(STATUS)),
        }
    }

    /// Posts until the server has accepted it, or until another try would be harmful or useless. A
    /// server that drops repeats is tried for as long as it keeps the conversation.
    async fn post(
        &self,
        message: &Outgoing,
        session: Option<&Session>,
    ) -> Result<Response<Incoming>, Failure> {
        let (mut pause, mut tried, mut lost_since) = (PAUSE, 0, None);
        let number = self.next_post.fetch_add(1, Ordering::Relaxed);
        loop {
            let body = message.frame.clone().into_bytes();
            let mut request = self.request(Method::POST, session, body);
            let fields = request.headers_mut();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            fields.insert(ACCEPT, HeaderValue::from_static("application/json"));
            if self.may_repeat_posts() {
                fields.insert(headers::IDEMPOTENCY_KEY, number.into());
            }
            let path = self.client.pool_token();
            let sent = tokio::select! {
                sent = self.send(request, STATUS) => sent,
                () = path.cancelled(), if self.may_repeat_posts() => {
                    Err(Failure::NoAnswer(NoResponse::Lost("its streams are silent".to_owned())))
                }
            };
            let failure = match sent {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let is_lost = matches!(failure, Failure::NoAnswer(_)) && self.may_repeat_posts();
            let again = match &failure {
                _ if is_lost => {
                    lost_since.get_or_insert_with(Instant::now).elapsed() < self.grace()
                }
                // The second copy of an answer has no effect.
                Failure::NoAnswer(NoResponse::Lost(_) | NoResponse::Unreadable(_)) => {
                    message.is_answer()
                }
                Failure::NoAnswer(_) => true,
                Failure::Refused(refusal) => refusal.is_busy(),
                Failure::Timeout(_) => false,
            };
            tried += u32::from(!is_lost);
            let wait = match &failure {
                Failure::Refused(refusal) => refusal.retry_after.unwrap_or(pause),
                _ => pause,
            };
            if !again || tried == MAX_TRIES || wait > MAX_WAIT {
                return Err(failure);
            }
            sleep(wait).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Decides about a message that was not accepted, and about the link.
    fn give_up(&self, message: &Outgoing, failure: Failure) -> Flow {
        let request = message.request_id();
        let reason = match failure {
            Failure::Refused(refusal) if refusal.is_fatal() => {
                // For other open requests it is unknown how far they got; for this one it is known.
                if let Some(id) = &request {
                    self.sessions().client_requests.remove(id.as_id());
                    self.fail(id, &refusal.final_reason());
                }
                return self.rejected(&refusal);
            }
            Failure::Refused(refusal) => {
                if let Some(id) = &request
                    && let Some(at) = self.answer_to(id, &refusal.body)
                    && at.kind == Kind::Error
                {
                    self.sessions().client_requests.remove(id.as_id());
                    let length = refusal.body.len();
                    self.received.put(Ok(Decoded::Frame(refusal.body)), length);
                    return Flow::Continue(());
                }
                return self.refuse(message, &refusal.reason());
            }
            Failure::NoAnswer(error) => {
                let reason = Reason::new(reply::PEER_LOST, error.to_string());
                match error {
                    NoResponse::Unsent(_) => reason.retryable(),
                    NoResponse::Lost(_) | NoResponse::Unreadable(_) => {
                        reason.delivered(Delivered::Unknown)
                    }
                }
            }
            Failure::Timeout(_) => {
                Reason::new(reply::TIMEOUT, failure.to_string()).delivered(Delivered::Unknown)
            }
        };
        if request.is_none() {
            // The loss would go unnoticed, and the agent may wait for it for ever.
            return self.end_lost("posting to the agent's server", reason.message);
        }
        self.refuse(message, &reason.at(ErrorSource::Agent))
    }

    /// Reports why a message was not accepted: to the client if it was a request, else to the log.
    fn refuse(&self, message: &Outgoing, reason: &Reason) -> Flow {
        if let Some(id) = message.request_id() {
            self.sessions().client_requests.remove(id.as_id());
            self.fail(&id, reason);
        } else {
            let why = &reason.message;
            tracing::warn!(to = %self.to, "a message to the agent was lost: {why}");
        }
        Flow::Continue(())
    }

    /// The envelope of `body`, if it answers the request.
    fn answer_to(&self, id: &IdBuf, body: &Frame) -> Option<Envelope> {
        let Scanned::Message(at) = scan(body, &self.client.limits) else {
            return None;
        };
        let answers = at.kind.is_answer();
        (answers && at.id(body).to_owned() == *id).then_some(at)
    }
}

/// What is wrong with the head of a response to `initialize`, if anything is.
fn unusable(head: &Parts) -> Option<String> {
    if head.status == StatusCode::OK && is_type(&head.headers, "application/json") {
        return None;
    }
    Some(format!(
        "its server answered \"initialize\" with {} and {} instead of 200 and JSON; check the \
         address",
        head.status,
        content_type(&head.headers)
    ))
}
