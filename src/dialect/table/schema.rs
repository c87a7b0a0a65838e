//! The JSON Schema of tables: for editors, and for the check of a file.

use std::sync::LazyLock;

use serde_json::Value;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../mappings/schema/table.json");
    serde_json::from_str(text).expect("the schema is JSON")
});

/// The JSON Schema of tables.
#[must_use]
pub fn schema() -> &'static Value {
    &SCHEMA
}
