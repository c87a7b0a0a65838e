//! Small functions over the values of a message.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::Regex;

use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::{Node, ValueRef};

/// A date and time (RFC 3339, section 5.6).
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
        r"[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?",
        r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$"
    ))
    .expect("the pattern is valid")
});

/// The value of a member; `None` when it is absent or null.
pub(super) fn member<'a>(node: &Node<'a>, name: &str) -> Option<Node<'a>> {
    let found = ValueRef::Node(node).child(name)?;
    (found.kind() != JsonType::Null).then(|| found.to_node())
}

/// The text of a member.
pub(super) fn text_of(node: &Node<'_>, name: &str) -> Option<String> {
    let found = ValueRef::Node(node).child(name)?;
    text::string(&found.json()).map(Cow::into_owned)
}

/// Whether a member is an object.
pub(super) fn has_object(node: &Node<'_>, name: &str) -> bool {
    let found = ValueRef::Node(node).child(name);
    found.is_some_and(|value| value.kind() == JsonType::Object)
}

/// Removes a member; an object that becomes empty remains.
pub(super) fn remove(node: &mut Node<'_>, name: &str) -> bool {
    let Some(members) = node.members() else {
        return false;
    };
    let before = members.len();
    members.retain(|(raw, _)| !text::same_name(raw, name));
    members.len() < before
}

/// Puts a member, in the place of one of that name.
pub(super) fn put<'a>(node: &mut Node<'a>, name: &'static str, value: Node<'a>) {
    let Some(members) = node.members() else {
        return;
    };
    let found = members
        .iter()
        .rposition(|(raw, _)| text::same_name(raw, name));
    match found {
        Some(at) => members[at].1 = value,
        None => members.push((Cow::Borrowed(name.as_bytes()), value)),
    }
}

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
    let odd = match ValueRef::Node(node).child(name) {
        None => false,
        Some(found) if found.kind() == JsonType::Null => false,
        Some(_) => !text_of(node, name).is_some_and(|text| DATE_TIME.is_match(&text)),
    };
    if odd {
        remove(node, name);
    }
}

/// An absolute path of Unix or Windows.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || is_drive(path) || path.starts_with("\\\\")
}

/// Whether a path begins with a drive of Windows.
pub(super) fn is_drive(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic())
        && bytes.next() == Some(b':')
        && matches!(bytes.next(), Some(b'/' | b'\\'))
}

/// A path, joined with the working directory of its session when it is relative.
pub(super) fn absolute(path: &str, cwd: Option<&str>) -> String {
    let Some(cwd) = cwd.filter(|_| !is_absolute(path)) else {
        return path.to_owned();
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    let (cwd, slash) = match is_drive(cwd) && cwd.contains('\\') {
        true => (cwd.trim_end_matches('\\'), '\\'),
        false => (cwd.trim_end_matches('/'), '/'),
    };
    match path {
        "" | "." => format!("{cwd}{}", if cwd.is_empty() { "/" } else { "" }),
        path => format!("{cwd}{slash}{path}"),
    }
}
