//! `acp-relay inspect export`: writes conversations in formats of other programs, and for people.
//!
//! Messages that a format cannot represent are counted and reported.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::select::{self, Part, Selection};
use crate::cli::console::{Output, note, uncreatable};
use crate::cli::exit;
use crate::cli::variant::variant_of;
use analysis::export::{ExportFormat, Exporter};
use observe::recorder::create;
use recording::{View, ViewFilter};

/// Bytes after which the output is flushed.
const FLUSH_BYTES: usize = 256 << 10;

/// The arguments of `inspect export`.
#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    selection: Selection,
    /// The format
    #[arg(long, value_parser = variant_of::<ExportFormat>(), value_name = "FORMAT")]
    to: ExportFormat,
    /// The file to write, instead of stdout; it must not exist yet
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Which messages to export; default: client for md and mermaid, received for the others
    #[arg(long, value_parser = select::view())]
    at: Option<View>,
    /// Report as JSON, on stderr: messages, left_out (the format cannot represent them), bodiless
    /// (their bodies were not recorded)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Export) -> Result<ExitCode, ExitCode> {
    let at = args.at.unwrap_or_else(|| args.to.default_view());
    let opened = args.selection.open(ViewFilter::new_empty(at))?;
    let file = args
        .out
        .as_ref()
        .map(|path| create(path).map_err(|error| uncreatable(path, &error)));
    let (mut file, mut output) = (file.transpose()?, Output::new());
    let mut write = |bytes: &[u8]| match &mut file {
        Some(file) => file.write_all(bytes),
        None => {
            output.bytes(bytes);
            Ok(())
        }
    };
    let (mut exporter, mut flushed) = (Exporter::new(args.to, at), Ok(()));
    opened.each(|part, in_view| {
        match part {
            Part::Event(event) => exporter.event(event, in_view),
            Part::Header(header) => exporter.header(header),
            Part::Damaged => {}
        }
        if flushed.is_ok()
            && let Some(bytes) = exporter.take(FLUSH_BYTES)
        {
            flushed = write(&bytes);
        }
    })?;
    exporter.end();
    flushed
        .and_then(|()| write(&exporter.take(0).unwrap_or_default()))
        .map_err(|error| exit::fail(exit::SYSTEM, &format!("cannot write: {error}")))?;
    let counts = exporter.counts;
    if args.json {
        note(&json!(counts).to_string());
    } else {
        for (count, why) in [
            (counts.left_out, "this format cannot represent them"),
            (counts.bodiless, "their bodies were not recorded"),
        ] {
            if count > 0 {
                note(&format!("acp-relay: {count} messages were left out: {why}"));
            }
        }
    }
    Ok(output.done(exit::SUCCESS))
}
