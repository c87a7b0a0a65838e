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

use super::escapes::behind_escape;
use super::pattern::escaped;
use super::piece::Thread;
use super::redactor::{Redacted, Redactor};
use super::rule::{Hits, Rule};
use super::table::{List, has, words};
use crate::jsonrpc::{Limits, is_json};
use crate::recording::MessageKind;
use crate::recording::tokens::{Token, Tokens};

/// Limit of the texts that are tracked; the least recently used one is dropped.
const THREADS: usize = 64;

/// Limit of the pieces of one message that are tracked, so that no message costs more or evicts
/// all other texts.
const LEAVES: usize = 16;

/// Limits of the message templates that are kept, and of their bytes around the piece.
const SLOTS: usize = 4;
const AROUND: usize = 1 << 10;

/// Members that hold pieces, in ACP and its predecessors.
const PIECES: [&[u8]; 8] = [
    b"text", b"thought", b"chunk", b"data", b"delta", b"output", b"content", b"message",
];

/// Members that distinguish texts from each other.
static TELLING: List = LazyLock::new(|| words(include_str!("tables/telling.txt")));

/// Requests that are turns, in ACP and its predecessors.
const TURNS: [&[u8]; 3] = [b"session/prompt", b"prompt", b"sendUserMessage"];

/// The texts that one side sends in pieces.
#[derive(Debug, Default)]
pub struct Streams {
    threads: Vec<Told>,
    slots: Vec<Slot>,
    /// The number of pieces so far.
    count: u64,
}

/// A text that is tracked.
#[derive(Debug)]
struct Told {
    key: u64,
    session: u64,
    /// The number of its last piece.
    used: u64,
    thread: Thread,
}

/// The bytes around a piece.
#[derive(Debug)]
struct Slot {
    before: Vec<u8>,
    behind: Vec<u8>,
    key: u64,
    session: u64,
    /// Whether each piece repeats all of the text so far.
    whole: bool,
}

/// A piece in a message: the text between the quotes.
#[derive(Debug)]
struct Leaf {
    at: Range<usize>,
    place: String,
    /// Whether each piece repeats all of the text so far.
    whole: bool,
}

impl Streams {
    /// Handles the answer to a request with that method: at the end of a turn, all texts of its
    /// session
    /// end, or all texts when the session is unknown.
    pub fn answer(&mut self, method: &[u8], session: Option<&[u8]>) {
        if !TURNS.contains(&method) {
            return;
        }
        let session = session.map(digest);
        let over = |told: &Told| session.is_none_or(|session| told.session == session);
        self.threads.retain(|told| !over(told));
    }

    /// A message without the secrets that span several messages; `None` when it has none. No
    /// announcing word lies in its first `clean_len` bytes.
    pub(super) fn clean(
        &mut self,
        redactor: &Redactor,
        text: &[u8],
        kind: Option<MessageKind>,
        method: Option<&[u8]>,
        free: usize,
    ) -> Option<Redacted> {
        // A cumulative piece restarts its text only once: the second time it would match itself.
        let mut begun = false;
        if let Some((slot, at)) = self.known(text)
            && free >= at.end
        {
            let (key, session, whole) = (slot.key, slot.session, slot.whole);
            let thread = self.thread(key, session);
            let piece = &text[at];
            if whole {
                thread.begin_anew(piece);
                begun = true;
            }
            if thread.pass(&redactor.shapes, piece) {
                return None;
            }
        }
        let (leaves, key, session) = self.walk(text, kind, method)?;
        self.learn(text, &leaves, key, session);
        self.replace(redactor, text, leaves, (key, session), free, begun)
    }

    /// The template that matches a message, and the range of its piece.
    fn known(&self, text: &[u8]) -> Option<(&Slot, Range<usize>)> {
        self.slots.iter().find_map(|slot| {
            let at = slot.before.len()..text.len().checked_sub(slot.behind.len())?;
            let is_it = at.start <= at.end
                && text.starts_with(&slot.before)
                && text.ends_with(&slot.behind)
                && is_inner(&text[at.clone()]);
            is_it.then_some((slot, at))
        })
    }

    /// Stores the template of a message.
    fn learn(&mut self, text: &[u8], leaves: &[Leaf], key: u64, session: u64) {
        let [leaf] = leaves else { return };
        let (before, behind) = (&text[..leaf.at.start], &text[leaf.at.end..]);
        if before.len().max(behind.len()) > AROUND {
            return;
        }
        let is_known = |slot: &Slot| slot.before == before && slot.behind == behind;
        if self.slots.iter().any(is_known) {
            return;
        }
        self.slots.truncate(SLOTS - 1);
        let slot = Slot {
            before: before.to_vec(),
            behind: behind.to_vec(),
            key: keyed(key, &leaf.place),
            session,
            whole: leaf.whole,
        };
        self.slots.insert(0, slot);
    }

