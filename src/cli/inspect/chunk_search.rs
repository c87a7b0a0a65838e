//! Searches the chunks of an agent's message as one text.
//!
//! Each session has its own run, so that concurrent sessions do not interrupt each other's.

use std::collections::HashMap;

use regex_lite::Regex;

use super::chunk_run::ChunkRun;
use super::hit::Hit;
use crate::jsonrpc::Side;
use crate::recording::RecordedEvent;

/// The text of a chunk.
const POINTER: &str = "/params/update/content/text";

/// Maximum bytes of a run; a longer one is searched in parts.
const MAX_BYTES: usize = 1 << 20;

/// The open runs, by side, direction and session.
#[derive(Debug, Default)]
pub(super) struct ChunkSearch(HashMap<(Side, Side, Option<String>), ChunkRun>);

impl ChunkSearch {
    /// Adds an event; searches a run that ends with it.
    pub(super) fn add(
        &mut self,
        event: &RecordedEvent,
        pattern: &Regex,
        report: &mut impl FnMut(&Hit<'_>),
    ) {
        let Some(message) = event.message() else {
            return;
        };
        let key = (message.edge, message.to, message.session.clone());
        let Some(chunk) = ChunkRun::from_event(event) else {
            if let Some(ended) = self.0.remove(&key) {
                search(&ended, pattern, report);
            }
            return;
        };
        let next = match self.0.get_mut(&key) {
            Some(run) if run.text.len() < MAX_BYTES => run.merge(chunk),
            _ => Some(chunk),
        };
        if let Some(next) = next
            && let Some(ended) = self.0.insert(key, next)
        {
            search(&ended, pattern, report);
        }
    }

    /// Searches the remaining runs.
    pub(super) fn end(self, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
        let mut rest: Vec<ChunkRun> = self.0.into_values().collect();
        rest.sort_by_key(|run| run.n);
        for run in rest {
            search(&run, pattern, report);
        }
    }
}

/// Reports a match that spans several chunks.
fn search(run: &ChunkRun, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
    let spans_chunks = |found: &regex_lite::Match<'_>| {
        let at = run.ends.partition_point(|end| *end <= found.start());
        run.ends.get(at).is_some_and(|end| *end < found.end())
    };
    if let Some(first) = pattern.find_iter(&run.text).find(spans_chunks) {
        report(&Hit {
            n: run.n,
            t: run.t,
            pointer: POINTER,
            text: excerpt_from(&run.text, first.start()),
            chunks: run.count,
        });
    }
}

/// The text from shortly before `at`.
fn excerpt_from(text: &str, at: usize) -> &str {
    const BEFORE: usize = 40;
    let mut from = at.saturating_sub(BEFORE);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    &text[from..]
}
