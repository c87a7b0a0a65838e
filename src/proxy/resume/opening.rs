//! The exchange that began a conversation, and who may take part in it later.
//!
//! Not here: who comes (see `reception`).

use serde_json::Value;

use crate::jsonrpc::Frame;

/// What the client asked first, and what the agent answered.
#[derive(Debug, Default)]
pub(super) struct Opening {
    pub(super) params: Option<Frame>,
    pub(super) answer: Option<Frame>,
}

impl Opening {
    /// The agent's answer, if it also answers a client that asks with `params`.
    pub(super) fn answer_to(&self, params: &[u8]) -> Option<&Frame> {
        let asked = serde_json::from_slice(params).ok()?;
        let earlier = serde_json::from_slice(self.params.as_ref()?.as_bytes()).ok()?;
        self.answer.as_ref().filter(|_| covers(&asked, &earlier))
    }
}

/// Whether a client that asks so can take the place of one that asked `earlier`: the same version,
/// and every capability that the agent was told of.
fn covers(asked: &Value, earlier: &Value) -> bool {
    asked["protocolVersion"] == earlier["protocolVersion"]
        && offers(&asked["clientCapabilities"], &earlier["clientCapabilities"])
}

fn offers(now: &Value, then: &Value) -> bool {
    match then {
        Value::Null | Value::Bool(false) => true,
        Value::Object(members) if members.is_empty() => true,
        Value::Object(members) => members.iter().all(|(name, then)| {
            let now = now.get(name).unwrap_or(&Value::Null);
            // What a name with an underscore means is between client and agent alone.
            name.starts_with('_') || offers(now, then)
        }),
        other => now == other,
    }
}
