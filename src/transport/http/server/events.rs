//! GET: opens, restarts or resumes a stream of server-sent events, and writes its body.
//!
//! A message's bytes are the event's data as they are; only a line break between its tokens, which
//! would end the line, becomes a space. Messages that wait together are written together. (Those of
//! `axum::response::sse` are one write each, and a frame of HTTP/2.) A stream that ends because the
//! conversation does sends a closing comment, which official clients ignore and acp-relay's client
//! reads (see `http::headers`): it need not reconnect.

use std::fmt::Write as _;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::poll_fn;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::connection::{ActiveRequest, Connection, StreamMode};
use super::routing::SESSION_ID;
use super::service::{AcpService, single};
use super::streams::{CONNECTION, Lease, Opening};
use crate::closing;
use crate::http::headers;
use crate::http::port::caller::AuthenticatedClient;
use crate::http::port::refusal::{Refusal, events};
use jsonrpc::framing::Framing;

/// Bytes of messages that are written at once. With the last of them it is mostly less than a frame
/// of HTTP/2, 16 KiB.
const BATCH: usize = 15 << 10;
/// Interval of pings on elephant.ai's stream, as its server sends them.
const PING: Duration = Duration::from_secs(5);

/// An open stream.
#[derive(Debug)]
pub(super) struct EventStream {
    connection: Arc<Connection>,
    lease: Lease,
    /// The beginning of each event's id line; empty where events have no ids.
    id_prefix: String,
    begun: bool,
    pings: Interval,
    /// The closing comment was sent.
    close_sent: bool,
    /// Polls since the end, so that everything before it has been written.
    end_polls: u8,
    _active: ActiveRequest,
}

/// Opens a stream of the client.
pub(super) async fn open_stream(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    fields: HeaderMap,
) -> Result<Response, Refusal> {
    check_accept(&fields)?;
    let connection = service.connection(&fields, &client)?;
    let connection = connection.ok_or_else(Refusal::no_connection)?;
    let session = single(&fields, &headers::SESSION_ID)?;
    if session.is_some_and(|session| session.len() > SESSION_ID) {
        return Err(Refusal::bad_request(
            "Acp-Session-Id is longer than 1024 bytes",
        ));
    }
    let opening = match single(&fields, &headers::LAST_EVENT_ID)? {
        // A relay repeats a GET with this header when it has not received the head of the response.
        None if fields.contains_key(headers::IDEMPOTENCY_KEY) => Opening::Restart,
        None => Opening::Fresh,
        Some(last) => {
            let read = read_id(last, &connection);
            let (stream, number) = read.ok_or_else(Refusal::forgotten)?;
            Opening::After(stream, number)
        }
    };
    let lease = connection.open(session.unwrap_or(CONNECTION), opening)?;
    let mut answer = EventStream::new(connection, lease).into_response();
    for name in [headers::CONNECTION_ID, headers::SESSION_ID] {
        if let Some(value) = fields.get(&name).filter(|value| !value.is_empty()) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    Ok(answer)
}

/// Refuses clients whose `Accept` does not list `text/event-stream`, which ACP requires: wildcards
/// and weights are not read.
fn check_accept(fields: &HeaderMap) -> Result<(), Refusal> {
    let lists_events = |value: &HeaderValue| {
        let text = value.as_bytes().to_ascii_lowercase();
        memchr::memmem::find(&text, b"text/event-stream").is_some()
    };
    let why = "Accept must list text/event-stream";
    let listed = fields.get_all(ACCEPT).iter().any(lists_events);
    let refusal = || Refusal::new(StatusCode::NOT_ACCEPTABLE, why);
    listed.then_some(()).ok_or_else(refusal)
}

/// The stream and the number in an event id, when the id is of this connection.
fn read_id(id: &str, connection: &Connection) -> Option<(u32, u64)> {
    let rest = id.strip_prefix(connection.epoch())?.strip_prefix('-')?;
    let (stream, number) = rest.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

impl EventStream {
    pub(super) fn new(connection: Arc<Connection>, lease: Lease) -> Self {
        let (period, id_prefix) = match connection.mode {
            StreamMode::Official => {
                let prefix = format!("id: {}-{}-", connection.epoch(), lease.stream);
                (connection.limits.http_keepalive, prefix)
            }
            StreamMode::Elephant => (PING, String::new()),
        };
        // A timer that is always due would keep the task busy.
        let mut pings = interval(period.max(Duration::from_millis(10)));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        Self {
            _active: connection.begin_request(),
            connection,
            lease,
            id_prefix,
            begun: false,
            pings,
            close_sent: false,
            end_polls: 0,
        }
    }

    /// The response with this stream.
    pub(super) fn into_response(mut self) -> Response {
        let period = headers::millis(self.pings.period());
        let mut answer = events(poll_fn(move |cx| self.poll(cx)));
        answer.headers_mut().insert(headers::KEEPALIVE, period);
        answer
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = BytesMut::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.begin(&mut out);
        }
        let taken = self.connection.poll_take(&self.lease, cx, |number, frame| {
            encode_id(&self.id_prefix, number, &mut out);
            out.extend_from_slice(b"data: ");
            Framing::Ndjson.encode(frame, &mut out);
            out.extend_from_slice(b"\n");
            out.len() < BATCH
        });
        if !out.is_empty() {
            self.pings.reset();
            return Poll::Ready(Some(out.freeze()));
        }
        if taken == Poll::Ready(false) {
            return self.poll_end(cx);
        }
        self.pings.poll_tick(cx).map(|_| {
            Some(Bytes::from_static(match self.connection.mode {
                StreamMode::Official => b":\n\n",
                StreamMode::Elephant => b": ping\n\n",
            }))
        })
    }

    /// Writes what comes first, and at once: some clients wait for it before they consider the
    /// stream open.
    fn begin(&self, out: &mut BytesMut) {
        match self.connection.mode {
            StreamMode::Official => {
                out.extend_from_slice(b":\nretry: 1000\n");
                // So that a break before the first message can be resumed as well.
                if let Some(number) = self.connection.state().streams.last_sent(&self.lease) {
                    encode_id(&self.id_prefix, number, out);
                }
                out.extend_from_slice(b"\n");
            }
            StreamMode::Elephant => out.extend_from_slice(b": connected\n\n"),
        }
    }

    /// Ends with the closing comment, unless the stream was taken over, and once the server has
    /// written the events before it: the closing link waits for this stream, and the process may
    /// end next.
    fn poll_end(&mut self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.connection.state();
        if let Some(why) = state.closing
            && !self.close_sent
            && state.streams.last_sent(&self.lease).is_some()
        {
            self.close_sent = true;
            let (code, reason) = closing::code(why);
            let text = format!(": {}{code} {reason}\n\n", headers::CLOSE);
            return Poll::Ready(Some(text.into()));
        }
        if self.end_polls == 2 {
            return Poll::Ready(None);
        }
        self.end_polls += 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Writes the line of an event's id, if it has one.
fn encode_id(prefix: &str, number: u64, out: &mut BytesMut) {
    if !prefix.is_empty() {
        // Memory grows as needed.
        let _ = writeln!(out, "{prefix}{number}");
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.connection.release(&self.lease);
    }
}
