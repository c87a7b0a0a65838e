//! `acp-relay inspect prune`: deletes old recordings from a folder.
//!
//! `observe::recorder` decides what may be deleted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;

use super::select::report_unreadable;
use crate::cli::console::Output;
use crate::cli::recordings::home;
use crate::cli::{exit, limits, record};
use analysis::text::size;
use observe::recorder::{Retention, prune};

/// The arguments of `inspect prune`.
#[derive(Debug, Args)]
pub(super) struct Prune {
    /// The folder of recordings [default: the one that `--record` without a value records into]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Delete recordings that were last written to this long ago, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = record::age, required_unless_present = "max_total")]
    max_age: Option<Duration>,
    /// Delete the oldest until the others are together no larger than this, such as 10GiB
    #[arg(long, value_name = "SIZE", value_parser = limits::bytes, required_unless_present = "max_age")]
    max_total: Option<u64>,
    /// Delete nothing; only report what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// One JSON object a line: name, bytes, why (age, total); and last: left (bytes)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Prune) -> Result<ExitCode, ExitCode> {
    let keep = Retention {
        age: args.max_age,
        total: args.max_total,
    };
    let folder = args.folder.clone().map_or_else(home, Ok);
    let folder = folder.map_err(|fault| fault.fail())?;
    let pruned = prune(&folder, keep, SystemTime::now(), args.dry_run)
        .map_err(|error| report_unreadable(&folder, &error))?;
    let mut output = Output::new();
    let mut bytes = 0;
    for deleted in &pruned.deleted {
        bytes += deleted.bytes;
        let (name, why) = (&deleted.name, deleted.reason.name());
        let line = match args.json {
            true => json!({"name": name, "bytes": deleted.bytes, "why": why}).to_string(),
            false => format!("{name}  {:>10}  {why}", size(deleted.bytes)),
        };
        output.line(line);
    }
    let last = match args.json {
        true => json!({"left": pruned.remaining}).to_string(),
        false => format!(
            "{} recordings ({}) {}; {} remain",
            pruned.deleted.len(),
            size(bytes),
            if args.dry_run {
                "would be deleted"
            } else {
                "deleted"
            },
            size(pruned.remaining),
        ),
    };
    output.line(last);
    let mut code = exit::SUCCESS;
    for (path, error) in &pruned.failed {
        output.flush();
        code = exit::SYSTEM;
        exit::fail(code, &format!("{}: {error}", path.display()));
    }
    Ok(output.done(code))
}
