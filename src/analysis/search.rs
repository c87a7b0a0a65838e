//! Finds a text in the messages of a conversation.
//!
//! Strings are searched unescaped, and the chunks of an agent's message as one text. Each session
//! has its own run of chunks, so that concurrent sessions do not interrupt each other's.

use std::collections::HashMap;

use regex_lite::{Match, Regex};
use serde::Serialize;
use serde_json::Value;

use crate::chunk_run::{ChunkFolder, ChunkRun};
use crate::leaves::find_leaf;
use crate::text::seconds;
use jsonrpc::Side;
use recording::{EventKind, RecordedEvent};

/// The place of a chunk's text.
const CHUNK_TEXT: &str = "/params/update/content/text";

/// Bytes of a run that are shown before a match.
const BEFORE: usize = 40;

/// A search in one recording.
#[derive(Debug)]
pub struct TextSearch<'a> {
    file: &'a str,
    pattern: &'a Regex,
    /// The open runs, by side, direction and session.
    runs: HashMap<(Side, Side, Option<String>), ChunkFolder>,
}

/// A match of the pattern.
#[derive(Debug, Serialize)]
pub struct Hit<'a> {
    /// The recording.
    pub file: &'a str,
    /// The number of the event.
    pub n: u64,
    /// Its time, in microseconds.
    #[serde(serialize_with = "seconds")]
    pub t: u64,
    /// The place in the message.
    pub pointer: &'a str,
    /// The text there.
    pub text: &'a str,
    /// The number of chunks that the text spans, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
}

impl<'a> TextSearch<'a> {
    /// Searches the recording in `file` for the pattern.
    pub fn new(file: &'a str, pattern: &'a Regex) -> Self {
        Self {
            file,
            pattern,
            runs: HashMap::new(),
        }
    }

    /// Reports the matches in the next event, and in a run of chunks that it ends.
    pub fn event(&mut self, event: &RecordedEvent, report: &mut impl FnMut(&Hit<'_>)) {
        if let Some(message) = event.message() {
            let key = (message.edge, message.to, message.session.clone());
            let run = self.runs.entry(key).or_default();
            let ended = match ChunkRun::from_event(event) {
                Some(chunk) => run.add(chunk),
                None => run.end(),
            };
            if let Some(run) = ended {
                self.run(&run, report);
            }
        }
        texts(event, &mut |pointer, text| {
            if self.pattern.is_match(text) {
                report(&Hit {
                    file: self.file,
                    n: event.n,
                    t: event.t,
                    pointer,
                    text,
                    chunks: None,
                });
            }
        });
    }

    /// Reports the matches in the runs that are open.
    pub fn end(&mut self, report: &mut impl FnMut(&Hit<'_>)) {
        let runs = std::mem::take(&mut self.runs);
        let mut rest: Vec<ChunkRun> = runs.into_values().filter_map(|mut run| run.end()).collect();
        rest.sort_by_key(|run| run.n);
        rest.iter().for_each(|run| self.run(run, report));
    }

    /// Reports a match that spans several chunks.
    fn run(&self, run: &ChunkRun, report: &mut impl FnMut(&Hit<'_>)) {
        let spans_chunks = |found: &Match<'_>| {
            let at = run.ends.partition_point(|end| *end <= found.start());
            run.ends.get(at).is_some_and(|end| *end < found.end())
        };
        if let Some(first) = self.pattern.find_iter(&run.text).find(spans_chunks) {
            let mut before = first.start().saturating_sub(BEFORE)..=first.start();
            let from = before.find(|at| run.text.is_char_boundary(*at));
            let from = from.unwrap_or_else(|| first.start());
            report(&Hit {
                file: self.file,
                n: run.n,
                t: run.t,
                pointer: CHUNK_TEXT,
                text: &run.text[from..],
                chunks: Some(run.count),
            });
        }
    }
}

/// Passes all texts of an event to `visit`, each with its place.
fn texts(event: &RecordedEvent, visit: &mut impl FnMut(&str, &str)) {
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
