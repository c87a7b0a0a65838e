//! The command line of `acp-relay inspect`.
//!
//! Not here: what a subcommand does (each has its own file).

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{grep, list, mark, scrub, show, verify};
use crate::app::{cli, exit, viewer};
use crate::recording::Recording;

/// What `inspect` is asked for.
#[derive(Debug, Args)]
pub(in crate::app) struct Inspect {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The recordings in a folder
    Ls(list::List),
    /// A conversation: requests with their answers, and how long those took
    Show(show::Show),
    /// Find a text in messages, and say where it stands
    Grep(grep::Grep),
    /// Check that recordings are what was written
    Verify(verify::Verify),
    /// Look at recordings in a browser
    Open(viewer::Open),
    /// Put a mark into a recording, also while it is being written
    Mark(mark::Mark),
    /// Write a copy of a recording with today's rules about secrets
    Scrub(scrub::Scrub),
}

/// Runs the subcommand.
pub(in crate::app) fn run(args: &Inspect) -> ExitCode {
    match &args.command {
        Command::Ls(args) => list::run(args),
        Command::Show(args) => show::run(args),
        Command::Grep(args) => grep::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Open(args) => viewer::run(args),
        Command::Mark(args) => mark::run(args),
        Command::Scrub(args) => scrub::run(args),
    }
}

/// The recording that the file at `path` belongs to. Where there is none that is said, and the
/// exit code returned.
pub(super) fn recording(path: &Path) -> Result<Recording, ExitCode> {
    let found = std::fs::File::open(path).and_then(|_| Recording::of(path));
    found.map_err(|error| unreadable(path, &error))
}

/// Says that a file cannot be read.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> ExitCode {
    cli::fail(exit::NO_INPUT, &format!("{}: {error}", path.display()))
}
