//! Refusals of the ACP server.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::UPGRADE;

use super::inbound::Untaken;
use super::routing::Misrouted;
use super::streams::Closed;
use crate::auth::Turned;
use crate::jsonrpc::Id;
use crate::jsonrpc::reply::{self, Reason};

pub(super) use crate::transport::http::port::refuse::Refusal;

/// The methods of the official endpoint.
pub(super) const METHODS: &str = "GET, POST, DELETE";

impl Refusal {
    /// Only WebSockets are served.
    pub(super) fn upgrade(why: &'static str) -> Self {
        let mut refusal = Self::stranger(StatusCode::UPGRADE_REQUIRED, why);
        refusal.field = Some((UPGRADE, Cow::Borrowed("websocket")));
        refusal
    }

    pub(super) fn unknown_connection() -> Self {
        let why = "Acp-Connection-Id names no open connection; start with initialize";
        let mut refusal = Self::new(StatusCode::NOT_FOUND, why);
        refusal.turned = Some(Turned::Unknown);
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

impl From<Untaken> for Refusal {
    fn from(untaken: Untaken) -> Self {
        match untaken {
            Untaken::Gone => Self::unknown_connection(),
            // Official clients close all streams when they learn that there is no connection, and
            // would miss the last messages.
            Untaken::Closing => Self::later("the conversation is ending"),
            Untaken::Stalled => Self::later("the agent reads nothing at present"),
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
            Closed::Stranger => {
                let why = "too many streams are open for sessions that are not known";
                let mut refusal = Self::new(StatusCode::NOT_FOUND, why);
                refusal.turned = Some(Turned::Limit);
                refusal
            }
            Closed::Forgotten => Self::forgotten(),
        }
    }
}
