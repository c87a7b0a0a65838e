//! `acp-relay dialect test`: runs golden vectors in the directions they state.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::tables::LoadError;
use crate::cli::console::{self, Output};
use crate::cli::text::Paint;
use analysis::ScriptedConversation;
use analysis::text::counted;
use dialect::versions::V2_DIALECT;
use dialect::{Library, Vector, VectorResult};

/// The arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = "\
A vector is one JSON object on a line: `name`, `dialect`, `direction` (agent_to_client or
client_to_agent), `dialect_msg` and `canonical_msg`, `context` (earlier messages in both forms),
`roundtrip` (true: both ways) or `flow` (d2c, c2d), `canonical_before`, `canonical_after`,
`canonical_reply`, `dialect_reply`, `ids`. Messages are compared by value. `wire` and `http` state
bytes and requests, which this command does not run: they are counted as skipped.

A conversation between v1 and v2 is one JSON object on a line as well: `name`, `steps`, `policies`. A
step is {\"from\": \"client\" or \"agent\", \"in\": message, \"out\": [{\"to\", \"msg\", \"fresh\"}]}, or
{\"after_ms\": time, \"out\"} in virtual time; `fresh`: to an agent that was started again. What each
side gets is compared in its order; each step that differs is named. `initialize` has the members of
both versions (the policy hybrid-initialize=on).

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

pub(super) fn run(args: &Test, library: &Arc<Library>) -> ExitCode {
    let (mut all, mut of_files) = (Vec::new(), String::new());
    let mut vectors = 0;
    for path in &args.files {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return LoadError::file(path, error).fail(),
        };
        let (file, earlier) = (path.display().to_string(), all.len());
        let found = run_file(&file, &text, library, &mut all);
        of_files += &format!("{file}: {}\n", totals(found, &all[earlier..]));
        vectors += found;
    }
    let failed = count(&all, |one| one.fault.is_some());
    let code = u8::from(failed > 0);
    if args.json {
        let report = json!({
            "vectors": vectors,
            "passed": all.iter().filter(|one| one.passed).count(),
            "failed": failed,
            "skipped": count(&all, |one| one.skipped.is_some()),
            "results": all,
        });
        return console::print_json(&report, code);
    }
    let output = Output::new();
    let paint = Paint::of(&output);
    let is_shown = |one: &&Outcome| !args.quiet || one.result.fault.is_some();
    let shown = |one: &Outcome| one.line() + &paint.diff(&one.result.diff);
    let mut text: String = all.iter().filter(is_shown).map(shown).collect();
    if args.files.len() > 1 {
        text += &of_files;
    }
    console::print(&format!("{text}{}\n", totals(vectors, &all)), code)
}

/// Runs the vectors of a file, and returns how many there are.
fn run_file(file: &str, text: &str, library: &Arc<Library>, all: &mut Vec<Outcome>) -> usize {
    let mut add = |line: usize, dialect: &str, result: VectorResult| {
        all.push(Outcome {
            file: file.to_owned(),
            line,
            dialect: dialect.to_owned(),
            passed: result.skipped.is_none() && result.fault.is_none(),
            result,
        });
    };
    let mut vectors = 0;
    let lines = (1..).zip(text.lines());
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        vectors += 1;
        if ScriptedConversation::is_one(line) {
            let result = match serde_json::from_str::<ScriptedConversation>(line) {
                Ok(script) => script.run(library),
                Err(why) => VectorResult::failed("?", format!("this is no conversation: {why}")),
            };
            add(at, V2_DIALECT, result);
            continue;
        }
        match Vector::parse(line) {
            Ok(vector) => {
                let results = vector.run(library).into_iter();
                results.for_each(|result| add(at, &vector.dialect, result));
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

impl Outcome {
    /// `ok`, `FAIL` or `skip`, the place, dialect, name, direction, and the fault.
    fn line(&self) -> String {
        let VectorResult {
            name,
            way,
            fault,
            skipped,
            ..
        } = &self.result;
        let (verdict, why) = match (fault, skipped) {
            (Some(fault), _) => ("FAIL", format!(": {fault}")),
            (None, Some(key)) => ("skip", format!(": skipped: `{key}` is not run here")),
            (None, None) => ("ok  ", String::new()),
        };
        let (file, line, dialect) = (&self.file, self.line, &self.dialect);
        let what = format!("{verdict} {file}:{line} {dialect} {name} {way}");
        format!("{}{why}\n", what.trim_end())
    }
}

fn count(all: &[Outcome], is: impl Fn(&VectorResult) -> bool) -> usize {
    all.iter().filter(|one| is(&one.result)).count()
}

/// The totals of some files, in a line.
fn totals(vectors: usize, all: &[Outcome]) -> String {
    let vectors = counted(vectors, "vector");
    let passed = all.iter().filter(|one| one.passed).count();
    let failed = count(all, |one| one.fault.is_some());
    let totals = format!("{vectors}: {passed} passed, {failed} failed");
    match count(all, |one| one.skipped.is_some()) {
        0 => totals,
        skipped => format!("{totals}, {skipped} skipped"),
    }
}
