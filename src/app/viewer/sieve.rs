//! Which lines of a recording a filter lets through.
//!
//! A filter is words with a space between: all must hold, and `-` before one turns it around.
//! `method:`, `kind:`, `session:`, `from:` and `id:` name a part of a message; any other word is
//! looked for in the whole line, whatever its case; quotes hold words together. Passing a large recording through takes
//! longer than a page waits, so it goes on where it stopped with each question. Not here: reading
//! (see `book`).

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::book::Book;
use super::index::{Class, Item};
use crate::recording::{Event, Found, MessageKind, What, line};
use crate::wire::Side;

/// How long one question may sift.
const PATIENCE: Duration = Duration::from_millis(120);

/// Bytes that are read at a time.
const BLOCK: u64 = 1 << 20;

/// Filters whose results are kept.
const KEPT: usize = 6;

/// The filters that were asked for last.
#[derive(Debug, Default)]
pub(super) struct Sieves(VecDeque<Sieve>);

/// A filter and what it has let through.
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    text: String,
    all: bool,
    words: Vec<Word>,
    /// Items that were looked at.
    pub(super) seen: usize,
    /// Those let through.
    pub(super) through: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Word {
    wanted: bool,
    part: Option<Part>,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Method,
    Kind,
    Session,
    From,
    Id,
}

impl Sieve {
    /// A filter, over every event (`all`) or those that are shown while chunks are folded.
    fn new(text: &str, all: bool) -> Self {
        Self {
            text: text.to_owned(),
            all,
            words: split(text).iter().map(|word| Word::new(word)).collect(),
            seen: 0,
            through: Vec::new(),
        }
    }

    /// Goes on for a while.
    fn sift(&mut self, book: &Book) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let items: Vec<Item> = {
                let index = book.index();
                let rest = index.items.get(self.seen..).unwrap_or_default();
                let Some(first) = rest.first() else {
                    return Ok(());
                };
                let near = |item: &&Item| {
                    item.segment == first.segment
                        && item.at + u64::from(item.length) - first.at <= BLOCK
                };
                let count = rest.iter().take_while(near).count().max(1);
                rest[..count].to_vec()
            };
            let (Some(first), Some(last)) = (items.first(), items.last()) else {
                return Ok(());
            };
            let block = book.span(first, last)?;
            for (at, item) in items.iter().enumerate() {
                let start = usize::try_from(item.at - first.at).unwrap_or(usize::MAX);
                let end = start.saturating_add(item.length as usize).min(block.len());
                let shown = self.all || (item.class != Class::Passed);
                if shown && start < end && self.lets_through(&block.slice(start..end)) {
                    let number = u32::try_from(self.seen + at).unwrap_or(u32::MAX);
                    self.through.push(number);
                }
            }
            self.seen += items.len();
        }
        Ok(())
    }

    fn lets_through(&self, bytes: &Bytes) -> bool {
        let mut lower = None;
        let mut event = None;
        self.words.iter().all(|word| {
            let found = match word.part {
                None => {
                    let lower = lower.get_or_insert_with(|| bytes.to_ascii_lowercase());
                    memchr::memmem::find(lower, word.text.as_bytes()).is_some()
                }
                Some(part) => {
                    let event = event.get_or_insert_with(|| match line(bytes) {
                        Found::Event(event) => Some(*event),
                        _ => None,
                    });
                    let event = event.as_ref();
                    event.is_some_and(|event| part.holds(event, &word.text))
                }
            };
            found == word.wanted
        })
    }
}

impl Sieves {
    /// A filter's result so far, after some more sifting.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub(super) fn ask(&mut self, book: &Book, text: &str, all: bool) -> io::Result<&Sieve> {
        let known = |sieve: &Sieve| sieve.text == text && sieve.all == all;
        let sieve = match self.0.iter().position(known) {
            Some(at) => self.0.remove(at).expect("it was just found there"),
            None => Sieve::new(text, all),
        };
        self.0.push_front(sieve);
        self.0.truncate(KEPT);
        self.0[0].sift(book)?;
        Ok(&self.0[0])
    }
}

impl Word {
    fn new(text: &str) -> Self {
        let (wanted, text) = match text.strip_prefix('-') {
            Some(rest) if !rest.is_empty() => (false, rest),
            _ => (true, text),
        };
        let part = text.split_once(':').and_then(|(name, rest)| {
            let part = match name {
                "method" => Part::Method,
                "kind" => Part::Kind,
                "session" => Part::Session,
                "from" => Part::From,
                "id" => Part::Id,
                _ => return None,
            };
            Some((part, rest))
        });
        Self {
            wanted,
            part: part.map(|(part, _)| part),
            text: part.map_or(text, |(_, rest)| rest).to_ascii_lowercase(),
        }
    }
}

impl Part {
    fn holds(self, event: &Event, text: &str) -> bool {
        let has = |value: &str| value.to_ascii_lowercase().contains(text);
        let What::Message(message) = &event.what else {
            return matches!(self, Self::Kind) && has(name(&event.what));
        };
        match self {
            Self::Method => message.method.as_deref().is_some_and(has),
            Self::Session => message.session.as_deref().is_some_and(has),
            Self::Id => message.id.as_deref() == Some(text),
            Self::Kind => has(message.kind.map_or("malformed", MessageKind::name)),
            Self::From => has(match message.to {
                Side::Agent => "client",
                Side::Client => "agent",
            }),
        }
    }
}

/// The words of a filter, without the quotes that held them together.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            _ if character.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// What events that are no messages are called.
fn name(what: &What) -> &str {
    match what {
        What::Passed(_) => "passed",
        What::Stderr(_) => "stderr",
        What::Process { .. } => "process",
        What::Link { .. } => "link",
        What::Note { .. } => "note",
        What::Gap { .. } => "gap",
        What::Clock { .. } => "clock",
        What::Mark(_) => "mark",
        What::Resume => "resume",
        What::End { .. } => "end",
        What::Other { kind, .. } => kind,
        What::Message(_) => "message",
    }
}
