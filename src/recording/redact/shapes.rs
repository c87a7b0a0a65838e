//! Finds secrets by their shape, in any text.
//!
//! The text after an announcing word decides (see `words` for the words, `walk` for places). The
//! search runs on text as it stands in JSON, and in JSON within JSON, because none of these secrets
//! needs an escape.

use std::ops::Range;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

use super::commands;
use super::escapes::{begins_word, behind_gap, quotes};
use super::given::{self, is_held};
use super::headers::{authorization, behind_scheme, cookies, protocol};
use super::memory::Memory;
use super::options;
use super::piece::{IN_PEM, Inside};
use super::piped;
use super::random::{LONG, has_begun, has_begun_key, is_random, reads_as_words};
use super::runs::Runs;
use super::urls::{begun_user, hook, open_host, signature, user};
use super::words::{Word, Words};

const PEM: &[u8] = b"-----BEGIN";

/// What follows the private lines of a PuTTY key.
pub(super) const SEAL: &[u8] = b"Private-MAC";

/// Minimum and maximum length of base64 that is decoded.
const PACKED: Range<usize> = 24..1024;

/// Minimum length of incomplete base64.
const BEGUN_PACKED: usize = 12;

/// Finds secrets.
#[derive(Debug)]
pub(super) struct Shapes {
    words: Words,
}

/// The message has to be walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect;

/// The scan of one text. It remembers its position, so that a text made of announcing words only
/// takes no longer than others.
struct Look<'a> {
    words: &'a Words,
    text: &'a [u8],
    /// The text continues elsewhere: a secret at its end may be incomplete.
    begun: bool,
    runs: Runs<'a>,
    /// The end of the last PEM block; below, of the last base64 that was decoded and the last
    /// cookies.
    pem: usize,
    /// The last PEM block is not complete.
    in_pem: bool,
    /// The end of the last private lines of a PuTTY key.
    lines: usize,
    packed: usize,
    cookies: usize,
    /// The last word that was judged as a password.
    value: Range<usize>,
}

impl Shapes {
    pub(super) fn new() -> Self {
        let words = Words::new();
        Self { words }
    }

    /// Whether a message has to be walked; the cache of the message before saves searching the same
    /// beginning again. If not, the number of bytes before the first word.
    pub(super) fn suspects(&self, text: &[u8], memory: &mut Memory) -> Result<usize, Suspect> {
        let (known, alike) = memory.known(text);
        let mut free = text.len();
        let mut look = Look::at(text, &self.words);
        let suspects = self.words.each(text, known, |at, word| {
            free = free.min(at.start);
            match word {
                Word::Place => !text[at.clone()].starts_with(b"\"") || ends_name(text, at.end),
                // The end of the name of a member, an option or a variable.
                Word::Telling
                | Word::Authorization
                | Word::Cookie
                | Word::Protocol
                | Word::Scheme
                | Word::Signature
                | Word::Member
                | Word::Command
                    if ends_name(text, at.end) =>
                {
                    true
                }
                Word::Argument => true,
                Word::Ending => ends_name(text, at.end - 1),
                word => look.secret(at, word).is_some(),
            }
        });
        if suspects {
            memory.forget();
            return Err(Suspect);
        }
        memory.keep(text, alike, free);
        Ok(free)
    }

    /// Whether a text contains a word that announces a secret.
    pub(super) fn announces(&self, text: &[u8]) -> bool {
        let places = [Word::Place, Word::Ending, Word::Argument, Word::User];
        let announces = |_, word| !places.contains(&word);
        self.words.each(text, 0, announces)
    }

    /// The secrets in a text, in order and without overlaps.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let found = self.find_in_part(text, false);
        found.into_iter().map(|(secret, _)| secret).collect()
    }

    /// The same of a text that continues elsewhere if `partial`, with the kind of each secret;
    /// includes
    /// incomplete secrets at the end.
    pub(super) fn find_in_part(
        &self,
        text: &[u8],
        begun: bool,
    ) -> Vec<(Range<usize>, Option<Inside>)> {
        let mut look = Look::at(text, &self.words);
        look.begun = begun;
        let mut found: Vec<(Range<usize>, Option<Inside>)> = Vec::new();
        self.words.each(text, 0, |at, word| {
            if let Some(secret) = look.secret(at, word) {
                let inside = match word {
                    Word::Pem | Word::Lines => look.in_pem.then_some(IN_PEM),
                    Word::Cookie => Some(Inside::Cookies),
                    Word::User => Some(Inside::User),
                    _ => Some(Inside::Token),
                };
                found.push((secret, inside));
            }
            false
        });
        if begun
            && let Some(start) = open_host(text)
            && begun_user(&text[start..])
        {
            found.push((start..text.len(), Some(Inside::User)));
        }
        found.sort_by_key(|(secret, _)| secret.start);
        found.dedup_by(|(next, inside), (last, outside)| {
            let overlaps = next.start < last.end;
            if overlaps && next.end > last.end {
                last.end = next.end;
                *outside = *inside;
            }
            overlaps
        });
        found
    }
}

