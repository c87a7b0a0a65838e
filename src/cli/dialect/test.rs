//! `acp-relay dialect test`: runs golden vectors in the directions they state.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

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

/// The result of one file.
struct FileResult {
    file: String,
    vectors: usize,
    results: Vec<TestResult>,
}

/// The result of one vector in one direction.
struct TestResult {
    line: usize,
    dialect: String,
    report: VectorResult,
}

pub(super) fn run(args: &Test, library: &Library) -> ExitCode {
    let mut all = Vec::new();
    for path in &args.files {
        match fs::read_to_string(path) {
            Ok(text) => all.push(run_file(&path.display().to_string(), &text, library)),
            Err(error) => return LoadError::file(path, error).fail(),
        }
    }
    let failed: usize = all.iter().map(FileResult::failed).sum();
    let code = u8::from(failed > 0);
    if args.json {
        return console::print_json(&as_json(&all), code);
    }
    let mut text = String::new();
    for ran in &all {
        for outcome in &ran.results {
            if !args.quiet || outcome.report.fault.is_some() {
                outcome.write_line(&ran.file, &mut text);
            }
        }
    }
    for ran in all.iter().filter(|_| all.len() > 1) {
        let _ = writeln!(text, "{}: {}", ran.file, summary(std::slice::from_ref(ran)));
    }
    let _ = writeln!(text, "{}", summary(&all));
    console::print(&text, code)
}

fn run_file(file: &str, text: &str, library: &Library) -> FileResult {
    let mut ran = FileResult {
        file: file.to_owned(),
        vectors: 0,
        results: Vec::new(),
    };
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        ran.vectors += 1;
        match Vector::parse(line) {
            Ok(vector) => {
                let result = |report| TestResult {
                    line: at + 1,
                    dialect: vector.dialect.clone(),
                    report,
                };
                let reports = vector.run(library).into_iter();
                ran.results.extend(reports.map(result));
            }
            Err(why) => {
                let fault = format!("this line is no vector: {why}");
                ran.results.push(TestResult::failed(at + 1, fault));
            }
        }
    }
    if ran.vectors == 0 {
        let fault = "the file has no vectors".to_owned();
        ran.results.push(TestResult::failed(1, fault));
    }
    ran
}

impl FileResult {
    fn failed(&self) -> usize {
        self.results
            .iter()
            .filter(|outcome| outcome.report.fault.is_some())
            .count()
    }

    fn skipped(&self) -> usize {
        let skipped = |outcome: &&TestResult| outcome.report.skipped.is_some();
        self.results.iter().filter(skipped).count()
    }
}

impl TestResult {
    /// A line that is no vector.
    fn failed(line: usize, fault: String) -> Self {
        Self {
            line,
            dialect: "?".to_owned(),
            report: VectorResult::failed("?", fault),
        }
    }

    /// Writes `ok`, `FAIL` or `skip`, the place, dialect, name, direction, and the fault.
    fn write_line(&self, file: &str, text: &mut String) {
        let VectorResult {
            name,
            way,
            fault,
            skipped,
        } = &self.report;
        let verdict = match (fault, skipped) {
            (Some(_), _) => "FAIL",
            (None, Some(_)) => "skip",
            (None, None) => "ok  ",
        };
        let _ = write!(
            text,
            "{verdict} {file}:{} {} {name}",
            self.line, self.dialect
        );
        if !way.is_empty() {
            let _ = write!(text, " {way}");
        }
        if let Some(fault) = fault {
            let _ = write!(text, ": {fault}");
        }
        if let Some(key) = skipped {
            let _ = write!(text, ": skipped: `{key}` is not run here");
        }
        text.push('\n');
    }

    fn as_json(&self, file: &str) -> Value {
        json!({
            "file": file,
            "line": self.line,
            "name": self.report.name,
            "dialect": self.dialect,
            "way": self.report.way,
            "passed": self.report.skipped.is_none() && self.report.fault.is_none(),
            "skipped": self.report.skipped,
            "fault": self.report.fault,
        })
    }
}

/// The totals of some files.
struct Totals {
    vectors: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Totals {
    fn of(all: &[FileResult]) -> Self {
        let sum = |count: fn(&FileResult) -> usize| all.iter().map(count).sum::<usize>();
        let (failed, skipped) = (sum(FileResult::failed), sum(FileResult::skipped));
        Self {
            vectors: sum(|ran| ran.vectors),
            passed: sum(|ran| ran.results.len()) - failed - skipped,
            failed,
            skipped,
        }
    }
}

fn summary(all: &[FileResult]) -> String {
    let totals = Totals::of(all);
    let vectors = counted(totals.vectors, "vector");
    let (passed, failed) = (totals.passed, totals.failed);
    match totals.skipped {
        0 => format!("{vectors}: {passed} passed, {failed} failed"),
        skipped => format!("{vectors}: {passed} passed, {failed} failed, {skipped} skipped"),
    }
}

fn as_json(all: &[FileResult]) -> Value {
    let totals = Totals::of(all);
    let results: Vec<Value> = all
        .iter()
        .flat_map(|ran| ran.results.iter().map(|outcome| outcome.as_json(&ran.file)))
        .collect();
    json!({
        "results": results,
        "vectors": totals.vectors,
        "passed": totals.passed,
        "failed": totals.failed,
        "skipped": totals.skipped,
    })
}
