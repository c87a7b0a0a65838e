//! Finds the places in a text where a secret may be: words that secrets begin with or follow.
//!
//! Most frames have none of these words and need no further work, so this decides the speed of
//! redaction: a hash of three bytes shows where one may begin, which takes some eight instructions
//! a byte. An automaton for all words has a table that is larger than the processor's cache. See
//! `scan` for the judgement of a place.

use std::ops::Range;

use serde::Deserialize;
use serde::de::{IntoDeserializer as _, value};

use super::table::rows;

/// The rules (the head of the file describes them).
const RULES: &str = include_str!("rules.txt");

/// A kind of word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Word {
    /// The prefix of a key or token: minimum length, and minimum letters and digits in a row.
    #[serde(skip)]
    Beginning(usize, usize),
    /// A mark inside a key: minimum length of the key.
    #[serde(skip)]
    Within(usize),
    /// Precedes the private lines of a PuTTY key.
    Lines,
    /// The beginning of the second half of a bot's token.
    Bot,
    /// Part of a webhook URL.
    Hook,
    /// Part of a member's name, or its end.
    Member,
    /// The beginning of a key or token in base64.
    Packed,
    /// Precedes a credential in a header.
    Scheme,
    /// Part of the header name `Authorization`.
    Authorization,
    /// The end of the name of a cookie header.
    Cookie,
    /// Precedes a signature or an authorization code in a URL.
    Signature,
    /// A program that takes a password.
    Command,
    /// The first letter of an option of a program that takes a password.
    #[serde(skip)]
    Option,
    /// The end of a variable's name, with the equals sign.
    Variable,
    /// Part of a name that suggests a secret.
    Telling,
    /// Part of the name of a password.
    Password,
    /// Part of the header name `Sec-WebSocket-Protocol`.
    Protocol,
    /// What requires a walk through the places of a message: members, headers without dashes, an
    /// escaped ASCII character.
    Place,
    /// The end of a member's name, with the byte that ends the string.
    Ending,
    /// An option by itself, as in a list of arguments.
    Argument,
    /// Begins a block of PEM.
    Pem,
    /// Precedes the user info of a URL.
    User,
}

impl Word {
    /// Whether it announces a secret in any text, not only in a member or a URL.
    pub(super) const fn announces_text(self) -> bool {
        !matches!(
            self,
            Self::Place | Self::Ending | Self::Argument | Self::User
        )
    }
}

/// Searches for the words.
#[derive(Debug)]
pub(super) struct Words {
    /// All words, sorted.
    words: Vec<Entry>,
    /// Their first two bytes.
    heads: Vec<u16>,
    /// Whether a word may begin with three bytes, by their hash.
    beginnings: Box<[bool; HASHES]>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    word: Box<[u8]>,
    kind: Word,
    /// Whether the end of a string has to follow it.
    is_quoted: bool,
}

/// The number of hashes of beginnings, of which the words set one in a hundred.
const HASHES: usize = 1 << 16;

/// The first letters of options that take a password.
const LETTERS: &str = "aAbdhkNpPsSuUwX";

/// Bytes between the two dots of a bot's token, and the maximum length of the first part.
const BOT_GAP: usize = 6;
const MAX_BOT_ID: usize = 32;

impl Words {
    pub(super) fn new() -> Self {
        let mut words = Vec::new();
        let mut add = |word: &str, kind, is_quoted| {
            let word = word.as_bytes().into();
            words.push(Entry {
                word,
                kind,
                is_quoted,
            });
        };
        for [_id, pattern, ..] in rows::<5>(RULES, " | ") {
            let Some((kind, own)) = pattern.split_once(": ") else {
                let (mark, kind) = key(pattern);
                add(mark, kind, false);
                continue;
            };
            let plain = kind.trim_end_matches(" quoted");
            let word = Word::deserialize(plain.into_deserializer())
                .unwrap_or_else(|fault: value::Error| unreachable!("{fault}"));
            own.split(' ').for_each(|own| add(own, word, plain != kind));
        }
        for letter in LETTERS.chars() {
            add(&format!(" -{letter}"), Word::Option, false);
            add(&format!("\"-{letter}"), Word::Argument, false);
        }
        words.sort_unstable();
        let mut beginnings = Box::new([false; HASHES]);
        for Entry { word, .. } in &words {
            // Any byte may follow a word of two.
            let thirds = word.get(2).map_or(0..=u8::MAX, |third| *third..=*third);
            for third in thirds {
                beginnings[hash_of(u32::from_le_bytes([word[0], word[1], third, 0]))] = true;
            }
        }
        Self {
            heads: words.iter().map(|entry| head_of(&entry.word)).collect(),
            words,
            beginnings,
        }
    }

