//! Checks the content of a file against the JSON Schema of tables.
//!
//! All faults are reported, each with its place. What is wrong is removed, so that the rest is read
//! and checked as well. The words of JSON Schema that `schema` makes are understood, and no others.

use serde_json::{Map, Value};

use super::fault_list::FaultList;
use super::forms::Pattern;
use super::operations::RENAMED;
use super::schema::schema;
use crate::pointer::JsonPointer;
use jsonrpc::did_you_mean;

/// What a value of each type is called, and how it is written.
const TYPES: [(&str, &str, &str); 6] = [
    ("object", "an object", "`{…}`"),
    ("array", "a list", "`[…]`"),
    ("string", "a string", "a string that is not empty"),
    ("boolean", "`true` or `false`", "one of them"),
    ("integer", "a whole number", "a number"),
    ("null", "`null`", "`null`"),
];

/// Checks a table, and removes what is wrong: a member, or an element, which becomes `null`.
pub(super) fn check(table: &mut Value, faults: &FaultList<'_>) {
    Check { faults }.value(schema(), table, "");
}

struct Check<'f> {
    faults: &'f FaultList<'f>,
}

impl Check<'_> {
    /// Whether a value can be used; parts of it may have been removed.
    fn value(&self, schema: &Value, value: &mut Value, pointer: &str) -> bool {
        let all = variants(schema);
        let Some(variant) = choose(&all, value) else {
            self.mismatch(&all, value, pointer);
            return false;
        };
        match value {
            Value::Object(members) => self.object(variant, members, pointer),
            Value::Array(items) => self.array(variant, items, pointer),
            Value::String(text) => self.text(variant, text, pointer),
            _ => true,
        }
    }

    fn text(&self, schema: &Value, text: &str, pointer: &str) -> bool {
        let (what, remedy) = if schema.get("minLength").is_some() && text.is_empty() {
            let remedy = "write a string that is not empty";
            ("the string is empty".to_owned(), remedy)
        } else if schema.get("pattern").is_some()
            && let Err(what) = JsonPointer::parse(text)
        {
            // The only pattern is that of pointers.
            (what, "see RFC 6901")
        } else if schema["format"] == "regex"
            && let Err(error) = Pattern::try_from(text.to_owned())
        {
            (format!("the pattern does not parse: {error}"), "correct it")
        } else {
            return true;
        };
        self.faults.add(pointer, what, remedy);
        false
    }

    fn array(&self, schema: &Value, items: &mut [Value], pointer: &str) -> bool {
        if let Some(count) = schema["minItems"].as_u64()
            && items.len() as u64 != count
        {
            let what = format!("this list has {} elements", items.len());
            self.faults
                .add(pointer, what, format!("write a list of {count}"));
            return false;
        }
        if let Some(schema) = schema.get("items") {
            for (at, item) in items.iter_mut().enumerate() {
                if !self.value(schema, item, &format!("{pointer}/{at}")) {
                    // The others keep their places.
                    *item = Value::Null;
                }
            }
        }
        true
    }

    fn object(&self, schema: &Value, members: &mut Map<String, Value>, pointer: &str) -> bool {
        let required: Vec<&str> = names(&schema["required"]).collect();
        for name in required.iter().filter(|name| !members.contains_key(**name)) {
            let remedy = format!("add `\"{name}\": …`");
            self.faults
                .add(pointer, format!("`{name}` is missing"), remedy);
        }
        // One of these keys has to be there.
        let keys = list(&schema["anyOf"]).flat_map(|one| names(&one["required"]));
        let keys: Vec<&str> = keys.collect();
        let has_one = |members: &Map<String, Value>| {
            keys.is_empty() || keys.iter().any(|name| members.contains_key(*name))
        };
        if !has_one(members) {
            let remedy = format!("add {}", keys.join(", or "));
            self.faults.add(pointer, "a key is missing", remedy);
        }
        let known: Vec<&str> = properties(schema).collect();
        let mut wrong = Vec::new();
        for (name, value) in members.iter_mut() {
            let at = format!("{pointer}/{}", jsonptr::Token::new(name).encoded());
            let patterns = schema["patternProperties"].as_object();
            let is_usable = if let Some(schema) = schema["properties"].get(name) {
                self.value(schema, value, &at)
            } else if let Some((_, schema)) = patterns.and_then(|all| all.iter().next()) {
                // The only pattern is that of pointers.
                let parsed = JsonPointer::parse(name);
                let fault = parsed.map_err(|what| self.faults.add(&at, what, "see RFC 6901"));
                fault.is_ok() && self.value(schema, value, &at)
            } else if schema["additionalProperties"] == false {
                self.unknown_key(name, &at, &known);
                false
            } else {
                let others = schema.get("additionalProperties");
                others.is_none_or(|schema| self.value(schema, value, &at))
            };
            if !is_usable {
                wrong.push(name.clone());
            }
        }
        for name in wrong {
            members.remove(&name);
        }
        // An empty text does not keep the rest of an object from being checked.
        for name in &required {
            let is_text = schema["properties"][name]["type"] == "string";
            if is_text && !members.contains_key(*name) {
                members.insert((*name).to_owned(), "".into());
            }
        }
        required.iter().all(|name| members.contains_key(*name)) && has_one(members)
    }

    fn unknown_key(&self, name: &str, pointer: &str, known: &[&str]) {
        let otherwise = format!("known here: {}", known.join(", "));
        let remedy = did_you_mean(name, known.iter().copied(), &otherwise);
        self.faults
            .add(pointer, format!("unknown key `{name}`"), remedy);
    }

    /// Reports a value that fits none of the variants of its schema.
    fn mismatch(&self, variants: &[&Value], value: &Value, pointer: &str) {
        let known: Vec<&str> = variants.iter().flat_map(|one| properties(one)).collect();
        if let (Value::Object(members), false) = (value, known.is_empty()) {
            let unknown = members
                .keys()
                .filter(|name| !known.contains(&name.as_str()));
            let mut any = false;
            for name in unknown {
                let at = format!("{pointer}/{}", jsonptr::Token::new(name).encoded());
                self.unknown_key(name, &at, &known);
                any = true;
            }
            if !any {
                let remedy = format!("write one of {}", known.join(", "));
                self.faults.add(pointer, "a key is missing", remedy);
            }
            return;
        }
        let words: Vec<String> = variants.iter().flat_map(|schema| words(schema)).collect();
        if words.is_empty() {
            let expected = TYPES.iter().filter(|(name, ..)| {
                variants
                    .iter()
                    .any(|one| types(one).any(|own| own == *name))
            });
            let (called, written): (Vec<&str>, Vec<&str>) = expected
                .map(|(_, called, written)| (*called, *written))
                .unzip();
            let what = format!("{} is expected here", called.join(" or "));
            let remedy = format!("write {}", written.join(" or "));
            return self.faults.add(pointer, what, remedy);
        }
        let text = value.as_str().unwrap_or_default();
        let known: Vec<&str> = words.iter().map(String::as_str).collect();
        let (what, remedy) = match RENAMED.iter().find(|(old, _)| *old == text) {
            Some((_, new)) => (format!("`{text}` is now `{new}`"), format!("write `{new}`")),
            None => {
                let otherwise = format!("one of: {}", known.join(", "));
                let remedy = did_you_mean(text, known.iter().copied(), &otherwise);
                (format!("{value} is not known here"), remedy)
            }
        };
        self.faults.add(pointer, what, remedy);
    }
}

