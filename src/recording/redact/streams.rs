//! Tracks texts that are sent in pieces, a few letters a message: where the pieces stand, and which
//! text each continues.
//!
//! For each text, by session, kind and place, the state of its end is kept within a bound; other
//! messages may come in between. A message that equals an earlier one except for its piece is
//! recognised by the bytes around the piece, so that it need not be walked. See `piece` for secrets
//! in pieces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::LazyLock;

use super::escapes::after_escape;
use super::hits::{HitKind, Hits};
use super::pattern::escape_step;
use super::piece::TextStream;
use super::redactor::{Redacted, Redactor};
use super::table::{List, has, words};
use crate::jsonrpc::{Limits, is_json};
use crate::recording::MessageKind;
use crate::recording::tokens::{Token, Tokens};

/// Limit of the texts that are tracked; the least recently used one is dropped.
const MAX_STREAMS: usize = 64;

/// Limit of the pieces of one message that are tracked, so that no message costs more or evicts
/// all other texts.
const MAX_PIECES: usize = 16;

/// Limits of the message templates that are kept, and of their bytes around the piece.
const MAX_TEMPLATES: usize = 4;
const MAX_AROUND: usize = 1 << 10;

/// Members that hold pieces, in ACP and its predecessors.
const PIECES: [&[u8]; 8] = [
    b"text", b"thought", b"chunk", b"data", b"delta", b"output", b"content", b"message",
];

/// Members that distinguish texts from each other.
static KEY_MEMBERS: List = LazyLock::new(|| words(include_str!("tables/telling.txt")));

/// Requests that are turns, in ACP and its predecessors.
const TURNS: [&[u8]; 3] = [b"session/prompt", b"prompt", b"sendUserMessage"];

/// The texts that one side sends in pieces.
#[derive(Debug, Default)]
pub struct Streams {
    list: Vec<TrackedStream>,
    templates: Vec<Template>,
    /// The number of pieces so far.
    count: u64,
}

/// A text that is tracked.
#[derive(Debug)]
struct TrackedStream {
    key: u64,
    session: u64,
    /// The number of its last piece.
    used: u64,
    text: TextStream,
}

/// The bytes around a piece.
#[derive(Debug)]
struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
    key: u64,
    session: u64,
    /// Whether each piece repeats all of the text so far.
    cumulative: bool,
}

/// A piece in a message: the text between the quotes.
#[derive(Debug)]
struct Piece {
    at: Range<usize>,
    pointer: String,
    /// Whether each piece repeats all of the text so far.
    cumulative: bool,
}

impl Streams {
    /// Handles the answer to a request with that method: at the end of a turn, all texts of its
    /// session end, or all texts when the session is unknown.
    pub fn answered(&mut self, method: &[u8], session: Option<&[u8]>) {
        if !TURNS.contains(&method) {
            return;
        }
        let session = session.map(hash);
        let over = |stream: &TrackedStream| session.is_none_or(|session| stream.session == session);
        self.list.retain(|stream| !over(stream));
    }

    /// A message without the secrets that span several messages; `None` when it has none. No
    /// announcing word lies in its first `clean_len` bytes.
    pub(super) fn clean(
        &mut self,
        redactor: &Redactor,
        text: &[u8],
        kind: Option<MessageKind>,
        method: Option<&[u8]>,
        clean_len: usize,
    ) -> Option<Redacted> {
        // A cumulative piece restarts its text only once: the second time it would match itself.
        let mut restarted = false;
        if let Some((template, at)) = self.matching(text)
            && clean_len >= at.end
        {
            let (key, session, cumulative) = (template.key, template.session, template.cumulative);
            let stream = self.stream_for(key, session);
            let piece = &text[at];
            if cumulative {
                stream.restart(piece);
                restarted = true;
            }
            if stream.skip_clean(&redactor.shapes, piece) {
                return None;
            }
        }
        let (pieces, key, session) = self.walk(text, kind, method)?;
        self.add_template(text, &pieces, key, session);
        self.replace(redactor, text, pieces, (key, session), clean_len, restarted)
    }

    /// The template that matches a message, and the range of its piece.
    fn matching(&self, text: &[u8]) -> Option<(&Template, Range<usize>)> {
        self.templates.iter().find_map(|template| {
            let at = template.before.len()..text.len().checked_sub(template.after.len())?;
            let is_secret = at.start <= at.end
                && text.starts_with(&template.before)
                && text.ends_with(&template.after)
                && is_inner(&text[at.clone()]);
            is_secret.then_some((template, at))
        })
    }

    /// Stores the template of a message.
    fn add_template(&mut self, text: &[u8], pieces: &[Piece], key: u64, session: u64) {
        let [piece] = pieces else { return };
        let (before, after) = (&text[..piece.at.start], &text[piece.at.end..]);
        if before.len().max(after.len()) > MAX_AROUND {
            return;
        }
        let is_known = |template: &Template| template.before == before && template.after == after;
        if self.templates.iter().any(is_known) {
            return;
        }
        self.templates.truncate(MAX_TEMPLATES - 1);
        let template = Template {
            before: before.to_vec(),
            after: after.to_vec(),
            key: stream_key(key, &piece.pointer),
            session,
            cumulative: piece.cumulative,
        };
        self.templates.insert(0, template);
    }

