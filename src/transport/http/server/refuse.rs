//! Every refusal: its status, and a short body that says what was expected.
//!
//! Not here: when each of them is due.

use std::borrow::Cow;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{
    ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE,
    WWW_AUTHENTICATE,
};

use super::answer::{self, Answer};
use super::inbound::Untaken;
use super::routing::Misrouted;
use super::streams::Closed;
use crate::wire::reply::{self, Reason};
use crate::wire::{Frame, Id};

/// The methods of the official endpoint.
pub(super) const METHODS: &str = "GET, POST, DELETE";

/// Why a request is refused.
#[derive(Debug)]
pub(in crate::transport) struct Refusal {
    pub(in crate::transport) status: StatusCode,
    pub(in crate::transport) why: Why,
    /// A header that says what to do instead.
    pub(in crate::transport) field: Option<(HeaderName, Cow<'static, str>)>,
    /// Whether the socket is closed behind it.
    pub(in crate::transport) hang_up: bool,
}

/// A refusal's body.
#[derive(Debug)]
pub(in crate::transport) enum Why {
    /// For a person.
    Text(Cow<'static, str>),
    /// A JSON-RPC error.
    Error(Frame),
}

impl Refusal {
    pub(super) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            why: Why::Text(why.into()),
            field: None,
            hang_up: false,
        }
    }

    /// With a JSON-RPC error for its body.
    pub(super) fn error(status: StatusCode, error: Frame) -> Self {
        Self {
            status,
            why: Why::Error(error),
            field: None,
            hang_up: false,
        }
    }

    pub(super) fn bad(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// The one who asks has no business here: the socket is closed.
    pub(in crate::transport) fn stranger(
        status: StatusCode,
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut refusal = Self::new(status, why);
        refusal.hang_up = true;
        refusal
    }

    /// Only this method is for this path.
    pub(super) fn method(allowed: &'static str) -> Self {
        let why = format!("this path takes {allowed}");
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, why);
        refusal.field = Some((ALLOW, Cow::Borrowed(allowed)));
        refusal
    }

    /// Only WebSockets are served.
    pub(super) fn upgrade(why: &'static str) -> Self {
        let mut refusal = Self::stranger(StatusCode::UPGRADE_REQUIRED, why);
        refusal.field = Some((UPGRADE, Cow::Borrowed("websocket")));
        refusal
    }

    /// The same request may do in a moment.
    pub(super) fn later(why: &'static str) -> Self {
        let mut refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, why);
        refusal.field = Some((RETRY_AFTER, Cow::Borrowed("1")));
        refusal
    }

    /// What it has shown was wrong, and it has shown too much of that.
    pub(super) fn too_often(wait: Duration) -> Self {
        let why = "too many wrong tokens have come from this address; try again later";
        let mut refusal = Self::stranger(StatusCode::TOO_MANY_REQUESTS, why);
        // A started second is waited for to its end.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        refusal.field = Some((RETRY_AFTER, Cow::Owned(seconds.to_string())));
        refusal
    }

    /// The same, with what has to be shown instead.
    pub(super) fn challenging(mut self, challenge: &'static str) -> Self {
        self.field = Some((WWW_AUTHENTICATE, Cow::Borrowed(challenge)));
        self
    }

    pub(super) fn unknown_connection() -> Self {
        let why = "Acp-Connection-Id names no open connection; start with initialize";
        Self::new(StatusCode::NOT_FOUND, why)
    }

    /// What a stream is asked for cannot be given whole.
    pub(super) fn forgotten() -> Self {
        let message = "the messages behind this Last-Event-ID are not kept; \
                       open the stream without it, or load the session again";
        let error = reply::error(Id::Null, &Reason::new(reply::RESUME_GAP, message));
        Self::error(StatusCode::GONE, error)
    }

    pub(super) fn into_answer(self) -> Answer {
        let mut answer = match self.why {
            Why::Text(text) => answer::text(
                self.status,
                "text/plain; charset=utf-8",
                format!("{text}\n"),
            ),
            Why::Error(frame) => answer::text(self.status, "application/json", frame.into_bytes()),
        };
        let fields = answer.headers_mut();
        if let Some((name, value)) = self.field {
            if name == UPGRADE {
                let version = HeaderValue::from_static("13");
                fields.insert(SEC_WEBSOCKET_VERSION, version);
            }
            if let Ok(value) = HeaderValue::from_str(&value) {
                fields.insert(name, value);
            }
        }
        if self.hang_up {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl From<Untaken> for Refusal {
    fn from(untaken: Untaken) -> Self {
        match untaken {
            Untaken::Gone => Self::unknown_connection(),
            Untaken::Stalled => Self::later("the agent takes nothing at present"),
            Untaken::Reused => Self::new(
                StatusCode::CONFLICT,
                "another request with this id still awaits its answer",
            ),
            Untaken::Misrouted(why) => Self::bad(match why {
                Misrouted::NoSession => {
                    "this method needs a session: Acp-Session-Id and params.sessionId"
                }
                Misrouted::Mismatch => "Acp-Session-Id and params.sessionId differ",
                Misrouted::OtherSession => {
                    "Acp-Session-Id is not the session of the request that this answers"
                }
                Misrouted::TooLong => "the session id is longer than 1024 bytes",
            }),
        }
    }
}

impl From<Closed> for Refusal {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Busy => Self::new(
                StatusCode::CONFLICT,
                "this stream is open already; Last-Event-ID takes it over",
            ),
            Closed::Stranger => Self::new(
                StatusCode::NOT_FOUND,
                "too many streams are open for sessions that nobody has named",
            ),
            Closed::Forgotten => Self::forgotten(),
        }
    }
}
