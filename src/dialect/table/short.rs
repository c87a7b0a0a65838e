//! Short forms: a kind of update, a method or a member has another name, or its values have.
//!
//! They are expanded to rules before the table is read, so that nothing behind this file knows
//! them. A fault of a rule that was made is reported where its short form is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fault_list::Origins;
use super::operations::Converter;
use super::row::Pairs;
use crate::dialect::methods::sender;
use crate::dialect::pointer::JsonPointer;
use crate::jsonrpc::Side;

/// The keys of a table that hold short forms.
pub(super) const SECTIONS: [&str; 3] = ["update", "method", "answers"];

/// The method of the messages that `update` is about, and where the kind of an update is.
const UPDATE: &str = "session/update";
const KIND: &str = "/update/sessionUpdate";

/// Maximum number of lists on a path.
const MAX_LISTS: usize = 8;

/// Short forms by the names of the dialect.
pub(super) type Shorts = BTreeMap<String, Short>;

/// What has another name in the dialect: the canonical name, or what else is different.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum Short {
    Name(String),
    Rule(Box<ShortRule>),
}

/// A rule in short: a kind of update, a method, or the answers of a method.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ShortRule {
    /// Its canonical name; the same, if left out.
    is: Option<String>,
    /// The reason for the rule, with its source.
    why: Option<String>,
    /// What is lost.
    lossy: Option<String>,
    /// The reason for which the message is dropped.
    drop: Option<String>,
    /// The side that sends a method that ACP does not have.
    from: Option<Side>,
    /// By its place in the dialect, as `steps[].text`: the place of a member in canonical, relative
    /// to the element of the list, or what else is different.
    #[schemars(with = "BTreeMap<String, ShortMember>")]
    members: Map<String, Value>,
    /// Messages in both columns, as JSON or as a string of JSON.
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    examples: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ShortMember {
    Name(String),
    Row(Box<ShortRow>),
}

/// A row in short.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ShortRow {
    /// Its place in canonical; the same, if left out.
    to: Option<String>,
    /// Dialect values and their canonical values. Of several with one meaning the first is written.
    #[schemars(with = "Option<Pairs>")]
    values: Option<Value>,
    /// The value, unless there is one.
    default: Option<Value>,
    /// A named conversion.
    #[serde(rename = "as")]
    convert: Option<Converter>,
    /// The reason for which the value is dropped.
    drop: Option<String>,
}

/// A row, and the rows of its elements.
struct Made {
    dialect: String,
    row: Map<String, Value>,
    each: Vec<Self>,
    /// The pointer to its short form.
    written: String,
}

/// Replaces the short forms of a table that fits the schema by rules. Faults are given to `fault`
/// with their place in the file.
pub(super) fn expand(table: &mut Value, fault: &dyn Fn(&str, String)) -> Origins {
    let mut origins = Origins::default();
    let Some(table) = table.as_object_mut() else {
        return origins;
    };
    for section in SECTIONS {
        let Some(Value::Object(all)) = table.remove(section) else {
            continue;
        };
        let rules = table.entry("rules").or_insert_with(|| json!([]));
        let Some(rules) = rules.as_array_mut() else {
            continue;
        };
        // Of several names for one thing the first is written.
        let mut written: BTreeMap<String, String> = BTreeMap::new();
        for (name, form) in all {
            let place = pointer(&format!("/{section}"), &name);
            let form = match serde_json::from_value(form) {
                Ok(Short::Rule(rule)) => *rule,
                Ok(Short::Name(is)) => ShortRule {
                    is: Some(is),
                    ..ShortRule::default()
                },
                // The schema has reported it.
                Err(_) => continue,
            };
            let made = format!("/rules/{}", rules.len());
            origins.0.push((made.clone(), place.clone()));
            origins
                .0
                .push((format!("{made}/rows"), format!("{place}/members")));
            let is = form.is.clone().unwrap_or_else(|| name.clone());
            let mut rule = base(section, &name, &is, &form);
            if let Some(first) = written.get(&is) {
                rule["only"] = "read".into();
                let lossy = format!("Written, it is `{first}`.");
                rule["lossy"] = form.lossy.clone().unwrap_or(lossy).into();
            } else {
                written.insert(is, name);
            }
            let top = if section == "update" { "/update" } else { "" };
            let rows = members(&form.members, &format!("{place}/members"), fault);
            rule["rows"] = as_rows(rows, top, &format!("{made}/rows"), &mut origins);
            rules.push(rule);
        }
    }
    origins
}

/// A rule without rows.
fn base(section: &str, name: &str, is: &str, form: &ShortRule) -> Value {
    let asks = sender(is).or(form.from).unwrap_or(Side::Agent);
    let names = match name == is {
        true => json!(name),
        false => json!({"dialect": name, "canonical": is}),
    };
    let mut rule = json!({"id": format!("{section}-{name}")});
    rule["on"] = match section {
        "update" => json!({"from": "agent", "method": UPDATE}),
        "method" => json!({"from": asks.name(), "method": names}),
        _ => json!({"from": asks.other().name(), "answers": names}),
    };
    if section == "update" {
        rule["when"] = json!({"dialect": {KIND: name}, "canonical": {KIND: is}});
    }
    let texts = [
        ("why", &form.why),
        ("lossy", &form.lossy),
        ("drop", &form.drop),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            rule[key] = json!(text);
        }
    }
    if let Some(examples) = &form.examples {
        rule["examples"] = examples.clone();
    }
    rule
}

