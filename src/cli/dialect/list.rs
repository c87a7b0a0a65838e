//! `acp-relay dialect list`: the known dialects.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::columns::table;
use crate::cli::console;
use crate::dialect::{Library, Source};
use crate::jsonrpc::Side;

/// The arguments of `list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print a JSON array instead: name, title, aliases, speaker, extends, reads, dates, file,
    /// builtin
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &List, tables: &Library) -> ExitCode {
    let sources = tables.sources();
    if args.json {
        return console::print_json(&sources.iter().map(as_json).collect(), 0);
    }
    let mut rows = vec![
        ["NAME", "SPOKEN BY", "ALIASES", "TITLE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(sources.iter().map(|source| {
        let table = source.table();
        vec![
            table.name.clone(),
            table.speaker.map_or("both", Side::name).to_owned(),
            table.aliases.join(", "),
            table.title.clone(),
        ]
    }));
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
