//! The body of a stream: server-sent events.
//!
//! A message's bytes are the event's data as they are; only a line break between its tokens, which
//! would end the line, becomes a space. Small messages that wait together are written together, and
//! large ones without a copy. A stream that ends because the conversation does sends a closing
//! comment, which official clients ignore and acp-relay's client reads (see `http::names`): it need
//! not reconnect.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::poll_fn;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::{Connection, StreamMode};
use super::streams::{Delivery, Lease};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Framing;
use crate::transport::closing;
use crate::transport::http::names;
use crate::transport::http::port::answer;

/// Bytes of small messages that are written at once. With the last of them it is mostly less than a
/// frame of HTTP/2, 16 KiB.
const BATCH: usize = 15 << 10;
/// The most room that is made for them in advance.
const MAX_ROOM: usize = 16 << 10;
/// Length from which a message is worth a write of its own, in bytes.
const LARGE: usize = 8 << 10;
/// Interval of pings on elephant.ai's stream, as its server sends them.
const PING: Duration = Duration::from_secs(5);

/// An open stream.
#[derive(Debug)]
pub(super) struct EventStream {
    connection: Arc<Connection>,
    lease: Lease,
    /// The beginning of each event's id line; empty where events have no ids.
    id_prefix: String,
    /// What is to be written next, in this order.
    begun: bool,
    large: [Option<Bytes>; 2],
    next_ping: Pin<Box<Sleep>>,
    interval: Duration,
    /// The closing comment was sent.
    close_sent: bool,
    /// Polls since the end, so that everything before it has been written.
    end_polls: u8,
}

/// The stream and the number in an event id, when the id is of this connection.
pub(super) fn read_id(id: &str, epoch: u32) -> Option<(u32, u64)> {
    let mut parts = id.split('-');
    let (epoch_text, stream, number) = (parts.next()?, parts.next()?, parts.next()?);
    let found_epoch = u32::from_str_radix(epoch_text, 16).ok()?;
    if found_epoch != epoch || parts.next().is_some() {
        return None;
    }
    Some((stream.parse().ok()?, number.parse().ok()?))
}

impl EventStream {
    pub(super) fn new(connection: Arc<Connection>, lease: Lease) -> Self {
        let interval = match connection.mode {
            StreamMode::Official => connection.limits.http_keepalive,
            StreamMode::Elephant => PING,
        };
        // A timer that is always due would keep the task busy.
        let interval = interval.max(Duration::from_millis(10));
        let id_prefix = match connection.mode {
            StreamMode::Official => format!("id: {:08x}-{}-", connection.epoch, lease.stream),
            StreamMode::Elephant => String::new(),
        };
        Self {
            connection,
            lease,
            id_prefix,
            begun: false,
            large: [None, None],
            next_ping: Box::pin(sleep_until(Instant::now() + interval)),
            interval,
            close_sent: false,
            end_polls: 0,
        }
    }

    /// The response with this stream.
    pub(super) fn into_response(mut self) -> Response {
        let interval = names::millis(self.interval);
        let mut answer = answer::events(poll_fn(move |cx| self.poll(cx)));
        answer.headers_mut().insert(names::KEEPALIVE, interval);
        answer
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        for rest in &mut self.large {
            if let Some(bytes) = rest.take() {
                return Poll::Ready(Some(bytes));
            }
        }
        let mut out = BytesMut::new();
        if !self.begun {
            self.begun = true;
            // Written at once: some clients wait for it before they consider the stream open.
            match self.connection.mode {
                StreamMode::Official => {
                    out.extend_from_slice(b":\nretry: 1000\n");
                    // So that a break before the first message can be resumed as well.
                    if let Some(number) = self.connection.last_sent(self.lease) {
                        encode_id(&self.id_prefix, number, &mut out);
                    }
                    out.extend_from_slice(b"\n");
                }
                StreamMode::Elephant => out.extend_from_slice(b": connected\n\n"),
            }
        }
        let Self {
            connection,
            lease,
            id_prefix: ids,
            large: rest,
            ..
        } = self;
        let taken = connection.poll_take(*lease, cx, |waiting, number, frame| {
            if out.is_empty() && frame.len() < LARGE {
                out.reserve(waiting.min(MAX_ROOM));
            }
            encode(ids, number, frame, &mut out, rest) && out.len() < BATCH
        });
        if !out.is_empty() {
            let next = Instant::now() + self.interval;
            self.next_ping.as_mut().reset(next);
            return Poll::Ready(Some(out.freeze()));
        }
        if matches!(taken, Poll::Ready(Delivery::End)) {
            let why = self.connection.close_reason(self.lease);
            if let Some(why) = why.filter(|_| !self.close_sent) {
                self.close_sent = true;
                let (code, reason) = closing::code(why);
                let text = format!(": {}{code} {reason}\n\n", names::CLOSE);
                return Poll::Ready(Some(text.into()));
            }
            return self.end(cx);
        }
        if self.next_ping.as_mut().poll(cx).is_ready() {
            let next = Instant::now() + self.interval;
            self.next_ping.as_mut().reset(next);
            return Poll::Ready(Some(Bytes::from_static(match self.connection.mode {
                StreamMode::Official => b":\n\n",
                StreamMode::Elephant => b": ping\n\n",
            })));
        }
        Poll::Pending
    }

    /// Ends once the server has written the events before it: the closing link waits for this
    /// stream, and the process may end next.
    fn end(&mut self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        if self.end_polls < 2 {
            self.end_polls += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(None)
    }
}

/// Writes a message into `out`, or a large one into `large_parts`; whether more may follow in
/// `out`.
fn encode(
    id_prefix: &str,
    number: u64,
    frame: &Frame,
    out: &mut BytesMut,
    large_parts: &mut [Option<Bytes>; 2],
) -> bool {
    if !id_prefix.is_empty() {
        encode_id(id_prefix, number, out);
    }
    out.extend_from_slice(b"data: ");
    let text = frame.as_bytes();
    let is_large = text.len() >= LARGE;
    if is_large && memchr::memchr2(b'\n', b'\r', text).is_none() {
        *large_parts = [
            Some(frame.clone().into_bytes()),
            Some(Bytes::from_static(b"\n\n")),
        ];
        return false;
    }
    Framing::Ndjson.encode(frame, out);
    out.extend_from_slice(b"\n");
    !is_large
}

/// Writes the line of an event's id.
fn encode_id(prefix: &str, number: u64, out: &mut BytesMut) {
    // Memory grows as needed.
    let _ = writeln!(out, "{prefix}{number}");
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.connection.release(self.lease);
    }
}
