//! `acp-relay inspect lint`: violations of the protocol in conversations.
//!
//! `recording::lint` has the rules.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::select::{Part, Recordings, Selection, report_unreadable};
use super::text::{Paint, Tone, excerpt, timestamp};
use crate::cli::console::{Output, note};
use crate::cli::exit;
use crate::cli::inputs::split_filter;
use crate::cli::junit::{self, Case, Suite, Verdict};
use crate::jsonrpc::Side;
use crate::recording::filter::{DerivedFields, Filter};
use crate::recording::lint::{Finding, LintRule, Linter, RULES, Severity};
use crate::recording::{RecordedEvent, View, ViewFilter};

/// The arguments of `inspect lint`.
#[derive(Debug, Args)]
pub(super) struct Lint {
    /// Recordings; of one in several segments, any of them. A last argument that is no file is a
    /// filter, such as `not lint:schema-*`; the fields are below
    #[arg(value_name = "FILE", required_unless_present = "list")]
    words: Vec<OsString>,
    /// The same filter, without a check whether a file has this name
    #[arg(long, value_name = "FILTER")]
    filter: Option<Filter>,
    /// List the rules
    #[arg(long)]
    list: bool,
    /// Which messages to check
    #[arg(long, value_enum, default_value_t)]
    at: View,
    /// The lowest severity that makes the exit code 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "error")]
    fail_on: Severity,
    /// Also write the outcome as JUnit XML: a suite for each file, in it a case for each rule
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// One JSON object a line: file, n, t (seconds), id, severity, side, method, what; with --list
    /// id, severity, message
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Lint) -> Result<ExitCode, ExitCode> {
    if args.list {
        return Ok(list(args.json));
    }
    let files = split_filter(&args.words, args.filter.as_ref())?;
    let mut recordings = Recordings::of(files);
    let mut code = exit::SUCCESS;
    let mut suites = Vec::new();
    recordings.each(|to, selection| {
        let name = selection.file.display().to_string();
        let begun = Instant::now();
        let findings = find(args.at, selection).inspect_err(|_| {
            let why = "it could not be read".to_owned();
            suites.push(Suite::unreadable(name.clone(), why));
        })?;
        if findings.iter().any(|finding| args.counts(finding)) {
            code = exit::VIOLATIONS;
        }
        if args.json {
            for finding in &findings {
                to.output.line(as_json(&name, finding).as_bytes());
            }
        } else {
            to.head(selection);
            print_findings(&findings, to.paint, &mut to.output);
        }
        let cases = RULES.iter().map(|rule| args.case(rule, &findings));
        suites.push(Suite {
            name,
            took: begun.elapsed(),
            cases: cases.collect(),
        });
        Ok(())
    });
    if let Some(path) = &args.junit {
        junit::write(path, &suites)?;
    }
    Ok(recordings.done(code))
}

/// Prints findings and their totals.
fn print_findings(findings: &[Finding], paint: Paint, output: &mut Output) {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule.severity).or_default() += 1;
        output.line(as_text(finding, paint).as_bytes());
    }
    let count = |severity| counts.get(&severity).copied().unwrap_or(0);
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let hints = count(Severity::Hint);
    let line = format!("{errors} errors, {warnings} warnings, {hints} hints");
    output.line(paint.tone(Tone::Strong, &line).as_bytes());
}

impl Lint {
    /// Whether a finding makes the exit code 1.
    fn counts(&self, finding: &Finding) -> bool {
        finding.rule.severity >= self.fail_on
    }

    /// The findings of one rule, as a test case.
    fn case(&self, rule: &LintRule, findings: &[Finding]) -> Case {
        let own = findings.iter().filter(|finding| finding.rule == rule);
        let lines: Vec<String> = own
            .filter(|finding| self.counts(finding))
            .map(|finding| finding_line(finding).trim().to_owned())
            .collect();
        Case {
            name: rule.id.to_owned(),
            verdict: if lines.is_empty() {
                Verdict::Passed
            } else {
                Verdict::Failed(lines)
            },
        }
    }
}

/// Prints the rules.
fn list(json: bool) -> ExitCode {
    let mut output = Output::new();
    let paint = Paint::of(&output);
    for rule in RULES {
        let line = if json {
            json!({"id": rule.id, "severity": rule.severity.name(), "message": rule.description})
                .to_string()
        } else {
            let severity = paint.tone(tone(rule.severity), &format!("{:<8}", rule.severity.name()));
            format!("{severity}{:<25}{}", rule.id, rule.description)
        };
        output.line(line.as_bytes());
    }
    output.done(exit::SUCCESS)
}

/// The findings that the filter selects.
fn find(at: View, selection: &Selection) -> Result<Vec<Finding>, ExitCode> {
    let opened = selection.open(ViewFilter::new_empty(at))?;
    if opened.received[0] != opened.received[1] {
        let side = if opened.received[0] {
            Side::Client
        } else {
            Side::Agent
        };
        note(&format!(
            "acp-relay: {}: it has only messages of the {side}; findings that need messages of the \
             {} are missing",
            selection.file.display(),
            side.other(),
        ));
    }
    let mut linter = Linter::with_filter(opened.view.clone());
    opened.each_in_order(|part| match part {
        Part::Header(header) => linter.begin(header),
        Part::Event(event) => drop(linter.add(event)),
        Part::Damaged => linter.skip_line(),
    })?;
    let mut findings = linter.end();
    let Some(filter) = &selection.filter else {
        return Ok(findings);
    };
    let mut selected = Vec::new();
    let mut rest = findings.drain(..).peekable();
    for entry in opened.entries() {
        let (_, entry) = entry.map_err(|error| report_unreadable(&selection.file, &error))?;
        let Some(event) = entry.parsed.event() else {
            continue;
        };
        while let Some(finding) = rest.next_if(|finding| finding.n <= event.n) {
            if is_selected(filter, event, &finding) {
                selected.push(finding);
            }
        }
    }
    Ok(selected)
}

fn is_selected(filter: &Filter, event: &RecordedEvent, finding: &Finding) -> bool {
    let facts = DerivedFields {
        duration: None,
        lint: &[finding.rule.id],
    };
    filter.matches(event, facts)
}

fn as_json(file: &str, finding: &Finding) -> String {
    json!({
        "file": file,
        "n": finding.n,
        "t": finding.t as f64 / 1e6,
        "id": finding.rule.id,
        "severity": finding.rule.severity.name(),
        "side": finding.side.map(Side::name),
        "method": finding.method,
        "what": finding.what,
    })
    .to_string()
}

fn as_text(finding: &Finding, paint: Paint) -> String {
    let tone = tone(finding.rule.severity);
    paint.line(19, Some(tone), &finding_line(finding))
}

/// A finding in one line.
fn finding_line(finding: &Finding) -> String {
    let mut text = format!(
        "{:>6} {:>12}  {:<7} {} {}",
        finding.n,
        timestamp(finding.t),
        finding.rule.severity.name(),
        finding.rule.id,
        finding.side.map_or("", Side::name),
    );
    for more in [finding.method.as_deref().unwrap_or_default(), &finding.what] {
        if !more.is_empty() {
            text += " ";
            text += &excerpt(more.as_bytes());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Odd,
        Severity::Hint => Tone::Faint,
    }
}
