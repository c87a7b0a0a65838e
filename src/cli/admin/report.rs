//! The JSON of `/status`. It has no bodies and no secrets.

use std::time::Instant;

use serde_json::{Value, json};

use super::shared::Shared;
use crate::observe::metrics::ConversationStats;

/// The state of the relay.
pub(super) fn status(shared: &Shared) -> Value {
    let now = Instant::now();
    let metrics = &shared.metrics;
    let connections: Vec<_> = metrics.open(now).iter().map(conversation).collect();
    json!({
        "version": env!("VERSION"),
        "pid": std::process::id(),
        "uptime_seconds": metrics.age(now).as_secs_f64(),
        "state": shared.state(),
        "listeners": shared.listeners().unwrap_or_default(),
        "connections_total": metrics.conversations(),
        "connections": connections,
    })
}

fn conversation(one: &ConversationStats) -> Value {
    let pair = |[client, agent]: [u64; 2]| json!({"client": client, "agent": agent});
    json!({
        "number": one.number,
        "client": one.client,
        "transport": one.transport,
        "agent": one.agent,
        "age_seconds": one.age.as_secs_f64(),
        "messages_from": pair(one.messages),
        "bytes_from": pair(one.bytes),
        "requests_in_flight_of": pair(one.in_flight),
        "turns": one.turns,
        "sessions": one.sessions,
        "notes": one.notes,
    })
}
