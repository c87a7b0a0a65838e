//! Checks the content of a file against the JSON Schema of tables.
//!
//! All faults are reported, each with its place. What is wrong is removed, so that the rest is read
//! and checked as well. The words of JSON Schema that the file uses are understood, and no others.

use serde_json::{Map, Value};

use super::fault::{FaultList, nearest};
use super::forms::regex;
use super::operations::RENAMED;
use super::schema::schema;
use crate::dialect::pointer::JsonPointer;

/// Maximum depth of rows in rows.
const MAX_DEPTH: usize = 16;

/// What a value of each type is called, and how it is written.
const TYPES: [(&str, &str, &str); 6] = [
    ("object", "an object", "`{…}`"),
    ("array", "a list", "`[…]`"),
    ("string", "a string", "a string that is not empty"),
    ("boolean", "`true` or `false`", "one of them"),
    ("integer", "a whole number", "a number"),
    ("null", "`null`", "`null`"),
];

/// Checks a table, and removes what is wrong.
pub(super) fn check(table: &mut Value, faults: &FaultList<'_>) {
    SchemaCheck { faults }.value(schema(), table, "");
}

struct SchemaCheck<'f> {
    faults: &'f FaultList<'f>,
}

impl SchemaCheck<'_> {
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
        let fault = |what: String, remedy: &str| {
            self.faults.add(pointer, what, remedy);
            false
        };
        if schema.get("minLength").is_some() && text.is_empty() {
            return fault(
                "the string is empty".into(),
                "write a string that is not empty",
            );
        }
        // The only pattern is that of pointers, and the only format that of regular expressions.
        if schema.get("pattern").is_some()
            && let Err(what) = JsonPointer::parse(text)
        {
            return fault(what, "see RFC 6901");
        }
        if schema.get("format").is_some()
            && let Err(error) = regex(text)
        {
            return fault(format!("the pattern does not parse: {error}"), "correct it");
        }
        true
    }

    fn array(&self, schema: &Value, items: &mut [Value], pointer: &str) -> bool {
        let least = schema["minItems"].as_u64().unwrap_or_default();
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        if !(least..=most).contains(&(items.len() as u64)) {
            let what = format!("this list has {} elements", items.len());
            let remedy = schema["description"].as_str().unwrap_or_default();
            self.faults.add(pointer, what, remedy);
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
        if let Some((what, remedy)) = conflict(schema, members, pointer) {
            self.faults.add(pointer, what, remedy);
        }
        let required: Vec<&str> = names(&schema["required"]).collect();
        for name in required.iter().filter(|name| !members.contains_key(**name)) {
            let remedy = format!("add `\"{name}\": …`");
            self.faults
                .add(pointer, format!("`{name}` is missing"), remedy);
        }
        // One of these sets of keys has to be there.
        let sets: Vec<Vec<&str>> = list(&schema["anyOf"])
            .map(|set| names(&set["required"]).collect())
            .collect();
        let has_a_set = |members: &Map<String, Value>| {
            let whole = |set: &Vec<&str>| set.iter().all(|name| members.contains_key(*name));
            sets.is_empty() || sets.iter().any(whole)
        };
        if !has_a_set(members) {
            let sets: Vec<String> = sets.iter().map(|set| set.join(" and ")).collect();
            let remedy = format!("add {}", sets.join(", or "));
            self.faults.add(pointer, "a key is missing", remedy);
        }
        let keys: Vec<&str> = keys(schema).collect();
        let mut wrong = Vec::new();
        for (name, value) in members.iter_mut() {
            let at = format!("{pointer}/{}", jsonptr::Token::new(name).encoded());
            let is_usable = match (
                schema["properties"].get(name),
                schema.get("additionalProperties"),
            ) {
                (Some(schema), _) => self.value(schema, value, &at),
                (None, Some(Value::Bool(false))) => {
                    self.unknown_key(name, &at, &keys);
                    false
                }
                (None, Some(other)) => {
                    let named = schema.get("propertyNames").map(resolve);
                    named.is_none_or(|named| self.text(named, name, &at))
                        && self.value(other, value, &at)
                }
                (None, None) => true,
            };
            if !is_usable {
                wrong.push(name.clone());
            }
        }
        for name in wrong {
            members.remove(&name);
        }
        let most = schema["maxProperties"].as_u64().unwrap_or(u64::MAX);
        if members.len() as u64 > most {
            let remedy = format!("keep one of {}", keys.join(", "));
            self.faults.add(pointer, "only one key can be here", remedy);
            return false;
        }
        // An empty text does not keep the rest of an object from being checked.
        for name in &required {
            let is_text = schema["properties"][name]["type"] == "string";
            if is_text && !members.contains_key(*name) {
                members.insert((*name).to_owned(), "".into());
            }
        }
        required.iter().all(|name| members.contains_key(*name)) && has_a_set(members)
    }

    fn unknown_key(&self, name: &str, pointer: &str, known: &[&str]) {
        let remedy = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.faults
            .add(pointer, format!("unknown key `{name}`"), remedy);
    }

    /// Reports a value that fits none of the variants of its schema.
    fn mismatch(&self, variants: &[&Value], value: &Value, pointer: &str) {
        let keys: Vec<&str> = variants.iter().flat_map(|schema| keys(schema)).collect();
        if let (Value::Object(members), false) = (value, keys.is_empty()) {
            let unknown = members.keys().filter(|name| !keys.contains(&name.as_str()));
            let mut any = false;
            for name in unknown {
                let at = format!("{pointer}/{}", jsonptr::Token::new(name).encoded());
                self.unknown_key(name, &at, &keys);
                any = true;
            }
            if !any {
                let remedy = format!("write one of {}", keys.join(", "));
                self.faults.add(pointer, "a key is missing", remedy);
            }
            return;
        }
        let words: Vec<String> = variants.iter().flat_map(|schema| words(schema)).collect();
        if words.is_empty() {
            let expected = TYPES.iter().filter(|(name, ..)| {
                let mut types = variants.iter().flat_map(|schema| types(schema));
                types.any(|other| other == *name)
            });
            let (called, written): (Vec<&str>, Vec<&str>) = expected
                .map(|(_, called, written)| (*called, *written))
                .unzip();
            let what = format!("{} is expected here", called.join(" or "));
            let remedy = format!("write {}", written.join(" or "));
            return self.faults.add(pointer, what, remedy);
        }
        let text = value.as_str().unwrap_or_default();
        if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == text) {
            let remedy = format!("write `{new}`");
            return self
                .faults
                .add(pointer, format!("`{text}` is now `{new}`"), remedy);
        }
        let known: Vec<&str> = words.iter().map(String::as_str).collect();
        let remedy = match nearest(text, &known) {
            Some(near) if !text.is_empty() => format!("did you mean `{near}`?"),
            _ => format!("one of: {}", known.join(", ")),
        };
        self.faults
            .add(pointer, format!("{value} is not known here"), remedy);
    }
}

