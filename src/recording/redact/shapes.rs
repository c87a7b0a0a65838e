//! Finds secrets by their shape, in any text.
//!
//! Whether a text is a secret depends on the text after a keyword (see `words` for the words,
//! `walk` for places). The search runs on text as it stands in JSON, and in JSON within JSON,
//! because none of these secrets needs an escape.

use std::ops::Range;
use std::sync::LazyLock;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

use super::commands;
use super::escapes::{begins_word, quote_count, skip_gap};
use super::headers::{after_scheme, authorization, cookies, protocol};
use super::inside::{IN_PEM, Inside, PUTTY_END};
use super::named_secrets::{self, is_secret_value, name_end};
use super::options;
use super::piped;
use super::random::{is_key_so_far, is_random, is_random_so_far, reads_as_words};
use super::runs::{MAX_JUDGED, Runs};
use super::urls::{is_partial_user, open_host, signature, user, webhook};
use super::words::{Word, Words, each_marked};

const PEM: &[u8] = b"-----BEGIN";

/// Minimum and maximum length of base64 that is decoded.
const BASE64_LEN: Range<usize> = 24..1024;

/// Minimum length of incomplete base64.
const MIN_PARTIAL_BASE64: usize = 12;

/// Built by the first search: not every run of the program has one.
static WORDS: LazyLock<Words> = LazyLock::new(Words::new);

/// The scan of one text. It remembers its position, so that a text made of announcing words only
/// takes no longer than others.
struct Scan<'a> {
    text: &'a [u8],
    runs: Runs<'a>,
    /// The end of the last PEM block; below, of the last base64 that was decoded and the last
    /// cookies.
    pem_end: usize,
    /// The last PEM block is not complete.
    in_pem: bool,
    /// The end of the last private lines of a PuTTY key.
    lines_end: usize,
    base64_end: usize,
    cookies_end: usize,
    /// The last word that was judged as a password.
    last_value: Range<usize>,
}

impl<'a> Scan<'a> {
    fn at(text: &'a [u8], partial: bool) -> Self {
        Self {
            text,
            runs: Runs::new(text, partial),
            pem_end: 0,
            in_pem: false,
            lines_end: 0,
            base64_end: 0,
            cookies_end: 0,
            last_value: 0..0,
        }
    }

    /// The secret that the word at `at` announces.
    fn secret(&mut self, at: Range<usize>, word: Word) -> Option<Range<usize>> {
        match word {
            Word::Beginning(fewest, row) => self.token(at, fewest, row),
            Word::Within(fewest) => self.key_with_infix(at, fewest),
            Word::Bot => self.bot_token(at),
            Word::Lines => self.putty_lines(at.end),
            Word::Hook => webhook(&mut self.runs, at.end),
            Word::Member => self.after_member(at),
            Word::Packed => self.base64(at.start),
            Word::Scheme => after_scheme(&mut self.runs, at),
            Word::Authorization => authorization(&mut self.runs, at.end),
            Word::Cookie => self.cookie_values(at),
            Word::Signature => signature(&mut self.runs, at),
            Word::Command => commands::program_password(self.text, at),
            Word::Option => options::after_option(self.text, at, self.runs.partial),
            Word::Variable => options::short_variable(&mut self.runs, at, &mut self.last_value),
            Word::Telling => self.after_name(at, false),
            Word::Password => self.after_name(at, true),
            Word::Pem => self.pem(at.end),
            Word::User => user(self.text, at.end),
            Word::Protocol => protocol(&mut self.runs, at.end),
            Word::Place | Word::Ending | Word::Argument => None,
        }
    }

