//! Members of objects, for both states.

use std::borrow::Cow;

use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::{Node, ValueRef};

/// The members of a session in a list, in both versions.
pub(super) const LISTED: [&str; 7] = [
    "sessionId",
    "cwd",
    "additionalDirectories",
    "title",
    "updatedAt",
    "archived",
    "_meta",
];

/// The member of that name; `null` is one.
pub(super) fn member<'t, 'a>(object: &'t Node<'a>, name: &str) -> Option<ValueRef<'t, 'a>> {
    match ValueRef::Node(object).child(name)? {
        ValueRef::Node(Node::Absent) => None,
        found => Some(found),
    }
}

/// The member of that name, unless it is `null`.
pub(super) fn value(object: &Node<'_>, name: &str) -> Option<Node<'static>> {
    let found = member(object, name)?;
    (found.kind() != JsonType::Null).then(|| Node::owned(found.json().into_owned()))
}

/// The text of a member that is a string.
pub(super) fn text(object: &Node<'_>, name: &str) -> Option<String> {
    text::string(&member(object, name)?.json()).map(Cow::into_owned)
}

/// The text of a member that identifies something; one that is too long to be remembered is none.
pub(super) fn id(object: &Node<'_>, name: &str) -> Option<String> {
    text(object, name).filter(|id| id.len() <= 4096)
}

/// Whether there is a member that is `null`.
pub(super) fn is_null(object: &Node<'_>, name: &str) -> bool {
    member(object, name).is_some_and(|found| found.kind() == JsonType::Null)
}

/// The elements of a member that is an array.
pub(super) fn array(object: &Node<'_>, name: &str) -> Option<Vec<Node<'static>>> {
    let found = member(object, name)?.json();
    let items = text::items(&found).map(|item| Node::owned(item.to_vec()));
    (JsonType::of(&found) == JsonType::Array).then(|| items.collect())
}

/// Sets a member.
pub(super) fn set<'a>(object: &mut Node<'a>, name: &'static str, value: Node<'a>) {
    if let Some(members) = object.members() {
        members.retain(|(raw, _)| !text::same_name(raw, name));
        members.push((Cow::Borrowed(name.as_bytes()), value));
    }
}

/// Removes a member.
pub(super) fn remove(object: &mut Node<'_>, name: &str) {
    if let Some(members) = object.members() {
        members.retain(|(raw, _)| !text::same_name(raw, name));
    }
}

/// A copy of the object with the members of these names alone; a `_meta` of `null` is left out.
pub(super) fn only(object: &Node<'_>, names: &[&str]) -> Node<'static> {
    let mut copy = object.to_static();
    if let Some(members) = copy.members() {
        members.retain(|(raw, value)| {
            let is_empty = text::same_name(raw, "_meta") && &*value.json() == b"null";
            !is_empty && names.iter().any(|name| text::same_name(raw, name))
        });
    }
    copy
}

/// A content block of that text.
pub(super) fn text_block(text: &str) -> Node<'static> {
    Node::object(vec![
        ("type", Node::string("text")),
        ("text", Node::string(text)),
    ])
}

/// Reports something about the object under its `_meta`.
pub(super) fn report(object: &mut Node<'static>, name: &'static str, what: Node<'static>) {
    let mut meta = value(object, "_meta").unwrap_or_else(|| Node::raw(b"{}"));
    let mut own = value(&meta, "acp-relay").unwrap_or_else(|| Node::raw(b"{}"));
    set(&mut own, name, what);
    set(&mut meta, "acp-relay", own);
    set(object, "_meta", meta);
}

/// Puts the members of `meta` into the object's `_meta`, beside those that the bridge has put there.
pub(super) fn add_meta(object: &mut Node<'static>, mut meta: Node<'static>) {
    let own = value(object, "_meta").unwrap_or(Node::Absent);
    if let Some(members) = meta.members() {
        if let Node::Object(own) = opened(own) {
            members.retain(|(name, _)| own.iter().all(|(known, _)| known != name));
            members.extend(own);
        }
        set(object, "_meta", meta);
    }
}

fn opened(mut node: Node<'static>) -> Node<'static> {
    node.open();
    node
}
