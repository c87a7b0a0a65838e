//! Differences of two JSON trees as a patch (RFC 6902).
//!
//! The patch is made for people to read: objects are compared member by member, arrays where they
//! differ. Applied to the source it gives the target, which `verify` uses.

use jsonptr::Token;
use serde::Serialize;
use serde_json::{Value, json};

/// The operations that turn `from` into `to`, in order.
#[must_use]
pub fn between(from: &Value, to: &Value) -> Value {
    let mut patch = Vec::new();
    diff(from, to, &mut String::new(), &mut patch);
    Value::Array(patch)
}

fn diff(from: &Value, to: &Value, path: &mut String, patch: &mut Vec<Value>) {
    match (from, to) {
        _ if from == to => {}
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                with_step(path, name, |path| match new.get(name) {
                    Some(new) => diff(value, new, path, patch),
                    None => patch.push(json!({"op": "remove", "path": path})),
                });
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                with_step(path, name, |path| {
                    patch.push(json!({"op": "add", "path": path, "value": value}));
                });
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
            let both = old.get(head..).zip(new.get(head..));
            let (old, new) = both.unwrap_or_default();
            let tail = (old.iter().rev().zip(new.iter().rev()))
                .take_while(|(a, b)| a == b)
                .count();
            let both = old.get(..old.len() - tail).zip(new.get(..new.len() - tail));
            let (old, new) = both.unwrap_or_default();
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                with_step(path, &(head + at).to_string(), |path| {
                    diff(old, new, path, patch);
                });
            }
            let both = old.len().min(new.len());
            for _ in both..old.len() {
                let path = format!("{path}/{}", head + both);
                patch.push(json!({"op": "remove", "path": path}));
            }
            for (at, value) in new.iter().enumerate().skip(both) {
                let path = format!("{path}/{}", head + at);
                patch.push(json!({"op": "add", "path": path, "value": value}));
            }
        }
        _ => patch.push(json!({"op": "replace", "path": path, "value": to})),
    }
}

fn with_step(path: &mut String, step: &str, then: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(Token::new(step).encoded());
    then(path);
    path.truncate(length);
}

/// A place that a patch changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The place, a JSON Pointer.
    pub at: String,
    /// The value that was removed or replaced there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Applies a patch to a tree; `None` when it does not fit. Only the operations that [`between`]
/// creates are supported.
#[must_use]
pub fn apply(tree: &Value, patch: &Value) -> Option<Value> {
    let mut tree = tree.clone();
    (patch.as_array()?.iter())
        .all(|change| apply_one(&mut tree, change).is_some())
        .then_some(tree)
}

/// The places that a patch of `tree` changes, in order.
#[must_use]
pub fn changes(tree: &Value, patch: &Value) -> Vec<Change> {
    let mut tree = tree.clone();
    let all = patch.as_array().into_iter().flatten();
    all.map(|change| {
        let at = change["path"].as_str().unwrap_or_default();
        let before = tree.pointer(at).filter(|_| change["op"] != "add").cloned();
        // An operation that does not fit is listed as well.
        let _ = apply_one(&mut tree, change);
        Change {
            at: at.to_owned(),
            before,
            after: change.get("value").cloned(),
        }
    })
    .collect()
}

/// Applies one operation; `None` when it does not fit.
fn apply_one(tree: &mut Value, change: &Value) -> Option<()> {
    let path = change.get("path")?.as_str()?;
    let value = || change.get("value").cloned();
    let Some((parent, last)) = path.rsplit_once('/') else {
        *tree = value()?;
        return Some(());
    };
    let last = Token::from_encoded(last).ok()?.decoded().into_owned();
    match (tree.pointer_mut(parent)?, change.get("op")?.as_str()?) {
        (Value::Object(members), "remove") => drop(members.remove(&last)?),
        (Value::Object(members), _) => drop(members.insert(last, value()?)),
        (Value::Array(items), op) => {
            let at: usize = last.parse().ok()?;
            match op {
                "add" if at <= items.len() => items.insert(at, value()?),
                "remove" if at < items.len() => drop(items.remove(at)),
                "replace" => *items.get_mut(at)? = value()?,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}
