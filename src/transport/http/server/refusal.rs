//! Refusals of the ACP server.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::UPGRADE;

use super::inbound::InboundError;
use super::routing::SessionError;
use super::streams::StreamError;
use crate::auth::RejectReason;
use crate::jsonrpc::Id;
use crate::jsonrpc::reply::{self, Reason};

pub(super) use crate::transport::http::port::refusal::Refusal;

/// The methods of the official endpoint.
pub(super) const METHODS: &str = "GET, POST, DELETE";

impl Refusal {
    /// Only WebSockets are served.
    pub(super) fn upgrade(why: &'static str) -> Self {
        let mut refusal = Self::fatal(StatusCode::UPGRADE_REQUIRED, why);
        refusal.field = Some((UPGRADE, Cow::Borrowed("websocket")));
        refusal
    }

    pub(super) fn unknown_connection() -> Self {
        let why = "Acp-Connection-Id names no open connection; start with initialize";
        let mut refusal = Self::new(StatusCode::NOT_FOUND, why);
        refusal.count_as = Some(RejectReason::Unknown);
        refusal
    }

    /// A stream cannot be resumed without a gap.
    pub(super) fn forgotten() -> Self {
        let message = "the messages behind this Last-Event-ID are not kept; \
                       open the stream without it, or load the session again";
        let error = reply::error(Id::Null, &Reason::new(reply::RESUME_GAP, message));
        Self::error(StatusCode::GONE, error)
    }
}

impl From<InboundError> for Refusal {
    fn from(untaken: InboundError) -> Self {
        match untaken {
            InboundError::Gone => Self::unknown_connection(),
            // Official clients close all streams when they learn that there is no connection, and
            // would miss the last messages.
            InboundError::Closing => Self::unavailable("the conversation is ending"),
            InboundError::Stalled => Self::unavailable("the agent reads nothing at present"),
            InboundError::Reused => Self::new(
                StatusCode::CONFLICT,
                "another request with this id still awaits its answer",
            ),
            InboundError::Misrouted(why) => Self::bad_request(match why {
                SessionError::NoSession => {
                    "this method needs a session: Acp-Session-Id and params.sessionId"
                }
                SessionError::Mismatch => "Acp-Session-Id and params.sessionId differ",
                SessionError::OtherSession => {
                    "Acp-Session-Id is not the session of the request that this answers"
                }
                SessionError::TooLong => "the session id is longer than 1024 bytes",
            }),
        }
    }
}

impl From<StreamError> for Refusal {
    fn from(closed: StreamError) -> Self {
        match closed {
            StreamError::Busy => Self::new(
                StatusCode::CONFLICT,
                "this stream is open already; Last-Event-ID takes it over",
            ),
            StreamError::TooManyUnknown => {
                let why = "too many streams are open for sessions that are not known";
                let mut refusal = Self::new(StatusCode::NOT_FOUND, why);
                refusal.count_as = Some(RejectReason::Limit);
                refusal
            }
            StreamError::NotKept => Self::forgotten(),
        }
    }
}
