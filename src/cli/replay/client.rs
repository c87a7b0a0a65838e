//! `acp-relay replay client`: plays recorded clients to a live agent, a new agent for each file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::options::Play;
use super::report;
use crate::cli::console::Output;
use crate::cli::exit;
use crate::cli::inputs::distinct;
use crate::cli::junit;
use analysis::junit::Suite;
use recording::show_halves_json;
use replay::PlayTarget;

/// Shown below `--help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay replay client talk.acpr -- goose acp
      Send the recorded requests. Exit code 0 if the agent answers as recorded.
  acp-relay replay client @last --ignore /params/update/rawOutput --agent goose
      Those of the newest recording to an agent by its name, ignoring the output of tools.
  acp-relay replay client recordings/*.acpr --json --agent ws://127.0.0.1:9000
      One conversation after the other. `acp-relay test` does so with a folder, for CI.

Each message is sent once everything has been received that preceded it in the recording. Requests
of the agent get the recorded answer; for permissions, the option of the same kind or name is
chosen. Ignored are the ids of requests, sessions, tool calls and messages, times, durations and
process ids, the working directory, chunk boundaries, text cut short by a cancellation, token usage,
and redacted values.

Exit codes: 0 no difference; 1 a difference; 64 usage; 66 an unreadable file; 69 no agent.";

/// The arguments of `replay client`.
#[derive(Debug, Args)]
pub(super) struct Client {
    /// Recordings (.acpr, .acpr.zst), by path or name, or captures of one JSON line per message; of a
    /// recording in several segments, any of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also write the outcome as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print one JSON object a file: file, same, turns, steps, seconds, differences (a list: kind,
    /// event, turn, from, what, patch), troubles
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    play: Play,
}

/// Runs the subcommand.
pub(super) fn run(args: &Client) -> Result<ExitCode, ExitCode> {
    let agent = args.play.agent("replay client FILE")?;
    let mut output = Output::new();
    let mut suites = Vec::new();
    let mut code = exit::SUCCESS;
    let mut failure = None;
    for file in distinct(&args.files)? {
        match compare_file(args, &file, &agent, &mut output, &mut suites) {
            Ok(true) => {}
            Ok(false) => code = exit::VIOLATIONS,
            Err(why) => failure = Some(failure.unwrap_or(why)),
        }
    }
    if let Some(path) = &args.junit {
        junit::write(path, &suites)?;
    }
    let done = output.done(code);
    Ok(failure.unwrap_or(done))
}

/// Whether the agent answers as in one file. A file that cannot be played is reported.
fn compare_file(
    args: &Client,
    file: &Path,
    agent: &PlayTarget,
    output: &mut Output,
    suites: &mut Vec<Suite>,
) -> Result<bool, ExitCode> {
    let name = file.display().to_string();
    let played = args.play.script(file).and_then(|script| {
        args.play.run(&Arc::new(script), agent, &mut |turn| {
            if !args.json {
                output.clean_line(turn);
            }
        })
    });
    let outcome = played.inspect_err(|_| {
        suites.push(Suite::unreadable(name.clone(), "it could not be played"));
    })?;
    suites.push(report::suite(&name, &outcome));
    if args.json {
        let report = report::json(&name, &outcome).to_string();
        output.clean_line(&show_halves_json(&report));
    } else {
        for line in report::lines(&name, &outcome, output.paint) {
            output.clean_line(&line);
        }
    }
    Ok(outcome.is_same())
}
