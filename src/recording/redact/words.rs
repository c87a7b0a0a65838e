//! Where in a text a secret may be: at words that some begin with, and that others stand behind.
//!
//! Most frames have none of these words and are done with, so this is where redaction is fast or
//! slow. Not here: whether there is a secret at a word (see `shapes`).
//!
//! # Why
//! *Three searches and not one.* A search for many words at once looks at the first letters of
//! sixteen places or more together, and has to stop wherever any of the words might begin. With
//! all of them in one it stopped so often that code took twice as long as prose. The beginnings of
//! most makers' keys end in a dash, an underline or a K: a search for those bytes finds them all,
//! however many there are (`makers.txt`). What is left is in two groups, and of the values' no word
//! is shorter than four letters.
//!
//! *What was searched need not be searched again.* Whether there is a word at a place depends on
//! the bytes of the word alone. So where a text begins with bytes that are known to have no whole
//! word in them, a search finds the same words when it begins there, less the length of the
//! longest one. Whether there is a secret at a word is another matter, for that depends on what
//! follows: so a beginning with words in it that turned out to be nothing is known up to the first
//! of them only.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind, packed};

use super::table::rows;

/// The bytes that the beginnings of the makers' keys end in.
const LAST: [u8; 3] = *b"-_K";

/// A word that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Of a key or token, which has so many characters, and so many letters and digits in a row.
    Beginning(usize, usize),
    /// Inside of a key of so many characters.
    Within(usize),
    /// Before the private lines of a key of PuTTY.
    Lines,
    /// Of the second half of a bot's token.
    Bot,
    /// Of a URL whose path lets in.
    Hook,
    /// Of the name of a member, or what ends it.
    Member,
    /// Of a key or token in base64.
    Packed,
    Scheme,
    /// Of the header's name.
    Authorization,
    /// That ends a header's name.
    Cookie,
    /// Before a signature, or a code for a token, in a URL.
    Signature,
    /// A program that is given a password.
    Command,
    /// The first letter of an option of a program that is given a password.
    Option,
    /// The end of the name of a variable, with an equals sign.
    Variable,
    Telling,
    /// Of the name of the WebSocket's header.
    Protocol,
    Place,
    /// That ends the name of a member, and what ends a string behind it.
    Ending,
    /// An option of one letter by itself, as in a list of arguments.
    Argument,
    Pem,
    /// What comes before a user in a URL.
    User,
}

/// What finds the words.
#[derive(Debug)]
pub(super) struct Words {
    names: Search,
    values: Search,
    makers: Makers,
}

/// Beginnings of makers' keys.
#[derive(Debug)]
struct Makers {
    all: Vec<(&'static [u8], Word)>,
    /// Which of them have a byte as the third last, the second last, or the last: a bit each.
    last: Vec<[u128; 3]>,
}

#[derive(Debug)]
struct Search {
    words: Vec<Word>,
    engine: Engine,
    /// Bytes of the longest word but one: so far before a border a word may begin that lies
    /// across it.
    before: usize,
    /// With fewer bytes to search it is slow.
    fewest: usize,
}

#[derive(Debug)]
enum Engine {
    Packed(packed::Searcher),
    /// For processors that the other one is not written for.
    Plain(AhoCorasick),
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            names: Search::of(include_str!("tables/names.txt")),
            values: Search::of(include_str!("tables/values.txt")),
            makers: Makers::of(include_str!("tables/makers.txt")),
        }
    }

    /// Calls `is_it` for the words of a text, in no order, until it says so. No word lies as a
    /// whole in the first `known` bytes.
    pub(super) fn each(
        &self,
        text: &[u8],
        known: usize,
        mut is_it: impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        self.names.each(text, known, &mut is_it)
            || self.values.each(text, known, &mut is_it)
            || marked(text, known, &self.makers, &mut is_it)
            || dotted(text, known, &mut is_it)
    }
}