    /// The token that begins with the prefix at `at`, if it has at least `min_len` characters and
    /// `row` letters and digits in a row.
    fn token(&mut self, at: Range<usize>, min_len: usize, row: usize) -> Option<Range<usize>> {
        let (start, text) = (at.start, self.text);
        let own = self.runs.rest_from(start);
        let length = own.at.len();
        let digits = self.runs.has_digit(start);
        let own = own.skip(at.len());
        let parts = own.head.split(|byte| !byte.is_ascii_alphanumeric());
        let longest = parts.map(<[u8]>::len).max().unwrap_or(0);
        let is_whole = length >= min_len
            && longest >= row
            && (row == 0 && digits || (digits || longest >= 20) && !own.reads_as_words());
        let begins = || own.open && longest >= row.min(8) && is_key_so_far(own.head);
        let is_one = begins_word(text, start)
            && (is_whole || begins())
            // A JSON object in base64, in a `data:` URL, is not a JWT.
            && !(text[start..].starts_with(b"eyJ") && text[..start].ends_with(b";base64,"));
        is_one.then_some(start..own.at.end)
    }

    /// A key with at least `min_len` characters that contains a maker's mark.
    fn key_with_infix(&mut self, at: Range<usize>, min_len: usize) -> Option<Range<usize>> {
        let text = self.text;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_~.".contains(byte);
        let before = text[..at.start].iter().rev().take(96);
        let start = at.start - before.take_while(part).count();
        let rest = self.runs.rest_from(at.start);
        let own = start..rest.at.end;
        let value = &text[start..own.end.min(start + MAX_JUDGED)];
        let begins = rest.open && is_key_so_far(rest.skip(at.len()).head);
        let is_one = begins || own.len() >= min_len && is_random(value);
        (is_one && !reads_as_words(value)).then_some(own)
    }

    /// The secret half of a bot's token (Telegram), after the bot's number.
    fn bot_token(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let digits = self.text[..at.start].iter().rev().take(12);
        let number = digits.take_while(|byte| byte.is_ascii_digit()).count() >= 6;
        number.then(|| self.token(at.start + 1..at.end, 30, 0))?
    }

    /// The value after a short name for a secret, in text or JSON.
    fn after_member(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let name = name_end(self.text, at.end);
        let start = skip_to_value(self.text, name);
        let whole = named_secrets::name_start(self.text, at.start)..name;
        let (partial, last) = (self.runs.partial, &mut self.last_value);
        let delimited = named_secrets::delimited(self.text, whole.clone(), partial, last);
        if delimited.is_some() || !is_assigned(&self.text[name..start]) {
            return delimited;
        }
        let (own, name) = (self.runs.rest_from(start), &self.text[whole]);
        let begins = own.open && is_random_so_far(own.head) && named_secrets::may_hold_secret(name);
        let is_candidate = own.head.len() >= 6 && !own.reads_as_words();
        let is_secret = begins || is_candidate && is_secret_value(name, own.head);
        (is_secret && !own.is_code).then_some(own.at)
    }

    /// The base64 that begins at `start`, if it encodes a token.
    fn base64(&mut self, start: usize) -> Option<Range<usize>> {
        if start < self.base64_end || !begins_word(self.text, start) {
            return None;
        }
        let own = self.runs.rest_from(start);
        self.base64_end = own.at.end;
        let min_len = match own.open {
            true => MIN_PARTIAL_BASE64,
            false => BASE64_LEN.start,
        };
        let plain = decode_base64(&self.text[own.at.clone()], min_len)?;
        let mut scan = Scan::at(&plain, own.open);
        let is_one = WORDS.each(&plain, |at, word| {
            word != Word::Packed && scan.secret(at, word).is_some()
        });
        is_one.then_some(own.at)
    }

