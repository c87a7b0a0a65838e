//! Finds secrets by their shape, in any text.
//!
//! Whether a text is a secret depends on the text around an announcing word (`words`); the judges
//! are methods of [`Scan`] here and in `named`, `commands`, `headers` and `urls`. The search runs on
//! text as it stands in JSON, and in JSON within JSON, because none of these secrets needs an escape.

use std::ops::Range;
use std::sync::LazyLock;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

use super::escapes::begins_word;
use super::inside::{IN_PEM, Inside, PUTTY_END};
use super::names::name_end;
use super::random::{is_key_so_far, is_random, reads_as_words};
use super::runs::{MAX_JUDGED, Scan};
use super::urls::{is_partial_user, open_host};
use super::words::{Word, Words};

const PEM: &[u8] = b"-----BEGIN";

/// Minimum and maximum length of base64 that is decoded.
const BASE64_LEN: Range<usize> = 24..1024;

/// Minimum length of incomplete base64.
const MIN_PARTIAL_BASE64: usize = 12;

/// Built by the first search: not every run of the program has one.
static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

impl Scan<'_> {
    /// The secret that the word at `at` announces.
    fn secret(&mut self, at: Range<usize>, word: Word) -> Option<Range<usize>> {
        match word {
            Word::Beginning(least, row) => self.token(at, least, row),
            Word::Within(least) => self.key_with_infix(at, least),
            Word::Bot => self.bot_token(at),
            Word::Lines => self.putty_lines(at.end),
            Word::Hook => self.webhook(at.end),
            Word::Member => self.after_member(at),
            Word::Packed => self.base64(at.start),
            Word::Scheme => self.after_scheme(at),
            Word::Authorization => self.authorization(at.end),
            Word::Cookie => self.cookies(at),
            Word::Signature => self.signature(at),
            Word::Command => self.program_password(at),
            Word::Option => self.after_option(at),
            Word::Variable => self.short_variable(at),
            Word::Telling => self.after_name(at, false),
            Word::Password => self.after_name(at, true),
            Word::Pem => self.pem(at.end),
            Word::User => self.user(at.end),
            Word::Protocol => self.protocol(at.end),
            Word::Place | Word::Ending | Word::Argument => None,
        }
    }

    /// The token that begins with the prefix at `at`, if it has at least `least` characters and
    /// `row` letters and digits in a row.
    fn token(&mut self, at: Range<usize>, least: usize, row: usize) -> Option<Range<usize>> {
        let (start, text) = (at.start, self.text);
        let own = self.run(start);
        let (length, end) = (own.at.len(), own.at.end);
        let digits = self.digit >= Some(start);
        let own = own.skip(at.len());
        let parts = own.head.split(|byte| !byte.is_ascii_alphanumeric());
        let longest = parts.map(<[u8]>::len).max().unwrap_or(0);
        let is_whole = length >= least
            && longest >= row
            && (row == 0 && digits || (digits || longest >= 20) && !own.reads_as_words());
        let begins = || own.open && longest >= row.min(8) && is_key_so_far(own.head);
        let is_one = begins_word(text, start)
            && (is_whole || begins())
            // A JSON object in base64, in a `data:` URL, is not a JWT.
            && !(text[start..].starts_with(b"eyJ") && text[..start].ends_with(b";base64,"));
        is_one.then_some(start..end)
    }

    /// A key with at least `least` characters that contains a maker's mark.
    fn key_with_infix(&mut self, at: Range<usize>, least: usize) -> Option<Range<usize>> {
        let text = self.text;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_~.".contains(byte);
        let before = text[..at.start].iter().rev().take(96);
        let start = at.start - before.take_while(part).count();
        let rest = self.run(at.start);
        let own = start..rest.at.end;
        let value = &text[start..own.end.min(start + MAX_JUDGED)];
        let begins = rest.open && is_key_so_far(rest.skip(at.len()).head);
        let is_one = begins || own.len() >= least && is_random(value);
        (is_one && !reads_as_words(value)).then_some(own)
    }

    /// The secret half of a bot's token (Telegram), after the bot's number.
    fn bot_token(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let digits = self.text[..at.start].iter().rev().take(12);
        let number = digits.take_while(|byte| byte.is_ascii_digit()).count() >= 6;
        number.then(|| self.token(at.start + 1..at.end, 30, 0))?
    }

    /// The base64 that begins at `start`, if it encodes a token.
    fn base64(&mut self, start: usize) -> Option<Range<usize>> {
        if start < self.base64_end || !begins_word(self.text, start) {
            return None;
        }
        let own = self.run(start);
        self.base64_end = own.at.end;
        let least = match own.open {
            true => MIN_PARTIAL_BASE64,
            false => BASE64_LEN.start,
        };
        let plain = decode_base64(&self.text[own.at.clone()], least)?;
        let mut scan = Scan::new(&plain, own.open);
        let is_one = WORDS.each(&plain, 0, |at, word| {
            word != Word::Packed && scan.secret(at, word).is_some()
        });
        is_one.then_some(own.at)
    }

    /// A PEM block, unless it is public. `-----BEGIN` ends at `label_start`.
    fn pem(&mut self, label_start: usize) -> Option<Range<usize>> {
        let text = self.text;
        let start = label_start.checked_sub(PEM.len())?;
        if start < self.block_end || !text[start..].starts_with(PEM) {
            return None;
        }
        let rest = &text[label_start..];
        let labels = |byte: &&u8| matches!(**byte, b'A'..=b'Z' | b'0'..=b'9' | b' ');
        let length = rest.iter().take(64).take_while(labels).count();
        let behind = &rest[length..];
        let is_prose = match behind.strip_prefix(b"-----") {
            Some(behind) => behind.starts_with(b"`"),
            // A truncated label begins no key. A blank in it may be escaped; a quote or a line end
            // ends it.
            None => {
                let slashes = behind.iter().take_while(|byte| **byte == b'\\').count();
                slashes == 0 || behind.get(slashes) != Some(&b'u')
            }
        };
        if is_prose {
            return None;
        }
        let label = &rest[..rest.len().min(64)];
        let label = &label[..memchr::memmem::find(label, b"-----").unwrap_or(0)];
        let contains = |word: &str| memchr::memmem::find(label, word.as_bytes()).is_some();
        let public = ["CERTIFICATE", "PUBLIC", "SIGNATURE", "CRL", "SIGNED"];
        if !contains("PRIVATE") && public.iter().any(|word| contains(word)) {
            return None;
        }
        let end = memchr::memmem::find(rest, b"-----END").and_then(|end| {
            let from = label_start + end + "-----END".len();
            let tail = memchr::memmem::find(&text[from..], b"-----");
            tail.map(|tail| from + tail + 5)
        });
        Some(start..self.end_block(end))
    }

    /// The private lines of a PuTTY key, whose number follows `from`, up to the MAC.
    fn putty_lines(&mut self, from: usize) -> Option<Range<usize>> {
        if from < self.block_end {
            return None;
        }
        let number = |byte: &&u8| byte.is_ascii_digit() || **byte == b' ';
        let start = from + self.text[from..].iter().take_while(number).count();
        let end = memchr::memmem::find(&self.text[start..], PUTTY_END);
        let own = start..self.end_block(end.map(|end| start + end));
        (self.text[start - 1].is_ascii_digit() && !own.is_empty()).then_some(own)
    }

    /// Ends a block, possibly with the text.
    fn end_block(&mut self, end: Option<usize>) -> usize {
        self.in_block = end.is_none();
        self.block_end = end.unwrap_or(self.text.len());
        self.block_end
    }

    /// The cookies of a header, if any has to be redacted.
    fn cookies(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        if at.start < self.cookies_end {
            return None;
        }
        let (values, end) = super::headers::cookies(self.text, at.end)?;
        self.cookies_end = end;
        values
    }
}

