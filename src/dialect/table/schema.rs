//! The JSON Schema of tables, made from the types: for editors, and for the check of a file.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Map, Value, json};

use super::types::Table;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(Table);
    RecursiveTransform(tidy).transform(&mut schema);
    schema.into()
});

/// The JSON Schema of tables.
#[must_use]
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// No string is empty, no key is unknown, and no optional key is `null`.
fn tidy(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.remove("default");
    let is_word = ["const", "enum", "pattern", "format"]
        .iter()
        .any(|word| schema.contains_key(*word));
    if schema.get("type") == Some(&json!("string")) && !is_word {
        schema.insert("minLength".to_owned(), json!(1));
    }
    if !schema.contains_key("properties") {
        return;
    }
    // A variant of an enum that is flattened is one of the keys.
    if let Some(Value::Array(variants)) = schema.remove("oneOf") {
        let mut keys = Vec::new();
        for variant in variants {
            keys.push(json!({"required": variant["required"]}));
            let own = variant["properties"].as_object().cloned();
            schema["properties"]
                .as_object_mut()
                .into_iter()
                .for_each(|all| all.extend(own.clone().unwrap_or_default()));
        }
        schema.insert("anyOf".to_owned(), keys.into());
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    let properties = schema["properties"].as_object_mut().into_iter().flatten();
    properties.for_each(|(_, property)| {
        property.as_object_mut().into_iter().for_each(without_null);
    });
}

/// Removes `null`, which schemars adds to each option.
fn without_null(property: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            property["type"] = only.clone();
        }
    }
    let Some(Value::Array(variants)) = property.get_mut("anyOf") else {
        return;
    };
    variants.retain(|variant| variant["type"] != "null");
    if let [Value::Object(only)] = &variants[..] {
        let only = only.clone();
        property.remove("anyOf");
        property.extend(only);
    }
}
