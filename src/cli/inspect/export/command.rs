//! The command line of `inspect export`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::capture::{Captured, Plain};
use super::devtools::Devtools;
use super::har::Har;
use super::jsons::Jsons;
use super::markdown::Markdown;
use super::mermaid::Mermaid;
use super::pcapng::Pcapng;
use super::{Form, Said};
use crate::cli::console::{Output, remark};
use crate::cli::inspect::select::{At, Selection};
use crate::cli::{cli, exit};
use crate::observe::recorder::create;
use crate::recording::{Conversation, What};

/// Bytes after which the output is flushed.
const ENOUGH: usize = 256 << 10;

/// The arguments of `inspect export`.
#[derive(Debug, Args)]
pub(in crate::cli::inspect) struct Export {
    #[command(flatten)]
    selection: Selection,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: To,
    /// The file to write, instead of stdout; it must not exist yet
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Which messages to export; default: client for md and mermaid, received for the others
    #[arg(long, value_enum)]
    at: Option<At>,
    /// Report as JSON, on stderr: messages, left_out (the format cannot represent them), bodiless
    /// (their bodies were not recorded)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// For the official trace viewer
    Jsons,
    /// For browsers' network panels: a WebSocket's messages
    Har,
    /// A sequence diagram
    Mermaid,
    /// A transcript, turn by turn
    Md,
    /// For Wireshark: a made-up WebSocket connection
    Pcapng,
    /// The messages alone, one a line
    Ndjson,
    /// The messages with direction and time, one a line
    Capture,
    /// For acp-devtools
    Devtools,
}

/// Where the output goes.
enum Sink {
    File(std::fs::File),
    Stdout(Output),
}

/// Runs the subcommand.
pub(in crate::cli::inspect) fn run(args: &Export) -> ExitCode {
    let at = args.at.unwrap_or(match args.to {
        To::Md | To::Mermaid => At::Client,
        _ => At::Heard,
    });
    let chosen = match args.selection.open(Some(at)) {
        Ok(chosen) => chosen,
        Err(code) => return code,
    };
    let mut sink = match &args.out {
        None => Sink::Stdout(Output::new()),
        Some(path) => match create(path) {
            Ok(file) => Sink::File(file),
            Err(error) => {
                let what = format!("{}: {error}", path.display());
                return cli::fail(exit::CANNOT_CREATE, &what);
            }
        },
    };
    let form = std::cell::RefCell::new(form(args.to));
    let out = std::cell::RefCell::new(Vec::new());
    let mut conversation = Conversation::default();
    let (mut messages, mut left_out, mut bodiless) = (0_u64, 0_u64, 0_u64);
    let mut failed = None;
    let done = chosen.each_told(
        |header| form.borrow_mut().begin(header, &mut out.borrow_mut()),
        |event, in_view| {
            // An event outside of the view may tell which request an answer belongs to.
            conversation.see(event);
            let exchange = conversation.exchange_in(at.view(), event.n);
            let exchange = exchange.filter(|one| one.n != event.n);
            let took = exchange.map(|exchange| event.t.saturating_sub(exchange.asked));
            if !in_view {
                return;
            }
            let (mut form, mut out) = (form.borrow_mut(), out.borrow_mut());
            match &event.what {
                What::Message(message) => {
                    let said = Said::new(event, message, took);
                    let written = said.map(|said| form.message(&said, &mut out));
                    *(match written {
                        Some(true) => &mut messages,
                        Some(false) => &mut left_out,
                        None => &mut bodiless,
                    }) += 1;
                }
                _ => form.event(event, &mut out),
            }
            if out.len() > ENOUGH && failed.is_none() {
                failed = sink.write(&std::mem::take(&mut *out)).err();
            }
        },
    );
    if let Err(code) = done {
        return code;
    }
    let mut out = out.into_inner();
    form.borrow_mut().end(&mut out);
    if failed.is_none() {
        failed = sink.write(&out).err();
    }
    if let Some(error) = failed {
        return cli::fail(exit::SYSTEM, &format!("cannot write: {error}"));
    }
    if args.json {
        let done = json!({"messages": messages, "left_out": left_out, "bodiless": bodiless});
        remark(&done.to_string());
    } else {
        for (count, why) in [
            (left_out, "this format cannot represent them"),
            (bodiless, "their bodies were not recorded"),
        ] {
            if count > 0 {
                remark(&format!("acp-relay: {count} messages were left out: {why}"));
            }
        }
    }
    match sink {
        Sink::Stdout(output) => output.done(exit::SUCCESS),
        Sink::File(_) => ExitCode::SUCCESS,
    }
}

fn form(to: To) -> Box<dyn Form> {
    match to {
        To::Jsons => Box::new(Jsons),
        To::Har => Box::new(Har::default()),
        To::Mermaid => Box::new(Mermaid::default()),
        To::Md => Box::new(Markdown::default()),
        To::Pcapng => Box::new(Pcapng::default()),
        To::Ndjson => Box::new(Plain),
        To::Capture => Box::new(Captured),
        To::Devtools => Box::new(Devtools::default()),
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Stdout(output) => {
                output.bytes(bytes);
                Ok(())
            }
        }
    }
}
