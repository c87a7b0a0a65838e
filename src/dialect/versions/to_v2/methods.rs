//! The methods that pass as they are.

/// Requests of the client that have the same shape in both versions, or the table converts.
pub(super) const CLIENT_REQUESTS: [&str; 6] = [
    "authenticate",
    "session/set_title",
    "providers/",
    "mcp/",
    "nes/",
    "document/",
];
/// Notifications of the client.
pub(super) const CLIENT_NOTES: [&str; 3] = ["mcp/", "nes/", "document/"];

/// Whether a method passes: one of these, one below these that end in `/`, or an extension.
pub(super) fn is_passed(method: &str, names: &[&str]) -> bool {
    let is_named = |name: &&str| match name.ends_with('/') {
        true => method.starts_with(name),
        false => method == *name,
    };
    method.starts_with('_') || names.iter().any(is_named)
}
