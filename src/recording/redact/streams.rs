//! Tracks texts that are sent in pieces, a few letters a message: where the pieces stand, and which
//! text each continues.
//!
//! For each text, by session, kind and place, the state of its end is kept within a bound; other
//! messages may come in between. See `piece` for secrets in pieces.

use std::ops::Range;

use super::escapes::after_escape;
use super::piece::{BORDER, TextStream};
use super::redactor::{HitKind, Redacted, Redactor, splice};
use super::tokens::{Token, Tokens};
use jsonrpc::{Kind, Limits, is_json};

/// Limit of the texts that are tracked; the least recently used one is dropped.
const MAX_STREAMS: usize = 64;

/// Limit of the pieces of one message that are tracked, so that no message costs more or evicts
/// all other texts.
const MAX_PIECES: usize = 16;

/// Bytes of a part of a key that distinguish a text, and of the buffers that are kept.
const MAX_KEY: usize = 4096;

/// How the index of an element begins, among names: these have no control characters.
const INDEX: char = '\0';

/// Requests that are turns, in ACP and its predecessors.
const TURNS: [&[u8]; 3] = [b"session/prompt", b"prompt", b"sendUserMessage"];

/// The texts that one side sends in pieces.
#[derive(Debug, Default)]
pub struct Streams {
    /// The last used one is the last.
    list: Vec<TrackedStream>,
    /// The pieces of the message at hand; its buffers are reused, which saves four allocations a
    /// message.
    pieces: Pieces,
}

/// A text that is tracked.
#[derive(Debug)]
struct TrackedStream {
    key: Vec<u8>,
    session: Vec<u8>,
    text: TextStream,
}

/// The pieces in a message.
#[derive(Debug, Default)]
struct Pieces {
    list: Vec<Piece>,
    before: Before,
    /// The members that distinguish its texts from those of other messages, as lines.
    key: Vec<u8>,
    /// The session, if it names one.
    session: Range<usize>,
    /// The steps to each piece, as lines.
    steps: Vec<u8>,
    /// The containers around the value at hand.
    path: Vec<Level>,
}

/// What precedes the first piece of a message. Most messages begin as the one before; not to search
/// that again saves more than half of the instructions that a message of 100 bytes takes.
#[derive(Debug, Default)]
struct Before {
    text: Vec<u8>,
    /// No word lies in it that announces a secret.
    is_clean: bool,
    key: usize,
    session: Range<usize>,
    path: Vec<Level>,
    chunks: bool,
}

/// A container on the way to a value: whether it is an object, the name of the member, and the
/// number of values before.
type Level = (bool, Range<usize>, usize);

/// A piece in a message.
#[derive(Debug)]
struct Piece {
    /// The text between the quotes.
    at: Range<usize>,
    /// Its steps among those of the message.
    steps: Range<usize>,
    /// Whether each piece repeats all of the text so far.
    cumulative: bool,
}

/// What a member is to the texts of its message.
#[derive(PartialEq)]
enum Role {
    /// It distinguishes texts from each other.
    Key,
    /// It holds a piece, which may repeat the text so far.
    Text,
    /// It holds a piece that continues the text.
    Delta,
}

impl Streams {
    /// Handles the answer to a request with that method: at the end of a turn, all texts of its
    /// session end, or all texts when the session is unknown.
    pub fn answered(&mut self, method: &[u8], session: Option<&[u8]>) {
        if TURNS.contains(&method) {
            let goes_on = |own: &TrackedStream| session.is_some_and(|over| own.session != over);
            self.list.retain(goes_on);
        }
    }

    /// The bytes at the beginning of a message that are those of the one before, in which no word
    /// begins that announces a secret.
    ///
    /// Not searching them again takes a recorded message of 100 bytes from 8,124 to 7,442
    /// instructions, and one with varied text from 12,295 to 10,377.
    pub(super) fn clean_prefix(&self, text: &[u8]) -> usize {
        let before = &self.pieces.before;
        match before.is_clean && text.starts_with(&before.text) {
            true => before.text.len().saturating_sub(BORDER),
            false => 0,
        }
    }

