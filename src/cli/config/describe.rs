//! What a file may hold, made from the declarations: `config example` and `config schema`.

use clap::Arg;
use serde_json::{Map, Value, json};

use super::declared::{Count, TABLES, Table, declared, tables_in};
use super::option::{Form, default, form, value_name, values};
use super::show::{list, number, quote, toml};
use crate::cli::limits::wrap;

/// Longest line of the example.
const WIDTH: usize = 98;

/// The start of the example.
const INTRODUCTION: &str = "\
# acp-relay.toml: the configuration of `acp-relay serve --config FILE`.
#
# Flags override the environment, which overrides this file. Relative paths start at its folder.
# Unknown keys are rejected: `acp-relay config check FILE` reports every fault.
# SIGHUP reloads it; running conversations are not affected.
# Remove the `#` before a key to set it; the values here are the defaults, or say what is expected.
";

/// A file with every key as a comment, and one agent.
pub(in crate::cli) fn example() -> String {
    let mut text = INTRODUCTION.to_owned();
    for table in TABLES {
        if !table.path.is_empty() {
            comment(&mut text, table.about);
            text.push_str(&format!("#{}\n", table.heading));
        }
        // The others have the same meaning as in [limits].
        let is_shown = |key: &str| table.path != "agents.limits" || key == "connections";
        for (key, arg) in declared(table.path).filter(|(key, _)| is_shown(key)) {
            comment(&mut text, &meaning(arg));
            text.push_str(&format!("#{key} = {}\n", sample(arg)));
        }
    }
    // A file without an agent is not valid.
    let text = text.replace("#[agents.claude]\n", "[agents.claude]\n");
    text.replace("#profile = \"PROFILE\"", "profile = \"claude\"")
}

/// A paragraph of comment after an empty line.
fn comment(text: &mut String, about: &str) {
    text.push('\n');
    for line in wrap(about, WIDTH - 2) {
        text.push_str(&format!("# {line}\n"));
    }
}

/// The meaning of an option as a key.
fn meaning(arg: &Arg) -> String {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut about = about.replace("; may be given several times", "");
    let values = values(arg);
    if !values.is_empty() && form(arg) == Form::Text {
        about.push_str(&format!(": {}", values.join(", ")));
    }
    about
}

/// The default of an option, or else what is expected, as TOML.
fn sample(arg: &Arg) -> String {
    let (usual, name) = (default(arg), value_name(arg));
    match (form(arg), values(arg).first()) {
        _ if !usual.is_empty() => toml(arg, &usual),
        (Form::Flag | Form::Bool, _) => "false".to_owned(),
        (Form::List, _) => list(&[name.to_owned()]),
        (Form::Map, _) => "{ NAME = \"VALUE\" }".to_owned(),
        (Form::Number, _) => number(name),
        (Form::TextOrTrue, _) => "true".to_owned(),
        (Form::Text, Some(value)) => quote(value),
        (Form::Text, None) => quote(name),
    }
}

/// The JSON Schema of a file, for editors.
pub(super) fn schema() -> Value {
    let mut schema = schema_of(&TABLES[0]);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}

/// The schema of a table, and of all in it.
fn schema_of(table: &Table) -> Value {
    let keys = declared(table.path);
    let mut properties: Map<String, Value> = keys
        .map(|(key, arg)| (key.to_owned(), property(arg)))
        .collect();
    let nested = tables_in(table.path);
    properties.extend(nested.map(|(key, below)| (key.to_owned(), schema_of(below))));
    let mut schema = json!({
        "type": "object", "additionalProperties": false, "properties": properties,
    });
    match table.count {
        Count::One => {}
        Count::Named => schema = json!({"type": "object", "additionalProperties": schema}),
        Count::Array => {
            schema["required"] = json!(["endpoint"]);
            schema = json!({"type": "array", "items": schema});
        }
    }
    schema["description"] = json!(table.about);
    schema
}

fn property(arg: &Arg) -> Value {
    let (form, values) = (form(arg), values(arg));
    let mut schema = match form {
        Form::Flag | Form::Bool => json!({"type": "boolean"}),
        Form::Number => json!({"type": ["string", "number"]}),
        Form::List => json!({"type": "array", "items": {"type": "string"}}),
        Form::Map => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number"]}})
        }
        Form::TextOrTrue => json!({"anyOf": [{"type": "string"}, {"const": true}]}),
        Form::Text if values.is_empty() => json!({"type": "string"}),
        Form::Text => json!({"type": "string", "enum": values}),
    };
    schema["description"] = Value::from(meaning(arg));
    if let Some(usual) = default(arg).first().and_then(|usual| usual.to_str()) {
        schema["default"] = match form {
            Form::Flag | Form::Bool => Value::from(usual == "true"),
            _ => Value::from(usual),
        };
    }
    schema
}
