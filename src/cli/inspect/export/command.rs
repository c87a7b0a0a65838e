//! The command line of `inspect export`.
//!
//! Messages that a format cannot represent are counted and reported.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::format::{Exported, Format};
use super::json::{Captured, Devtools, Jsons, Plain};
use super::text::{Markdown, Mermaid};
use crate::cli::console::{Output, note, uncreatable};
use crate::cli::exit;
use crate::cli::inspect::chunk_run::{ChunkFolder, ChunkRun};
use crate::cli::inspect::select::{self, Part, Selection};
use jsonrpc::Side;
use observe::recorder::create;
use recording::{EventKind, Exchanges, Header, View, ViewFilter};

/// Bytes after which the output is flushed.
const FLUSH_BYTES: usize = 256 << 10;

/// The arguments of `inspect export`.
#[derive(Debug, Args)]
pub(in crate::cli::inspect) struct Export {
    #[command(flatten)]
    selection: Selection,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Target,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// For the official trace viewer
    Jsons,
    /// A sequence diagram
    Mermaid,
    /// A transcript, turn by turn
    Md,
    /// The messages alone, one a line
    Ndjson,
    /// The messages with direction and time, one a line
    Capture,
    /// For acp-devtools
    Devtools,
}

/// Runs the subcommand.
pub(in crate::cli::inspect) fn run(args: &Export) -> Result<ExitCode, ExitCode> {
    let at = args.at.unwrap_or(match args.to {
        Target::Md | Target::Mermaid => View::At(Side::Client),
        _ => View::Received,
    });
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
    let (mut format, mut out) = (new_format(args.to), Vec::new());
    let folds = matches!(args.to, Target::Md | Target::Mermaid);
    let mut chunks = ChunkFolder::default();
    let mut conversation = Exchanges::default();
    let (mut messages, mut left_out, mut bodiless) = (0_u64, 0_u64, 0_u64);
    let (mut header, mut last, mut flushed) = (None, 0, Ok(()));
    opened.each(|part, in_view| {
        let event = match part {
            Part::Event(event) => {
                // The line of the header may be damaged.
                if header.is_none() {
                    format.begin(header.insert(Header::default()), &mut out);
                }
                event
            }
            Part::Header(first) if header.is_none() => {
                last = first.began;
                header = Some(first.clone());
                return format.begin(first, &mut out);
            }
            Part::Header(_) | Part::Damaged => return,
        };
        // An event outside of the view may show which request an answer belongs to.
        conversation.add(event);
        if !in_view {
            return;
        }
        let exchange = conversation.exchange_in(at, event.n);
        let exchange = exchange.filter(|one| one.n != event.n);
        let took = exchange.map(|exchange| event.t.saturating_sub(exchange.requested_at));
        let mut text = Vec::new();
        match &event.kind {
            EventKind::Message(message) => {
                let began = header.as_ref().map_or(0, |header| header.began);
                let exported = Exported::new(event, message, began, took);
                let written = exported.map(|exported| {
                    last = exported.at;
                    let chunk = ChunkRun::from_event(event).filter(|_| folds);
                    let Some(chunk) = chunk else {
                        return format.message(&exported, &mut text);
                    };
                    if let Some(run) = chunks.add(chunk) {
                        format.run(&run, &mut out);
                    }
                    true
                });
                *(match written {
                    Some(true) => &mut messages,
                    Some(false) => &mut left_out,
                    None => &mut bodiless,
                }) += 1;
            }
            _ => format.event(event, &mut text),
        }
        // An event that the format does not show does not end a run.
        if !text.is_empty() {
            if let Some(run) = chunks.end() {
                format.run(&run, &mut out);
            }
            out.extend(text);
        }
        if out.len() > FLUSH_BYTES && flushed.is_ok() {
            flushed = write(&std::mem::take(&mut out));
        }
    })?;
    if let Some(run) = chunks.end() {
        format.run(&run, &mut out);
    }
    format.end(&header.unwrap_or_default(), last, &mut out);
    flushed
        .and_then(|()| write(&out))
        .map_err(|error| exit::fail(exit::SYSTEM, &format!("cannot write: {error}")))?;
    if args.json {
        let done = json!({"messages": messages, "left_out": left_out, "bodiless": bodiless});
        note(&done.to_string());
    } else {
        for (count, why) in [
            (left_out, "this format cannot represent them"),
            (bodiless, "their bodies were not recorded"),
        ] {
            if count > 0 {
                note(&format!("acp-relay: {count} messages were left out: {why}"));
            }
        }
    }
    Ok(output.done(exit::SUCCESS))
}

fn new_format(to: Target) -> Box<dyn Format> {
    match to {
        Target::Jsons => Box::new(Jsons),
        Target::Mermaid => Box::new(Mermaid),
        Target::Md => Box::new(Markdown::default()),
        Target::Ndjson => Box::new(Plain),
        Target::Capture => Box::new(Captured),
        Target::Devtools => Box::new(Devtools::default()),
    }
}