    /// A message without the secrets that span several messages; `None` when it has none. No
    /// announcing word lies in its first `clean_len` bytes.
    pub(super) fn clean(
        &mut self,
        redactor: &Redactor,
        text: &[u8],
        kind: Option<Kind>,
        method: Option<&[u8]>,
        clean_len: usize,
    ) -> Option<Redacted> {
        let polled = kind == Some(Kind::Result) && method == Some(b"terminal/output");
        if kind != Some(Kind::Notification) && !polled {
            return None;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.find(text, polled);
        pieces.before.is_clean = clean_len >= pieces.before.text.len();
        let mut edits = Vec::new();
        let mut redacted = Redacted::default();
        for Piece {
            at,
            steps,
            cumulative,
        } in pieces.list.drain(..)
        {
            let steps = &pieces.steps[steps];
            let session = &text[pieces.session.clone()];
            let stream = self.stream_for([&pieces.key, steps], session);
            let plain = unescaped(&text[at.clone()]);
            let new = plain.as_deref().unwrap_or_else(|| &text[at.clone()]);
            if cumulative {
                stream.restart(new);
            }
            if plain.is_none() && clean_len >= at.end && stream.skip_clean(new) {
                continue;
            }
            let found = stream.find(new).into_iter();
            let found: Vec<_> = found.map(|secret| after_escape(new, secret)).collect();
            if found.is_empty() {
                continue;
            }
            for _ in &found {
                redacted.hits.add_one(HitKind::Shape);
            }
            let mut clean = redactor.replace(new, &found);
            if !is_json(&[b"\"", &clean[..], b"\""].concat(), &Limits::default()) {
                clean = redactor.mark(new).into_bytes();
            }
            redacted.places.push(pointer_of(steps));
            edits.push((at, clean));
        }
        let used = pieces.key.len().max(pieces.steps.len());
        if used.max(pieces.before.text.len()) <= MAX_KEY {
            self.pieces = pieces;
        }
        (!edits.is_empty()).then(|| {
            redacted.text = splice(text, edits);
            redacted
        })
    }

    /// The state of the text whose key has these two parts.
    fn stream_for(&mut self, key: [&[u8]; 2], session: &[u8]) -> &mut TextStream {
        let key = key.map(|part| &part[..part.len().min(MAX_KEY)]);
        let is_own = |own: &TrackedStream| {
            own.key.len() == key[0].len() + key[1].len()
                && own.key.starts_with(key[0])
                && own.key.ends_with(key[1])
        };
        let stream = match self.list.iter().rposition(is_own) {
            Some(at) => self.list.remove(at),
            None => {
                if self.list.len() >= MAX_STREAMS {
                    self.list.remove(0);
                }
                TrackedStream {
                    key: key.concat(),
                    session: session.to_vec(),
                    text: TextStream::default(),
                }
            }
        };
        self.list.push(stream);
        let last = self.list.len() - 1;
        &mut self.list[last].text
    }
}

impl Pieces {
    /// Finds the pieces of a message; `polled` is the answer with the output of a terminal.
    fn find(&mut self, text: &[u8], polled: bool) {
        self.list.clear();
        self.steps.clear();
        let before = &self.before;
        let known = match polled || !text.starts_with(&before.text) {
            true => 0,
            false => before.text.len(),
        };
        let mut chunks = false;
        if known > 0 {
            self.key.truncate(before.key);
            self.path.clone_from(&before.path);
            (self.session, chunks) = (before.session.clone(), before.chunks);
        } else {
            self.key.clear();
            self.path.clear();
            self.session = 0..0;
            self.before.text.clear();
        }
        let open = self.path.iter().map(|level| level.0);
        for token in Tokens::resume(text, known, open) {
            match token {
                Token::Object | Token::Array => self.path.push((token == Token::Object, 0..0, 0)),
                Token::End => {
                    self.path.pop();
                }
                Token::Key(at) => {
                    if let Some(level) = self.path.last_mut() {
                        level.1 = at.start + 1..at.end - 1;
                    }
                    continue;
                }
                Token::String(at) => {
                    let inner = at.start + 1..at.end - 1;
                    let name = self.path.iter().rev().find(|level| level.0);
                    let name = name.map_or(&b""[..], |level| &text[level.1.clone()]);
                    match Role::of(name) {
                        Some(Role::Key) => {
                            let value = &text[inner.clone()];
                            // The id of an answer is unique to it.
                            if !(polled && name == b"id") {
                                add_line(&mut self.key, name);
                                add_line(&mut self.key, value);
                            }
                            if name == b"sessionId" || name == b"session_id" {
                                self.session = inner;
                            }
                            chunks |= value.ends_with(b"_chunk") || value.starts_with(b"stream");
                        }
                        Some(role) if self.list.len() < MAX_PIECES => {
                            if self.list.is_empty() && known == 0 && !polled {
                                let before = &mut self.before;
                                before.text.extend_from_slice(&text[..at.start]);
                                before.path.clone_from(&self.path);
                                before.key = self.key.len();
                                before.session = self.session.clone();
                                before.chunks = chunks;
                            }
                            self.add(text, inner, role == Role::Text);
                        }
                        _ => {}
                    }
                }
                Token::Scalar(_) => {}
            }
            if let Some(level) = self.path.last_mut() {
                level.2 += 1;
            }
        }
        for piece in &mut self.list {
            piece.cumulative &= !chunks;
        }
    }

    fn add(&mut self, text: &[u8], at: Range<usize>, cumulative: bool) {
        let start = self.steps.len();
        for (is_object, name, index) in &self.path {
            match is_object {
                true => add_line(&mut self.steps, &text[name.clone()]),
                false => add_line(&mut self.steps, format!("{INDEX}{index}").as_bytes()),
            }
        }
        let steps = start..self.steps.len();
        self.list.push(Piece {
            at,
            steps,
            cumulative,
        });
    }
}

impl Role {
    /// That of a member, in ACP and its predecessors.
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"method" | b"sessionId" | b"session_id" | b"sessionUpdate" | b"toolCallId"
            | b"tool_call_id" | b"terminalId" | b"terminal_id" | b"id" => Self::Key,
            b"text" | b"thought" | b"output" | b"content" | b"message" => Self::Text,
            b"chunk" | b"data" | b"delta" => Self::Delta,
            _ => return None,
        })
    }
}

/// Adds a line: strings in JSON have no line breaks.
fn add_line(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

/// The JSON Pointer of these steps.
fn pointer_of(steps: &[u8]) -> String {
    let steps = String::from_utf8_lossy(steps);
    let pointer = steps.split_terminator('\n').map(|step| {
        let plain = step.strip_prefix(INDEX).unwrap_or(step);
        format!("/{}", jsonptr::Token::new(plain).encoded())
    });
    pointer.collect()
}

/// The same string without escapes for ASCII, such as `\u0073k-…`.
fn unescaped(inner: &[u8]) -> Option<Vec<u8>> {
    // Few pieces have an escape at all.
    memchr::memchr(b'\\', inner)?;
    memchr::memmem::find(inner, b"\\u00")?;
    let plain: String = serde_json::from_slice(&[b"\"", inner, b"\""].concat()).ok()?;
    let mut spelled = serde_json::to_vec(&plain).ok()?;
    spelled.pop();
    spelled.remove(0);
    Some(spelled)
}
