//! Runs the golden vectors of files, and the scripted conversations in them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::scripted::ScriptedConversation;
use crate::text::counted;
use dialect::versions::V2_DIALECT;
use dialect::{Library, Vector, VectorResult};

/// The results of all vectors.
#[derive(Debug, Default)]
pub struct VectorReport {
    /// The results, one for each direction of a vector.
    pub outcomes: Vec<VectorOutcome>,
    vectors: usize,
}

/// The result of one vector in one direction.
#[derive(Debug, Serialize)]
pub struct VectorOutcome {
    file: String,
    line: usize,
    dialect: String,
    passed: bool,
    /// The result.
    #[serde(flatten)]
    pub result: VectorResult,
}

impl VectorReport {
    /// Runs the vectors of a file; returns their totals in a line.
    pub fn add_file(&mut self, file: &str, text: &str, library: &Arc<Library>) -> String {
        let earlier = self.outcomes.len();
        let mut vectors = 0;
        let lines = (1..).zip(text.lines());
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            vectors += 1;
            if ScriptedConversation::is_one(line) {
                let result = match serde_json::from_str::<ScriptedConversation>(line) {
                    Ok(script) => script.run(library),
                    Err(why) => {
                        VectorResult::failed("?", format!("this is no conversation: {why}"))
                    }
                };
                self.add(file, at, V2_DIALECT, result);
                continue;
            }
            match Vector::parse(line) {
                Ok(vector) => {
                    for result in vector.run(library) {
                        self.add(file, at, &vector.dialect, result);
                    }
                }
                Err(why) => {
                    let fault = format!("this line is no vector: {why}");
                    self.add(file, at, "?", VectorResult::failed("?", fault));
                }
            }
        }
        if vectors == 0 {
            let fault = "the file has no vectors".to_owned();
            self.add(file, 1, "?", VectorResult::failed("?", fault));
        }
        self.vectors += vectors;
        totals(vectors, &self.outcomes[earlier..])
    }

    /// How many have failed.
    pub fn failed(&self) -> usize {
        count(&self.outcomes, |one| one.fault.is_some())
    }

    /// The totals of all files, in a line.
    pub fn totals(&self) -> String {
        totals(self.vectors, &self.outcomes)
    }

    /// All of it as JSON.
    pub fn json(&self) -> Value {
        json!({
            "vectors": self.vectors,
            "passed": self.outcomes.iter().filter(|one| one.passed).count(),
            "failed": self.failed(),
            "skipped": count(&self.outcomes, |one| one.skipped.is_some()),
            "results": self.outcomes,
        })
    }

    fn add(&mut self, file: &str, line: usize, dialect: &str, result: VectorResult) {
        self.outcomes.push(VectorOutcome {
            file: file.to_owned(),
            line,
            dialect: dialect.to_owned(),
            passed: result.skipped.is_none() && result.fault.is_none(),
            result,
        });
    }
}

impl VectorOutcome {
    /// `ok`, `FAIL` or `skip`, the place, dialect, name, direction, and the fault.
    pub fn line(&self) -> String {
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

fn count(all: &[VectorOutcome], is: impl Fn(&VectorResult) -> bool) -> usize {
    all.iter().filter(|one| is(&one.result)).count()
}

/// The totals of some results, in a line.
fn totals(vectors: usize, all: &[VectorOutcome]) -> String {
    let vectors = counted(vectors, "vector");
    let passed = all.iter().filter(|one| one.passed).count();
    let failed = count(all, |one| one.fault.is_some());
    let totals = format!("{vectors}: {passed} passed, {failed} failed");
    match count(all, |one| one.skipped.is_some()) {
        0 => totals,
        skipped => format!("{totals}, {skipped} skipped"),
    }
}
