//! Messages copied from Zed's ACP log, whose lines have a message's parts.
//!
//! An answer has its method, and its result or error as `params`; no result of ACP has the form of
//! an error. There are no times.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::capture::{Capture, Item, Parts};
use crate::jsonrpc::Side;
use crate::recording::members;

/// Whether a line is one of this format.
pub(super) fn is_zed_line(line: &[u8]) -> bool {
    let has = |name: &[u8]| members(line).any(|(own, _)| own == name);
    has(b"_direction") && has(b"_type")
}

/// Reads the lines.
pub(super) fn read(text: &[u8]) -> Result<Capture, String> {
    Capture::of_lines("a log of Zed's", text, |line| Ok(item(line)))
}

fn item(line: &[u8]) -> Option<Item> {
    let parts = Parts::of(line).ok()?;
    let to = match parts.text("_direction")?.as_str() {
        "outgoing" => Side::Agent,
        "incoming" => Side::Client,
        _ => return None,
    };
    let params = parts.raw("params");
    let bytes = match parts.text("_type")?.as_str() {
        kind @ ("request" | "notification") => parts.message(kind, params),
        "response" if is_error(params) => parts.message("error", params),
        "response" => parts.message("result", params),
        _ => return None,
    };
    Some(Item::unchanged(0, to, bytes))
}

/// Whether the body of an answer is an error.
fn is_error(body: &str) -> bool {
    let parts: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(body);
    parts.is_ok_and(|parts| {
        let known = |name: &String| ["code", "message", "data"].contains(&name.as_str());
        let code = parts
            .get("code")
            .is_some_and(|code| code.get().parse::<i64>().is_ok());
        code && parts.contains_key("message") && parts.keys().all(known)
    })
}
