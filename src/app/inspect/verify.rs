//! `acp-relay inspect verify`: whether recordings are what was written.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::command::segments_of;
use crate::app::console::Output;
use crate::app::exit;
use crate::recording::verify;
use crate::wire::printable;

/// What `inspect verify` is asked for.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Recordings; of one in several segments, any of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// One JSON object a line: name, segments, events, ended, findings (a list: file, at, id, what)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Verify) -> ExitCode {
    let mut output = Output::new();
    let mut code = exit::SUCCESS;
    for path in &args.files {
        let recording = match segments_of(path) {
            Ok(recording) => recording,
            Err(code) => return code,
        };
        let report = verify(&recording);
        if !report.findings.is_empty() {
            code = exit::DEVIATES;
        }
        let file = |segment: usize| {
            let path = recording.segments.get(segment).unwrap_or(path);
            path.display().to_string()
        };
        if args.json {
            let findings = report.findings.iter().map(|finding| {
                json!({
                    "file": file(finding.segment),
                    "at": finding.at,
                    "id": finding.id,
                    "what": finding.what,
                })
            });
            let value = json!({
                "name": recording.name,
                "segments": report.segments,
                "events": report.events,
                "ended": report.ended,
                "findings": findings.collect::<Vec<_>>(),
            });
            output.line(value.to_string().as_bytes());
            continue;
        }
        for finding in &report.findings {
            let (file, at) = (file(finding.segment), finding.at);
            let line = format!("{file}: byte {at}: {}: {}", finding.id, finding.what);
            output.line(printable(line.as_bytes()).as_bytes());
        }
        let verdict = match (report.findings.len(), report.ended) {
            (0, true) => "intact".to_owned(),
            (0, false) => "intact as far as it goes; it was not ended".to_owned(),
            (count, _) => format!("{count} findings"),
        };
        let (events, segments) = (report.events, report.segments);
        let name = printable(recording.name.as_bytes());
        output
            .line(format!("{name}: {events} events in {segments} segments: {verdict}").as_bytes());
    }
    output.done(code)
}
