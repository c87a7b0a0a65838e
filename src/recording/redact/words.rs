//! Finds the places in a text where a secret may be: words that secrets begin with or follow.
//!
//! Most frames have none of these words and need no further work, so this decides the speed of
//! redaction. See `shapes` for the judgement of a place.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};
use serde::Deserialize;
use serde::de::{IntoDeserializer as _, value};

use super::table::rows;

/// A kind of word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
    Telling,
    /// Part of the name of a password.
    Password,
    /// Part of the header name `Sec-WebSocket-Protocol`.
    Protocol,
    Place,
    /// The end of a member's name, with the byte that ends the string.
    Ending,
    /// An option by itself, as in a list of arguments.
    Argument,
    Pem,
    /// Precedes the user info of a URL.
    User,
}

/// Searches for the words.
#[derive(Debug)]
pub(super) struct Words {
    search: AhoCorasick,
    /// The kind of each word, and whether the end of a string has to follow it.
    kinds: Vec<(Word, bool)>,
}

/// The first letters of options that take a password.
const LETTERS: &str = "aAbdhkNpPsSuUwX";

/// Bytes between the two dots of a bot's token, and the maximum length of the first part.
const BOT_GAP: usize = 6;
const MAX_BOT_ID: usize = 32;

impl Words {
    pub(super) fn new() -> Self {
        let mut words: Vec<(String, (Word, bool))> = Vec::new();
        let mut add = |word: &str, kind, quoted| words.push((word.to_owned(), (kind, quoted)));
        for [word, kind] in rows(include_str!("tables/words.txt")) {
            let (kind, quoted) = match kind.strip_suffix(" quoted") {
                Some(kind) => (kind, true),
                None => (kind, false),
            };
            let kind = Word::deserialize(kind.into_deserializer())
                .unwrap_or_else(|fault: value::Error| unreachable!("{fault}"));
            add(word, kind, quoted);
        }
        for [mark, min_len, row, _maker] in rows(include_str!("tables/makers.txt")) {
            let kind = match row {
                "within" => Word::Within(number(min_len)),
                row => Word::Beginning(number(min_len), number(row)),
            };
            add(mark, kind, false);
        }
        for letter in LETTERS.chars() {
            add(&format!(" -{letter}"), Word::Option, false);
            add(&format!("\"-{letter}"), Word::Argument, false);
        }
        let search = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.iter().map(|(word, _)| word))
            .expect("the words are few and short");
        Self {
            search,
            kinds: words.into_iter().map(|(_, kind)| kind).collect(),
        }
    }

    /// Calls `is_match` for the words of a text until it returns true.
    pub(super) fn each(
        &self,
        text: &[u8],
        mut is_match: impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        // Searching for the word that ends first takes half of the time that it takes to search for
        // all, and most texts have none.
        let first = self.search.find(text);
        let has = first.is_some_and(|first| {
            let from = first.end().saturating_sub(self.search.max_pattern_len());
            let rest = Input::new(text).span(from..text.len());
            let ends = |at: usize| matches!(text.get(at), Some(b'"' | b'\\'));
            self.search.find_overlapping_iter(rest).any(|found| {
                let (word, quoted) = self.kinds[found.pattern().as_usize()];
                (!quoted || ends(found.end())) && is_match(found.range(), word)
            })
        });
        has || memchr::memchr2_iter(b'-', b'.', text).any(|at| match text[at] {
            b'-' => is_mailer_key(text, at) && is_match(at..at + 1, Word::Within(36)),
            _ => bot_token(text, at).is_some_and(|at| is_match(at, Word::Beginning(58, 20))),
        })
    }
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

/// A bot's token up to its second dot, whose first dot is at `dot`.
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

/// The number in a column of a table.
fn number(column: &str) -> usize {
    column.parse().expect("the table has a number there")
}
