//! ACP v1 messages sent to an agent on behalf of an Agent Connect client.

use serde_json::{Value, json};

use jsonrpc::Frame;

/// The `params` of `initialize`. An Agent Connect client offers no files and no terminals;
/// questions become interrupts.
#[must_use]
pub fn initialize() -> Value {
    json!({
        "protocolVersion": 1,
        "clientInfo": { "name": "acp-relay", "version": env!("CARGO_PKG_VERSION") },
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "elicitation": { "form": {} },
        },
    })
}

/// The `params` of `session/prompt`.
#[must_use]
pub fn prompt(session: &str, prompt: &[Value], meta: Option<&Value>) -> Value {
    let mut params = json!({ "sessionId": session, "prompt": prompt });
    if let Some(meta) = meta {
        params["_meta"] = meta.clone();
    }
    params
}

/// The `params` of `session/set_config_option`.
#[must_use]
pub fn set_option(session: &str, id: &str, value: &Value) -> Value {
    let mut params = json!({ "sessionId": session, "configId": id, "value": value });
    if value.is_boolean() {
        params["type"] = json!("boolean");
    }
    params
}

/// A request.
#[must_use]
pub fn request(id: u64, method: &str, params: &Value) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: &Value) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// The result of a request of the agent.
#[must_use]
pub fn result(id: &Value, result: &Value) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// The error for a request of the agent that is not supported.
#[must_use]
pub fn unknown_method(id: &Value, method: &str) -> Frame {
    let message = format!("a client of Agent Connect has no {method}");
    let error = json!({ "code": -32601, "message": message });
    frame(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn frame(message: &Value) -> Frame {
    Frame::from(message.to_string())
}
