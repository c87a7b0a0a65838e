//! Test results as JUnit XML for CI: one suite for each file.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::exit;
use super::log_redaction::clean;

/// The tests of one file.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) cases: Vec<Case>,
}

/// One test.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

/// The result of a test.
#[derive(Debug)]
pub(super) enum Verdict {
    Passed,
    /// What is wrong, a line each.
    Failed(Vec<String>),
    /// Why it could not be run.
    Broken(String),
}

impl Suite {
    /// The suite of a file that could not be tested.
    pub(super) fn unreadable(name: String, why: String) -> Self {
        let case = Case {
            name: "open".to_owned(),
            verdict: Verdict::Broken(why),
        };
        Self {
            name,
            took: Duration::ZERO,
            cases: vec![case],
        }
    }

    fn write(&self, out: &mut String) {
        let class = escaped(&self.name);
        let count = |is: fn(&Verdict) -> bool| {
            let all = self.cases.iter().filter(|case| is(&case.verdict));
            all.count()
        };
        let failures = count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let errors = count(|verdict| matches!(verdict, Verdict::Broken(_)));
        let tests = self.cases.len();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "  <testsuite name=\"{class}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" time=\"{:.3}\">",
            self.took.as_secs_f64(),
        );
        for Case { name, verdict } in &self.cases {
            let name = escaped(name);
            let (word, lines) = match verdict {
                Verdict::Passed => {
                    let _ = writeln!(out, "    <testcase classname=\"{class}\" name=\"{name}\"/>");
                    continue;
                }
                Verdict::Failed(lines) => ("failure", &lines[..]),
                Verdict::Broken(why) => ("error", std::slice::from_ref(why)),
            };
            let summary = escaped(lines.first().map_or("", String::as_str));
            let text = escaped(&lines.join("\n"));
            let _ = writeln!(
                out,
                "    <testcase classname=\"{class}\" name=\"{name}\">\n      <{word} message=\"{summary}\">{text}</{word}>\n    </testcase>"
            );
        }
        out.push_str("  </testsuite>\n");
    }
}

/// Writes the report. An error is printed, and the exit code is returned.
pub(super) fn write(path: &Path, suites: &[Suite]) -> Result<(), ExitCode> {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in suites {
        suite.write(&mut text);
    }
    text.push_str("</testsuites>\n");
    std::fs::write(path, &*clean(&text))
        .map_err(|error| exit::fail(exit::CANNOT_CREATE, &format!("{}: {error}", path.display())))
}

/// Text escaped for XML 1.0; characters that XML does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character if character.is_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
