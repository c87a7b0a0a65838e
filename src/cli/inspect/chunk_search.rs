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
pub(super) struct ChunkSearch(HashMap<RunKey, OpenRun>);

type RunKey = (Side, Side, Option<String>);

/// A run that may continue.
#[derive(Debug)]
struct OpenRun {
    run: ChunkRun,
    /// The ends of its chunks, except the last.
    boundaries: Vec<usize>,
}

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
                ended.search(pattern, report);
            }
            return;
        };
        let Some(open) = self.0.get_mut(&key) else {
            self.0.insert(key, OpenRun::new(chunk));
            return;
        };
        let end = open.run.text.len();
        let next = if end < MAX_BYTES {
            open.run.merge(chunk)
        } else {
            Some(chunk)
        };
        match next {
            None => open.boundaries.push(end),
            Some(next) => {
                let ended = std::mem::replace(open, OpenRun::new(next));
                ended.search(pattern, report);
            }
        }
    }

    /// Searches the remaining runs.
    pub(super) fn end(self, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
        let mut rest: Vec<OpenRun> = self.0.into_values().collect();
        rest.sort_by_key(|open| open.run.n);
        for open in rest {
            open.search(pattern, report);
        }
    }
}

impl OpenRun {
    const fn new(run: ChunkRun) -> Self {
        Self {
            run,
            boundaries: Vec::new(),
        }
    }

    /// Reports a match that spans several chunks.
    fn search(&self, pattern: &Regex, report: &mut impl FnMut(&Hit<'_>)) {
        let spans_chunks = |found: &regex_lite::Match<'_>| {
            let at = self.boundaries.partition_point(|end| *end <= found.start());
            self.boundaries
                .get(at)
                .is_some_and(|end| *end < found.end())
        };
        let mut found = pattern.find_iter(&self.run.text).filter(spans_chunks);
        if let Some(first) = found.next() {
            report(&Hit {
                n: self.run.n,
                t: self.run.t,
                pointer: POINTER,
                text: excerpt_from(&self.run.text, first.start()),
                chunks: self.run.count,
            });
        }
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
