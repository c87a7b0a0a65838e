//! `acp-relay dialect test`: golden vectors, run in the ways they state.
//!
//! Not here: the format and the running (see `crate::dialect::Vector`).

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::columns::counted;
use super::shelf::{Shelf, Trouble};
use crate::app::console;
use crate::dialect::{Library, Report, Vector};

/// What `test` is asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
A vector is one JSON object on a line: `name`, `dialect`, `direction` (agent_to_client or
client_to_agent), `dialect_msg` and `canonical_msg`, `context` (earlier messages in both forms),
`roundtrip` (true: both ways) or `flow` (d2c, c2d), `canonical_before`, `canonical_after`,
`canonical_reply`, `dialect_reply`, `ids`. Messages are compared by value.

Exit codes: 0 all passed; 1 one failed, a line is no vector, or a file has none; 66 a file cannot
be read.")]
pub(super) struct Test {
    /// Files of vectors, one a line
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print an object for a program instead: `results`, `vectors`, `passed`, `failed`
    #[arg(long)]
    json: bool,
    /// Print only what failed, and the summary
    #[arg(long, short)]
    quiet: bool,
}

/// What came of one file.
struct Ran {
    file: String,
    vectors: usize,
    results: Vec<Outcome>,
}

/// What came of one vector in one way.
struct Outcome {
    line: usize,
    dialect: String,
    report: Report,
}

pub(super) fn run(args: &Test, shelf: &Shelf) -> ExitCode {
    let mut all = Vec::new();
    for path in &args.files {
        match fs::read_to_string(path) {
            Ok(text) => all.push(run_file(&path.display().to_string(), &text, &shelf.library)),
            Err(error) => return Trouble::file(path, error).fail(),
        }
    }
    let failed: usize = all.iter().map(Ran::failed).sum();
    let code = u8::from(failed > 0);
    if args.json {
        return console::print_json(&as_json(&all), code);
    }
    let mut text = String::new();
    for ran in &all {
        for outcome in &ran.results {
            if !args.quiet || outcome.report.fault.is_some() {
                outcome.tell(&ran.file, &mut text);
            }
        }
    }
    for ran in all.iter().filter(|_| all.len() > 1) {
        let _ = writeln!(text, "{}: {}", ran.file, summary(std::slice::from_ref(ran)));
    }
    let _ = writeln!(text, "{}", summary(&all));
    console::print(&text, code)
}

fn run_file(file: &str, text: &str, library: &Library) -> Ran {
    let mut ran = Ran {
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
        let (dialect, reports) = match Vector::parse(line) {
            Ok(vector) => (vector.dialect.clone(), vector.run(library)),
            Err(why) => {
                let fault = format!("this line is no vector: {why}");
                (String::new(), vec![Report::failed("?", fault)])
            }
        };
        ran.results
            .extend(reports.into_iter().map(|report| Outcome {
                line: at + 1,
                dialect: dialect.clone(),
                report,
            }));
    }
    if ran.vectors == 0 {
        ran.results.push(Outcome {
            line: 1,
            dialect: String::new(),
            report: Report::failed("?", "the file has no vectors".to_owned()),
        });
    }
    ran
}

impl Ran {
    fn failed(&self) -> usize {
        self.results
            .iter()
            .filter(|outcome| outcome.report.fault.is_some())
            .count()
    }
}

impl Outcome {
    /// `ok` or `FAIL`, where, which, the way, and what is wrong.
    fn tell(&self, file: &str, text: &mut String) {
        let Report { name, way, fault } = &self.report;
        let verdict = if fault.is_some() { "FAIL" } else { "ok  " };
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
        text.push('\n');
    }

    fn as_json(&self, file: &str) -> Value {
        json!({
            "file": file,
            "line": self.line,
            "name": self.report.name,
            "dialect": self.dialect,
            "way": self.report.way,
            "passed": self.report.fault.is_none(),
            "fault": self.report.fault,
        })
    }
}

fn totals(all: &[Ran]) -> (usize, usize, usize) {
    let vectors = all.iter().map(|ran| ran.vectors).sum();
    let results: usize = all.iter().map(|ran| ran.results.len()).sum();
    let failed = all.iter().map(Ran::failed).sum();
    (vectors, results - failed, failed)
}

fn summary(all: &[Ran]) -> String {
    let (vectors, passed, failed) = totals(all);
    let vectors = counted(vectors, "vector");
    format!("{vectors}: {passed} passed, {failed} failed")
}

fn as_json(all: &[Ran]) -> Value {
    let (vectors, passed, failed) = totals(all);
    let results: Vec<Value> = all
        .iter()
        .flat_map(|ran| ran.results.iter().map(|outcome| outcome.as_json(&ran.file)))
        .collect();
    json!({"results": results, "vectors": vectors, "passed": passed, "failed": failed})
}
