//! Secrets that show by their shape, in any text.
//!
//! What follows a telling word decides. It works on text as it stands in JSON, and in JSON within
//! JSON, too, for none of these secrets needs an escape. Not here: where the words are (see
//! `words`), places (see `walk`).

use std::ops::Range;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

use super::memory::Memory;
use super::words::{Word, Words, ends_host};

const PEM: &[u8] = b"-----BEGIN";

/// Characters that may stand between a telling name and its secret.
const BETWEEN: &[u8] = b" \t=:\"'`\\>";

/// Fewest characters of a secret that only its name and its randomness show.
const RANDOM: usize = 16;

/// Most characters between a name and its secret: quotes, twice escaped, and a colon.
const GAP: usize = 12;

/// Of something longer than this, so much is judged.
const LONG: usize = 256;

/// Fewest characters of base64 that are looked into, and most that are.
const PACKED: Range<usize> = 24..1024;

/// What finds secrets.
#[derive(Debug)]
pub(super) struct Shapes {
    words: Words,
}

/// A look at one text. It remembers how far it has seen, so that a text that is nothing but words
/// takes no longer than others.
struct Look<'a> {
    words: &'a Words,
    text: &'a [u8],
    /// The run of a token's characters that was seen last, and its last digit.
    run: Range<usize>,
    digit: Option<usize>,
    /// Where the last PEM ends, and the last base64 that was looked into.
    pem: usize,
    packed: usize,
}

impl Shapes {
    pub(super) fn new() -> Self {
        let words = Words::new();
        Self { words }
    }

    /// Whether a message has to be walked through; what is remembered of the one before saves
    /// looking where it began in the same way.
    pub(super) fn suspects(&self, text: &[u8], memory: &mut Memory) -> bool {
        let (known, alike) = memory.known(text);
        let mut free = text.len();
        let mut look = Look::at(text, &self.words);
        let suspects = self.words.each(text, known, |at, word| {
            free = free.min(at.start);
            match word {
                Word::Place => !text[at.clone()].starts_with(b"\"") || ends_name(text, at.end),
                // The name of a member, an option or a variable ends so.
                Word::Telling if ends_name(text, at.end) => true,
                word => look.secret(at, word).is_some(),
            }
        });
        match suspects {
            true => memory.forget(),
            false => memory.keep(text, alike, free),
        }
        suspects
    }