    /// The value after a suggestive name; `chosen` if it is that of a password, which may be short
    /// or made of words.
    fn after_name(&mut self, at: Range<usize>, chosen: bool) -> Option<Range<usize>> {
        let (text, partial) = (self.text, self.runs.partial);
        let name = name_end(text, at.end);
        let (whole, last) = (
            named_secrets::name_start(text, at.start)..name,
            &mut self.last_value,
        );
        let other = commands::assigned_password(text, whole.clone(), partial, last)
            .or_else(|| named_secrets::variable_value(text, whole.clone(), partial, last))
            .or_else(|| piped::piped_password(text, whole.clone()))
            .or_else(|| commands::by_program_name(text, whole.clone()))
            .or_else(|| named_secrets::delimited(text, whole.clone(), partial, last));
        if other.is_some() {
            return other;
        }
        let start = skip_to_value(text, name);
        if start == name {
            return None;
        }
        let own = self.runs.rest_from(start);
        let value = own.head;
        let gap = &text[name..start];
        let is_assignment = chosen
            && (is_assigned(gap)
                || text[whole.clone()].starts_with(b"--")
                || gap.starts_with(b">")
                || gap.starts_with(b" is ")
                || (text[at.clone()].starts_with(b"PASS") && gap.contains(&b'\''))
                || named_secrets::follows_login(&text[..whole.start]));
        let is_confirmed = || {
            named_secrets::is_certain(&text[whole.clone()])
                || named_secrets::is_certain_after(&text[..whole.start], &text[whole.clone()])
        };
        let option = text.get(name) == Some(&b' ') && text[whole.clone()].starts_with(b"--");
        let is_sure = !chosen && name == at.end && (is_assigned(gap) || option) && is_confirmed();
        let placed = named_secrets::names_value(text, &whole);
        let open = placed && !own.at.is_empty() && own.open;
        let is_meant = is_sure && (open || named_secrets::is_certain_value(&own, placed));
        let is_one = match reads_as_words(value) {
            true => is_meant || (chosen && is_random(value)),
            false => {
                is_meant
                    || own.is_random()
                    || (is_assignment && named_secrets::may_be_password(value))
            }
        };
        // A function that is called is no secret.
        (is_one && text.get(own.at.end) != Some(&b'(')).then_some(own.at)
    }

    /// The cookies of a header, if any has to be redacted.
    fn cookie_values(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        if at.start < self.cookies_end {
            return None;
        }
        let (values, end) = cookies(self.text, at.end)?;
        self.cookies_end = end;
        values
    }

