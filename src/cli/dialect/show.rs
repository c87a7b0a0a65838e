//! `acp-relay dialect show`: a dialect in two columns, its own rules first, then those of the
//! tables it extends.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

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
    let layers: Vec<(&Source, Value)> = stack
        .iter()
        .filter_map(|layer| tables.source(&layer.table.name).ok())
        .map(|source| {
            (
                source,
                serde_json::from_str(&source.text).unwrap_or_default(),
            )
        })
        .collect();
    let wanted = |rule: &Value| {
        let id = rule["id"].as_str().unwrap_or_default();
        args.rule.is_empty() || args.rule.iter().any(|wanted| wanted == id)
    };
    let found: usize = layers
        .iter()
        .map(|(_, table)| rules(table).filter(|rule| wanted(rule)).count())
        .sum();
    if found == 0 && !args.rule.is_empty() {
        let all = layers.iter().flat_map(|(_, table)| rules(table));
        let ids: Vec<&str> = all.filter_map(|rule| rule["id"].as_str()).collect();
        let (name, wanted, ids) = (&args.name, args.rule.join("`, `"), ids.join(", "));
        let message = format!("`{name}` has no rule `{wanted}`; it has {ids}");
        return exit::fail(exit::USAGE, &message);
    }
    if args.json {
        return console::print_json(&flattened(&layers, &wanted), 0);
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
        for rule in rules(table).filter(|rule| wanted(rule)) {
            write_rule(name, rule, args.examples, &mut text);
        }
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
fn flattened(layers: &[(&Source, Value)], wanted: &dyn Fn(&Value) -> bool) -> Value {
    let mut all = layers[0].1.clone();
    let tables: Vec<&str> = layers
        .iter()
        .map(|(source, _)| source.table().name.as_str())
        .collect();
    let mut flat = Vec::new();
    for (source, table) in layers {
        for rule in rules(table).filter(|rule| wanted(rule)) {
            let mut rule = rule.clone();
            rule["table"] = source.table().name.as_str().into();
            flat.push(rule);
        }
    }
    for key in ["shapes", "memory"] {
        let by_table = layers.iter().filter_map(|(source, table)| {
            let own = table.get(key)?;
            Some((source.table().name.clone(), own.clone()))
        });
        all[key] = Value::Object(by_table.collect());
    }
    all["tables"] = json!(tables);
    all["rules"] = flat.into();
    all
}

fn heading(source: &Source, value: &Value) -> String {
    let table = source.table();
    let mut text = format!("{}: {}\n", table.name, table.title);
    let mut fact = |name: &str, what: String| {
        if !what.is_empty() {
            let _ = writeln!(text, "  {name:<10} {what}");
        }
    };
    fact("file", source.file.to_string());
    let speaker = table.speaker.map_or("both sides", Side::name);
    fact("spoken by", speaker.to_owned());
    for (key, name) in [
        ("aliases", "aliases"),
        ("dates", "dates"),
        ("why", "why"),
        ("extends", "builds on"),
        ("reads", "reads with"),
        ("framing", "framing"),
        ("jsonrpc", "jsonrpc"),
        ("ids", "ids"),
        ("params", "params"),
    ] {
        fact(name, value.get(key).map(rows::plain).unwrap_or_default());
    }
    for clue in value["detect"].as_array().into_iter().flatten() {
        fact("detected by", rows::plain(clue));
    }
    for (name, slot) in value["memory"].as_object().into_iter().flatten() {
        fact("remembers", format!("{name}: {}", rows::plain(slot)));
    }
    text
}

fn write_rule(table: &str, rule: &Value, examples: bool, text: &mut String) {
    let word = |key: &str| rule[key].as_str().unwrap_or_default();
    let _ = writeln!(
        text,
        "\n{}  ({table}; {})",
        word("id"),
        selector(&rule["on"])
    );
    let _ = writeln!(text, "  {}", word("why"));
    text.push_str(&rows::case(rule));
    for loss in rule["loses"].as_array().into_iter().flatten() {
        let _ = write!(text, "  lost in a round trip: {}", rows::plain(&loss["at"]));
        for (key, word) in [("when", ", when "), ("why", ": ")] {
            if let Some(what) = loss.get(key) {
                let _ = write!(text, "{word}{}", rows::plain(what));
            }
        }
        text.push('\n');
    }
    if let Some(failure) = rule.get("failure") {
        let _ = writeln!(
            text,
            "  when it cannot be translated: {}",
            rows::plain(failure)
        );
    }
    for example in rule["examples"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|_| examples)
    {
        let _ = writeln!(text, "  example    dialect   {}", example["dialect"]);
        let _ = writeln!(text, "             canonical {}", example["canonical"]);
    }
}

/// `from agent, session/update`.
fn selector(on: &Value) -> String {
    let from = on["from"].as_str().unwrap_or_default();
    for (key, what) in [
        ("method", ""),
        ("answers", "result of "),
        ("errors_of", "error of "),
    ] {
        match on.get(key) {
            Some(Value::String(name)) => return format!("from {from}, {what}{name}"),
            Some(names) => {
                let name = |column: &str| names[column].as_str().unwrap_or("nothing").to_owned();
                return format!(
                    "from {from}, {what}{} ⇄ {}",
                    name("dialect"),
                    name("canonical")
                );
            }
            None => {}
        }
    }
    format!("from {from}")
}
