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
use crate::methods::is_canonical;
use crate::pointer::JsonPointer;
use jsonrpc::Side;

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
        let mut known: BTreeMap<String, String> = BTreeMap::new();
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
            let (rows_made, members) = (format!("{made}/rows"), format!("{place}/members"));
            origins.0.push((made, place));
            origins.0.push((rows_made.clone(), members.clone()));
            let is = form.is.clone().unwrap_or_else(|| name.clone());
            let mut rule = base(section, &name, &is, &form);
            if let Some(first) = known.get(&is) {
                rule["only"] = "read".into();
                let lossy = format!("Written, it is `{first}`.");
                rule["lossy"] = form.lossy.unwrap_or(lossy).into();
            } else {
                known.insert(is, name);
            }
            let top = if section == "update" { "/update" } else { "" };
            let mut rows = Vec::new();
            for (path, form) in &form.members {
                let written = pointer(&members, path);
                let mut note = |row: &str| {
                    let made = format!("{rows_made}{row}");
                    origins.0.push((made, written.clone()));
                };
                if let Err(what) = add_row(&mut rows, top, path, form, &mut note) {
                    fault(&written, what);
                }
            }
            rule["rows"] = rows.into();
            rules.push(rule);
        }
    }
    origins
}

/// The side that sends the requests or notifications of that canonical method, if only one does.
fn sender(method: &str) -> Option<Side> {
    const OF_AGENT: [&str; 5] = [
        "session/update",
        "session/request_",
        "elicitation/",
        "fs/",
        "terminal/",
    ];
    let is_of_agent = OF_AGENT.iter().any(|start| method.starts_with(start));
    let side = if is_of_agent {
        Side::Agent
    } else {
        Side::Client
    };
    (is_canonical(method) && method != "$/cancel_request").then_some(side)
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

/// Adds the row of a member to those of a rule, which are relative to `top`. Calls `note` with the
/// places of the rows that it makes.
fn add_row(
    mut rows: &mut Vec<Value>,
    mut top: &str,
    path: &str,
    form: &Value,
    note: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let form = match serde_json::from_value(form.clone()) {
        Ok(ShortMember::Row(row)) => *row,
        Ok(ShortMember::Name(to)) => ShortRow {
            to: Some(to),
            ..ShortRow::default()
        },
        // The schema has reported it.
        Err(_) => return Ok(()),
    };
    let (lists, own) = split(path)?;
    let to = match form.to.as_deref().map(split).transpose()? {
        None => own.clone(),
        Some((lists, to)) if lists.is_empty() => to,
        Some(_) => return Err("the canonical place is relative to the element".to_owned()),
    };
    let mut place = String::new();
    for list in lists {
        let list = format!("{top}{list}");
        let at = index_of(rows, &list);
        let is_new = at == rows.len();
        place += &format!("/{at}");
        if is_new {
            rows.push(json!({"dialect": list, "canonical": list}));
            note(&place);
        }
        place += "/each";
        let row = rows[at].as_object_mut();
        let each = row.map(|row| row.entry("each").or_insert_with(|| json!([])));
        let Some(Value::Array(each)) = each else {
            return Ok(());
        };
        (rows, top) = (each, "");
    }
    let dialect = format!("{top}{own}");
    let at = index_of(rows, &dialect);
    let mut made = row(&form, &dialect, &format!("{top}{to}"));
    match rows.get_mut(at) {
        None => rows.push(made),
        Some(known) => {
            if let Some(each) = known.get("each") {
                made["each"] = each.clone();
            }
            *known = made;
        }
    }
    note(&format!("{place}/{at}"));
    Ok(())
}

/// The index of the row of a place in the dialect, or that of the next row.
fn index_of(rows: &[Value], dialect: &str) -> usize {
    let found = rows.iter().position(|row| row["dialect"] == dialect);
    found.unwrap_or(rows.len())
}

/// A row without those of its elements.
fn row(form: &ShortRow, dialect: &str, canonical: &str) -> Value {
    if let Some(why) = &form.drop {
        return json!({"dialect": dialect, "drop": why});
    }
    let mut row = json!({"dialect": dialect, "canonical": canonical});
    if let Some(values) = &form.values {
        let pairs = match values {
            Value::Object(all) => all.iter().map(|pair| json!(pair)).collect(),
            all => all.as_array().cloned().unwrap_or_default(),
        };
        let (mut both, mut read): (Vec<Value>, Vec<Value>) = Default::default();
        for pair in pairs {
            match both.iter().any(|known| known[1] == pair[1]) {
                true => read.push(pair),
                false => both.push(pair),
            }
        }
        row["values"] = both.into();
        if !read.is_empty() {
            row["read_values"] = read.into();
            row["park"] = true.into();
        }
    }
    if let Some(value) = &form.default {
        row["default"] = value.clone();
    }
    if let Some(name) = &form.convert {
        row["as"] = json!(name);
    }
    row
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