    /// A PEM block, unless it is public. `-----BEGIN` ends at `label_start`.
    fn pem(&mut self, label_start: usize) -> Option<Range<usize>> {
        let text = self.text;
        let start = label_start.checked_sub(PEM.len())?;
        if start < self.pem_end || !text[start..].starts_with(PEM) {
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
            // Prose about the PEM header.
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
        self.in_pem = end.is_none();
        self.pem_end = end.unwrap_or(text.len());
        Some(start..self.pem_end)
    }

    /// The private lines of a PuTTY key, whose number follows `from`, up to the MAC.
    fn putty_lines(&mut self, from: usize) -> Option<Range<usize>> {
        if from < self.lines_end {
            return None;
        }
        let number = |byte: &&u8| byte.is_ascii_digit() || **byte == b' ';
        let start = from + self.text[from..].iter().take_while(number).count();
        let end = memchr::memmem::find(&self.text[start..], PUTTY_END).map(|end| start + end);
        let own = start..end.unwrap_or(self.text.len());
        let is_one = self.text[start - 1].is_ascii_digit() && !own.is_empty();
        self.in_pem = end.is_none();
        self.lines_end = own.end;
        is_one.then_some(own)
    }
}

/// The number of bytes before the first word; `None` when the message has to be walked.
pub(super) fn prefilter(text: &[u8]) -> Option<usize> {
    let mut clean_len = text.len();
    let mut scan = Scan::at(text, false);
    let is_suspect = WORDS.each(text, |at, word| {
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
    WORDS.each(text, |_, word| word.announces_text())
}

/// The secrets in a text, in order and without overlaps.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let found = find_in_part(text, false);
    found.into_iter().map(|(secret, _)| secret).collect()
}

/// The same of a text that continues elsewhere if `partial`, with the kind of each secret;
/// includes incomplete secrets at the end.
pub(super) fn find_in_part(text: &[u8], partial: bool) -> Vec<(Range<usize>, Option<Inside>)> {
    let mut search = Search::at(text, partial);
    WORDS.each(text, |at, word| {
        search.judge(at, word);
        false
    });
    search.finish()
}

/// The secrets in `tail`, which a piece continues from `known` on, as [`find_in_part`] has them; those
/// in `piece` when it is read alone; and where the last word of both begins that announces a secret.
/// The words of the tables are searched once for both.
pub(super) fn find_in_both(tail: &[u8], known: usize, piece: &[u8]) -> FoundInBoth {
    let (mut whole, mut own) = (Search::at(tail, true), Search::at(piece, false));
    let mut last_word = None;
    let mut judge = |at: Range<usize>, word: Word| {
        if word.announces_text() {
            last_word = last_word.max(Some(at.start));
        }
        whole.judge(at, word);
        false
    };
    WORDS.each_listed(tail, &mut |at, word| {
        if at.start >= known {
            own.judge(at.start - known..at.end - known, word);
        }
        judge(at, word)
    });
    each_marked(tail, &mut judge);
    each_marked(piece, &mut |at, word| {
        own.judge(at, word);
        false
    });
    FoundInBoth {
        whole: whole.finish(),
        own: own.finish(),
        last_word,
    }
}

/// The result of [`find_in_both`].
pub(super) struct FoundInBoth {
    pub(super) whole: Vec<(Range<usize>, Option<Inside>)>,
    pub(super) own: Vec<(Range<usize>, Option<Inside>)>,
    pub(super) last_word: Option<usize>,
}

/// A search for secrets in one text, word by word.
struct Search<'a> {
    scan: Scan<'a>,
    found: Vec<(Range<usize>, Option<Inside>)>,
}

impl<'a> Search<'a> {
    fn at(text: &'a [u8], partial: bool) -> Self {
        Self {
            scan: Scan::at(text, partial),
            found: Vec::new(),
        }
    }

    /// Judges what a word announces.
    fn judge(&mut self, at: Range<usize>, word: Word) {
        if let Some(secret) = self.scan.secret(at, word) {
            let inside = match word {
                Word::Pem | Word::Lines => self.scan.in_pem.then_some(IN_PEM),
                Word::Cookie => Some(Inside::Cookies),
                Word::User => Some(Inside::User),
                _ => Some(Inside::Token),
            };
            self.found.push((secret, inside));
        }
    }

    /// The secrets, in order and without overlaps.
    fn finish(self) -> Vec<(Range<usize>, Option<Inside>)> {
        let (text, partial) = (self.scan.text, self.scan.runs.partial);
        let mut found = self.found;
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
}

/// Decodes a run of characters, or its beginning, as base64.
fn decode_base64(run: &[u8], min_len: usize) -> Option<Vec<u8>> {
    let codes = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let length = run
        .iter()
        .take(BASE64_LEN.end)
        .take_while(|byte| codes(byte));
    let length = length.count() / 4 * 4;
    if length < min_len {
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
fn skip_to_value(text: &[u8], name: usize) -> usize {
    let is = [&b" is "[..], b" is: ", b" was ", b"('", b"(\""];
    let rest = &text[name..];
    // The name of an entry: `env["NAME"] = `.
    let quotes = quote_count(text, name);
    if quotes > 0 && rest[quotes..].starts_with(b"]") {
        return skip_gap(text, name + quotes + 1);
    }
    let found = is.iter().find(|is| rest.starts_with(is));
    let start = skip_gap(text, name + found.map_or(0, |word| word.len() - 1));
    // A value needs a separator.
    if found.is_some() && start == name {
        name
    } else {
        start
    }
}

/// Whether a name that continues at `from` is that of a JSON member, possibly in a string.
fn is_member_name(text: &[u8], from: usize) -> bool {
    let rest = &text[name_end(text, from)..];
    matches!(rest, [b'"', ..] | [b'\\', b'"' | b'\\', ..])
}
