//! `acp-relay replay client`: a live agent against a recorded conversation.
//!
//! Not here: holding the conversation (see `play`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::play::Play;
use super::{junit, report};
use crate::app::console::Output;
use crate::app::discretion::clean;
use crate::app::{cli, exit, household};

/// Shown below `--help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay replay client talk.acpr -- goose acp
      Ask the agent what was asked in the recording. Exit code 0 when it answers as it did.
  acp-relay replay client talk.acpr --cwd . --ignore /params/update/rawOutput -- goose acp
      In this directory, whatever the tools put out.
  acp-relay replay client talk.acpr --junit report.xml --agent ws://127.0.0.1:9000
      In CI, with a test case for each turn.

Each message waits for what was heard before it was said in the recording. What the agent asks is
answered as it was; of permissions, the option of the same kind, or of the same name, is chosen.
No difference are ids of requests, sessions, tool calls and messages, times, durations and processes,
the working directory, where a text is cut into chunks or ends once it is cancelled, the tokens that
were used, and what was redacted.

Exit codes: 0 the same; 1 it differs; 64 usage; 66 unreadable file; 69 no agent.";

/// What `replay client` is asked for.
#[derive(Debug, Args)]
pub(super) struct Client {
    /// A recording (.acpr, .acpr.zst), or a capture of one JSON line per message
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the outcome as JUnit's XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print one JSON object: file, same, turns, steps, seconds, differences (a list: kind, event,
    /// turn, from, what, patch), troubles
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    play: Play,
}

/// Runs the subcommand.
pub(super) fn run(args: &Client) -> ExitCode {
    household::keep(|| compare(args).unwrap_or_else(|code| code))
}

fn compare(args: &Client) -> Result<ExitCode, ExitCode> {
    let agent = args.play.agent("replay client FILE")?;
    let script = Arc::new(args.play.script(&args.file)?);
    let outcome = args.play.run(&script, &agent)?;
    let name = args.file.display().to_string();
    if let Some(path) = &args.junit {
        std::fs::write(path, &*clean(&junit::report(&name, &outcome))).map_err(|error| {
            cli::fail(exit::CANNOT_CREATE, &format!("{}: {error}", path.display()))
        })?;
    }
    let mut output = Output::new();
    if args.json {
        output.line(clean(&report::json(&name, &outcome).to_string()).as_bytes());
    } else {
        for line in report::lines(&name, &outcome) {
            output.line(clean(&line).as_bytes());
        }
    }
    Ok(output.done(if outcome.is_same() {
        exit::SUCCESS
    } else {
        exit::DEVIATES
    }))
}