/// Sorts secrets and merges those that overlap.
pub(super) fn in_order(secrets: &mut Vec<Range<usize>>) {
    secrets.sort_by_key(|secret| secret.start);
    secrets.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
}

impl<'a> Look<'a> {
    fn at(text: &'a [u8], words: &'a Words) -> Self {
        Self {
            words,
            text,
            begun: false,
            runs: Runs::of(text),
            pem: 0,
            in_pem: false,
            lines: 0,
            packed: 0,
            cookies: 0,
            value: 0..0,
        }
    }

    /// The secret that the word at `at` announces.
    fn secret(&mut self, at: Range<usize>, word: Word) -> Option<Range<usize>> {
        match word {
            Word::Beginning(fewest, row) => self.token(at, fewest, row),
            Word::Within(fewest) => self.within(at, fewest),
            Word::Bot => self.bot(at),
            Word::Lines => self.lines(at.end),
            Word::Hook => hook(self.text, &mut self.runs, at.end, self.begun),
            Word::Member => self.member(at),
            Word::Packed => self.packed(at.start),
            Word::Scheme => behind_scheme(self.text, &mut self.runs, at),
            Word::Authorization => authorization(self.text, &mut self.runs, at.end, self.begun),
            Word::Cookie => self.cookies(at),
            Word::Signature => signature(self.text, &mut self.runs, at, self.begun),
            Word::Command => commands::given(self.text, at),
            Word::Option => options::behind(self.text, at, self.begun),
            Word::Variable => options::assigned(self.text, at, self.begun),
            Word::Telling => self.named(at),
            Word::Pem => self.pem(at.end),
            Word::User => user(self.text, at.end),
            Word::Protocol => protocol(self.text, &mut self.runs, at.end),
            Word::Place | Word::Ending | Word::Argument => None,
        }
    }

    /// Whether a run of characters may continue elsewhere.
    fn ends_in(&self, own: &Range<usize>) -> bool {
        self.begun && own.end == self.text.len()
    }

    /// The token that begins with the prefix at `at`, if it has at least `fewest` characters and
    /// `row`
    /// letters and digits in a row.
    fn token(&mut self, at: Range<usize>, fewest: usize, row: usize) -> Option<Range<usize>> {
        let start = at.start;
        let (text, own) = (self.text, self.runs.from(start));
        let judged = &text[at.end..own.end.min(at.end + LONG).max(at.end)];
        let parts = judged.split(|byte| !byte.is_ascii_alphanumeric());
        let longest = parts.map(<[u8]>::len).max().unwrap_or(0);
        let digits = self.runs.has_digit(start);
        let is_whole = own.len() >= fewest
            && longest >= row
            && (row == 0 && digits || (digits || longest >= 20) && !reads_as_words(judged));
        let begins = || self.ends_in(&own) && longest >= row.min(8) && has_begun_key(judged);
        let is_one = begins_word(text, start)
            && (is_whole || begins())
            // A JSON object in base64, in a `data:` URL, is not a JWT.
            && !(text[start..].starts_with(b"eyJ") && text[..start].ends_with(b";base64,"));
        is_one.then_some(own)
    }

    /// A key with at least `fewest` characters that contains a maker's mark.
    fn within(&mut self, at: Range<usize>, fewest: usize) -> Option<Range<usize>> {
        let text = self.text;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_~.".contains(byte);
        let before = text[..at.start].iter().rev().take(96);
        let start = at.start - before.take_while(part).count();
        let own = start..self.runs.from(at.start).end;
        let judged = &text[start..own.end.min(start + LONG)];
        let begins = self.ends_in(&own) && has_begun_key(&text[at.end.min(own.end)..own.end]);
        let is_one = begins || own.len() >= fewest && is_random(judged);
        (is_one && !reads_as_words(judged)).then_some(own)
    }

    /// The secret half of a bot's token (Telegram), after the bot's number.
    fn bot(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let digits = self.text[..at.start].iter().rev().take(12);
        let number = digits.take_while(|byte| byte.is_ascii_digit()).count() >= 6;
        number.then(|| self.token(at.start + 1..at.end, 30, 0))?
    }