/// The number of bytes before the first word; `None` when the message has to be walked. No word
/// begins before `from`.
pub(super) fn prefilter(text: &[u8], from: usize) -> Option<usize> {
    let mut clean_len = text.len();
    let mut scan = Scan::new(text, false);
    let is_suspect = WORDS.each(text, from, |at, word| {
        clean_len = clean_len.min(at.start);
        match word {
            Word::Place => !text[at.clone()].starts_with(b"\"") || is_member_name(text, at.end),
            // The end of the name of a member, an option or a variable.
            Word::Telling
            | Word::Password
            | Word::Authorization
            | Word::Cookie
            | Word::Protocol
            | Word::Scheme
            | Word::Signature
            | Word::Member
            | Word::Command
                if is_member_name(text, at.end) =>
            {
                true
            }
            Word::Argument => true,
            Word::Ending => is_member_name(text, at.end - 1),
            word => scan.secret(at, word).is_some(),
        }
    });
    (!is_suspect).then_some(clean_len)
}

/// Whether a text contains a word that announces a secret.
pub(super) fn has_keyword(text: &[u8]) -> bool {
    WORDS.each(text, 0, |_, word| word.announces_text())
}

/// The secrets in a text, in order and without overlaps.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let found = find_in_part(text, false);
    found.into_iter().map(|(secret, _)| secret).collect()
}

/// The same of a text that continues elsewhere if `partial`, with the kind of each secret;
/// includes incomplete secrets at the end.
pub(super) fn find_in_part(text: &[u8], partial: bool) -> Vec<(Range<usize>, Option<Inside>)> {
    let mut scan = Scan::new(text, partial);
    let mut found = Vec::new();
    WORDS.each(text, 0, |at, word| {
        if let Some(secret) = scan.secret(at, word) {
            let inside = match word {
                Word::Pem | Word::Lines => scan.in_block.then_some(IN_PEM),
                Word::Cookie => Some(Inside::Cookies),
                Word::User => Some(Inside::User),
                _ => Some(Inside::Token),
            };
            found.push((secret, inside));
        }
        false
    });
    if partial
        && let Some(start) = open_host(text)
        && is_partial_user(&text[start..])
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

/// Decodes a run of characters, or its beginning, as base64.
fn decode_base64(run: &[u8], least: usize) -> Option<Vec<u8>> {
    let codes = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let run = &run[..run.len().min(BASE64_LEN.end)];
    let length = run.iter().take_while(codes).count() / 4 * 4;
    let run = run.get(..length).filter(|_| length >= least)?;
    let url = memchr::memchr2(b'-', b'_', run).is_some();
    let coding = if url { BASE64URL_NOPAD } else { BASE64_NOPAD };
    coding.decode(run).ok()
}

/// Whether a name that continues at `from` is that of a JSON member, possibly in a string.
fn is_member_name(text: &[u8], from: usize) -> bool {
    let rest = &text[name_end(text, from)..];
    matches!(rest, [b'"', ..] | [b'\\', b'"' | b'\\', ..])
}
