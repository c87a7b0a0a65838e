//! The leaves of a JSON tree, each with its JSON Pointer.

use std::fmt::Write as _;

use jsonptr::Token;
use serde_json::Value;

/// Calls `visit` for the strings, numbers and literals of a tree with their pointers, until it
/// returns something.
pub(super) fn find_leaf<T>(
    tree: &Value,
    mut visit: impl FnMut(&str, &Value) -> Option<T>,
) -> Option<T> {
    find(tree, &mut String::new(), &mut visit)
}

fn find<T>(
    tree: &Value,
    path: &mut String,
    visit: &mut impl FnMut(&str, &Value) -> Option<T>,
) -> Option<T> {
    let length = path.len();
    match tree {
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            path.truncate(length);
            // Writing to a string does not fail.
            let _ = write!(path, "/{at}");
            find(item, path, visit)
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            path.truncate(length);
            let _ = write!(path, "/{}", Token::new(name).encoded());
            find(member, path, visit)
        }),
        leaf => visit(path, leaf),
    }
}
