//! Finds the places in a text where a secret may be: words that secrets begin with or follow.
//!
//! Most frames have none of these words and need no further work, so this decides the speed of
//! redaction. See `shapes` for the judgement of a place.
//!
//! # Why
//! *Three searches instead of one.* A search for many words compares the first letters of sixteen
//! or more positions at once, and has to stop wherever any of the words might begin. With all words
//! in one search it stopped so often that code took twice as long as prose. The prefixes of most
//! makers' keys end in a dash, an underscore or a K: a search for those bytes finds all of them
//! (`makers.txt`). The rest is in two groups; no word of the values is shorter than four letters.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind, packed};

use super::table::rows;

/// The last bytes of the prefixes of makers' keys.
const LAST_BYTES: [u8; 3] = *b"-_K";

/// A kind of word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The prefix of a key or token: minimum length, and minimum letters and digits in a row.
    Beginning(usize, usize),
    /// A mark inside a key: minimum length of the key.
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
    Option,
    /// The end of a variable's name, with the equals sign.
    Variable,
    Telling,
    /// Part of the header name `Sec-WebSocket-Protocol`.
    Protocol,
    Place,
    /// The end of a member's name, with the byte that ends the string.
    Ending,
    /// A one-letter option by itself, as in a list of arguments.
    Argument,
    Pem,
    /// Precedes the user info of a URL.
    User,
}

/// Searches for the words.
#[derive(Debug)]
pub(super) struct Words {
    names: Search,
    values: Search,
    makers: MakerKeys,
}

/// Prefixes of makers' keys, by their second last byte.
#[derive(Debug)]
struct MakerKeys(Vec<Vec<(&'static [u8], Word)>>);

#[derive(Debug)]
struct Search {
    words: Vec<Word>,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Packed(packed::Searcher),
    /// For processors without support for the packed searcher.
    Plain(AhoCorasick),
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            names: Search::of(include_str!("tables/names.txt")),
            values: Search::of(include_str!("tables/values.txt")),
            makers: MakerKeys::of(include_str!("tables/makers.txt")),
        }
    }

    /// Calls `is_match` for the words of a text, in no order, until it returns true.
    pub(super) fn each(
        &self,
        text: &[u8],
        mut is_it: impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        self.names.each(text, &mut is_it)
            || self.values.each(text, &mut is_it)
            || search_marks(text, &self.makers, &mut is_it)
            || search_dots(text, &mut is_it)
    }
}

impl Word {
    /// The kind with that name in a table.
    fn of(name: &str, min_len: usize, row: usize) -> Self {
        match name {
            "Beginning" => Self::Beginning(min_len, row),
            "Within" => Self::Within(min_len),
            "Bot" => Self::Bot,
            "Hook" => Self::Hook,
            "Member" => Self::Member,
            "Packed" => Self::Packed,
            "Scheme" => Self::Scheme,
            "Authorization" => Self::Authorization,
            "Cookie" => Self::Cookie,
            "Signature" => Self::Signature,
            "Command" => Self::Command,
            "Telling" => Self::Telling,
            "Place" => Self::Place,
            "Ending" => Self::Ending,
            "Pem" => Self::Pem,
            "User" => Self::User,
            _ => unreachable!("no word of the tables is a {name}"),
        }
    }
}

impl Search {
    fn of(table: &'static str) -> Self {
        let words: Vec<&str> = rows(table).map(|[word, _]| word).collect();
        // By default, a slower searcher is chosen for more than 32 words.
        let mut config = packed::Config::new();
        let config = config.only_teddy(true).only_teddy_fat(Some(false));
        let packed = config.builder().extend(&words).build();
        let kind = |[_, kind, fewest, row]: [&str; 4]| Word::of(kind, number(fewest), number(row));
        Self {
            words: rows(table).map(kind).collect(),
            engine: match packed {
                Some(packed) => Engine::Packed(packed),
                None => Engine::Plain(
                    AhoCorasick::builder()
                        .match_kind(MatchKind::LeftmostFirst)
                        .build(words)
                        .expect("the words are few and short"),
                ),
            },
        }
    }

    fn each(&self, text: &[u8], is_match: &mut impl FnMut(Range<usize>, Word) -> bool) -> bool {
        let mut from = 0;
        loop {
            let found = match &self.engine {
                Engine::Packed(packed) => packed.find_in(text, (from..text.len()).into()),
                Engine::Plain(plain) => plain.find(aho_corasick::Input::new(text).range(from..)),
            };
            let Some(found) = found else { return false };
            from = found.end();
            if is_match(found.range(), self.words[found.pattern().as_usize()]) {
                return true;
            }
        }
    }
}

/// Bytes after a dash or an underscore that are needed to recognise a word: two groups of eight
/// digits with a dash between them, as in Mailgun's keys.
const LOOK_AHEAD: usize = 17;

/// Searches for prefixes of makers' keys, options with one dash, and variables.
fn search_marks(
    text: &[u8],
    makers: &MakerKeys,
    is_match: &mut impl FnMut(Range<usize>, Word) -> bool,
) -> bool {
    let [one, two, three] = LAST_BYTES;
    memchr::memchr3_iter(one, two, three, text).any(|at| {
        word_after(text, at).is_some_and(|(place, word)| is_match(place, word))
            || makers
                .ends(text, at + 1)
                .any(|(start, word)| is_match(start..at + 1, word))
    })
}

