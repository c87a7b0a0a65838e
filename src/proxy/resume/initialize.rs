//! The `initialize` exchange of a conversation, and which clients it also fits.

use serde_json::Value;

use jsonrpc::Frame;

/// The client's `initialize`, and the agent's answer.
#[derive(Debug, Default)]
pub(super) struct InitializeExchange {
    pub(super) params: Option<Frame>,
    pub(super) answer: Option<Frame>,
}

impl InitializeExchange {
    /// The agent's answer, if it is also valid for a client that sends `params`.
    pub(super) fn answer_to(&self, params: &[u8]) -> Option<&Frame> {
        let offered = serde_json::from_slice(params).ok()?;
        let earlier = serde_json::from_slice(self.params.as_ref()?.as_bytes()).ok()?;
        self.answer.as_ref().filter(|_| covers(&offered, &earlier))
    }
}

/// Whether a client with `now` can replace one with `earlier`: the same version, and every
/// capability that was sent to the agent.
fn covers(now: &Value, earlier: &Value) -> bool {
    now["protocolVersion"] == earlier["protocolVersion"]
        && offers(&now["clientCapabilities"], &earlier["clientCapabilities"])
}

fn offers(now: &Value, then: &Value) -> bool {
    match then {
        Value::Null | Value::Bool(false) => true,
        Value::Object(members) if members.is_empty() => true,
        Value::Object(members) => members.iter().all(|(name, then)| {
            let now = now.get(name).unwrap_or(&Value::Null);
            // Names with an underscore are only defined between client and agent.
            name.starts_with('_') || offers(now, then)
        }),
        other => now == other,
    }
}