/// The schemas that a schema offers as alternatives; itself, if it is the only one.
fn variants(schema: &Value) -> Vec<&Value> {
    let schema = resolve(schema);
    match schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        // Beside `properties`, `anyOf` only requires keys.
        Some(all) if schema.get("properties").is_none() => list(all).flat_map(variants).collect(),
        _ => vec![schema],
    }
}

/// The variant that a value is meant to be: of those that admit it, the one whose required keys it
/// has, or else the one that requires none.
fn choose<'s>(variants: &[&'s Value], value: &Value) -> Option<&'s Value> {
    let admitted = || variants.iter().copied().filter(|one| admits(one, value));
    if let [only] = variants {
        return admitted().next().map(|_| *only);
    }
    let required = |schema: &&Value| schema.get("required").is_some();
    let has_all =
        |schema: &&Value| names(&schema["required"]).all(|name| value.get(name).is_some());
    let meant = admitted().find(|schema| required(schema) && has_all(schema));
    meant.or_else(|| admitted().find(|schema| !required(schema)))
}

/// Whether a schema admits a value, as far as its type and its words go.
fn admits(schema: &Value, value: &Value) -> bool {
    if let Some(constant) = schema.get("const") {
        return constant == value;
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let mut types = types(schema).peekable();
    types.peek().is_none() || types.any(|name| name == own || name == "number" && own == "integer")
}

/// Follows `$ref`.
fn resolve(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(target) => {
            let found = self::schema().pointer(target.trim_start_matches('#'));
            found.expect("the schema defines what it refers to")
        }
        None => schema,
    }
}

/// The keys of the objects that a schema describes.
fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    let keys = schema["properties"].as_object().into_iter().flatten();
    keys.map(|(name, _)| name.as_str())
}

/// The types that a schema names.
fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let one = schema["type"].as_str().into_iter();
    one.chain(names(&schema["type"]))
}

/// The words that a schema admits.
fn words(schema: &Value) -> Vec<String> {
    let words = schema.get("const").into_iter().chain(list(&schema["enum"]));
    let text = |word: &Value| {
        word.as_str()
            .map_or_else(|| word.to_string(), str::to_owned)
    };
    words.map(text).collect()
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    self::list(list).filter_map(Value::as_str)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