    /// The value after a short name for a secret, in text or JSON.
    fn member(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let name = name_end(self.text, at.end);
        let start = behind_name(self.text, name);
        let whole = given::name_start(self.text, at.start)..name;
        if let Some(own) = given::framed(self.text, whole.clone(), self.begun, &mut self.value) {
            return Some(own);
        }
        if !is_assigned(&self.text[name..start]) {
            return None;
        }
        let own = self.runs.from(start);
        let judged = &self.text[start..own.end.min(start + LONG)];
        let begins =
            self.ends_in(&own) && has_begun(judged) && given::may_hold(&self.text[whole.clone()]);
        let code = matches!(self.text.get(own.end), Some(b'(' | b'['));
        let held = judged.len() >= 6 && !reads_as_words(judged);
        let is_one = begins || held && is_held(&self.text[whole], judged);
        (is_one && !code).then_some(own)
    }

    /// The base64 that begins at `start`, if it encodes a token.
    fn packed(&mut self, start: usize) -> Option<Range<usize>> {
        if start < self.packed || !begins_word(self.text, start) {
            return None;
        }
        let own = self.runs.from(start);
        self.packed = own.end;
        let begun = self.ends_in(&own);
        let fewest = if begun { BEGUN_PACKED } else { PACKED.start };
        let plain = unpacked(&self.text[own.clone()], fewest)?;
        let mut look = Look::at(&plain, self.words);
        look.begun = begun;
        let is_one = self.words.each(&plain, 0, |at, word| {
            word != Word::Packed && look.secret(at, word).is_some()
        });
        is_one.then_some(own)
    }

    /// The value after a suggestive name.
    fn named(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let name = name_end(text, at.end);
        if text[at.clone()] == *b"PASS" && !matches!(text.get(at.end), Some(b'W' | b'P')) {
            // The end of a variable's name.
            let is_one = text.get(at.end) == Some(&b'=');
            return is_one.then(|| options::assigned(text, at.start..at.end + 1, self.begun))?;
        }
        let (whole, last) = (given::name_start(text, at.start)..name, &mut self.value);
        let other = commands::assigned(text, whole.clone(), self.begun, last)
            .or_else(|| given::put(text, whole.clone(), self.begun, last))
            .or_else(|| piped::told(text, whole.clone()))
            .or_else(|| commands::named(text, whole.clone()))
            .or_else(|| given::framed(text, whole.clone(), self.begun, last));
        if other.is_some() {
            return other;
        }
        let start = behind_name(text, name);
        if start == name {
            return None;
        }
        let own = self.runs.from(start);
        let judged = &text[start..own.end.min(start + LONG)];
        // Passwords may be short or made of words; a function that is called is no secret.
        let before = &text[..at.start];
        let capitals = text[at.clone()] == *b"PASS";
        let hrase = text[at.clone()] == *b"hrase";
        let chosen = capitals || hrase || text[at.clone()].starts_with(b"ass");
        let named = match hrase {
            true => before.len() >= 5 && before[before.len() - 5..].eq_ignore_ascii_case(b"passp"),
            false => capitals || before.ends_with(b"p") || before.ends_with(b"P"),
        };
        if chosen && !named {
            // As in `ClassWriter` and `paraphrase`.
            return None;
        }
        let gap = &text[name..start];
        let is_given = chosen
            && (is_assigned(gap)
                || text[whole.clone()].starts_with(b"--")
                || gap.starts_with(b">")
                || gap.starts_with(b" is ")
                || (capitals && gap.contains(&b'\''))
                || given::logs_in(&text[..whole.start]));
        let sure = || {
            given::is_sure(&text[whole.clone()])
                || given::is_sure_behind(&text[..whole.start], &text[whole.clone()])
        };
        let option = text.get(name) == Some(&b' ') && text[whole.clone()].starts_with(b"--");
        let is_sure = !chosen && name == at.end && (is_assigned(gap) || option) && sure();
        let placed = given::is_placed(text, &whole);
        let open = placed && !own.is_empty() && self.ends_in(&own);
        let is_meant = is_sure && (open || given::is_meant(text, &own, judged, placed));
        let is_one = match reads_as_words(judged) {
            true => is_meant || (chosen && is_random(judged)),
            false => {
                is_meant
                    || is_random(judged)
                    || (is_given && given::is_chosen(judged))
                    || (self.ends_in(&own) && has_begun(judged))
            }
        };
        (is_one && text.get(own.end) != Some(&b'(')).then_some(own)
    }

    /// The cookies of a header, if any has to be redacted.
    fn cookies(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        if at.start < self.cookies {
            return None;
        }
        let (values, end) = cookies(self.text, at.end)?;
        self.cookies = end;
        values
    }