/// What JSON Schema cannot say of an object in short: the fault and its remedy.
fn conflict(
    schema: &Value,
    members: &Map<String, Value>,
    pointer: &str,
) -> Option<(&'static str, &'static str)> {
    let count = |keys: &[&str]| {
        keys.iter()
            .filter(|key| members.contains_key(**key))
            .count()
    };
    let defined = |name: &str| std::ptr::eq(schema, &self::schema()["$defs"][name]);
    if defined("row") {
        let rows = pointer
            .split('/')
            .filter(|name| ["in", "each"].contains(name));
        if rows.count() > MAX_DEPTH {
            return Some(("rows nest too deeply", "use a named shape"));
        }
        if count(&["default", "const", "recall", "derive"]) > 1 {
            let remedy = "keep one of default, const, recall, derive";
            return Some(("a row is filled in one way", remedy));
        }
    }
    // What an update means may depend on the result of `initialize`.
    let looks = [
        "agentInfo",
        "clientInfo",
        "initialize",
        "initialize_result",
        "update",
    ];
    let by_update = count(&["update", "initialize_result"]) == 2;
    if defined("clue") && count(&looks) - usize::from(by_update) > 1 {
        let remedy = "say all in one guard, as initialize_result with /agentInfo/name";
        return Some(("this clue looks at several things", remedy));
    }
    None
}

/// The schemas that a schema offers as alternatives; itself, if it is the only one.
fn variants(schema: &Value) -> Vec<&Value> {
    let schema = resolve(schema);
    match schema.get("anyOf") {
        // Beside `properties`, `anyOf` only requires keys.
        Some(all) if schema.get("properties").is_none() => list(all).flat_map(variants).collect(),
        _ => vec![schema],
    }
}

/// The variant that a value is meant to be: of those that admit it, the one whose required keys it
/// has, or else the one that requires none.
fn choose<'s>(variants: &[&'s Value], value: &Value) -> Option<&'s Value> {
    let admitted = || {
        variants
            .iter()
            .copied()
            .filter(|schema| admits(schema, value))
    };
    if let [only] = variants {
        return admits(only, value).then_some(*only);
    }
    let required = |schema: &&Value| schema.get("required").is_some();
    let has_all = |schema: &&Value| {
        let mut names = names(&schema["required"]);
        names.all(|name| value.get(name).is_some())
    };
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
fn keys(schema: &Value) -> impl Iterator<Item = &str> {
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