impl Word {
    /// The one of that name in a table.
    fn of(name: &str, fewest: usize, row: usize) -> Self {
        match name {
            "Beginning" => Self::Beginning(fewest, row),
            "Within" => Self::Within(fewest),
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
        let longest = words.iter().map(|word| word.len()).max();
        // Left to itself it takes a slower kind for more than 32 words.
        let mut quick = packed::Config::new();
        let quick = quick.only_teddy(true).only_teddy_fat(Some(false));
        let packed = quick.builder().extend(&words).build();
        let kind = |[_, kind, fewest, row]: [&str; 4]| Word::of(kind, number(fewest), number(row));
        Self {
            words: rows(table).map(kind).collect(),
            before: longest.map_or(0, |longest| longest - 1),
            fewest: packed.as_ref().map_or(0, packed::Searcher::minimum_len),
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

    fn each(
        &self,
        text: &[u8],
        known: usize,
        is_it: &mut impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        let last = text.len().saturating_sub(self.fewest);
        let mut from = known.saturating_sub(self.before).min(last);
        loop {
            let found = match &self.engine {
                Engine::Packed(packed) => packed.find_in(text, (from..text.len()).into()),
                Engine::Plain(plain) => plain.find(aho_corasick::Input::new(text).range(from..)),
            };
            let Some(found) = found else { return false };
            from = found.end();
            if is_it(found.range(), self.words[found.pattern().as_usize()]) {
                return true;
            }
        }
    }
}

/// How many bytes behind a dash or an underline it takes to know a word: two groups of eight digits
/// with a dash between them, as in Mailgun's keys.
const BEHIND: usize = 17;

/// Beginnings of makers' keys, options of one dash, and variables: all in one search.
fn marked(
    text: &[u8],
    known: usize,
    makers: &Makers,
    is_it: &mut impl FnMut(Range<usize>, Word) -> bool,
) -> bool {
    let from = known.saturating_sub(BEHIND);
    let [one, two, three] = LAST;
    memchr::memchr3_iter(one, two, three, &text[from..]).any(|at| {
        let at = from + at;
        behind(text, at).is_some_and(|(place, word)| is_it(place, word))
            || makers
                .ends(text, at + 1)
                .any(|(start, word)| is_it(start..at + 1, word))
    })
}

/// Bytes between the two dots of a bot's token (Discord's), and the longest first part.
const BETWEEN: usize = 6;
const FIRST: usize = 32;

/// Two dots as in a bot's token: many bytes are looked at together.
fn dotted(text: &[u8], known: usize, is_it: &mut impl FnMut(Range<usize>, Word) -> bool) -> bool {
    let from = known.saturating_sub(BETWEEN + 1);
    let ahead = text.get(from + BETWEEN + 1..).unwrap_or_default();
    let chunks = text[from..].chunks(64).zip(ahead.chunks(64));
    let dots = |(one, two): (&u8, &u8)| *one == b'.' && *two == b'.';
    chunks.enumerate().any(|(chunk, (one, two))| {
        let pairs = || one.iter().zip(two).map(dots);
        pairs().fold(false, |found, dots| found | dots)
            && pairs()
                .enumerate()
                .filter(|(_, dots)| *dots)
                .any(|(at, _)| {
                    bot(text, from + 64 * chunk + at)
                        .is_some_and(|place| is_it(place, Word::Beginning(58, 20)))
                })
    })
}

/// A bot's token, up to its second dot, whose first dot is at `dot`.
fn bot(text: &[u8], dot: usize) -> Option<Range<usize>> {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let before = text[..dot].iter().rev().take(FIRST);
    let first = before.take_while(part).count();
    let second = &text[dot + 1..dot + 1 + BETWEEN];
    let is_one = (23..FIRST).contains(&first) && second.iter().all(|byte| part(&byte));
    is_one.then(|| dot - first..dot + BETWEEN + 2)
}

/// The first letters of options that take a password.
const LETTERS: &[u8] = b"aAbdhkNpPsSuUwX";

/// The word that goes on behind a dash or an underline.
fn behind(text: &[u8], at: usize) -> Option<(Range<usize>, Word)> {
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
                let is_it = name.eq_ignore_ascii_case(b"protocol");
                is_it.then(|| (at..at + 9, Word::Protocol))
            }
            (Some(b'e'), Some(b'L')) if rest.starts_with(b"Lines:") => {
                Some((at..at + 7, Word::Lines))
            }
            _ if is_packed(text, at) => Some((at..at + 1, Word::Within(36))),
            _ => named(rest).map(|length| (at..at + 1 + length, Word::Member)),
        };
    }
    if text[at] == b'K' {
        return None;
    }
    let names = [&b"PWD="[..], b"AUTH=", b"PAT=", b"OTP=", b"auth", b"pass"];
    if let Some(name) = names.into_iter().find(|name| rest.starts_with(name)) {
        return Some((at..at + 1 + name.len(), Word::Variable));
    }
    named(rest).map(|length| (at..at + 1 + length, Word::Member))
}

/// The rest of a member's name, behind a dash or an underline, and its length.
fn named(rest: &[u8]) -> Option<usize> {
    let names = [&b"pat"[..], b"PAT", b"Pat", b"string", b"STRING"];
    let name = names.into_iter().find(|name| rest.starts_with(name))?;
    let ends = matches!(rest.get(name.len()), Some(b'"' | b'\\'));
    ends.then_some(name.len())
}

/// Whether a dash is that of a key of a mailer: behind 32 hexadecimal digits, before a region
/// (Mailchimp's) or before eight and eight more (Mailgun's).
fn is_packed(text: &[u8], at: usize) -> bool {
    let rest = &text[at + 1..];
    let hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    let region = matches!(rest, [b'u', b's', b'0'..=b'9', ..]);
    let group = || {
        rest.get(..BEHIND)
            .is_some_and(|rest| hex(&rest[..8]) && rest[8] == b'-' && hex(&rest[9..]))
    };
    (region || rest.get(8) == Some(&b'-') && group())
        && text[..at]
            .last_chunk::<32>()
            .is_some_and(|before| hex(before))
}

impl Makers {
    fn of(table: &'static str) -> Self {
        let key = |[word, fewest, row, _]: [&'static str; 4]| {
            let kind = Word::Beginning(number(fewest), number(row));
            (word.as_bytes(), kind)
        };
        let all: Vec<_> = rows(table).map(key).collect();
        let mut last = vec![[0; 3]; 256];
        for (at, (word, _)) in all.iter().enumerate() {
            for (back, bytes) in word.iter().rev().take(3).enumerate() {
                last[usize::from(*bytes)][back] |= 1 << (at % 128);
            }
            // A short one has any byte before it.
            for byte in last.iter_mut().filter(|_| word.len() < 3) {
                byte[2] |= 1 << (at % 128);
            }
        }
        Self { all, last }
    }

    /// Where the beginnings of keys begin that end at `end`.
    fn ends(&self, text: &[u8], end: usize) -> impl Iterator<Item = (usize, Word)> {
        let bytes = text[..end].iter().rev().take(3).enumerate();
        let may_be = bytes.fold(u128::MAX, |all, (back, byte)| {
            all & self.last[usize::from(*byte)][back]
        });
        let all = if may_be == 0 { &[][..] } else { &self.all[..] };
        let known = all
            .iter()
            .filter(move |(word, _)| text[..end].ends_with(word));
        known.map(move |(word, kind)| (end - word.len(), *kind))
    }
}

/// The number in a column of a table.
fn number(column: &str) -> usize {
    column.parse().unwrap_or_default()
}
