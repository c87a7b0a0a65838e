//! The body of a stream: server-sent events.
//!
//! A message's bytes are the event's data as they are; only a line break between its tokens, which
//! would end the line, becomes a space. Small messages that wait together are written together, and
//! large ones without a copy. A stream that ends because the conversation does sends a closing
//! comment, which official clients ignore and acp-relay's client knows (see `http::names`): it need
//! not reconnect.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::{Connection, Manner};
use super::streams::{Given, Lease};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Framing;
use crate::transport::http::names;
use crate::transport::parting;

/// Bytes of small messages that are written at once. With the last of them it is mostly less than a
/// frame of HTTP/2, 16 KiB.
const BATCH: usize = 15 << 10;
/// The most room that is made for them in advance.
const FULL: usize = 16 << 10;
/// Length from which a message is worth a write of its own, in bytes.
const LARGE: usize = 8 << 10;
/// Interval of pings on elephant.ai's stream, as its server sends them.
const PING: Duration = Duration::from_secs(5);

/// An open stream.
#[derive(Debug)]
pub(super) struct Events {
    connection: Arc<Connection>,
    lease: Lease,
    /// The beginning of each event's id line; empty where events have no ids.
    ids: String,
    /// What is to be written next, in this order.
    begun: bool,
    rest: [Option<Bytes>; 2],
    next_sign: Pin<Box<Sleep>>,
    interval: Duration,
    /// The closing comment was sent.
    parted: bool,
    /// Polls since the end, so that everything before it has been written.
    ending: u8,
}

/// The stream and the number in an event id, when the id is of this connection.
pub(super) fn read_id(id: &str, epoch: u32) -> Option<(u32, u64)> {
    let mut parts = id.split('-');
    let (said, stream, number) = (parts.next()?, parts.next()?, parts.next()?);
    let said = u32::from_str_radix(said, 16).ok()?;
    if said != epoch || parts.next().is_some() {
        return None;
    }
    Some((stream.parse().ok()?, number.parse().ok()?))
}

impl Events {
    pub(super) fn new(connection: Arc<Connection>, lease: Lease) -> Self {
        let interval = match connection.manner {
            Manner::Official => connection.limits.http_keepalive,
            Manner::Elephant => PING,
        };
        // A timer that is always due would keep the task busy.
        let interval = interval.max(Duration::from_millis(10));
        let ids = match connection.manner {
            Manner::Official => format!("id: {:08x}-{}-", connection.epoch, lease.stream),
            Manner::Elephant => String::new(),
        };
        Self {
            connection,
            lease,
            ids,
            begun: false,
            rest: [None, None],
            next_sign: Box::pin(sleep_until(Instant::now() + interval)),
            interval,
            parted: false,
            ending: 0,
        }
    }

    /// The longest time between two keep-alives.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        for rest in &mut self.rest {
            if let Some(bytes) = rest.take() {
                return Poll::Ready(Some(bytes));
            }
        }
        let mut out = BytesMut::new();
        if !self.begun {
            self.begun = true;
            // Written at once: some clients wait for it before they consider the stream open.
            match self.connection.manner {
                Manner::Official => {
                    out.extend_from_slice(b":\nretry: 1000\n");
                    // So that a break before the first message can be resumed as well.
                    if let Some(number) = self.connection.given(self.lease) {
                        lay_id(&self.ids, number, &mut out);
                    }
                    out.extend_from_slice(b"\n");
                }
                Manner::Elephant => out.extend_from_slice(b": connected\n\n"),
            }
        }
        let Self {
            connection,
            lease,
            ids,
            rest,
            ..
        } = self;
        let taken = connection.poll_take(*lease, cx, |waiting, number, frame| {
            if out.is_empty() && frame.len() < LARGE {
                out.reserve(waiting.min(FULL));
            }
            lay(ids, number, frame, &mut out, rest) && out.len() < BATCH
        });
        if !out.is_empty() {
            let next = Instant::now() + self.interval;
            self.next_sign.as_mut().reset(next);
            return Poll::Ready(Some(out.freeze()));
        }
        if matches!(taken, Poll::Ready(Given::End)) {
            let why = self.connection.farewell(self.lease);
            if let Some(why) = why.filter(|_| !self.parted) {
                self.parted = true;
                let (code, reason) = parting::code(why);
                let said = format!(": {}{code} {reason}\n\n", names::FAREWELL);
                return Poll::Ready(Some(said.into()));
            }
            return self.end(cx);
        }
        if self.next_sign.as_mut().poll(cx).is_ready() {
            let next = Instant::now() + self.interval;
            self.next_sign.as_mut().reset(next);
            return Poll::Ready(Some(Bytes::from_static(match self.connection.manner {
                Manner::Official => b":\n\n",
                Manner::Elephant => b": ping\n\n",
            })));
        }
        Poll::Pending
    }

    /// Ends once the server had a turn to write what came before: the closing link waits for this
    /// stream, and the process may end next.
    fn end(&mut self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        if self.ending < 2 {
            self.ending += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(None)
    }
}

/// Writes a message into `out`, or a large one into `large_parts`; whether more may follow in
/// `out`.
fn lay(
    ids: &str,
    number: u64,
    frame: &Frame,
    out: &mut BytesMut,
    rest: &mut [Option<Bytes>; 2],
) -> bool {
    if !ids.is_empty() {
        lay_id(ids, number, out);
    }
    out.extend_from_slice(b"data: ");
    let text = frame.as_bytes();
    let large = text.len() >= LARGE;
    if large && memchr::memchr2(b'\n', b'\r', text).is_none() {
        *rest = [
            Some(frame.clone().into_bytes()),
            Some(Bytes::from_static(b"\n\n")),
        ];
        return false;
    }
    Framing::Ndjson.lay(frame, out);
    out.extend_from_slice(b"\n");
    !large
}

/// Writes the line of an event's id. By hand, because there is one for every message.
fn lay_id(begin: &str, mut number: u64, out: &mut BytesMut) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(begin.as_bytes());
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\n");
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.release(self.lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_as_it_is_written() {
        for number in [0, 9, 10, 17, u64::MAX] {
            let mut line = BytesMut::new();
            lay_id("id: 0000002a-3-", number, &mut line);
            let line = std::str::from_utf8(&line).expect("it is plain text");
            let id = line
                .strip_prefix("id: ")
                .and_then(|id| id.strip_suffix('\n'));
            assert_eq!(id, Some(format!("0000002a-3-{number}").as_str()));
            assert_eq!(read_id(id.unwrap_or_default(), 42), Some((3, number)));
        }
        for other in [
            "",
            "2b-3-17",
            "2a-3",
            "2a-3-17-1",
            "2a-x-17",
            "2a-3--1",
            "é",
        ] {
            assert_eq!(read_id(other, 42), None, "{other}");
        }
    }
}
