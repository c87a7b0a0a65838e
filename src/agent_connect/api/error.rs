//! Errors: of the REST API, and of JSON-RPC, with which runs fail and ACP clients are answered.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::content::plain_text;

/// Longest text of a remote server that is shown, in characters.
const MAX_CHARS: usize = 1000;

/// What an operation of the REST API returns.
pub type ApiResult<T> = Result<T, ApiError>;

/// What an operation of JSON-RPC returns.
pub type RpcResult<T> = Result<T, RpcError>;

/// An error response: an HTTP status and a message. Its body is the message alone, as a JSON string
/// (`ErrorResponse` of the OpenAPI document).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What happened, for a person.
    pub message: Cow<'static, str>,
}

/// A JSON-RPC error; serialised, the form in which it is stored and shown as the failure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    /// The code.
    #[serde(rename = "errcode")]
    pub code: i64,
    /// What happened.
    #[serde(rename = "description")]
    pub message: String,
    /// The status of the remote server's response behind it.
    #[serde(skip)]
    pub status: Option<u16>,
}

impl ApiError {
    /// Not found: 404.
    #[must_use]
    pub const fn not_found(message: &'static str) -> Self {
        let message = Cow::Borrowed(message);
        Self {
            status: 404,
            message,
        }
    }

    /// The request conflicts with the current state: 409.
    #[must_use]
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(409, message)
    }

    /// The request is invalid or not supported: 422.
    #[must_use]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(422, message)
    }

    /// Temporarily unavailable; the client may retry: 503.
    #[must_use]
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(503, message)
    }

    /// An error with this status.
    #[must_use]
    pub fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}

impl RpcError {
    /// JSON-RPC's code for an internal error.
    pub const INTERNAL: i64 = -32603;

    /// An error with this code.
    #[must_use]
    pub fn new(code: impl Into<i64>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            status: None,
        }
    }

    /// The client's request is invalid: -32602.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// An unexpected error: -32603.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    /// An error response of a remote server. Its body is a JSON string in the OpenAPI document, and
    /// an object with `detail` in the reference server.
    #[must_use]
    pub fn from_http(status: u16, body: &[u8]) -> Self {
        let code = match status {
            401 | 403 => -32000,
            404 => -32002,
            409 => -32600,
            400 | 422 => -32602,
            _ => Self::INTERNAL,
        };
        let text = match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => ["detail", "message", "error", "description"]
                .iter()
                .find_map(|name| map.get(*name))
                .map(plain_text)
                .unwrap_or_default(),
            Ok(other) => plain_text(&other),
            Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
        };
        let message = match text.is_empty() {
            true => format!("the server answered {status}"),
            false => printable(&text),
        };
        Self {
            status: Some(status),
            ..Self::new(code, message)
        }
    }

    /// The failure of a run on a remote server. Codes of other protocols mean nothing in JSON-RPC.
    #[must_use]
    pub fn from_run(errcode: Option<i64>, description: Option<&str>) -> Self {
        let code = errcode.filter(|code| (-32768..=-32000).contains(code));
        let message = description.unwrap_or("the run failed; its server gives no reason");
        Self::new(code.unwrap_or(Self::INTERNAL), printable(message))
    }

    /// The `error` member of a response.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        // -32002 is used for 404 alone.
        if let Some(status) = self.status.filter(|status| *status != 404) {
            error["data"] = json!({ "acp-relay": { "httpStatus": status } });
        }
        error
    }
}

impl From<ApiError> for RpcError {
    fn from(fault: ApiError) -> Self {
        Self::internal(fault.message)
    }
}

/// Text of a remote server, shortened and without control characters.
fn printable(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).collect();
    shown.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}