    /// Calls `is_match` for the words of a text, from `at` on, until it returns true.
    pub(super) fn each(
        &self,
        text: &[u8],
        mut at: usize,
        mut is_match: impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        let may_begin = |bytes: &[u8; 8], at: usize| {
            let beginning = u64::from_le_bytes(*bytes) >> (8 * at);
            self.beginnings[hash_of(beginning as u32)]
        };
        let from = at;
        // Six beginnings of three bytes lie in eight bytes.
        while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk) {
            let any = (0..6).fold(false, |any, one| any | may_begin(bytes, one));
            for one in (0..6).filter(|one| any && may_begin(bytes, *one)) {
                if self.has_match(text, at + one, &mut is_match) {
                    return true;
                }
            }
            at += 6;
        }
        let rest = &text[at..];
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        let mut last = (0..rest.len().saturating_sub(1)).filter(|one| may_begin(&bytes, *one));
        last.any(|one| self.has_match(text, at + one, &mut is_match))
            || each_marked(text, from, &mut is_match)
    }

    /// Calls `is_match` for the words that begin at `at`, where at least two bytes are.
    fn has_match(
        &self,
        text: &[u8],
        at: usize,
        is_match: &mut impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        let rest = &text[at..];
        let head = head_of(rest);
        let from = self.heads.partition_point(|known| *known < head);
        let own = self.heads[from..].iter().zip(&self.words[from..]);
        own.take_while(|(known, _)| **known == head)
            .any(|(_, entry)| {
                let ends = || matches!(rest.get(entry.word.len()), Some(b'"' | b'\\'));
                rest.starts_with(&entry.word)
                    && (!entry.is_quoted || ends())
                    && is_match(at..at + entry.word.len(), entry.kind)
            })
    }
}

/// The prefix or mark of a maker's key and its kind, from the pattern of a rule.
fn key(pattern: &str) -> (&str, Word) {
    let own = pattern.strip_suffix('}');
    let (mark, bounds) = own.and_then(|own| own.rsplit_once('{')).expect("bounds");
    let (least, row) = bounds.split_once(',').unwrap_or((bounds, "0"));
    let number = |digits: &str| digits.parse().expect("a number");
    match mark.strip_prefix('*') {
        Some(mark) => (mark, Word::Within(number(least))),
        None => (mark, Word::Beginning(number(least), number(row))),
    }
}

/// Calls `is_match` for the words of a text that no table lists, until it returns true: they are
/// known by what is before and after a dash or a dot.
fn each_marked(
    text: &[u8],
    from: usize,
    is_match: &mut impl FnMut(Range<usize>, Word) -> bool,
) -> bool {
    let mut places = memchr::memchr2_iter(b'-', b'.', &text[from..]).map(|at| from + at);
    places.any(|at| match text[at] {
        b'-' => is_mailer_key(text, at) && is_match(at..at + 1, Word::Within(36)),
        _ => bot_token(text, at).is_some_and(|at| is_match(at, Word::Beginning(58, 20))),
    })
}

/// The first two bytes of a text, which has as many.
fn head_of(text: &[u8]) -> u16 {
    u16::from_be_bytes([text[0], text[1]])
}

/// The hash of the three lower bytes.
fn hash_of(beginning: u32) -> usize {
    // The upper half of a product with the golden ratio spreads well.
    ((beginning << 8).wrapping_mul(0x9E37_79B1) >> 16) as usize
}

/// Whether the dash at `at` belongs to a mailer's key: after 32 hexadecimal digits, before a region
/// (Mailchimp) or before two groups of eight digits (Mailgun).
fn is_mailer_key(text: &[u8], at: usize) -> bool {
    let hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    let follows = match &text[at + 1..] {
        [b'u', b's', b'0'..=b'9', ..] => true,
        rest if rest.get(8) == Some(&b'-') => hex(&rest[..8]) && rest.get(9..17).is_some_and(hex),
        _ => false,
    };
    let before = || text[..at].last_chunk::<32>();
    follows && before().is_some_and(|before| hex(before))
}

/// A bot's token up to its second dot, whose first dot is at `dot` (Discord).
fn bot_token(text: &[u8], dot: usize) -> Option<Range<usize>> {
    let second_dot = dot + BOT_GAP + 1;
    if text.get(second_dot) != Some(&b'.') {
        return None;
    }
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let before = text[..dot].iter().rev().take(MAX_BOT_ID);
    let first = before.take_while(part).count();
    let second = &text[dot + 1..second_dot];
    let is_one = (23..MAX_BOT_ID).contains(&first) && second.iter().all(|byte| part(&byte));
    is_one.then(|| dot - first..second_dot + 1)
}
