//! `acp-relay check`: checks recorded conversations against the official schemas of ACP.
//!
//! `recording::capture` reads files, and `analysis::check` checks them.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::console::Output;
use super::dialect::Tables;
use super::dialect_options::choice;
use super::progress::{Counted, Progress};
use super::{console, exit, recordings};
use crate::cli::variant::variant_of;
use acp::Schema;
use analysis::check::{CheckSummary, FileCheck, line_json, line_text};
use conversation::DialectChoice;
use jsonrpc::{Side, printable};
use recording::capture::{self, Lines};

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
    /// Check against this JSON Schema in place of the built-in one of its version of ACP; may be given
    /// once for each
    #[arg(long, value_name = "FILE")]
    schema: Vec<PathBuf>,
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
pub(super) fn run(args: &Check) -> Result<ExitCode, ExitCode> {
    for path in &args.schema {
        let text = fs::read_to_string(path).map_err(|error| {
            console::unreadable(path, &error);
            ExitCode::from(exit::NO_INPUT)
        })?;
        Schema::replace(&text).map_err(|why| {
            let what = format!("{} is no schema of ACP: {why}", path.display());
            exit::fail(exit::USAGE, &what)
        })?;
    }
    let library = Arc::new(args.tables.load()?);
    let paths = args.files.iter().map(|word| recordings::locate(word));
    let paths = paths.collect::<Result<Vec<PathBuf>, _>>()?;
    let _progress = (!args.json).then(|| {
        let lengths = paths.iter().map(|path| match fs::metadata(path) {
            Ok(data) if data.is_file() => Some(data.len()),
            _ => None,
        });
        Progress::start(lengths.sum::<Option<u64>>().unwrap_or(0))
    });
    let mut out = Output::new();
    let mut all = CheckSummary::default();
    let (mut unreadable, mut needs_table) = (false, None);
    for path in &paths {
        let (client, agent) = (&args.client_dialect, &args.agent_dialect);
        let check = FileCheck::new(&library, client, agent, args.from);
        let mut check = check.map_err(|unknown| exit::fail(exit::USAGE, &unknown))?;
        let done = check_file(args, path, &mut check, &mut out);
        if check.needs_table && path != Path::new("-") {
            needs_table.get_or_insert(path);
        }
        all.add(check.summary);
        if let Err(error) = done {
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
    } else if let Some(path) = needs_table {
        out.flush();
        if out.is_open() {
            hint_at_table(path);
        }
    }
    let counts = match args.fail_on {
        FailOn::Any => all.violations(),
        FailOn::Unrepaired => all.unrepaired(),
    };
    Ok(out.done(match (unreadable, counts) {
        (true, _) => exit::NO_INPUT,
        (false, 0) => 0,
        (false, _) => exit::VIOLATIONS,
    }))
}

/// Checks one file and prints its violations.
fn check_file(
    args: &Check,
    path: &Path,
    check: &mut FileCheck,
    out: &mut Output,
) -> io::Result<()> {
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        capture::expanded(BufReader::new(Counted(console::input())))?
    } else {
        capture::open(path)?
    };
    for line in Lines::new(reader) {
        for finding in check.line(&line?) {
            let text = match args.json {
                true => line_json(path, &finding).to_string(),
                false => line_text(&finding),
            };
            out.line(text.as_bytes());
        }
        if !out.is_open() {
            break;
        }
    }
    // A file that was not read to its end gets no summary, which could read as "no violation".
    let report = if args.json {
        check.json(path).to_string()
    } else {
        check.text(path)
    };
    out.line(report.as_bytes());
    Ok(())
}

/// Says on stderr how to repair what the agent in a file says differently.
pub(super) fn hint_at_table(path: &Path) {
    let path = path.to_string_lossy();
    let path = shell_words::quote(&path);
    console::note(&printable(
        format!("hint: a mapping table can repair this: acp-relay dialect new --from {path}")
            .as_bytes(),
    ));
}
