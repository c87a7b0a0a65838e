//! Small functions over the values of a message.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{remove, text as text_of, value};

/// The longest id that is remembered, in bytes.
pub(super) const MAX_ID: usize = 1024;

/// A date and time (RFC 3339, section 5.6).
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$";
    Regex::new(pattern).expect("the pattern is valid")
});

/// Keeps the members with these names. Returns whether it removed others.
pub(super) fn keep_only(node: &mut Node<'_>, names: &[&str]) -> bool {
    let Some(members) = node.members() else {
        return false;
    };
    let before = members.len();
    members.retain(|(raw, _)| names.iter().any(|name| text::same_name(raw, name)));
    members.len() < before
}

/// Removes the members that are null.
pub(super) fn drop_nulls(node: &mut Node<'_>) {
    if let Some(members) = node.members() {
        members.retain(|(_, value)| !matches!(value.kind(), None | Some(JsonType::Null)));
    }
}

/// Removes a member that is neither null nor a date and time.
pub(super) fn drop_odd_date(node: &mut Node<'_>, name: &str) {
    let is_date = || text_of(node, name).is_some_and(|text| DATE_TIME.is_match(&text));
    if value(node, name).is_some() && !is_date() {
        remove(node, name);
    }
}

/// Whether a path begins with a drive of Windows.
pub(super) fn is_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// A path, joined with the working directory of its session when it is relative.
pub(super) fn absolute(path: &str, cwd: Option<&str>) -> String {
    let is_absolute = path.starts_with(['/', '\\']) || is_drive(path);
    let Some(cwd) = cwd.filter(|_| !is_absolute) else {
        return path.to_owned();
    };
    let slash = if is_drive(cwd) && cwd.contains('\\') {
        '\\'
    } else {
        '/'
    };
    match path.strip_prefix("./").unwrap_or(path) {
        "" | "." => cwd.to_owned(),
        path => format!("{}{slash}{path}", cwd.trim_end_matches(slash)),
    }
}
