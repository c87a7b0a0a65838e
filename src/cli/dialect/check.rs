//! `acp-relay dialect check`: validates mapping tables and runs their examples.
//!
//! Reports all faults of all files at once; `analysis` and `dialect` have the checks.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::tables::{LoadError, files, read};
use crate::cli::console::{self, Output};
use crate::cli::snippets::FileFault;
use crate::cli::text::Paint;
use analysis::CheckedTable;
use analysis::text::counted;
use dialect::Library;

/// The arguments of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no fault; 1 faults; 64 usage; 65 a table given with --table has faults; 66 a file cannot be read."
)]
pub(super) struct Check {
    /// Tables, or folders of tables; without any, all known tables are checked
    files: Vec<PathBuf>,
    /// Also require what is only advised otherwise: a reason and an example for each rule, and names of
    /// methods that ACP has
    #[arg(long)]
    strict: bool,
    /// Print a JSON object instead
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Check, mut tables: Library) -> Result<ExitCode, ExitCode> {
    let checked = check(args, &mut tables).map_err(|error| error.fail())?;
    let faults: usize = checked.iter().map(|one| one.faults.len()).sum();
    let notes: usize = checked.iter().map(|one| one.notes.len()).sum();
    let code = u8::from(faults > 0);
    if args.json {
        let files: Vec<Value> = checked.iter().map(CheckedTable::json).collect();
        let report = json!({"files": files, "faults": faults, "notes": notes});
        return Ok(console::print_json(&report, code));
    }
    let paint = Output::new().paint;
    let mut text: String = checked.iter().map(|one| shown(one, paint)).collect();
    let (checked, faults) = (counted(checked.len(), "table"), counted(faults, "fault"));
    text += &format!("{checked}, {faults}");
    if notes > 0 {
        text += &format!(", {}", counted(notes, "note"));
    }
    Ok(console::print(&text, code))
}

/// Adds all files before it checks the first, because they may extend each other.
fn check(args: &Check, tables: &mut Library) -> Result<Vec<CheckedTable>, LoadError> {
    let mut checked: Vec<CheckedTable> = Vec::new();
    for path in &args.files {
        for path in files(path)? {
            let text = read(&path)?;
            let file = path.display().to_string();
            checked.push(CheckedTable::add(tables, file, text));
        }
    }
    if args.files.is_empty() {
        checked.extend(tables.sources().iter().map(CheckedTable::known));
    }
    for one in &mut checked {
        one.check(tables, args.strict);
    }
    Ok(checked)
}

/// The faults of a table with the lines that they are in, and its notes.
fn shown(checked: &CheckedTable, paint: Paint) -> String {
    let shown = checked.faults.iter().map(|fault| {
        let shown = FileFault {
            file: &checked.file,
            text: &checked.text,
            at: fault.at.clone(),
            is_note: false,
            part: fault.rule.as_deref().unwrap_or_default(),
            what: &fault.what,
            remedy: &fault.remedy,
        };
        let snippet = shown.snippet(paint.is_enabled());
        format!("{snippet}\n{}\n", paint.diff(&fault.diff))
    });
    let mut text: String = shown.collect();
    text.extend(checked.notes.iter().map(|note| format!("note: {note}\n")));
    let file = &checked.file;
    match checked.counts() {
        Some((rules, examples)) if checked.faults.is_empty() => {
            let (rules, examples) = (counted(rules, "rule"), counted(examples, "example"));
            text += &format!("{file}: no faults; {rules}, {examples}\n");
        }
        Some(_) => {}
        None => {
            let why = "its examples were not run, because the table has faults";
            text += &format!("{file}: {why}\n");
        }
    }
    text
}
