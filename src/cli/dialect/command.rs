//! The command line of `acp-relay dialect`, and the list of the known dialects.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::tables::Tables;
use super::{check, new, show, test};
use crate::cli::console;
use analysis::text::table;
use dialect::table::schema;
use dialect::{Library, Source};
use jsonrpc::Side;

/// The arguments of `dialect`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Dialect {
    #[command(flatten)]
    tables: Tables,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The dialects that are known
    List {
        /// Print a JSON array instead: name, title, aliases, speaker, extends, reads, dates, file,
        /// builtin
        #[arg(long)]
        json: bool,
    },
    /// One dialect as two columns to read: each rule with its reason
    Show(show::Show),
    /// Draft a mapping table, by a recording of the agent
    New(new::New),
    /// Check mapping tables: all faults at once, and the examples
    Check(check::Check),
    /// The JSON Schema of mapping tables, for editors
    Schema,
    /// Run golden vectors, messages in both columns, and report which passed
    Test(test::Test),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Dialect) -> Result<ExitCode, ExitCode> {
    if let Command::Schema = args.command {
        return Ok(console::print_json(schema(), 0));
    }
    let tables = args.tables.load()?;
    Ok(match &args.command {
        Command::List { json: true } => {
            console::print_json(&tables.sources().iter().map(as_json).collect(), 0)
        }
        Command::List { json: false } => list(&tables),
        Command::Show(show) => show::run(show, &tables),
        Command::New(new) => new::run(new, &Arc::new(tables))?,
        Command::Check(check) => check::run(check, tables)?,
        Command::Test(test) => test::run(test, &Arc::new(tables))?,
        Command::Schema => console::print_json(schema(), 0),
    })
}

/// The purpose of a rule of the built-in tables, by `dialect/rule`, for the viewer's page; an empty
/// object if it is not known.
pub(in crate::cli) fn describe_rule(id: &str) -> Value {
    let (dialect, rule) = id.split_once('/').unwrap_or_default();
    let library = Library::builtin();
    match (library.table(dialect), library.rule(dialect, rule)) {
        (Ok(table), Some(rule)) => {
            json!({"why": rule.why, "lossy": rule.base.lossy, "dialect": table.title})
        }
        _ => json!({}),
    }
}

fn list(tables: &Library) -> ExitCode {
    let row = |source: &Source| {
        let table = source.table();
        let speaker = table.speaker.map_or("both", Side::name);
        let (name, aliases) = (table.name.clone(), table.aliases.join(", "));
        vec![name, speaker.to_owned(), aliases, table.title.clone()]
    };
    let heading = ["NAME", "SPOKEN BY", "ALIASES", "TITLE"].map(str::to_owned);
    let mut rows = vec![heading.to_vec()];
    rows.extend(tables.sources().iter().map(row));
    console::print(&table(&rows), 0)
}

fn as_json(source: &Source) -> Value {
    let table = source.table();
    json!({
        "name": table.name,
        "title": table.title,
        "aliases": table.aliases,
        "speaker": table.speaker.map(Side::name),
        "extends": table.extends,
        "reads": table.reads,
        "dates": table.dates,
        "file": source.file,
        "builtin": source.builtin,
    })
}
