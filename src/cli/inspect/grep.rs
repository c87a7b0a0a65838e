//! `acp-relay inspect grep`: finds a text in messages.
//!
//! Strings are searched unescaped, and the chunks of an agent's message as one text. Each session
//! has its own run of chunks, so that concurrent sessions do not interrupt each other's.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use regex_lite::{Match, Regex, RegexBuilder};
use serde_json::{Value, json};

use super::chunk_run::ChunkRun;
use super::select::{Part, Recordings, Selection};
use super::text::{Paint, excerpt, timestamp};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::jsonrpc::Side;
use crate::recording::{EventKind, RecordedEvent, ViewFilter, find_leaf, show_halves_json};

/// The place of a chunk's text.
const CHUNK_TEXT: &str = "/params/update/content/text";

/// Maximum bytes of a run of chunks; a longer one is searched in parts.
const MAX_RUN: usize = 1 << 20;

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
struct Hit<'a> {
    n: u64,
    t: u64,
    pointer: &'a str,
    text: &'a str,
    /// The number of chunks that the text spans.
    chunks: u64,
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
        let name = selection.file.display().to_string();
        let mut first = true;
        find(selection, &pattern, &mut |hit| {
            code = exit::SUCCESS;
            if args.json {
                let line = hit.json(&name).to_string();
                to.output.line(show_halves_json(&line).as_bytes());
                return;
            }
            if std::mem::take(&mut first) {
                to.head(selection);
            }
            to.output.line(hit.line(to.paint).as_bytes());
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
    // The open runs, by side, direction and session.
    let mut runs: HashMap<(Side, Side, Option<String>), ChunkRun> = HashMap::new();
    let done = opened.each(|part, _| {
        let Part::Event(event) = part else { return };
        if let Some(message) = event.message() {
            let key = (message.edge, message.to, message.session.clone());
            let ended = match (ChunkRun::from_event(event), runs.get_mut(&key)) {
                (Some(chunk), Some(run)) if run.text.len() < MAX_RUN => {
                    run.merge(chunk).and_then(|chunk| runs.insert(key, chunk))
                }
                (Some(chunk), _) => runs.insert(key, chunk),
                (None, _) => runs.remove(&key),
            };
            if let Some(run) = ended {
                search_run(&run, pattern, report);
            }
        }
        search(event, &mut |pointer, text| {
            if pattern.is_match(text) {
                let (n, t, chunks) = (event.n, event.t, 1);
                report(&Hit {
                    n,
                    t,
                    pointer,
                    text,
                    chunks,
                });
            }
        });
    });
    let mut rest: Vec<ChunkRun> = runs.into_values().collect();
    rest.sort_by_key(|run| run.n);
    rest.iter().for_each(|run| search_run(run, pattern, report));
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
fn search_run(run: &ChunkRun, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
    let spans_chunks = |found: &Match<'_>| {
        let at = run.ends.partition_point(|end| *end <= found.start());
        run.ends.get(at).is_some_and(|end| *end < found.end())
    };
    if let Some(first) = pattern.find_iter(&run.text).find(spans_chunks) {
        let earliest = first.start().saturating_sub(BEFORE);
        let mut starts = (0..=earliest).rev();
        let from = starts
            .find(|at| run.text.is_char_boundary(*at))
            .unwrap_or(0);
        report(&Hit {
            n: run.n,
            t: run.t,
            pointer: CHUNK_TEXT,
            text: &run.text[from..],
            chunks: run.count,
        });
    }
}

impl Hit<'_> {
    fn json(&self, file: &str) -> Value {
        let (n, t) = (self.n, self.t as f64 / 1e6);
        let mut hit =
            json!({"file": file, "n": n, "t": t, "pointer": self.pointer, "text": self.text});
        if self.chunks > 1 {
            hit["chunks"] = self.chunks.into();
        }
        hit
    }

    fn line(&self, paint: Paint) -> String {
        let (n, at) = (self.n, timestamp(self.t));
        let pointer = excerpt(self.pointer.as_bytes());
        let chunks = match self.chunks {
            1 => String::new(),
            count => format!(" ×{count}"),
        };
        let text = excerpt(self.text.as_bytes());
        let line = format!("{n:>6} {at:>12} {pointer}{chunks}: {text}");
        paint.line(20 + pointer.chars().count(), None, &line)
    }
}
