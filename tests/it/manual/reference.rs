//! The parts of the reference that are generated: limits, flags, keys. With UPDATE_MANUAL set, the
//! test writes them.

use std::fs;

use serde_json::Value;

use super::help::{COMMANDS, Flag, flags, limits};
use super::{root, stdout};

const HINT: &str = "outdated; run UPDATE_MANUAL=1 cargo test --test it -- manual";

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace("*.json", "\\*.json")
}

fn limits_table() -> String {
    let mut table =
        "| limit | default | of what, and what happens at it |\n|---|---|---|\n".to_owned();
    for (name, value, about) in limits() {
        // The largest number means no limit.
        let value = match value.as_str() {
            "1073741824" | "1GiB" => "none",
            value => value,
        };
        table.push_str(&format!("| `{name}` | {value} | {} |\n", cell(about)));
    }
    table
}

fn flags_tables() -> String {
    // What only builds with the feature `cluster` have is on its own page.
    let is_usual = |flag: &Flag| !flag.name.starts_with("--cluster");
    let flags = |definition| flags(definition).into_iter().filter(is_usual).collect();
    let serve = COMMANDS.iter().find(|(path, _)| path == "serve");
    let serve: Vec<Flag> = flags(&serve.unwrap().1);
    let mut text = String::new();
    for (command, definition) in COMMANDS.iter() {
        if ["gateway", "cluster"]
            .iter()
            .any(|name| command.starts_with(name))
        {
            continue;
        }
        let all: Vec<Flag> = flags(definition);
        let shared = |flag: &&Flag| command != "serve" && serve.contains(flag);
        let own: Vec<&Flag> = all.iter().filter(|flag| !shared(flag)).collect();
        let names: Vec<String> = all
            .iter()
            .filter(shared)
            .map(|flag| format!("`{}`", flag.name))
            .collect();
        if all.is_empty() || command.is_empty() {
            continue;
        }
        text.push_str(&format!("### acp-relay {command}\n\n"));
        if !own.is_empty() {
            text.push_str("| flag | meaning |\n|---|---|\n");
            for flag in own {
                let mut about = cell(&flag.about);
                if !flag.values.is_empty() {
                    about = format!("{about}: `{}`", flag.values.join("`, `"));
                }
                if let Some(variable) = &flag.variable {
                    about = format!("{about} (`{variable}`)");
                }
                text.push_str(&format!("| `{}` | {about} |\n", cell(&flag.form)));
            }
            text.push('\n');
        }
        if names.len() == serve.len() {
            text.push_str("All flags of `serve`.\n\n");
        } else if !names.is_empty() {
            text.push_str(&format!("As for `serve`: {}.\n\n", names.join(", ")));
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// The keys of the configuration file, by the JSON Schema that the program prints.
fn keys_tables() -> String {
    let schema: Value = serde_json::from_str(&stdout(&["config", "schema"])).unwrap();
    let mut text = String::new();
    key_table(&mut text, "", &schema);
    text.trim_end().to_owned() + "\n"
}

/// The keys of the table at `path`, and then those of the tables in it.
fn key_table(text: &mut String, path: &str, table: &Value) {
    // The limits have a section of their own, and what only builds with a feature have, a page.
    if ["limits", "cluster"]
        .map(Some)
        .contains(&path.rsplit('.').next())
    {
        return;
    }
    let mut nested = Vec::new();
    if !path.is_empty() {
        text.push_str(&format!("### `{path}`\n\n"));
    }
    let about = cell(table["description"].as_str().unwrap_or_default());
    if !about.is_empty() {
        text.push_str(&format!("{about}.\n\n"));
    }
    text.push_str("| key | default | meaning |\n|---|---|---|\n");
    for (key, value) in table["properties"].as_object().unwrap() {
        let path = format!("{path}.{key}");
        let path = path.trim_start_matches('.').to_owned();
        let (each, items) = (&value["additionalProperties"], &value["items"]);
        if value["properties"].is_object() {
            nested.push((path, value.clone()));
        } else if each["properties"].is_object() {
            nested.push((format!("{path}.NAME"), each.clone()));
        } else if items["properties"].is_object() {
            nested.push((path, items.clone()));
        } else {
            let about = cell(value["description"].as_str().unwrap_or_default());
            let default = match &value["default"] {
                Value::Null => String::new(),
                default => format!("`{}`", default.to_string().trim_matches('"')),
            };
            text.push_str(&format!("| `{key}` | {default} | {about} |\n"));
        }
    }
    text.push('\n');
    for (path, table) in nested {
        key_table(text, &path, &table);
    }
}

/// Replaces the text between the two markers of a generated part.
fn with_generated(page: &str, name: &str, text: &str) -> String {
    let start = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&start).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{start}{text}<!-- end -->{after}")
}

#[test]
fn the_generated_parts_of_the_reference_match_the_program() {
    let path = root().join("src/docs/reference.md");
    let page = fs::read_to_string(&path).unwrap();
    let new = with_generated(&page, "limits", &limits_table());
    let new = with_generated(&new, "flags", &flags_tables());
    let new = with_generated(&new, "keys", &keys_tables());
    if std::env::var_os("UPDATE_MANUAL").is_some() {
        fs::write(&path, new).unwrap();
        return;
    }
    for (old, new) in page.lines().zip(new.lines()) {
        assert_eq!(old, new, "{HINT}");
    }
    assert_eq!(page.len(), new.len(), "{HINT}");
}
