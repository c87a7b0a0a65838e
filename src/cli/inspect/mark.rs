//! `acp-relay inspect mark`: adds a mark to a recording, to find a place again.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use super::select::{recording, report_unreadable};
use crate::cli::console::print;
use crate::cli::exit;
use crate::cli::random::random;
use observe::recorder::mark;
use recording::PACKED;

/// The arguments of `inspect mark`.
#[derive(Debug, Args)]
pub(super) struct Mark {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The text of the mark
    #[arg(value_name = "TEXT")]
    text: String,
    /// Report as JSON: file, by (mark or writer), n (by mark)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Mark) -> Result<ExitCode, ExitCode> {
    let last = recording(&args.file)?.segments.pop();
    let last = last.unwrap_or_else(|| args.file.clone());
    if last.to_string_lossy().ends_with(PACKED) {
        let what = "the last segment is compressed, so nothing can be added to it";
        return Err(exit::fail(
            exit::DATA,
            &format!("{}: {what}", last.display()),
        ));
    }
    let marked = random().and_then(|key| mark(&last, &args.text, key, SystemTime::now()));
    let marked = marked.map_err(|error| report_unreadable(&last, &error))?;
    if !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = match marked {
        None => json!({"by": "writer"}),
        Some(n) => json!({"by": "mark", "n": n}),
    };
    report["file"] = last.to_string_lossy().into();
    Ok(print(&report.to_string(), exit::SUCCESS))
}
