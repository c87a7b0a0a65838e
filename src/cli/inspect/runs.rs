//! Searches the chunks of an agent's message as one text.
//!
//! Each session has its own run, so that concurrent sessions do not interrupt each other's.

use std::collections::HashMap;

use regex_lite::Regex;

use super::fold::Run;
use super::grep::Hit;
use crate::jsonrpc::Side;
use crate::recording::{Event, What};

/// The text of a chunk.
const POINTER: &str = "/params/update/content/text";

/// Maximum bytes of a run; a longer one is searched in parts.
const MOST: usize = 1 << 20;

/// The open runs, by side, direction and session.
#[derive(Debug, Default)]
pub(super) struct Runs(HashMap<Lane, Going>);

type Lane = (Side, Side, Option<String>);

/// A run that may continue.
#[derive(Debug)]
struct Going {
    run: Run,
    /// The ends of its chunks, except the last.
    borders: Vec<usize>,
}

impl Runs {
    /// Adds an event; searches a run that ends with it.
    pub(super) fn see(&mut self, event: &Event, pattern: &Regex, tell: &mut impl FnMut(&Hit<'_>)) {
        let What::Message(message) = &event.what else {
            return;
        };
        let lane = (message.hop, message.to, message.session.clone());
        let Some(chunk) = Run::begin(event) else {
            if let Some(ended) = self.0.remove(&lane) {
                ended.search(pattern, tell);
            }
            return;
        };
        let Some(going) = self.0.get_mut(&lane) else {
            self.0.insert(lane, Going::new(chunk));
            return;
        };
        let end = going.run.text.len();
        let next = if end < MOST {
            going.run.take(chunk)
        } else {
            Some(chunk)
        };
        match next {
            None => going.borders.push(end),
            Some(next) => {
                let ended = std::mem::replace(going, Going::new(next));
                ended.search(pattern, tell);
            }
        }
    }

    /// Searches the remaining runs.
    pub(super) fn end(self, pattern: &Regex, tell: &mut impl FnMut(&Hit<'_>)) {
        let mut rest: Vec<Going> = self.0.into_values().collect();
        rest.sort_by_key(|going| going.run.n);
        for going in rest {
            going.search(pattern, tell);
        }
    }
}

impl Going {
    const fn new(run: Run) -> Self {
        Self {
            run,
            borders: Vec::new(),
        }
    }

    /// Reports a match that spans several chunks.
    fn search(&self, pattern: &Regex, tell: &mut impl FnMut(&Hit<'_>)) {
        let crosses = |found: &regex_lite::Match<'_>| {
            let at = self.borders.partition_point(|end| *end <= found.start());
            self.borders.get(at).is_some_and(|end| *end < found.end())
        };
        let mut found = pattern.find_iter(&self.run.text).filter(crosses);
        if let Some(first) = found.next() {
            tell(&Hit {
                n: self.run.n,
                t: self.run.t,
                pointer: POINTER,
                text: around(&self.run.text, first.start()),
                chunks: self.run.count,
            });
        }
    }
}

/// The text from shortly before `at`.
fn around(text: &str, at: usize) -> &str {
    const BEFORE: usize = 40;
    let mut from = at.saturating_sub(BEFORE);
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    &text[from..]
}
