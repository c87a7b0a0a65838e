//! `acp-relay check`: checks recorded conversations against the official schemas of ACP.
//!
//! `acp` checks, `recording::capture` reads files, `analysis::Repairs` finds the rules that repair a
//! violation, and `findings` formats the results.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::console::Output;
use super::dialect::Tables;
use super::dialect_options::choice;
use super::findings::{CheckSummary, hint_at_table, is_of_dialect, line_json, line_text};
use super::progress::{Counted, Progress};
use super::{console, exit, recordings};
use crate::cli::variant::variant_of;
use acp::{Checker, Schema};
use analysis::Repairs;
use analysis::lint::Finding;
use conversation::DialectChoice;
use jsonrpc::Side;
use recording::capture::{self, LineContent, Lines};

/// What `--help` says after the options.
pub(super) const HELP: &str = "\
A file has JSON-RPC as it passed on the wire: one message per line, one over several lines, in an
array, or after Content-Length headers; or it is a capture of both sides,
{\"dir\":\"c2a\",\"ts\":0.1,\"msg\":{…}}, with \"a2c\" for the agent's messages. Where a line does not name
the sender, the method determines it, and a response is matched by its id. A side that speaks the
draft of v2, as its `initialize` exchange shows, is checked against the schema of that draft.

A violation is either `refused`: a reader that is built on the official types refuses the message;
or `ignored`: such a reader continues without the value. Below it are the rules that repair it when
the relay reads that side's dialect, if there are any (`acp-relay dialect show NAME`).

Exit codes: 0 no violation, or none that --fail-on selects; 1 violations; 64 usage; 65 a table has
faults; 66 a file cannot be read. A reader of stdout that closes early changes none of them.";

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The files to read; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files contain only the messages of this side
    #[arg(long, value_parser = variant_of::<Side>(), value_name = "SIDE")]
    from: Option<Side>,
    /// The client's dialect, for the rules that repair: auto, canonical, or a dialect's name
    #[arg(long, value_name = "DIALECT", default_value = "auto", value_parser = choice)]
    client_dialect: DialectChoice,
    /// The agent's dialect, for the rules that repair: auto, canonical, or a dialect's name
    #[arg(long, value_name = "DIALECT", default_value = "auto", value_parser = choice)]
    agent_dialect: DialectChoice,
    /// Which violations make the exit code 1
    #[arg(long, value_enum, value_name = "WHICH", default_value = "any")]
    fail_on: FailOn,
    /// Print one JSON object per line: for each violation, each file, and the summary
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tables: Tables,
}

/// The violations that count.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    /// All of them
    Any,
    /// Those that no rule repairs
    Unrepaired,
}

/// Runs the subcommand.
pub(super) fn run(args: &Check) -> ExitCode {
    let library = match args.tables.library() {
        Ok(library) => Arc::new(library),
        Err(trouble) => return trouble.fail(),
    };
    let paths = args.files.iter().map(|word| recordings::locate(word));
    let paths: Vec<PathBuf> = match paths.collect() {
        Ok(paths) => paths,
        Err(code) => return code,
    };
    let _progress = (!args.json).then(|| {
        let lengths = paths.iter().map(|path| match fs::metadata(path) {
            Ok(data) if data.is_file() => Some(data.len()),
            _ => None,
        });
        Progress::start(lengths.sum::<Option<u64>>().unwrap_or(0))
    });
    let mut out = Output::new();
    let mut all = CheckSummary::default();
    let mut unreadable = false;
    for path in &paths {
        let (client, agent) = (&args.client_dialect, &args.agent_dialect);
        let repairs = match Repairs::new(&library, client, agent, args.from.is_some()) {
            Ok(repairs) => repairs,
            Err(unknown) => return exit::fail(exit::USAGE, &unknown),
        };
        if let Err(error) = check_file(args, path, repairs, &mut all, &mut out) {
            unreadable = true;
            out.flush();
            console::unreadable(path, &error);
        }
        if !out.is_open() {
            break;
        }
    }
    if args.json {
        out.line(all.json().to_string().as_bytes());
    } else if let Some(path) = &all.of_dialect {
        out.flush();
        if out.is_open() {
            hint_at_table(path);
        }
    }
    let counts = match args.fail_on {
        FailOn::Any => all.violations(),
        FailOn::Unrepaired => all.unrepaired(),
    };
    out.done(match (unreadable, counts) {
        (true, _) => exit::NO_INPUT,
        (false, 0) => 0,
        (false, _) => exit::VIOLATIONS,
    })
}

fn check_file(
    args: &Check,
    path: &Path,
    mut repairs: Repairs,
    all: &mut CheckSummary,
    out: &mut Output,
) -> io::Result<()> {
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        capture::expanded(BufReader::new(Counted(console::input())))?
    } else {
        capture::open(path)?
    };
    let mut tally = CheckSummary::default();
    let done = check_conversation(args, path, reader, &mut tally, &mut repairs, out);
    // A file that was not read to its end gets no summary, which could read as "no violation".
    if done.is_ok() {
        let report = if args.json {
            tally.file_json(path, &repairs).to_string()
        } else {
            tally.text(path, &repairs)
        };
        out.line(report.as_bytes());
    }
    all.add(tally);
    done
}

/// Checks one conversation and prints its violations.
fn check_conversation(
    args: &Check,
    path: &Path,
    reader: impl BufRead,
    tally: &mut CheckSummary,
    repairs: &mut Repairs,
    out: &mut Output,
) -> io::Result<()> {
    let mut conversation = Checker::new(args.from.is_some());
    for line in Lines::new(reader) {
        let line = line?;
        let LineContent::Message { from, message, .. } = &line.content else {
            continue;
        };
        let from = from.or(args.from);
        if let Some(answer) = &line.negotiated {
            let answer: Value = serde_json::from_slice(answer.as_bytes()).unwrap_or_default();
            conversation.speaks(Side::Client, Schema::of_initialize(&answer["result"]));
        }
        let mut verdict = conversation.check_as(from, message, line.request_method.as_deref());
        let is_v1 = conversation.spoken(Side::Agent) == Schema::V1;
        match verdict.from {
            Some(side) if conversation.spoken(side) == Schema::V2 => repairs.skip(side),
            from => repairs.receive(from, message),
        }
        tally.messages += 1;
        tally.unchecked += u64::from(!verdict.checked);
        for violation in std::mem::take(&mut verdict.violations) {
            let finding = Finding {
                remedies: repairs.rules(&violation),
                ..Finding::of_violation(line.number, &verdict, violation.clone())
            };
            tally.add_violation(&finding, &violation);
            if is_v1 && is_of_dialect(&finding) && path != Path::new("-") {
                tally.of_dialect.get_or_insert_with(|| path.to_owned());
            }
            let text = match args.json {
                true => line_json(path, &finding, &violation).to_string(),
                false => line_text(&finding, &violation),
            };
            out.line(text.as_bytes());
        }
        if !out.is_open() {
            break;
        }
    }
    Ok(())
}
