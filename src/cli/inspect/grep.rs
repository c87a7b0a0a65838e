//! `acp-relay inspect grep`: finds a text in messages.
//!
//! Strings are searched unescaped, and the chunks of an agent's message as one text. Each session
//! has its own run of chunks, so that concurrent sessions do not interrupt each other's.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use regex_lite::{Match, Regex, RegexBuilder};
use serde::Serialize;
use serde_json::{Value, json};

use super::chunk_run::{ChunkFolder, ChunkRun};
use super::select::{Part, Recordings, Selection};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::cli::text::Paint;
use analysis::find_leaf;
use analysis::text::{excerpt, seconds, timestamp};
use jsonrpc::Side;
use recording::{EventKind, RecordedEvent, ViewFilter, show_halves_json};

/// The place of a chunk's text.
const CHUNK_TEXT: &str = "/params/update/content/text";

/// Bytes of a run that are shown before a match.
const BEFORE: usize = 40;

/// The arguments of `inspect grep`.
#[derive(Debug, Args)]
pub(super) struct Grep {
    /// A regular expression
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Ignore the case of ASCII letters
    #[arg(short, long)]
    ignore_case: bool,
    #[command(flatten)]
    sources: Inputs,
    /// One JSON object a line: file, n, t (seconds), pointer, text; of a match that spans several
    /// chunks also chunks, their number
    #[arg(long)]
    json: bool,
}

/// A match of the pattern.
#[derive(Serialize)]
struct Hit<'a> {
    file: &'a str,
    n: u64,
    #[serde(serialize_with = "seconds")]
    t: u64,
    pointer: &'a str,
    text: &'a str,
    /// The number of chunks that the text spans, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u64>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Grep) -> Result<ExitCode, ExitCode> {
    let pattern = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case)
        .build()
        .map_err(|error| exit::fail(exit::USAGE, &format!("the pattern: {error}")))?;
    let mut code = exit::VIOLATIONS;
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let mut first = true;
        find(selection, &pattern, &mut |hit| {
            code = exit::SUCCESS;
            if args.json {
                to.output.line(&*show_halves_json(&json!(hit).to_string()));
                return;
            }
            if std::mem::take(&mut first) {
                to.head(selection);
            }
            to.output.line(hit.line(to.paint));
        })
    });
    Ok(recordings.done(code))
}

/// Reports all matches in a recording.
fn find(
    selection: &Selection,
    pattern: &Regex,
    report: &mut impl FnMut(&Hit<'_>),
) -> Result<(), ExitCode> {
    let opened = selection.open(ViewFilter::received())?;
    let file = selection.file.display().to_string();
    // The open runs, by side, direction and session.
    let mut runs: HashMap<(Side, Side, Option<String>), ChunkFolder> = HashMap::new();
    let done = opened.each(|part, _| {
        let Part::Event(event) = part else { return };
        if let Some(message) = event.message() {
            let key = (message.edge, message.to, message.session.clone());
            let run = runs.entry(key).or_default();
            let ended = match ChunkRun::from_event(event) {
                Some(chunk) => run.add(chunk),
                None => run.end(),
            };
            if let Some(run) = ended {
                search_run(&file, &run, pattern, report);
            }
        }
        search(event, &mut |pointer, text| {
            if pattern.is_match(text) {
                report(&Hit {
                    file: &file,
                    n: event.n,
                    t: event.t,
                    pointer,
                    text,
                    chunks: None,
                });
            }
        });
    });
    let rest = runs.into_values().filter_map(|mut run| run.end());
    let mut rest: Vec<ChunkRun> = rest.collect();
    rest.sort_by_key(|run| run.n);
    rest.iter()
        .for_each(|run| search_run(&file, run, pattern, report));
    done
}

/// Passes all texts of an event to `visit`, each with its place.
fn search(event: &RecordedEvent, visit: &mut impl FnMut(&str, &str)) {
    let body = match &event.kind {
        EventKind::Message(message) => &message.body,
        EventKind::Stderr(body) => body,
        EventKind::Gap { .. } | EventKind::End { .. } => return,
        kind => return kind.text().into_iter().for_each(|text| visit("", text)),
    };
    let tree = event.message().and_then(|message| message.body.json());
    match (tree, body.bytes()) {
        (Some(tree), _) => {
            find_leaf(&tree, |pointer, leaf| -> Option<()> {
                match leaf {
                    Value::String(text) => visit(pointer, text),
                    Value::Number(number) => visit(pointer, &number.to_string()),
                    _ => {}
                }
                None
            });
        }
        (None, Some(bytes)) => visit("", &String::from_utf8_lossy(bytes)),
        (None, None) => {}
    }
}

/// Reports a match that spans several chunks.
fn search_run(file: &str, run: &ChunkRun, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
    let spans_chunks = |found: &Match<'_>| {
        let at = run.ends.partition_point(|end| *end <= found.start());
        run.ends.get(at).is_some_and(|end| *end < found.end())
    };
    if let Some(first) = pattern.find_iter(&run.text).find(spans_chunks) {
        let mut before = first.start().saturating_sub(BEFORE)..=first.start();
        let from = before.find(|at| run.text.is_char_boundary(*at));
        let from = from.unwrap_or_else(|| first.start());
        report(&Hit {
            file,
            n: run.n,
            t: run.t,
            pointer: CHUNK_TEXT,
            text: &run.text[from..],
            chunks: Some(run.count),
        });
    }
}

impl Hit<'_> {
    fn line(&self, paint: Paint) -> String {
        let (n, at) = (self.n, timestamp(self.t));
        let pointer = excerpt(self.pointer.as_bytes());
        let chunks = self
            .chunks
            .map(|count| format!(" ×{count}"))
            .unwrap_or_default();
        let text = excerpt(self.text.as_bytes());
        let line = format!("{n:>6} {at:>12} {pointer}{chunks}: {text}");
        paint.line(20 + pointer.chars().count(), None, &line)
    }
}
