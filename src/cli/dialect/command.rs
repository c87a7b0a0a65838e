//! The command line of `acp-relay dialect`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::tables::Tables;
use super::{check, list, show, test};
use crate::cli::console;
use crate::dialect::table::schema;

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
    List(list::List),
    /// One dialect as two columns to read: each rule with its reason
    Show(show::Show),
    /// Check mapping tables: all faults at once, and the examples
    Check(check::Check),
    /// The JSON Schema of mapping tables, for editors
    Schema,
    /// Run golden vectors, messages in both columns, and report which passed
    Test(test::Test),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Dialect) -> ExitCode {
    if let Command::Schema = args.command {
        return console::print_json(schema(), 0);
    }
    let tables = match args.tables.library() {
        Ok(tables) => tables,
        Err(error) => return error.fail(),
    };
    match &args.command {
        Command::List(list) => list::run(list, &tables),
        Command::Show(show) => show::run(show, &tables),
        Command::Check(check) => check::run(check, tables),
        Command::Test(test) => test::run(test, &tables),
        Command::Schema => console::print_json(schema(), 0),
    }
}
