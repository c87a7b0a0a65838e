//! `acp-relay dialect show`: a dialect in two columns, its own rules first, then those of the
//! tables it extends.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::rows;
use crate::cli::{console, exit};
use crate::dialect::{Library, Source};
use crate::jsonrpc::Side;

/// The arguments of `show`.
#[derive(Debug, Args)]
#[command(after_help = "\
The dialect is on the left, canonical ACP on the right; ⇄ is translated both ways, → only from the
dialect, ← only to it. Each rule names its table; the tables that this one extends follow, in the
order in which they apply to a message of the dialect.

Exit codes: 0 shown; 64 no such dialect or rule; 65 a table has faults; 66 a file cannot be read.")]
pub(super) struct Show {
    /// The dialect's name or an alias
    #[arg(value_name = "DIALECT")]
    name: String,
    /// Only the rule with this id; may be given several times
    #[arg(long, value_name = "ID")]
    rule: Vec<String>,
    /// Also print the examples
    #[arg(long)]
    examples: bool,
    /// Print the flattened table as JSON instead: every rule names its `table`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Show, tables: &Library) -> ExitCode {
    let stack = match tables.stack(&args.name) {
        Ok(stack) => stack,
        Err(unknown) => return exit::fail(exit::USAGE, &unknown),
    };
    let read = |source: &Source| serde_json::from_str(&source.text).unwrap_or_default();
    let sources = (stack.iter()).filter_map(|layer| tables.source(&layer.table.name).ok());
    let mut layers: Vec<(&Source, Value)> = sources.map(|source| (source, read(source))).collect();
    let mut ids = Vec::new();
    for (source, table) in &mut layers {
        let Some(rules) = table["rules"].as_array_mut() else {
            continue;
        };
        rules.retain_mut(|rule| {
            rule["table"] = source.table().name.as_str().into();
            let id = rule["id"].as_str().unwrap_or_default().to_owned();
            let is_wanted = args.rule.is_empty() || args.rule.contains(&id);
            ids.push(id);
            is_wanted
        });
    }
    let found = layers
        .iter()
        .any(|(_, table)| rules(table).next().is_some());
    if !found && !args.rule.is_empty() {
        let (name, wanted, ids) = (&args.name, args.rule.join("`, `"), ids.join(", "));
        let message = format!("`{name}` has no rule `{wanted}`; it has {ids}");
        return exit::fail(exit::USAGE, &message);
    }
    if args.json {
        return console::print_json(&flattened(&layers), 0);
    }
    let mut text = String::new();
    for (at, (source, table)) in layers.iter().enumerate() {
        let name = &source.table().name;
        if at > 0 && args.rule.is_empty() {
            text.push_str("\nbelow it, ");
        }
        if at == 0 || args.rule.is_empty() {
            text.push_str(&heading(source, table));
        }
        rules(table).for_each(|rule| write_rule(name, rule, args.examples, &mut text));
        if args.rule.is_empty() {
            text.push_str(&rows::shapes(name, &table["shapes"]));
        }
    }
    console::print(&text, 0)
}

fn rules(table: &Value) -> impl Iterator<Item = &Value> {
    table["rules"].as_array().into_iter().flatten()
}

/// The table with the rules, shapes and memory of all layers, each with the name of its table.
fn flattened(layers: &[(&Source, Value)]) -> Value {
    let mut all = layers[0].1.clone();
    for key in ["shapes", "memory"] {
        let by_table = layers.iter().filter_map(|(source, table)| {
            let own = table.get(key)?;
            Some((source.table().name.clone(), own.clone()))
        });
        all[key] = Value::Object(by_table.collect());
    }
    let names = layers
        .iter()
        .map(|(source, _)| source.table().name.as_str());
    all["tables"] = names.collect();
    all["rules"] = layers
        .iter()
        .flat_map(|(_, table)| rules(table).cloned())
        .collect();
    all
}

/// The keys of a table besides its rules, under the words of the table language.
fn heading(source: &Source, value: &Value) -> String {
    let table = source.table();
    let speaker = table.speaker.map_or("both sides", Side::name);
    let mut facts = vec![
        ("file", source.file.to_string()),
        ("speaker", speaker.to_owned()),
    ];
    for (key, what) in value.as_object().into_iter().flatten() {
        match (key.as_str(), what) {
            ("format" | "dialect" | "title" | "speaker" | "rules" | "shapes", _) => {}
            (key, Value::Array(all)) if key == "detect" => {
                facts.extend(all.iter().map(|clue| (key, rows::plain(clue))));
            }
            (key, what) => facts.push((key, rows::plain(what))),
        }
    }
    let mut text = format!("{}: {}\n", table.name, table.title);
    for (name, what) in facts {
        let _ = writeln!(text, "  {name:<10} {what}");
    }
    text
}

fn write_rule(table: &str, rule: &Value, examples: bool, text: &mut String) {
    let word = |key: &str| rule[key].as_str().unwrap_or_default();
    let (id, on, why) = (word("id"), selector(&rule["on"]), word("why"));
    let _ = writeln!(text, "\n{id}  ({table}; {on})\n  {why}");
    text.push_str(&rows::case(rule));
    let all = rule["examples"].as_array().into_iter().flatten();
    for example in all.filter(|_| examples) {
        let _ = writeln!(text, "  example    dialect   {}", example["dialect"]);
        let _ = writeln!(text, "             canonical {}", example["canonical"]);
    }
}

/// `from agent, session/update`.
fn selector(on: &Value) -> String {
    let keys = [
        ("method", ""),
        ("answers", "result of "),
        ("errors_of", "error of "),
    ];
    let found = keys
        .iter()
        .find_map(|(key, what)| Some((on.get(key)?, what)));
    let message = match found {
        None => String::new(),
        Some((Value::String(name), what)) => format!(", {what}{name}"),
        Some((names, what)) => {
            let name = |column: &str| names[column].as_str().unwrap_or("nothing");
            format!(", {what}{} ⇄ {}", name("dialect"), name("canonical"))
        }
    };
    format!("from {}{message}", on["from"].as_str().unwrap_or_default())
}
