//! Checks the text of a message, independent of its meaning.

use serde_json::Value;

use super::rules::{BIG_NUMBER, LONE_SURROGATE, LintRule};
use crate::recording::{find_leaf, find_lone};

/// The largest integer up to which a double holds all integers: 2^53 - 1.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The problems of a text, whose tree is `tree`.
pub(super) fn check(text: &[u8], tree: Option<&Value>) -> Vec<(&'static LintRule, String)> {
    let mut found = Vec::new();
    if let Some(at) = find_lone(text) {
        let escape = String::from_utf8_lossy(&text[at..(at + 6).min(text.len())]);
        found.push((&LONE_SURROGATE, format!("{escape} at byte {at}")));
    }
    if let Some(big) = tree.and_then(find_big) {
        found.push((&BIG_NUMBER, big));
    }
    found
}

/// The first number that is too big, and its JSON Pointer.
fn find_big(tree: &Value) -> Option<String> {
    find_leaf(tree, |pointer, leaf| {
        let value = leaf.as_f64()?;
        let is_big = value.abs() > MAX_SAFE && value.fract() == 0.0;
        is_big.then(|| format!("{leaf} at {pointer}"))
    })
}
