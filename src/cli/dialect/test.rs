//! `acp-relay dialect test`: runs golden vectors in the directions they state.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::tables::LoadError;
use crate::cli::console::{self, Output};
use analysis::{VectorOutcome, VectorReport};
use dialect::Library;

/// The arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = "\
A vector is one JSON object on a line: `name`, `dialect`, `direction` (agent_to_client or
client_to_agent), `dialect_msg` and `canonical_msg`, `context` (earlier messages in both forms),
`roundtrip` (true: both ways) or `flow` (d2c, c2d), `canonical_before`, `canonical_after`,
`canonical_reply`, `dialect_reply`, `ids`. Messages are compared by value. `wire` and `http` state
bytes and requests, which this command does not run: they are counted as skipped.

A conversation between v1 and v2 is one JSON object on a line as well: `name`, `steps`, `policies`. A
step is {\"from\": \"client\" or \"agent\", \"in\": message, \"out\": [{\"to\", \"msg\", \"fresh\"}]}, or
{\"after_ms\": time, \"out\"} in virtual time; `fresh`: to an agent that was started again. What each
side gets is compared in its order; each step that differs is named. `initialize` has the members of
both versions (the policy hybrid-initialize=on).

Exit codes: 0 none failed; 1 one failed, a line is no vector, or a file has none; 64 usage; 65 a table
has faults; 66 a file cannot be read.")]
pub(super) struct Test {
    /// Files of vectors, one a line
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print a JSON object instead: `results`, `vectors`, `passed`, `failed`, `skipped`
    #[arg(long)]
    json: bool,
    /// Print only failures, and the summary
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Test, library: &Arc<Library>) -> Result<ExitCode, ExitCode> {
    let (mut report, mut of_files) = (VectorReport::default(), String::new());
    for path in &args.files {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| LoadError::file(path, error).fail())?;
        let file = path.display().to_string();
        let totals = report.add_file(&file, &text, library);
        of_files += &format!("{file}: {totals}\n");
    }
    let code = u8::from(report.failed() > 0);
    if args.json {
        return Ok(console::print_json(&report.json(), code));
    }
    let paint = Output::new().paint;
    let is_shown = |one: &&VectorOutcome| !args.quiet || one.result.fault.is_some();
    let shown = |one: &VectorOutcome| one.line() + &paint.diff(&one.result.diff);
    let mut text: String = report.outcomes.iter().filter(is_shown).map(shown).collect();
    if args.files.len() > 1 {
        text += &of_files;
    }
    let text = format!("{text}{}\n", report.totals());
    Ok(console::print(&text, code))
}
