//! Refusals of the ACP server.

use hyper::StatusCode;
use hyper::header::{SEC_WEBSOCKET_VERSION, UPGRADE};

use crate::auth::RejectReason;
use crate::jsonrpc::Id;
use crate::jsonrpc::reply::{self, Reason};

pub(super) use crate::transport::http::port::refusal::Refusal;

/// The methods of the official endpoint.
pub(super) const METHODS: &str = "GET, POST, DELETE";

impl Refusal {
    /// Only WebSockets are served.
    pub(super) fn upgrade(why: &'static str) -> Self {
        Self::fatal(StatusCode::UPGRADE_REQUIRED, why)
            .with_field(UPGRADE, "websocket")
            .with_field(SEC_WEBSOCKET_VERSION, "13")
    }

    pub(super) fn no_connection() -> Self {
        Self::bad_request("Acp-Connection-Id is missing")
    }

    pub(super) fn unknown_connection() -> Self {
        let why = "Acp-Connection-Id names no open connection; start with initialize";
        Self::new(StatusCode::NOT_FOUND, why).counted_as(RejectReason::Unknown)
    }

    /// A stream cannot be resumed without a gap.
    pub(super) fn forgotten() -> Self {
        let message = "the messages behind this Last-Event-ID are not kept; \
                       open the stream without it, or load the session again";
        let error = reply::error(Id::Null, &Reason::new(reply::RESUME_GAP, message));
        Self::error(StatusCode::GONE, error)
    }
}
