//! Forms with fields for secrets, so that what is answered to one is known for a secret.
//!
//! The request has a schema that says what it asks for; the answer has values alone. Not here: how
//! the answer is searched (see `walk`).

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::given::{is_login, may_hold};
use super::names::counts;
use super::table::{List, words};

/// Most fields that are remembered.
const MOST: usize = 64;

/// Words that say of a field that it is for a secret, in lower case.
static WORDS: List = LazyLock::new(|| words(include_str!("tables/fields.txt")));

/// Fields for secrets that were asked for, each with the method of the request.
#[derive(Debug, Default)]
pub struct Forms(Vec<(Vec<u8>, String)>);

impl Forms {
    /// Remembers what a request of that method asks for.
    pub fn ask(&mut self, method: &[u8], text: &[u8]) {
        let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
        if !has(b"Schema\"") && !has(b"isSecret") {
            return;
        }
        let mut fields = Vec::new();
        find(
            &serde_json::from_slice(text).unwrap_or_default(),
            &mut fields,
        );
        let fields = fields.into_iter().map(|field| (method.to_vec(), field));
        self.0.extend(fields.take(MOST));
        let old = self.0.len().saturating_sub(MOST);
        self.0.drain(..old);
    }

    /// The fields that an answer to a request of that method may have.
    pub(super) fn fields(&self, method: Option<&[u8]>) -> Vec<&str> {
        let own = self
            .0
            .iter()
            .filter(|(asked, _)| Some(&asked[..]) == method);
        own.map(|(_, field)| field.as_str()).collect()
    }
}

/// Finds the fields of the schemas in a value, and questions that are marked.
fn find(value: &Value, fields: &mut Vec<String>) {
    let Value::Object(own) = value else {
        let all = value.as_array().into_iter().flatten();
        return all.for_each(|value| find(value, fields));
    };
    if own.get("isSecret") == Some(&Value::Bool(true)) {
        fields.extend(own.get("id").and_then(Value::as_str).map(str::to_owned));
    }
    for (name, schema) in own {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|_| name.ends_with("Schema")) else {
            find(schema, fields);
            continue;
        };
        let texts = properties.iter().filter(|(_, field)| {
            let choice = field.get("enum").or_else(|| field.get("oneOf"));
            field.is_object() && choice.is_none() && field["type"] != "boolean"
        });
        let (secret, other): (Vec<_>, Vec<_>) =
            texts.partition(|(name, field)| is_secret(name, field));
        // A form that says what it is for as a whole means what it asks for.
        let said = secret.is_empty() && (says(own) || schema.as_object().is_some_and(says));
        let meant = if said { other } else { secret };
        fields.extend(meant.into_iter().map(|(name, _)| name.clone()));
    }
}

/// Whether a field is for a secret, by its name or what is said of it.
fn is_secret(name: &str, field: &Value) -> bool {
    let marked = field["format"] == "password" || field["writeOnly"] == true;
    let named = !counts(name) && (is_login(name) || may_hold(name.as_bytes()));
    marked || named || field.as_object().is_some_and(says)
}

/// Whether a title or a text says that it is about a secret.
fn says(own: &Map<String, Value>) -> bool {
    ["title", "description", "message"].iter().any(|member| {
        let text = own.get(*member).and_then(Value::as_str).unwrap_or_default();
        let text = text.to_ascii_lowercase();
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphabetic());
        let whole = |word: &&str| text.split(*word).skip(1).any(ends);
        WORDS.iter().any(whole)
    })
}
