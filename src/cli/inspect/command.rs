//! The command line of `acp-relay inspect`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{
    diff, export, grep, import, lint, list, mark, prune, scrub, select, show, stats, verify, viewer,
};

/// The arguments of `inspect`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The recordings in a folder; `inspect` alone lists those of the state directory
    Ls(list::List),
    /// A conversation: requests with their answers, and how long those took
    #[command(after_help = select::help())]
    Show(show::Show),
    /// The same while it is being recorded
    #[command(after_help = select::help())]
    Follow(show::Follow),
    /// Find a text in messages, with its place in each
    #[command(after_help = select::help())]
    Grep(grep::Grep),
    /// Counts, durations, turns, and what the relay did
    #[command(after_help = select::help())]
    Stats(stats::Stats),
    /// Where a conversation breaks the protocol; exit code 1 when it does
    #[command(after_help = select::help())]
    Lint(lint::Lint),
    /// Whether two recordings hold the same conversation; exit code 1 when they do not
    Diff(diff::Diff),
    /// Check that recordings are what was written
    Verify(verify::Verify),
    /// Look at recordings in a browser
    Open(viewer::Open),
    /// Put a mark into a recording, also while it is being written
    Mark(mark::Mark),
    /// Write a copy of a recording, redacted by the current rules
    Scrub(scrub::Scrub),
    /// Write a conversation for other programs
    #[command(after_help = select::help())]
    Export(export::Export),
    /// Make a recording from a capture of another program
    Import(import::Import),
    /// Delete old recordings from a folder
    Prune(prune::Prune),
}

/// Runs the subcommand. An error was printed; it has the exit code.
pub(in crate::cli) fn run(args: &Inspect) -> Result<ExitCode, ExitCode> {
    let Some(command) = &args.command else {
        return list::run(&list::List::default());
    };
    match command {
        Command::Ls(args) => list::run(args),
        Command::Show(args) => show::show(args),
        Command::Grep(args) => grep::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Open(args) => viewer::run(args),
        Command::Mark(args) => mark::run(args),
        Command::Scrub(args) => scrub::run(args),
        Command::Follow(args) => show::follow(args),
        Command::Stats(args) => stats::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Export(args) => export::run(args),
        Command::Import(args) => import::run(args),
        Command::Prune(args) => prune::run(args),
    }
}
