//! `acp-relay inspect scrub`: copies a recording, redacted by the current rules.
//!
//! All segments become one file; `analysis::scrub` writes it.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rustix::io::Errno;
use serde_json::json;
use tempfile::NamedTempFile;

use super::redact::RedactArgs;
use super::select::{recording, report_unreadable};
use crate::cli::console::{print, uncreatable};
use crate::cli::exit;
use crate::cli::inputs::{distinct, total_bytes};
use crate::cli::progress::Progress;
use analysis::scrub;
use recording::PLAIN;

/// The arguments of `inspect scrub`.
#[derive(Debug, Args)]
pub(super) struct Scrub {
    /// Recordings; of one in several segments, any of them. The last argument is the copy, which
    /// must not exist yet; or a folder for the copies, which keep the names of their recordings
    #[arg(value_name = "FILE", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    redact: RedactArgs,
    /// Report as JSON: file, events, redacted, mode, rules
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Scrub) -> Result<ExitCode, ExitCode> {
    let (to, from) = args.files.split_last().expect("clap requires two");
    let from = distinct(from)?;
    if from.len() > 1 && !to.is_dir() {
        let what = format!("{}: several copies need a folder", to.display());
        return Err(exit::fail(exit::USAGE, &what));
    }
    let _progress = (!args.json).then(|| Progress::start(total_bytes(&from)));
    let mut done = Ok(ExitCode::SUCCESS);
    for from in &from {
        // The first error counts; the others are copied nevertheless.
        let copied = copy(args, from, to);
        done = done.and(copied);
    }
    done
}

/// Copies one recording to a file, or into a folder.
fn copy(args: &Scrub, from: &Path, to: &Path) -> Result<ExitCode, ExitCode> {
    let recording = recording(from)?;
    let to = if to.is_dir() {
        to.join(format!("{}{PLAIN}", recording.name))
    } else {
        to.to_owned()
    };
    let redactor = args.redact.redactor()?;
    let refused = |error| uncreatable(&to, &error);
    if to.symlink_metadata().is_ok() {
        return Err(refused(Errno::EXIST.into()));
    }
    // A partial copy would look like a complete one.
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let part = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new("."))).map_err(refused)?;
    let copied = scrub(&recording, &redactor, BufWriter::new(part.as_file()))
        .map_err(|error| report_unreadable(from, &error))?;
    let kept = part.persist_noclobber(&to);
    kept.map_err(|error| refused(error.error))?;
    if !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    let report = json!({
        "file": to,
        "events": copied.events,
        "redacted": copied.redacted,
        "mode": copied.redaction.mode,
        "rules": copied.redaction.rules,
    });
    Ok(print(&report.to_string(), exit::SUCCESS))
}
