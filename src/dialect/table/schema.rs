//! The JSON Schema of tables, for editors: the one declaration of the keys that each object of a
//! table may have. The reader takes them from here.

use std::sync::LazyLock;

use serde_json::{Map, Value};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../mappings/schema/table.json");
    serde_json::from_str(text).expect("the schema is JSON")
});

/// The JSON Schema of tables.
#[must_use]
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// The keys of the objects that the schema describes at that place.
pub(super) fn keys(place: &str) -> &'static Map<String, Value> {
    let object = SCHEMA.pointer(place).and_then(|at| at.get("properties"));
    let keys = object.and_then(Value::as_object);
    keys.expect("the schema describes an object there")
}