    /// The pieces in a message, the key of their text, and the session.
    fn walk(
        &self,
        text: &[u8],
        kind: Option<MessageKind>,
        method: Option<&[u8]>,
    ) -> Option<(Vec<Leaf>, u64, u64)> {
        let polled = kind == Some(MessageKind::Result) && method == Some(b"terminal/output");
        if kind != Some(MessageKind::Notification) && !polled {
            return None;
        }
        let (mut leaves, mut key, mut session) = (Vec::new(), DefaultHasher::new(), 0);
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
                    if has(&TELLING, name, false) {
                        let value = &text[inner];
                        // The id of an answer is unique to it.
                        if !(polled && name == b"id") {
                            (name, value).hash(&mut key);
                        }
                        if name == b"sessionId" || name == b"session_id" {
                            session = digest(value);
                        }
                        chunks |= value.ends_with(b"_chunk") || value.starts_with(b"stream");
                    } else if leaves.len() < LEAVES && PIECES.contains(&name) {
                        leaves.push(Leaf {
                            at: inner,
                            place: place(text, &path),
                            whole: !matches!(name, b"chunk" | b"data" | b"delta"),
                        });
                    }
                }
                Token::Scalar(_) => {}
            }
            if let Some(level) = path.last_mut() {
                level.2 += 1;
            }
        }
        for leaf in &mut leaves {
            leaf.whole &= !chunks;
        }
        (!leaves.is_empty()).then(|| (leaves, key.finish(), session))
    }

    fn replace(
        &mut self,
        redactor: &Redactor,
        text: &[u8],
        leaves: Vec<Leaf>,
        (key, session): (u64, u64),
        free: usize,
        begun: bool,
    ) -> Option<Redacted> {
        let (mut out, mut done) = (Vec::new(), 0);
        let (mut places, mut hits) = (Vec::new(), Hits::default());
        for Leaf { at, place, whole } in leaves {
            let plain = undisguised(&text[at.clone()]);
            let piece = plain.as_deref().unwrap_or_else(|| &text[at.clone()]);
            let thread = self.thread(keyed(key, &place), session);
            if whole && !begun {
                thread.begin_anew(piece);
            }
            if plain.is_none() && free >= at.end && thread.pass(&redactor.shapes, piece) {
                continue;
            }
            let found = thread.piece(&redactor.shapes, piece);
            if found.is_empty() {
                continue;
            }
            for _ in &found {
                hits.hit(Rule::Shape);
            }
            let found: Vec<_> = found
                .into_iter()
                .map(|secret| behind_escape(piece, secret))
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
    fn thread(&mut self, key: u64, session: u64) -> &mut Thread {
        self.count += 1;
        let known = self.threads.iter().position(|told| told.key == key);
        let at = known.unwrap_or_else(|| {
            if self.threads.len() >= THREADS {
                let oldest = (0..THREADS).min_by_key(|at| self.threads[*at].used);
                self.threads.swap_remove(oldest.unwrap_or_default());
            }
            self.threads.push(Told {
                key,
                session,
                used: 0,
                thread: Thread::default(),
            });
            self.threads.len() - 1
        });
        let told = &mut self.threads[at];
        told.used = self.count;
        &mut told.thread
    }
}

/// The JSON Pointer of a path.
fn place(text: &[u8], path: &[(bool, Range<usize>, usize)]) -> String {
    let steps = path.iter().map(|(is_object, name, index)| {
        let name = String::from_utf8_lossy(&text[name.clone()]);
        match is_object {
            true => format!("/{}", escaped(&name)),
            false => format!("/{index}"),
        }
    });
    steps.collect()
}

fn keyed(key: u64, place: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, place).hash(&mut hasher);
    hasher.finish()
}

fn digest(text: &[u8]) -> u64 {
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
fn undisguised(inner: &[u8]) -> Option<Vec<u8>> {
    memchr::memmem::find(inner, b"\\u00")?;
    let plain: String = serde_json::from_slice(&[b"\"", inner, b"\""].concat()).ok()?;
    let mut spelled = serde_json::to_vec(&plain).ok()?;
    spelled.pop();
    spelled.remove(0);
    Some(spelled)
}