    /// A PEM block, unless it is public. `-----BEGIN` ends at `label_start`.
    fn pem(&mut self, begun: usize) -> Option<Range<usize>> {
        let text = self.text;
        let start = begun.checked_sub(PEM.len())?;
        if start < self.pem || !text[start..].starts_with(PEM) {
            return None;
        }
        let rest = &text[begun..];
        let labels = |byte: &&u8| matches!(**byte, b'A'..=b'Z' | b'0'..=b'9' | b' ');
        let length = rest.iter().take(64).take_while(labels).count();
        let behind = &rest[length..];
        let said = match behind.strip_prefix(b"-----") {
            Some(behind) => behind.starts_with(b"`"),
            // A truncated label begins no key. A blank in it may be escaped; a quote or a line end
            // ends it.
            None => {
                let slashes = behind.iter().take_while(|byte| **byte == b'\\').count();
                slashes == 0 || behind.get(slashes) != Some(&b'u')
            }
        };
        if said {
            // Prose about the PEM header.
            return None;
        }
        let label = &rest[..rest.len().min(64)];
        let label = &label[..memchr::memmem::find(label, b"-----").unwrap_or(0)];
        let says = |word: &str| memchr::memmem::find(label, word.as_bytes()).is_some();
        let public = ["CERTIFICATE", "PUBLIC", "SIGNATURE", "CRL", "SIGNED"];
        if !says("PRIVATE") && public.iter().any(|word| says(word)) {
            return None;
        }
        let end = memchr::memmem::find(rest, b"-----END").and_then(|end| {
            let from = begun + end + "-----END".len();
            let tail = memchr::memmem::find(&text[from..], b"-----");
            tail.map(|tail| from + tail + 5)
        });
        self.in_pem = end.is_none();
        self.pem = end.unwrap_or(text.len());
        Some(start..self.pem)
    }

    /// The private lines of a PuTTY key, whose number follows `from`, up to the MAC.
    fn lines(&mut self, from: usize) -> Option<Range<usize>> {
        if from < self.lines {
            return None;
        }
        let number = |byte: &&u8| byte.is_ascii_digit() || **byte == b' ';
        let start = from + self.text[from..].iter().take_while(number).count();
        let end = memchr::memmem::find(&self.text[start..], SEAL).map(|end| start + end);
        let own = start..end.unwrap_or(self.text.len());
        let is_one = self.text[start - 1].is_ascii_digit() && !own.is_empty();
        self.in_pem = end.is_none();
        self.lines = own.end;
        is_one.then_some(own)
    }
}

/// Decodes a run of characters, or its beginning, as base64.
fn unpacked(run: &[u8], fewest: usize) -> Option<Vec<u8>> {
    let codes = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let length = run.iter().take(PACKED.end).take_while(|byte| codes(byte));
    let length = length.count() / 4 * 4;
    if length < fewest {
        return None;
    }
    let run = &run[..length];
    let url = memchr::memchr2(b'-', b'_', run).is_some();
    let coding = if url { BASE64URL_NOPAD } else { BASE64_NOPAD };
    coding.decode(run).ok()
}

/// Whether a colon or an equals sign stands between a name and its value.
fn is_assigned(gap: &[u8]) -> bool {
    let wide = [&b"uff1a"[..], "：".as_bytes()];
    memchr::memchr2(b':', b'=', gap).is_some()
        || wide
            .iter()
            .any(|colon| memchr::memmem::find(gap, colon).is_some())
}

/// Where the value of a name that ends at `name` begins: after a gap or the word `is`.
fn behind_name(text: &[u8], name: usize) -> usize {
    let is = [&b" is "[..], b" is: ", b" was ", b"('", b"(\""];
    let rest = &text[name..];
    // The name of an entry: `env["NAME"] = `.
    let quotes = quotes(text, name);
    if quotes > 0 && rest[quotes..].starts_with(b"]") {
        return behind_gap(text, name + quotes + 1);
    }
    let said = is.iter().find(|is| rest.starts_with(is));
    let start = behind_gap(text, name + said.map_or(0, |said| said.len() - 1));
    // A value needs a separator.
    if said.is_some() && start == name {
        name
    } else {
        start
    }
}

/// Whether a name that continues at `from` is that of a JSON member, possibly in a string.
fn ends_name(text: &[u8], from: usize) -> bool {
    let rest = &text[name_end(text, from)..];
    matches!(rest, [b'"', ..] | [b'\\', b'"' | b'\\', ..])
}

/// The end of the name that contains an announcing word, within 24 bytes.
pub(super) fn name_end(text: &[u8], from: usize) -> usize {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let name = text[from..].iter().take(24).take_while(|byte| rest(byte));
    from + name.count()
}
