//! `acp-relay dialect show`: a dialect in two columns, its own rules first, then those of the
//! tables it extends.

use std::process::ExitCode;

use clap::Args;

use crate::cli::{console, exit};
use analysis::Columns;
use dialect::Library;

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
    match Columns::new(tables, &args.name, &args.rule) {
        Ok(columns) if args.json => console::print_json(&columns.json(), 0),
        Ok(columns) => console::print(&columns.text(args.examples), 0),
        Err(fault) => exit::fail(exit::USAGE, &fault),
    }
}
