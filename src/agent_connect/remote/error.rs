//! Errors of an Agent Connect server, as JSON-RPC errors.

use serde_json::{Value, json};

use crate::agent_connect::api::content::plain_text;

/// Longest text of a server that is shown, in characters.
const MAX_CHARS: usize = 1000;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteError {
    /// A JSON-RPC error code.
    pub(super) code: i32,
    /// What happened.
    pub(super) message: String,
    /// The HTTP status behind it.
    pub(super) status: Option<u16>,
}

impl RemoteError {
    /// The client's request is invalid: -32602.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// An unexpected error: -32603.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// An error with this code.
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            status: None,
        }
    }

    /// An HTTP error response. The body is a JSON string in the OpenAPI document, and an object
    /// with `detail` in the reference server.
    pub(super) fn from_http(status: u16, body: &[u8]) -> Self {
        let code = match status {
            401 | 403 => -32000,
            404 => -32002,
            409 => -32600,
            400 | 422 => -32602,
            _ => -32603,
        };
        let read: Option<Value> = serde_json::from_slice(body).ok();
        let text = match &read {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Object(map)) => ["detail", "message", "error", "description"]
                .iter()
                .find_map(|name| map.get(*name))
                .map(plain_text),
            Some(other) => Some(other.to_string()),
            None => Some(String::from_utf8_lossy(body).trim().to_owned()),
        };
        let text = text.filter(|text| !text.is_empty());
        let message = text.unwrap_or_else(|| format!("the server answered {status}"));
        Self {
            code,
            message: printable(&message),
            status: Some(status),
        }
    }

    /// A failed run.
    pub(super) fn from_run(errcode: Option<i64>, description: Option<&str>) -> Self {
        // Codes of other protocols mean nothing in JSON-RPC.
        let code = errcode
            .and_then(|code| i32::try_from(code).ok())
            .filter(|code| (-32768..=-32000).contains(code));
        Self::new(
            code.unwrap_or(-32603),
            printable(description.unwrap_or("the run failed; its server gives no reason")),
        )
    }

    /// The `error` member of a response.
    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        // -32002 is used for 404 alone.
        if let Some(status) = self.status.filter(|status| *status != 404) {
            error["data"] = json!({ "acp-relay": { "httpStatus": status } });
        }
        error
    }
}

/// Text of a remote server, shortened and without control characters.
fn printable(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).collect();
    shown.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}