    /// The pieces in a message, the key of their text, and the session.
    fn walk(
        &self,
        text: &[u8],
        kind: Option<MessageKind>,
        method: Option<&[u8]>,
    ) -> Option<(Vec<Piece>, u64, u64)> {
        let polled = kind == Some(MessageKind::Result) && method == Some(b"terminal/output");
        if kind != Some(MessageKind::Notification) && !polled {
            return None;
        }
        let (mut pieces, mut key, mut session) = (Vec::new(), DefaultHasher::new(), 0);
        let mut path: Vec<(bool, Range<usize>, usize)> = Vec::new();
        let mut chunks = false;
        for token in Tokens::new(text) {
            match token {
                Token::Object | Token::Array => path.push((token == Token::Object, 0..0, 0)),
                Token::End => {
                    path.pop();
                }
                Token::Key(at) => {
                    if let Some(level) = path.last_mut() {
                        level.1 = at.start + 1..at.end - 1;
                    }
                    continue;
                }
                Token::String(at) => {
                    let inner = at.start + 1..at.end - 1;
                    let name = path.iter().rev().find(|level| level.0);
                    let name = name.map_or(&b""[..], |level| &text[level.1.clone()]);
                    if has(&KEY_MEMBERS, name, false) {
                        let value = &text[inner];
                        // The id of an answer is unique to it.
                        if !(polled && name == b"id") {
                            (name, value).hash(&mut key);
                        }
                        if name == b"sessionId" || name == b"session_id" {
                            session = hash(value);
                        }
                        chunks |= value.ends_with(b"_chunk") || value.starts_with(b"stream");
                    } else if pieces.len() < MAX_PIECES && PIECES.contains(&name) {
                        pieces.push(Piece {
                            at: inner,
                            pointer: pointer_of(text, &path),
                            cumulative: !matches!(name, b"chunk" | b"data" | b"delta"),
                        });
                    }
                }
                Token::Scalar(_) => {}
            }
            if let Some(level) = path.last_mut() {
                level.2 += 1;
            }
        }
        for piece in &mut pieces {
            piece.cumulative &= !chunks;
        }
        (!pieces.is_empty()).then(|| (pieces, key.finish(), session))
    }

    fn replace(
        &mut self,
        redactor: &Redactor,
        text: &[u8],
        pieces: Vec<Piece>,
        (key, session): (u64, u64),
        clean_len: usize,
        restarted: bool,
    ) -> Option<Redacted> {
        let (mut out, mut done) = (Vec::new(), 0);
        let (mut places, mut hits) = (Vec::new(), Hits::default());
        for Piece {
            at,
            pointer: place,
            cumulative: whole,
        } in pieces
        {
            let plain = unescaped(&text[at.clone()]);
            let piece = plain.as_deref().unwrap_or_else(|| &text[at.clone()]);
            let stream = self.stream_for(stream_key(key, &place), session);
            if whole && !restarted {
                stream.restart(piece);
            }
            if plain.is_none() && clean_len >= at.end && stream.skip_clean(&redactor.shapes, piece)
            {
                continue;
            }
            let found = stream.find(&redactor.shapes, piece);
            if found.is_empty() {
                continue;
            }
            for _ in &found {
                hits.add_one(HitKind::Shape);
            }
            let found: Vec<_> = found
                .into_iter()
                .map(|secret| after_escape(piece, secret))
                .collect();
            let mut clean = redactor.replace(piece, &found);
            if !is_json(&[b"\"", &clean[..], b"\""].concat(), &Limits::default()) {
                clean = redactor.mark(piece).into_bytes();
            }
            out.extend_from_slice(&text[done..at.start]);
            out.extend_from_slice(&clean);
            done = at.end;
            places.push(place);
        }
        (done > 0).then(|| {
            out.extend_from_slice(&text[done..]);
            Redacted {
                text: out,
                places,
                hits,
            }
        })
    }

    /// The state of the text with that key.
    fn stream_for(&mut self, key: u64, session: u64) -> &mut TextStream {
        self.count += 1;
        let known = self.list.iter().position(|stream| stream.key == key);
        let at = known.unwrap_or_else(|| {
            if self.list.len() >= MAX_STREAMS {
                let oldest = (0..MAX_STREAMS).min_by_key(|at| self.list[*at].used);
                self.list.swap_remove(oldest.unwrap_or_default());
            }
            self.list.push(TrackedStream {
                key,
                session,
                used: 0,
                text: TextStream::default(),
            });
            self.list.len() - 1
        });
        let stream = &mut self.list[at];
        stream.used = self.count;
        &mut stream.text
    }
}

/// The JSON Pointer of a path.
fn pointer_of(text: &[u8], path: &[(bool, Range<usize>, usize)]) -> String {
    let steps = path.iter().map(|(is_object, name, index)| {
        let name = String::from_utf8_lossy(&text[name.clone()]);
        match is_object {
            true => format!("/{}", escape_step(&name)),
            false => format!("/{index}"),
        }
    });
    steps.collect()
}

fn stream_key(key: u64, pointer: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, pointer).hash(&mut hasher);
    hasher.finish()
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Whether a text contains no end of a JSON string.
fn is_inner(text: &[u8]) -> bool {
    let escaped = |at: usize| {
        let slashes = text[..at].iter().rev().take_while(|byte| **byte == b'\\');
        slashes.count() % 2 == 1
    };
    memchr::memchr_iter(b'"', text).all(escaped) && !escaped(text.len())
}

/// The same string without escapes for ASCII, such as `\u0073k-…`.
fn unescaped(inner: &[u8]) -> Option<Vec<u8>> {
    memchr::memmem::find(inner, b"\\u00")?;
    let plain: String = serde_json::from_slice(&[b"\"", inner, b"\""].concat()).ok()?;
    let mut spelled = serde_json::to_vec(&plain).ok()?;
    spelled.pop();
    spelled.remove(0);
    Some(spelled)
}
