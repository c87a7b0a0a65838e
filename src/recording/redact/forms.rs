//! Remembers form fields for secrets, so that the values in the answer are redacted.
//!
//! The request has a schema that names its secret fields; the answer has values only.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::names::{is_count, is_secret_setting, may_hold_secret};
use super::table::{List, words};

/// Limit of the fields that are remembered.
const MAX_FIELDS: usize = 64;

/// Words that mark a field as one for a secret, in lower case.
static SECRET_WORDS: List = LazyLock::new(|| words(include_str!("tables/fields.txt")));

/// The requested fields for secrets, each with the method of the request.
#[derive(Debug, Default)]
pub struct Forms(Vec<(Vec<u8>, String)>);

impl Forms {
    /// Remembers the secret fields of a request with that method.
    pub fn add_request(&mut self, method: &[u8], text: &[u8]) {
        let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
        if !has(b"Schema\"") && !has(b"isSecret") {
            return;
        }
        let mut fields = Vec::new();
        find_fields(
            &serde_json::from_slice(text).unwrap_or_default(),
            &mut fields,
        );
        let fields = fields.into_iter().map(|field| (method.to_vec(), field));
        self.0.extend(fields.take(MAX_FIELDS));
        let old = self.0.len().saturating_sub(MAX_FIELDS);
        self.0.drain(..old);
    }

    /// The secret fields that an answer to a request with that method may have.
    pub(super) fn fields(&self, method: Option<&[u8]>) -> Vec<&str> {
        let own = self.0.iter().filter(|(name, _)| Some(&name[..]) == method);
        own.map(|(_, field)| field.as_str()).collect()
    }
}

/// Collects the secret fields of the schemas in a value, and questions marked as secret.
fn find_fields(value: &Value, fields: &mut Vec<String>) {
    let Value::Object(own) = value else {
        let all = value.as_array().into_iter().flatten();
        return all.for_each(|value| find_fields(value, fields));
    };
    if own.get("isSecret") == Some(&Value::Bool(true)) {
        fields.extend(own.get("id").and_then(Value::as_str).map(str::to_owned));
    }
    for (name, schema) in own {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|_| name.ends_with("Schema")) else {
            find_fields(schema, fields);
            continue;
        };
        let texts = properties.iter().filter(|(_, field)| {
            let choice = field.get("enum").or_else(|| field.get("oneOf"));
            field.is_object() && choice.is_none() && field["type"] != "boolean"
        });
        let (secret, other): (Vec<_>, Vec<_>) =
            texts.partition(|(name, field)| is_secret(name, field));
        // If no field is marked but the form as a whole is, all its fields are secret.
        let is_secret_form = secret.is_empty()
            && (mentions_secret(own) || schema.as_object().is_some_and(mentions_secret));
        let chosen = if is_secret_form { other } else { secret };
        fields.extend(chosen.into_iter().map(|(name, _)| name.clone()));
    }
}

/// Whether a field is for a secret, by its name or description.
fn is_secret(name: &str, field: &Value) -> bool {
    let marked = field["format"] == "password" || field["writeOnly"] == true;
    let named = !is_count(name) && (is_secret_setting(name) || may_hold_secret(name.as_bytes()));
    marked || named || field.as_object().is_some_and(mentions_secret)
}

/// Whether a title, description or message mentions a secret.
fn mentions_secret(own: &Map<String, Value>) -> bool {
    ["title", "description", "message"].iter().any(|member| {
        let text = own.get(*member).and_then(Value::as_str).unwrap_or_default();
        let text = text.to_ascii_lowercase();
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphabetic());
        let whole = |word: &&str| text.split(*word).skip(1).any(ends);
        SECRET_WORDS.iter().any(whole)
    })
}