/// Bytes between the two dots of a bot's token (Discord), and the maximum length of the first part.
const BOT_GAP: usize = 6;
const MAX_BOT_ID: usize = 32;

/// Searches for two dots as in a bot's token.
fn search_dots(text: &[u8], is_match: &mut impl FnMut(Range<usize>, Word) -> bool) -> bool {
    memchr::memchr_iter(b'.', text)
        .filter(|at| text.get(at + BOT_GAP + 1) == Some(&b'.'))
        .filter_map(|at| bot_token(text, at))
        .any(|place| is_match(place, Word::Beginning(58, 20)))
}

/// A bot's token up to its second dot, whose first dot is at `dot`.
fn bot_token(text: &[u8], dot: usize) -> Option<Range<usize>> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let before = text[..dot].iter().rev().take(MAX_BOT_ID);
    let first = before.take_while(part).count();
    let second = &text[dot + 1..dot + 1 + BOT_GAP];
    let is_one = (23..MAX_BOT_ID).contains(&first) && second.iter().all(|byte| part(&byte));
    is_one.then(|| dot - first..dot + BOT_GAP + 2)
}

/// The first letters of options that take a password.
const LETTERS: &[u8] = b"aAbdhkNpPsSuUwX";

/// The word that continues after a dash or an underscore at `at`.
fn word_after(text: &[u8], at: usize) -> Option<(Range<usize>, Word)> {
    let rest = &text[at + 1..];
    if text[at] == b'-' {
        let before = at.checked_sub(1).map(|before| text[before]);
        return match (before, rest.first()) {
            (Some(b' '), Some(first)) if LETTERS.contains(first) => {
                Some((at - 1..at + 2, Word::Option))
            }
            (Some(b'"'), Some(first))
                if LETTERS.contains(first) || matches!(rest, [b'-', b'a'..=b'z', ..]) =>
            {
                Some((at - 1..at + 2, Word::Argument))
            }
            (Some(b't' | b'T'), Some(b'p' | b'P')) => {
                let name = rest.first_chunk::<8>()?;
                let is_protocol = name.eq_ignore_ascii_case(b"protocol");
                is_protocol.then(|| (at..at + 9, Word::Protocol))
            }
            (Some(b'e'), Some(b'L')) if rest.starts_with(b"Lines:") => {
                Some((at..at + 7, Word::Lines))
            }
            _ if is_mailer_key(text, at) => Some((at..at + 1, Word::Within(36))),
            _ => member_after(rest).map(|length| (at..at + 1 + length, Word::Member)),
        };
    }
    if text[at] == b'K' {
        return None;
    }
    let names = [&b"PWD="[..], b"AUTH=", b"PAT=", b"OTP=", b"auth", b"pass"];
    if let Some(name) = names.into_iter().find(|name| rest.starts_with(name)) {
        return Some((at..at + 1 + name.len(), Word::Variable));
    }
    member_after(rest).map(|length| (at..at + 1 + length, Word::Member))
}

/// The length of the rest of a member's name, after a dash or an underscore.
fn member_after(rest: &[u8]) -> Option<usize> {
    let names = [&b"pat"[..], b"PAT", b"Pat", b"string", b"STRING"];
    let name = names.into_iter().find(|name| rest.starts_with(name))?;
    let ends = matches!(rest.get(name.len()), Some(b'"' | b'\\'));
    ends.then_some(name.len())
}

/// Whether the dash at `at` belongs to a mailer's key: after 32 hexadecimal digits, before a region
/// (Mailchimp) or before two groups of eight digits (Mailgun).
fn is_mailer_key(text: &[u8], at: usize) -> bool {
    let rest = &text[at + 1..];
    let hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    let region = matches!(rest, [b'u', b's', b'0'..=b'9', ..]);
    let group = || {
        rest.get(..LOOK_AHEAD)
            .is_some_and(|rest| hex(&rest[..8]) && rest[8] == b'-' && hex(&rest[9..]))
    };
    (region || rest.get(8) == Some(&b'-') && group())
        && text[..at]
            .last_chunk::<32>()
            .is_some_and(|before| hex(before))
}

impl MakerKeys {
    fn of(table: &'static str) -> Self {
        let mut keys = vec![Vec::new(); 256];
        for [word, fewest, row, _] in rows(table) {
            let word = word.as_bytes();
            let kind = Word::Beginning(number(fewest), number(row));
            keys[usize::from(word[word.len() - 2])].push((word, kind));
        }
        Self(keys)
    }

    /// The starts of the key prefixes that end at `end`.
    fn ends(&self, text: &[u8], end: usize) -> impl Iterator<Item = (usize, Word)> {
        let at = end.checked_sub(2).map(|at| usize::from(text[at]));
        let known = at.map_or(&[][..], |byte| &self.0[byte]).iter();
        known
            .filter(move |(word, _)| text[..end].ends_with(word))
            .map(move |(word, kind)| (end - word.len(), *kind))
    }
}

/// The number in a column of a table.
fn number(column: &str) -> usize {
    column.parse().unwrap_or_default()
}
