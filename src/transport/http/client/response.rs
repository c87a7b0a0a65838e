//! Interprets the status of a response for the request and for the link.
//!
//! As the official TypeScript client does it: 401, 403, 404 and 410 mean that the connection
//! belongs to another client or does not exist any more, every other refusal concerns one message
//! alone.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderMap, LOCATION, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::time::timeout;

use crate::open_error;
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Frame, printable};

/// How much of a refusal's body is read, in bytes.
const MAX_BODY: usize = 8 << 10;
/// How long to wait for a refusal's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// The shortest time that a server can ask to wait.
pub(crate) const SOONEST_RETRY: Duration = Duration::from_millis(100);
/// How much of it is shown in an error, in characters.
const MAX_TEXT: usize = 300;

/// A refusal.
#[derive(Debug)]
pub(crate) struct ServerRefusal {
    pub(crate) status: StatusCode,
    /// The refusal in words: `its server answered 404 Not Found: unknown connection`.
    pub(crate) text: String,
    /// The body, which may be a JSON-RPC error.
    pub(crate) body: Frame,
    /// The server's `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

impl ServerRefusal {
    /// Reads the refusal from a response.
    pub(crate) async fn read(answer: Response<Incoming>) -> Self {
        let (head, body) = answer.into_parts();
        let body = read_start(body).await;
        let mut text = format!("its server answered {}", head.status);
        if let Some(to) = head
            .headers
            .get(LOCATION)
            .filter(|_| head.status.is_redirection())
        {
            let to = String::from_utf8_lossy(to.as_bytes());
            text.push_str(&format!(
                ", which points to {}; redirects are not followed, so name that address",
                shown(&to)
            ));
        } else {
            let why = String::from_utf8_lossy(&body);
            let why = why.lines().map(str::trim).find(|line| !line.is_empty());
            if let Some(why) = why {
                text.push_str(&format!(": {}", shown(why)));
            }
        }
        Self {
            status: head.status,
            text,
            retry_after: retry_after(&head.headers),
            body: Frame::new(body),
        }
    }

    /// Whether the server rejects the credentials.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self.status.as_u16(), 401 | 403)
    }

    /// Whether nothing on this link can succeed any more.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self.status.as_u16(), 401 | 403 | 404 | 410)
    }

    /// Whether the server is busy and has not processed the request.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 503)
    }

    /// The error for the client whose request was refused.
    pub(crate) fn reason(&self) -> Reason {
        let (code, delivered) = match self.status.as_u16() {
            413 => (reply::TOO_LARGE, Delivered::No),
            429 | 503 => (reply::OVERLOADED, Delivered::No),
            // It comes from an intermediary, and how far the request got is unknown.
            500..=599 => (reply::PEER_LOST, Delivered::Unknown),
            _ => (reply::INVALID_REQUEST, Delivered::No),
        };
        self.reason_with(code, delivered)
    }

    /// The same, for a refusal that ends the link.
    pub(crate) fn final_reason(&self) -> Reason {
        self.reason_with(reply::PEER_LOST, Delivered::No)
    }

    /// The refusal in words, and what to do about it.
    pub(crate) fn with_remedy(&self) -> String {
        if self.is_forbidden() {
            format!("{}. {}", self.text, open_error::CHECK_TOKEN)
        } else {
            self.text.clone()
        }
    }

    fn reason_with(&self, code: i32, delivered: Delivered) -> Reason {
        let what = format!("the agent did not get it: {}", self.with_remedy());
        Reason {
            source: ErrorSource::Agent,
            delivered,
            retryable: self.is_busy(),
            retry_after: self.retry_after,
            ..Reason::new(code, what)
        }
    }
}

/// All of a body, or an error when it is longer than `max` bytes.
pub async fn read_body(body: Incoming, max: usize) -> Result<Bytes, String> {
    match Limited::new(body, max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(fault) if fault.is::<LengthLimitError>() => {
            Err(format!("its answer is longer than {max} bytes"))
        }
        Err(fault) => Err(format!("its answer broke off ({fault})")),
    }
}

/// Drains a response whose body means nothing, so that its connection can be used again.
pub(crate) async fn discard(answer: Response<Incoming>) {
    if !answer.body().is_end_stream() {
        read_start(answer.into_body()).await;
    }
}

/// The start of a body. It is only shown to a person, so an error here just ends it.
async fn read_start(mut body: Incoming) -> Bytes {
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(Ok(part)) = body.frame().await {
            if let Ok(data) = part.into_data() {
                read.extend_from_slice(&data[..data.len().min(MAX_BODY - read.len())]);
            }
            if read.len() == MAX_BODY {
                break;
            }
        }
    };
    // What has arrived by then is used.
    let _ = timeout(BODY_TIMEOUT, reading).await;
    read.freeze()
}

/// How long a busy server asks to wait, but not less than a request may be repeated after: seconds
/// or a date (RFC 9110, 10.2.3).
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            date.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(asked.max(SOONEST_RETRY))
}

/// Text of another machine, short and without control characters, for errors and logs.
fn shown(text: &str) -> String {
    let shown: String = text.chars().take(MAX_TEXT).collect();
    printable(shown.as_bytes())
}
