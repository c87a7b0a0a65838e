//! Reads the body of a request, bounded in size and in time, and all bodies together in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::refusal::Refusal;
use jsonrpc::Limits;

/// Bytes for which a slow client gets another second.
const MIN_RATE: usize = 1 << 10;

/// Length up to which a body is small, in bytes.
const SMALL: usize = 64 << 10;

/// The memory that the bodies of all requests share until their messages are queued.
#[derive(Debug)]
pub struct BodyMemory {
    bytes: Arc<Semaphore>,
    /// Only small bodies may use this part, so that large ones do not block all others.
    reserve: usize,
}

/// A body's part of the memory.
pub(crate) type Share = OwnedSemaphorePermit;

impl BodyMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        // One message of any permitted size always fits.
        let bytes = limits.http_bodies.max(2 * limits.frame_from_network);
        Self {
            bytes: Arc::new(Semaphore::new(bytes)),
            reserve: bytes / 4,
        }
    }

    /// Memory for a body that has `got` bytes and receives `more`; `None` when there is none.
    fn share(&self, got: usize, more: usize) -> Option<Share> {
        let reserved = if got + more > SMALL { self.reserve } else { 0 };
        if self.bytes.available_permits() < reserved + more {
            return None;
        }
        let more = u32::try_from(more).ok()?;
        self.bytes.clone().try_acquire_many_owned(more).ok()
    }
}

/// Reads a body to its end. The share is returned when it is dropped.
pub async fn read(
    mut body: impl Body<Data = Bytes> + Unpin,
    memory: &BodyMemory,
    limits: &Limits,
) -> Result<(Bytes, Option<Share>), Refusal> {
    let max = limits.frame_from_network;
    if body.size_hint().lower() > max as u64 {
        return Err(too_large(max));
    }
    let began = Instant::now();
    let mut text = BytesMut::new();
    let mut share: Option<Share> = None;
    loop {
        let earned = Duration::from_secs((text.len() / MIN_RATE) as u64);
        let until = began + limits.http_body + earned;
        let Ok(part) = timeout_at(until, body.frame()).await else {
            let why = "the body took too long";
            return Err(Refusal::fatal(StatusCode::REQUEST_TIMEOUT, why));
        };
        let data = match part {
            None => return Ok((text.freeze(), share)),
            Some(Ok(part)) => part.into_data().unwrap_or_default(),
            Some(Err(_)) => return Err(Refusal::bad_request("the body broke off")),
        };
        if text.len() + data.len() > max {
            return Err(too_large(max));
        }
        let more = memory.share(text.len(), data.len());
        let more = more
            .ok_or_else(|| Refusal::unavailable("too many bytes are being sent here at present"))?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        text.extend_from_slice(&data);
    }
}

fn too_large(max: usize) -> Refusal {
    let why = format!("a message has at most {max} bytes here");
    Refusal::fatal(StatusCode::PAYLOAD_TOO_LARGE, why)
}
