//! Content blocks: v2 is stricter than v1, and has more.

use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::parts::{drop_odd_date, is_drive, member, put, remove, text_of};
use crate::dialect::PATH_SEGMENT;
use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::Node;

/// What is encoded in the path of a URI.
const PATH: AsciiSet = PATH_SEGMENT.remove(b'/');
/// The types of blocks in v1.
pub(super) const TYPES: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Converts a block of the v1 side.
pub(in crate::dialect::versions) fn to_v2(block: &mut Node<'_>) {
    if let Some(mut annotations) = member(block, "annotations") {
        let priority = member(&annotations, "priority");
        if priority.is_some_and(|value| !is_share(&value.json())) {
            remove(&mut annotations, "priority");
        }
        drop_odd_date(&mut annotations, "lastModified");
        put(block, "annotations", annotations);
    }
    let size = member(block, "size");
    if size.is_some_and(|value| !is_count(&value.json())) {
        remove(block, "size");
    }
    uri(block);
    if let Some(mut resource) = member(block, "resource") {
        uri(&mut resource);
        put(block, "resource", resource);
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
    let Some(mut annotations) = member(block, "annotations") else {
        return Ok(());
    };
    if let Some(mut audience) = member(&annotations, "audience")
        && let Some(roles) = audience.items()
    {
        let known = [&b"\"user\""[..], b"\"assistant\""];
        roles.retain(|role| known.iter().any(|known| text::same(known, &role.json())));
        put(&mut annotations, "audience", audience);
        put(block, "annotations", annotations);
    }
    Ok(())
}

/// A bare path becomes a URI.
fn uri(node: &mut Node<'_>) {
    let Some(path) = text_of(node, "uri") else {
        return;
    };
    let (start, path) = match path {
        path if is_drive(&path) => ("file:///", path.replace('\\', "/")),
        path if path.starts_with('/') => ("file://", path),
        _ => return,
    };
    let uri = format!("{start}{}", utf8_percent_encode(&path, &PATH));
    put(node, "uri", Node::string(&uri));
}

/// Whether a value is a number from 0 to 1.
fn is_share(json: &[u8]) -> bool {
    let number = std::str::from_utf8(json)
        .ok()
        .and_then(|text| text.parse().ok());
    number.is_some_and(|number: f64| (0.0..=1.0).contains(&number))
}

/// Whether a value is a whole number that is not negative.
fn is_count(json: &[u8]) -> bool {
    JsonType::of(json) == JsonType::Number
        && text::integer(json).is_some_and(|number| !number.starts_with('-'))
}
