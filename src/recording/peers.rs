//! What a client and an agent say of themselves.

use serde_json::Value;

use jsonrpc::Side;

/// Maximum characters of a name.
const MAX_NAME: usize = 80;

/// What the client states of itself in the request `initialize`, or the agent in a result of it, in v1
/// or in v2.
#[must_use]
pub fn peer_info(from: Side, message: &Value) -> Option<&Value> {
    let (part, member) = match from {
        Side::Client => (&message["params"], "clientInfo"),
        Side::Agent => (&message["result"], "agentInfo"),
    };
    let is_v2 = part["protocolVersion"].is_number();
    part.get(member)
        .or_else(|| part.get("info").filter(|_| is_v2))
}

/// What it is called there, by the first of these members that it has (`name`, `title`), and its
/// version.
#[must_use]
pub fn peer_name(from: Side, message: &Value, members: &[&str]) -> Option<String> {
    let info = peer_info(from, message)?;
    let word = |member: &str| Some(info[member].as_str()?.trim()).filter(|word| !word.is_empty());
    let name = members.iter().find_map(|member| word(member))?;
    let whole = format!("{name} {}", word("version").unwrap_or_default());
    Some(whole.trim_end().chars().take(MAX_NAME).collect())
}
