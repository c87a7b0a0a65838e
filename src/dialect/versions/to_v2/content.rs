//! Content blocks: v2 is stricter than v1, and has more.

use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::parts::{drop_odd_date, is_drive};
use crate::dialect::PATH_SEGMENT;
use crate::dialect::text;
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{array, remove, set, text as text_of, value};

/// What is encoded in the path of a URI.
const PATH: AsciiSet = PATH_SEGMENT.remove(b'/');
/// The types of blocks in v1.
pub(super) const TYPES: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Converts a block of the v1 side.
pub(in crate::dialect::versions) fn to_v2(block: &mut Node<'_>) {
    if let Some(mut annotations) = value(block, "annotations") {
        let is_share = |number: f64| (0.0..=1.0).contains(&number);
        drop_unless(&mut annotations, "priority", |json| {
            json.parse().is_ok_and(is_share)
        });
        drop_odd_date(&mut annotations, "lastModified");
        set(block, "annotations", annotations);
    }
    drop_unless(block, "size", |json| {
        text::integer(json.as_bytes()).is_some_and(|size| !size.starts_with('-'))
    });
    to_uri(block);
    if let Some(mut resource) = value(block, "resource") {
        to_uri(&mut resource);
        set(block, "resource", resource);
    }
}

/// Converts a block of a prompt.
///
/// # Errors
/// The type that v1 does not have.
pub(super) fn to_v1(block: &mut Node<'_>) -> Result<(), String> {
    let kind = text_of(block, "type").unwrap_or_default();
    if !TYPES.contains(&&*kind) {
        return Err(kind);
    }
    remove(block, "icons");
    if let Some(mut annotations) = value(block, "annotations")
        && let Some(mut roles) = array(&annotations, "audience")
    {
        let known = [&b"\"user\""[..], b"\"assistant\""];
        roles.retain(|role| known.iter().any(|known| text::same(known, &role.json())));
        set(&mut annotations, "audience", Node::Array(roles));
        set(block, "annotations", annotations);
    }
    Ok(())
}

/// Removes a member that is neither null nor so.
fn drop_unless(node: &mut Node<'_>, name: &str, is_so: impl Fn(&str) -> bool) {
    let found = value(node, name);
    if found.is_some_and(|found| !std::str::from_utf8(&found.json()).is_ok_and(&is_so)) {
        remove(node, name);
    }
}

/// A bare path becomes a URI.
fn to_uri(node: &mut Node<'_>) {
    let (start, path) = match text_of(node, "uri") {
        Some(path) if is_drive(&path) => ("file:///", path.replace('\\', "/")),
        Some(path) if path.starts_with('/') => ("file://", path),
        _ => return,
    };
    let uri = format!("{start}{}", utf8_percent_encode(&path, &PATH));
    set(node, "uri", Node::string(&uri));
}
