//! Tracks texts that are sent in pieces, a few letters a message: where the pieces stand, and which
//! text each continues.
//!
//! For each text, by session, kind and place, the state of its end is kept within a bound; other
//! messages may come in between. See `piece` for secrets in pieces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::LazyLock;

use super::escapes::after_escape;
use super::hits::{HitKind, Hits};
use super::piece::TextStream;
use super::redactor::{Redacted, Redactor, splice};
use super::table::{List, has, words};
use crate::jsonrpc::{Kind, Limits, is_json};
use crate::recording::tokens::{Token, Tokens};

/// Limit of the texts that are tracked; the least recently used one is dropped.
const MAX_STREAMS: usize = 64;

/// Limit of the pieces of one message that are tracked, so that no message costs more or evicts
/// all other texts.
const MAX_PIECES: usize = 16;

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

/// A container on the way to a value: whether it is an object, the name of the member, and the
/// number of values before.
type Level = (bool, Range<usize>, usize);

/// A piece in a message: the text between the quotes.
#[derive(Debug)]
struct Piece {
    at: Range<usize>,
    path: Vec<Level>,
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
        kind: Option<Kind>,
        method: Option<&[u8]>,
        clean_len: usize,
    ) -> Option<Redacted> {
        let (pieces, key, session) = find_pieces(text, kind, method)?;
        let mut edits = Vec::new();
        let (mut places, mut hits) = (Vec::new(), Hits::default());
        for Piece {
            at,
            path,
            cumulative: whole,
        } in pieces
        {
            let plain = unescaped(&text[at.clone()]);
            let piece = plain.as_deref().unwrap_or_else(|| &text[at.clone()]);
            let stream = self.stream_for(stream_key(key, text, &path), session);
            if whole {
                stream.restart(piece);
            }
            if plain.is_none() && clean_len >= at.end && stream.skip_clean(piece) {
                continue;
            }
            let found = stream.find(piece);
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
            edits.push((at, clean));
            places.push(pointer_of(text, &path));
        }
        (!edits.is_empty()).then(|| Redacted {
            text: splice(text, edits),
            places,
            hits,
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

/// The pieces in a message, the key of their text, and the session.
fn find_pieces(
    text: &[u8],
    kind: Option<Kind>,
    method: Option<&[u8]>,
) -> Option<(Vec<Piece>, u64, u64)> {
    let polled = kind == Some(Kind::Result) && method == Some(b"terminal/output");
    if kind != Some(Kind::Notification) && !polled {
        return None;
    }
    let (mut pieces, mut key, mut session) = (Vec::new(), DefaultHasher::new(), 0);
    let mut path: Vec<Level> = Vec::with_capacity(8);
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
                        path: path.clone(),
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

/// The JSON Pointer of a path.
fn pointer_of(text: &[u8], path: &[Level]) -> String {
    let steps = path.iter().map(|(is_object, name, index)| {
        let name = String::from_utf8_lossy(&text[name.clone()]);
        match is_object {
            true => format!("/{}", jsonptr::Token::new(name).encoded()),
            false => format!("/{index}"),
        }
    });
    steps.collect()
}

fn stream_key(key: u64, text: &[u8], path: &[Level]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    for (is_object, name, index) in path {
        match is_object {
            true => text[name.clone()].hash(&mut hasher),
            false => index.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
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
