//! The command line of `acp-relay token`, with its small subcommands.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::store::read_name;
use super::{Store, add, list};
use crate::cli::state::StateError;
use crate::cli::{console, exit};

/// For `--help`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay token show
      Your own token, for a program on this machine that cannot find it automatically.
  acp-relay token new alice --expires 30d --agents goose,gemini
      A token for another person, printed once and valid at once. Only its SHA-256 is kept.
  acp-relay token revoke alice
      A running relay notices within a second, and closes alice's connections within a minute.";

/// Arguments of `token`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print your own token, which is created if there is none yet
    Show,
    /// Create a token for a person or program, and print it, or write it to a file, once
    New(add::New),
    /// List the tokens you have created
    List(list::List),
    /// Make a token invalid
    Revoke {
        /// Its name
        #[arg(value_parser = read_name)]
        name: String,
    },
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &TokenArgs) -> ExitCode {
    let done = Store::find(None).and_then(|store| match &args.command {
        Command::Show => {
            let token = store.own_or_new()?;
            Ok(console::print(token.reveal(), exit::SUCCESS))
        }
        Command::New(args) => add::run(args, &store),
        Command::List(args) => list::run(args, &store),
        Command::Revoke { name } => revoke(name, &store),
    });
    done.unwrap_or_else(|fault| exit::fail(code(&fault), &fault))
}

/// The exit code for an error of a file.
pub(in crate::cli) const fn code(fault: &StateError) -> u8 {
    match fault {
        StateError::Unavailable(_) => exit::CANNOT_CREATE,
        StateError::Unsafe(_) => exit::FORBIDDEN,
    }
}

fn revoke(name: &str, store: &Store) -> Result<ExitCode, StateError> {
    let none = || format!("there is no token called {name:?}; `acp-relay token list` lists them");
    let removed = store.change(|ring| ring.remove(name).ok_or_else(none))?;
    Ok(match removed {
        Ok(_) => ExitCode::from(exit::SUCCESS),
        Err(fault) => exit::fail(exit::USAGE, &fault),
    })
}
