//! `acp-relay dialect test`: runs golden vectors in the directions they state.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::tables::LoadError;
use crate::cli::console::{self, counted};
use crate::dialect::{Library, Vector, VectorResult};

/// The arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = "\
A vector is one JSON object on a line: `name`, `dialect`, `direction` (agent_to_client or
client_to_agent), `dialect_msg` and `canonical_msg`, `context` (earlier messages in both forms),
`roundtrip` (true: both ways) or `flow` (d2c, c2d), `canonical_before`, `canonical_after`,
`canonical_reply`, `dialect_reply`, `ids`. Messages are compared by value. `wire` and `http` state
bytes and requests, which this command does not run: they are counted as skipped.

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

/// The result of one vector in one direction.
#[derive(Serialize)]
struct Outcome {
    file: String,
    line: usize,
    dialect: String,
    passed: bool,
    #[serde(flatten)]
    result: VectorResult,
}

/// The totals of some files.
#[derive(Serialize)]
struct Totals {
    vectors: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
}

pub(super) fn run(args: &Test, library: &Library) -> ExitCode {
    let (mut all, mut of_files) = (Vec::new(), Vec::new());
    let mut vectors = 0;
    for path in &args.files {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return LoadError::file(path, error).fail(),
        };
        let (file, earlier) = (path.display().to_string(), all.len());
        let found = run_file(&file, &text, library, &mut all);
        let totals = Totals::of(found, &all[earlier..]);
        of_files.push(format!("{file}: {totals}\n"));
        vectors += found;
    }
    let totals = Totals::of(vectors, &all);
    let code = u8::from(totals.failed > 0);
    if args.json {
        let mut report = json!(totals);
        report["results"] = json!(all);
        return console::print_json(&report, code);
    }
    let shown = all
        .iter()
        .filter(|one| !args.quiet || one.result.fault.is_some());
    let mut text: String = shown.map(Outcome::to_string).collect();
    if of_files.len() > 1 {
        text.extend(of_files);
    }
    console::print(&format!("{text}{totals}\n"), code)
}

/// Runs the vectors of a file, and returns how many there are.
fn run_file(file: &str, text: &str, library: &Library, all: &mut Vec<Outcome>) -> usize {
    let mut vectors = 0;
    let mut add = |line: usize, dialect: &str, result: VectorResult| {
        all.push(Outcome {
            file: file.to_owned(),
            line,
            dialect: dialect.to_owned(),
            passed: result.skipped.is_none() && result.fault.is_none(),
            result,
        });
    };
    let lines = (1..).zip(text.lines());
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        vectors += 1;
        match Vector::parse(line) {
            Ok(vector) => {
                for result in vector.run(library) {
                    add(at, &vector.dialect, result);
                }
            }
            Err(why) => {
                let fault = format!("this line is no vector: {why}");
                add(at, "?", VectorResult::failed("?", fault));
            }
        }
    }
    if vectors == 0 {
        let fault = "the file has no vectors".to_owned();
        add(1, "?", VectorResult::failed("?", fault));
    }
    vectors
}

/// One line: `ok`, `FAIL` or `skip`, the place, dialect, name, direction, and the fault.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VectorResult {
            name,
            way,
            fault,
            skipped,
        } = &self.result;
        let verdict = match (fault, skipped) {
            (Some(_), _) => "FAIL",
            (None, Some(_)) => "skip",
            (None, None) => "ok  ",
        };
        let (file, line, dialect) = (&self.file, self.line, &self.dialect);
        write!(f, "{verdict} {file}:{line} {dialect} {name}")?;
        if !way.is_empty() {
            write!(f, " {way}")?;
        }
        if let Some(fault) = fault {
            write!(f, ": {fault}")?;
        }
        if let Some(key) = skipped {
            write!(f, ": skipped: `{key}` is not run here")?;
        }
        writeln!(f)
    }
}

impl Totals {
    fn of(vectors: usize, all: &[Outcome]) -> Self {
        let count = |is: fn(&&Outcome) -> bool| all.iter().filter(is).count();
        Self {
            vectors,
            passed: count(|one| one.passed),
            failed: count(|one| one.result.fault.is_some()),
            skipped: count(|one| one.result.skipped.is_some()),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vectors = counted(self.vectors, "vector");
        let (passed, failed) = (self.passed, self.failed);
        write!(f, "{vectors}: {passed} passed, {failed} failed")?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}
