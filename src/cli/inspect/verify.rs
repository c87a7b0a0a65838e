//! `acp-relay inspect verify`: checks that recordings are complete and unchanged.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::select::{Recordings, open_unchecked, report_unreadable, report_unusable};
use crate::cli::console::Output;
use crate::cli::dialect::Tables;
use crate::cli::exit;
use crate::cli::inputs::{distinct, total_bytes};
use crate::cli::progress::Progress;
use crate::cli::recordings::LAST;
use analysis::retranslate::{CurrentTables, Retranslation, retranslate};
use jsonrpc::printable;
use recording::{NotRecording, Recording, verify};

/// The arguments of `inspect verify`.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Recordings, by path or name; of one in several segments, any of them
    #[arg(value_name = "FILE", default_value = LAST)]
    files: Vec<PathBuf>,
    /// One JSON object a line: name, segments, events, ended, translations (again: how many were
    /// repeated; why: why no more were), findings (a list: file, at, id, what)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tables: Tables,
}

/// Runs the subcommand.
pub(super) fn run(args: &Verify) -> Result<ExitCode, ExitCode> {
    let tables = CurrentTables {
        library: Arc::new(args.tables.load()?),
        digest: args.tables.digest().map_err(|trouble| trouble.fail())?,
    };
    let files = distinct(&args.files)?;
    let _progress = (!args.json).then(|| {
        let (translated, plain): (Vec<_>, Vec<_>) = files
            .iter()
            .cloned()
            .partition(|file| may_be_translated(file));
        // Translations are repeated after the files were checked.
        Progress::start(total_bytes(&plain) + 2 * total_bytes(&translated))
    });
    let mut recordings = Recordings::of((files, None));
    let mut code = exit::SUCCESS;
    recordings.each(|to, selection| {
        if !check(args, &selection.file, &tables, &mut to.output)? {
            code = exit::VIOLATIONS;
        }
        Ok(())
    });
    Ok(recordings.done(code))
}

/// Whether a side of a recorded conversation had a dialect.
fn may_be_translated(file: &Path) -> bool {
    let header = Recording::of(file)
        .ok()
        .and_then(|recording| recording.header());
    header.is_some_and(|header| {
        let dialects = [&header.client, &header.agent].map(|peer| &*peer.dialect);
        dialects
            .iter()
            .any(|name| !["", "canonical"].contains(name))
    })
}

/// Checks one recording, and prints the result. Returns whether it is intact.
fn check(
    args: &Verify,
    path: &Path,
    tables: &CurrentTables,
    output: &mut Output,
) -> Result<bool, ExitCode> {
    let recording = open_unchecked(path)?;
    // Damage is a finding; a file that never was a recording is an error.
    if let Err(misfit @ (NotRecording::OtherFormat | NotRecording::Newer(_))) = recording.check() {
        return Err(report_unusable(path, &misfit));
    }
    let mut report = verify(&recording);
    // Translations of a damaged recording cannot be checked.
    let translations = match report.findings.is_empty() {
        true => retranslate(&recording, tables),
        false => Ok(Retranslation::default()),
    };
    let translations = translations.map_err(|error| report_unreadable(path, &error))?;
    report.findings.extend(translations.findings);
    let is_intact = report.findings.is_empty();
    let findings = report.findings.iter().map(|finding| {
        let file = recording.segments.get(finding.segment);
        let file = file.map_or(path, PathBuf::as_path).display().to_string();
        (file, finding)
    });
    if args.json {
        let findings = findings.map(|(file, finding)| {
            json!({"file": file, "at": finding.at, "id": finding.id, "what": finding.text})
        });
        let value = json!({
            "name": recording.name,
            "segments": report.segments,
            "events": report.events,
            "ended": report.ended,
            "translations": {"again": translations.compared, "why": translations.why},
            "findings": findings.collect::<Vec<_>>(),
        });
        output.line(value.to_string());
        return Ok(is_intact);
    }
    for (file, finding) in findings {
        let line = format!(
            "{file}: byte {}: {}: {}",
            finding.at, finding.id, finding.text
        );
        output.line(printable(line.as_bytes()));
    }
    let verdict = match (report.findings.len(), report.ended) {
        (0, true) => "intact".to_owned(),
        (0, false) => "intact, but not ended".to_owned(),
        (count, _) => format!("{count} findings"),
    };
    let verdict = match (&translations.why, translations.compared) {
        (None, 0) => verdict,
        (None, count) => format!("{verdict}; {count} translations repeated"),
        (Some(why), _) => {
            let why = printable(why.as_bytes());
            format!("{verdict}; translations were not repeated: {why}")
        }
    };
    let (events, segments) = (report.events, report.segments);
    let name = printable(recording.name.as_bytes());
    let line = format!("{name}: {events} events in {segments} segments: {verdict}");
    output.line(line);
    Ok(is_intact)
}