    /// The secrets in a text, in order; none lies in another.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut look = Look::at(text, &self.words);
        let mut found: Vec<Range<usize>> = Vec::new();
        self.words.each(text, 0, |at, word| {
            found.extend(look.secret(at, word));
            false
        });
        found.sort_by_key(|secret| secret.start);
        found.dedup_by(|next, last| {
            let overlaps = next.start < last.end;
            if overlaps {
                last.end = last.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

impl<'a> Look<'a> {
    const fn at(text: &'a [u8], words: &'a Words) -> Self {
        Self {
            words,
            text,
            run: 0..0,
            digit: None,
            pem: 0,
            packed: 0,
        }
    }

    /// The secret that the word at `at` announces.
    fn secret(&mut self, at: Range<usize>, word: Word) -> Option<Range<usize>> {
        match word {
            Word::Beginning(fewest) => self.token(at.start, fewest),
            Word::Packed => self.packed(at.start),
            Word::Scheme => self.credentials(at),
            Word::Telling => self.named(at),
            Word::Pem => self.pem(at.end),
            Word::User => user(self.text, at.end),
            Word::Place => None,
        }
    }

    /// A token that begins there, if it is one.
    fn token(&mut self, start: usize, fewest: usize) -> Option<Range<usize>> {
        let (text, end) = (self.text, self.run(start));
        let is_one = begins_word(text, start)
            && end - start >= fewest
            && self.digit >= Some(start)
            // A JSON object in base64, in a `data:` URL, and no JWT.
            && !(text[start..].starts_with(b"eyJ") && text[..start].ends_with(b";base64,"));
        is_one.then_some(start..end)
    }

    /// Base64 that begins there, if it is that of a token.
    fn packed(&mut self, start: usize) -> Option<Range<usize>> {
        if start < self.packed || !begins_word(self.text, start) {
            return None;
        }
        let end = self.run(start);
        self.packed = end;
        let plain = unpacked(&self.text[start..end])?;
        let mut look = Look::at(&plain, self.words);
        let is_one = self.words.each(&plain, 0, |at, word| {
            word != Word::Packed && look.secret(at, word).is_some()
        });
        is_one.then_some(start..end)
    }

    /// What follows a scheme such as `Bearer `.
    fn credentials(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let (text, end) = (self.text, self.run(at.end));
        // `Bearer` and `bearer`.
        let start = at.start.checked_sub(1)?;
        let named = matches!(text[start], b'B' | b'b') && begins_word(text, start);
        // `a basic understanding` is none, but behind the header's name all are.
        let header = memchr::memmem::find(&text[start.saturating_sub(24)..start], b"uthorization");
        let own = &text[at.end..end];
        let is_one = header.is_some() || !reads_as_words(&own[..own.len().min(LONG)]);
        (own.len() >= 8 && named && is_one).then_some(at.end..end)
    }

    /// What follows a telling name.
    fn named(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let name = name_end(text, at.end);
        let gap = text[name..].iter().take(GAP);
        let start = name + gap.take_while(|byte| BETWEEN.contains(byte)).count();
        if start == name {
            return None;
        }
        let end = self.run(start);
        let own = &text[start..end.min(start + LONG)];
        // What people think up is made of words, too, and what is called is no secret.
        let chosen = text[at].to_ascii_lowercase().starts_with(b"ass");
        let is_one =
            is_random(own) && (chosen || !reads_as_words(own)) && text.get(end) != Some(&b'(');
        is_one.then_some(start..end)
    }

    /// What is in PEM, if not for everybody. `-----BEGIN` ends at `begun`.
    fn pem(&mut self, begun: usize) -> Option<Range<usize>> {
        let text = self.text;
        let start = begun.checked_sub(PEM.len())?;
        if start < self.pem || !text[start..].starts_with(PEM) {
            return None;
        }
        let rest = &text[begun..];
        // Where the label is cut off, nobody knows.
        let label = memchr::memmem::find(&rest[..rest.len().min(64)], b"-----");
        let label = label.map_or(&b""[..], |end| &rest[..end]);
        let says = |word: &[u8]| memchr::memmem::find(label, word).is_some();
        let public = [
            &b"CERTIFICATE"[..],
            b"PUBLIC",
            b"SIGNATURE",
            b"CRL",
            b"SIGNED",
        ];
        if !says(b"PRIVATE") && public.iter().any(|word| says(word)) {
            return None;
        }
        self.pem = memchr::memmem::find(rest, b"-----END").map_or(text.len(), |end| {
            let from = begun + end + "-----END".len();
            let tail = memchr::memmem::find(&text[from..], b"-----");
            tail.map_or(text.len(), |tail| from + tail + 5)
        });
        Some(start..self.pem)
    }

    /// Where the characters end that tokens are made of.
    fn run(&mut self, from: usize) -> usize {
        if !self.run.contains(&from) {
            self.run = from..run(self.text, from);
            let digit = self.text[self.run.clone()]
                .iter()
                .rposition(u8::is_ascii_digit);
            self.digit = digit.map(|digit| from + digit);
        }
        self.run.end
    }
}

/// Whether a whole text, under a telling name, is more than a word or a number.
pub(super) fn is_random(text: &[u8]) -> bool {
    if text.len() < RANDOM {
        return false;
    }
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let total = text.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|part| -part * part.log2())
        .sum();
    let digits = text.iter().any(u8::is_ascii_digit);
    let letters = text.iter().any(u8::is_ascii_alphabetic);
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase);
    entropy > 3.0 && letters && (digits || (mixed && entropy > 3.5))
}

/// Whether a text is made of words, as names, paths and calls are, and as keys are not: parts of
/// letters, the last ones with a digit or two, or short numbers, and not too short on the whole.
pub(super) fn reads_as_words(text: &[u8]) -> bool {
    let (mut parts, mut letters, mut at) = (0_usize, 0_usize, 0);
    while at < text.len() {
        let count =
            |from: usize, is: fn(&u8) -> bool| text[from..].iter().take_while(|b| is(b)).count();
        let (capitals, digits) = (
            count(at, u8::is_ascii_uppercase),
            count(at, u8::is_ascii_digit),
        );
        let small = count(at + capitals, u8::is_ascii_lowercase);
        if capitals + small > 0 {
            // `HTTPServer` is two words, `Server` is one.
            parts += 1 + usize::from(capitals > 1 && small > 0);
            letters += capitals + small;
            at += capitals + small;
            let digits = count(at, u8::is_ascii_digit);
            let goes_on = text.get(at + digits).is_some_and(u8::is_ascii_lowercase);
            if digits > 2 || (digits > 0 && goes_on) {
                return false;
            }
            at += digits;
        } else if digits > 0 {
            let goes_on = text.get(at + digits).is_some_and(u8::is_ascii_alphabetic);
            if digits > 4 || goes_on {
                return false;
            }
            at += digits;
        } else {
            at += 1;
        }
    }
    // A word of thirty letters is none.
    parts > 0 && letters >= 3 * parts && letters <= 20 * parts
}

/// The user, with a password or instead of one, of a URL whose scheme ends at `start`.
fn user(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let host = &rest[..rest.iter().position(ends_host).unwrap_or(rest.len())];
    let user = memchr::memrchr(b'@', host)?;
    // `git@host`, but a name alone may be a token.
    let known = user < 16 && host[..user].iter().all(u8::is_ascii_lowercase);
    (user > 0 && !known).then_some(start..start + user)
}

/// What a run of characters says, or how it begins, when it is base64.
fn unpacked(run: &[u8]) -> Option<Vec<u8>> {
    let codes = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let length = run.iter().take(PACKED.end).take_while(|byte| codes(byte));
    let length = length.count() / 4 * 4;
    if length < PACKED.start {
        return None;
    }
    let run = &run[..length];
    let url = memchr::memchr2(b'-', b'_', run).is_some();
    let coding = if url { BASE64URL_NOPAD } else { BASE64_NOPAD };
    coding.decode(run).ok()
}

/// Whether a name that goes on at `from` is that of a member of JSON, be it JSON in a string.
fn ends_name(text: &[u8], from: usize) -> bool {
    let rest = &text[name_end(text, from)..];
    matches!(rest, [b'"', ..] | [b'\\', b'"' | b'\\', ..])
}

/// Where the name ends that a telling word is part of, if it does so soon.
fn name_end(text: &[u8], from: usize) -> usize {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let name = text[from..].iter().take(24).take_while(|byte| rest(byte));
    from + name.count()
}

/// Where the characters end that tokens are made of.
fn run(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => at += 1,
            b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' => at += 1,
            // As some encoders spell `/`.
            b'\\' if text.get(at + 1) == Some(&b'/') => at += 2,
            _ => break,
        }
    }
    at
}

/// Whether no word goes on at `at`; the letter of an escape such as `\n` is none, nor is the last
/// one of a terminal's, such as `[31m`.
fn begins_word(text: &[u8], at: usize) -> bool {
    let back = |by: usize| at.checked_sub(by).map(|at| text[at]);
    if back(1).is_none_or(|byte| !byte.is_ascii_alphanumeric()) || back(2) == Some(b'\\') {
        return true;
    }
    let before = text[..at].strip_suffix(b"m").unwrap_or_default();
    let colours = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let count = before.iter().rev().take_while(colours).count();
    before[..before.len() - count].ends_with(b"[")
}
