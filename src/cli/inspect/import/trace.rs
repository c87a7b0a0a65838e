//! The trace format of the official conductor (`.jsons`), for the official trace viewer.
//!
//! A line has a message's parts, so the message is assembled from their bytes. With proxies in
//! between, a message appears once for each hop; those at the two ends are used. MCP messages are
//! left out.

use std::collections::HashSet;

use serde_json::Value;

use super::capture::{Capture, Item, Parts, micros};
use crate::jsonrpc::Side;

pub(super) fn read(text: &[u8]) -> Result<Capture, String> {
    let mut mcp_requests = HashSet::new();
    Capture::of_lines("a trace of the conductor", text, |line| {
        Ok(item(&Parts::of(line)?, &mut mcp_requests))
    })
}

/// The message of a line; `None` if it is between proxies, or MCP. `inner` has the open requests of
/// MCP.
fn item(parts: &Parts<'_>, mcp_requests: &mut HashSet<String>) -> Option<Item> {
    let (from, to, id) = (parts.text("from")?, parts.text("to")?, parts.raw("id"));
    let kind = parts.text("type")?;
    if parts.text("protocol").as_deref() == Some("mcp") {
        mcp_requests.insert(format!("{to} {id}"));
        return None;
    }
    if kind == "response" && mcp_requests.remove(&format!("{from} {id}")) {
        return None;
    }
    let end = |name: &str| match name.to_lowercase().as_str() {
        "client" => Some(Side::Client),
        "agent" => Some(Side::Agent),
        _ => None,
    };
    let (hop, to, passed) = match (end(&from), end(&to)) {
        (Some(from), Some(_)) => (from, from.other(), true),
        (Some(from), None) => (from, from.other(), false),
        (None, Some(to)) => (to, to, false),
        (None, None) => return None,
    };
    let bytes = match kind.as_str() {
        "response" if parts.raw("is_error") == "true" => {
            parts.message("error", parts.raw("payload"))
        }
        "response" => parts.message("result", parts.raw("payload")),
        "request" | "notification" => parts.message(&kind, parts.raw("params")),
        _ => return None,
    };
    let t: Value = serde_json::from_str(parts.raw("ts")).ok()?;
    Some(Item {
        t: micros(&t, 1e6),
        hop,
        to,
        passed,
        bytes,
    })
}
