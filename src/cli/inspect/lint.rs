//! `acp-relay inspect lint`: violations of the protocol in conversations.
//!
//! `analysis::lint` has the rules, and shows what they find.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::select::{self, Part, Recordings, Selection};
use crate::cli::check::hint_at_table;
use crate::cli::console::{Output, note};
use crate::cli::exit;
use crate::cli::inputs::{Inputs, total_bytes};
use crate::cli::junit;
use crate::cli::progress::Progress;
use crate::cli::text::Tone;
use crate::cli::variant::variant_of;
use acp::Schema;
use analysis::filter::DerivedFields;
use analysis::junit::Suite;
use analysis::lint::{Finding, Linter, RULES, Severity, event_json, event_line, suite};
use jsonrpc::Side;
use recording::{View, ViewFilter};

/// The arguments of `inspect lint`.
#[derive(Debug, Args)]
pub(super) struct Lint {
    #[command(flatten)]
    sources: Inputs,
    /// List the rules
    #[arg(long)]
    list: bool,
    /// Which messages to check
    #[arg(long, value_parser = select::view(), default_value = "received")]
    at: View,
    /// The lowest severity that makes the exit code 1
    #[arg(long, value_parser = variant_of::<Severity>(), value_name = "SEVERITY", default_value = "error")]
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
    let (files, filter) = args.sources.read()?;
    let _progress = (!args.json).then(|| {
        // A filter selects by what was found in all of the recording.
        let passes = if filter.is_some() { 3 } else { 2 };
        Progress::start(passes * total_bytes(&files))
    });
    let mut recordings = Recordings::of((files, filter));
    let mut code = exit::SUCCESS;
    let mut suites = Vec::new();
    let mut of_dialect = None;
    recordings.each(|to, selection| {
        let name = selection.file.display().to_string();
        let begun = Instant::now();
        let (findings, is_v1) = find(args.at, selection).inspect_err(|_| {
            suites.push(Suite::unreadable(name.clone(), "it could not be read"));
        })?;
        if args.json {
            for finding in &findings {
                to.output.line(event_json(&name, finding).to_string());
            }
        } else {
            to.head(selection);
            for finding in &findings {
                let tone = tone(finding.rule.severity);
                to.output
                    .line(to.output.paint.line(19, Some(tone), &event_line(finding)));
            }
            let [errors, warnings, hints] = [Severity::Error, Severity::Warning, Severity::Hint]
                .map(|one| {
                    let of = findings
                        .iter()
                        .filter(|finding| finding.rule.severity == one);
                    of.count()
                });
            let line = format!("{errors} errors, {warnings} warnings, {hints} hints");
            to.output.line(to.output.paint.tone(Tone::Strong, &line));
        }
        if is_v1 && findings.iter().any(Finding::is_of_dialect) && !args.json {
            of_dialect.get_or_insert_with(|| selection.file.clone());
        }
        let counting = findings
            .iter()
            .filter(|finding| finding.rule.severity >= args.fail_on);
        if counting.clone().next().is_some() {
            code = exit::VIOLATIONS;
        }
        suites.push(suite(name, begun.elapsed(), &counting));
        Ok(())
    });
    if let Some(path) = &args.junit {
        junit::write(path, &suites)?;
    }
    recordings.output.flush();
    let is_open = recordings.output.is_open();
    let code = recordings.done(code);
    if let Some(path) = of_dialect.filter(|_| is_open) {
        hint_at_table(&path);
    }
    Ok(code)
}

/// Prints the rules.
fn list(json: bool) -> ExitCode {
    let mut output = Output::new();
    for rule in RULES {
        let severity = output
            .paint
            .tone(tone(rule.severity), &format!("{:<8}", rule.severity.name()));
        output.line(match json {
            true => json!(rule).to_string(),
            false => format!("{severity}{:<25}{}", rule.id, rule.description),
        });
    }
    output.done(exit::SUCCESS)
}

/// The findings that the filter selects, and whether the agent speaks v1.
fn find(at: View, selection: &Selection) -> Result<(Vec<Finding>, bool), ExitCode> {
    let opened = selection.open(ViewFilter::new_empty(at))?;
    if opened.received[0] != opened.received[1] {
        let side = match opened.received[0] {
            true => Side::Client,
            false => Side::Agent,
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
    let is_v1 = linter.spoken(Side::Agent) == Schema::V1;
    let findings = linter.end();
    let Some(filter) = &selection.filter else {
        return Ok((findings, is_v1));
    };
    let mut selected = Vec::new();
    let mut rest = findings.into_iter().peekable();
    for entry in opened.entries() {
        let Some(event) = entry?.parsed.into_event() else {
            continue;
        };
        while let Some(finding) = rest.next_if(|finding| finding.n <= event.n) {
            let derived = DerivedFields {
                duration: opened.annotations.derived(event.n).duration,
                lint: &[finding.rule.id],
            };
            if filter.matches(&event, derived) {
                selected.push(finding);
            }
        }
    }
    Ok((selected, is_v1))
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Odd,
        Severity::Hint => Tone::Faint,
    }
}