/// The rows for the members of a rule.
fn members(all: &Map<String, Value>, place: &str, fault: &dyn Fn(&str, String)) -> Vec<Made> {
    let mut rows = Vec::new();
    for (path, form) in all {
        let written = pointer(place, path);
        let form = match serde_json::from_value(form.clone()) {
            Ok(ShortMember::Row(row)) => *row,
            Ok(ShortMember::Name(to)) => ShortRow {
                to: Some(to),
                ..ShortRow::default()
            },
            Err(_) => continue,
        };
        let (lists, own) = match split(path) {
            Ok(parts) => parts,
            Err(what) => {
                fault(&written, what);
                continue;
            }
        };
        let to = match form
            .to
            .as_deref()
            .map_or_else(|| Ok((Vec::new(), own.clone())), split)
        {
            Ok((lists, to)) if lists.is_empty() => to,
            Ok(_) => {
                fault(
                    &written,
                    "the canonical place is relative to the element".to_owned(),
                );
                continue;
            }
            Err(what) => {
                fault(&written, what);
                continue;
            }
        };
        let level = lists
            .iter()
            .fold(&mut rows, |rows, list| &mut at(rows, list, &written).each);
        let made = at(level, &own, &written);
        written.clone_into(&mut made.written);
        made.row = row(&form, &to);
    }
    rows
}

/// The row of a place, which is added if it is not there.
fn at<'r>(rows: &'r mut Vec<Made>, dialect: &str, written: &str) -> &'r mut Made {
    let found = rows.iter().position(|row| row.dialect == dialect);
    let index = found.unwrap_or_else(|| {
        rows.push(Made {
            dialect: dialect.to_owned(),
            row: row(&ShortRow::default(), dialect),
            each: Vec::new(),
            written: written.to_owned(),
        });
        rows.len() - 1
    });
    &mut rows[index]
}

/// The keys of a row, without its place in the dialect.
fn row(form: &ShortRow, to: &str) -> Map<String, Value> {
    let mut row = Map::new();
    if let Some(why) = &form.drop {
        row.insert("drop".to_owned(), json!(why));
        return row;
    }
    row.insert("canonical".to_owned(), json!(to));
    if let Some(values) = &form.values {
        let pairs: Vec<(Value, Value)> = match values {
            Value::Object(all) => all
                .iter()
                .map(|(one, two)| (json!(one), two.clone()))
                .collect(),
            all => serde_json::from_value(all.clone()).unwrap_or_default(),
        };
        let (mut both, mut read): (Vec<(Value, Value)>, Vec<_>) = Default::default();
        for pair in pairs {
            match both.iter().any(|(_, known)| *known == pair.1) {
                true => read.push(pair),
                false => both.push(pair),
            }
        }
        row.insert("values".to_owned(), json!(both));
        if !read.is_empty() {
            row.insert("read_values".to_owned(), json!(read));
            row.insert("park".to_owned(), json!(true));
        }
    }
    if let Some(value) = &form.default {
        row.insert("default".to_owned(), value.clone());
    }
    if let Some(name) = &form.convert {
        row.insert("as".to_owned(), json!(name));
    }
    row
}

/// The rows as JSON, with their origins. Those at the top are relative to `top`.
fn as_rows(rows: Vec<Made>, top: &str, place: &str, origins: &mut Origins) -> Value {
    let rows = rows.into_iter().enumerate().map(|(index, made)| {
        let place = format!("{place}/{index}");
        origins.0.push((place.clone(), made.written));
        let mut row = Map::new();
        row.insert(
            "dialect".to_owned(),
            format!("{top}{}", made.dialect).into(),
        );
        for (key, value) in made.row {
            let value = match value.as_str().filter(|_| key == "canonical") {
                Some(to) => format!("{top}{to}").into(),
                None => value,
            };
            row.insert(key, value);
        }
        if !made.each.is_empty() {
            let each = as_rows(made.each, "", &format!("{place}/each"), origins);
            row.insert("each".to_owned(), each);
        }
        Value::Object(row)
    });
    rows.collect()
}

/// The lists on a path such as `steps[].text`, and the place in the element, as pointers. A path that
/// begins with `/` is a pointer.
fn split(path: &str) -> Result<(Vec<String>, String), String> {
    if path.starts_with('/') {
        return JsonPointer::parse(path).map(|_| (Vec::new(), path.to_owned()));
    }
    let (mut lists, mut here) = (Vec::new(), String::new());
    for step in path.split('.') {
        let name = step.strip_suffix("[]").unwrap_or(step);
        if name.is_empty() || name.contains(['[', ']']) {
            let remedy = "write it as `steps[].text`, or as a JSON Pointer";
            return Err(format!("`{path}` is no path of members: {remedy}"));
        }
        here = pointer(&here, name);
        if name.len() < step.len() {
            lists.push(std::mem::take(&mut here));
        }
    }
    match here.is_empty() || lists.len() > MAX_LISTS {
        true if !here.is_empty() => Err(format!("`{path}` leads through too many lists")),
        true => Err(format!(
            "`{path}` ends with a list: name a member of its elements"
        )),
        false => Ok((lists, here)),
    }
}

/// A pointer, one name further.
fn pointer(to: &str, name: &str) -> String {
    format!("{to}/{}", jsonptr::Token::new(name).encoded())
}
