//! What a rule of the tables built in is for, for the viewer's page.

use serde_json::{Value, json};

use crate::dialect::Library;

/// The purpose of a rule, by `dialect/rule`; an empty object if it is not known.
pub(in crate::cli) fn describe_rule(id: &str) -> Value {
    let (dialect, rule) = id.split_once('/').unwrap_or_default();
    let library = Library::builtin();
    match (library.table(dialect), library.rule(dialect, rule)) {
        (Ok(table), Some(rule)) => {
            json!({"why": rule.why, "lossy": rule.base.lossy, "dialect": table.title})
        }
        _ => json!({}),
    }
}
