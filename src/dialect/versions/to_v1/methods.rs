//! Methods that are not converted.

use crate::dialect::translation::DialectEvent;
use crate::dialect::versions::exchange::Exchange;

/// Methods that the unstable schemas of both versions have.
const UNSTABLE: [&str; 5] = [
    "session/set_title",
    "session/status",
    "session/archive",
    "session/unarchive",
    "auth/status",
];

/// Whether a method of the client has the same shape in both versions, or is one that a program
/// may define.
pub(super) fn is_for_agents(method: &str) -> bool {
    let families = ["providers/", "nes/", "document/"];
    is_for_both(method)
        || families.iter().any(|family| method.starts_with(family))
        || UNSTABLE.contains(&method)
}

/// The same for both sides.
pub(super) fn is_for_both(method: &str) -> bool {
    method.starts_with('_') || method.starts_with("mcp/")
}

/// Reports a method that is not passed on.
pub(super) fn ignored(method: &str, out: &mut Exchange<'_>) {
    let what = format!("the other version has no method {method}");
    out.note(DialectEvent::UnknownMethod, "methods", what);
}
