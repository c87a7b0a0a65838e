//! Finds what follows the name of a secret: random text after any suggestive name (`my key is …`),
//! and what is short or made of words after a name that leaves no doubt: `GITHUB_TOKEN=…`,
//! `api_key: …`, `<password>…`, `login me password …`.

use std::ops::Range;

use super::commands::is_null;
use super::escapes::{quote_count, skip_gap};
use super::names::{
    expected_form, is_certain, is_key_like, is_secret_value, may_be_password, may_hold_secret,
    name_end, name_start,
};
use super::random::{is_random, is_random_so_far, reads_as_words};
use super::runs::{MAX_JUDGED, Run, Scan, is_code};
use super::table::has;

/// Minimum length of the value of a variable.
const MIN_VARIABLE: usize = 6;

/// Bytes before a name that are searched.
const LOOK_BEHIND: usize = 96;

impl Scan<'_> {
    /// The value after a short name for a secret, in text or JSON.
    pub(super) fn after_member(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let name = name_start(text, at.start)..name_end(text, at.end);
        let start = skip_to_value(text, name.end);
        let delimited = self.delimited(name.clone());
        if delimited.is_some() || !is_assigned(&text[name.end..start]) {
            return delimited;
        }
        let (own, name) = (self.run(start), &text[name]);
        let begins = own.open && is_random_so_far(own.head) && may_hold_secret(name);
        let is_candidate = own.head.len() >= 6 && !own.reads_as_words();
        let is_secret = begins || is_candidate && is_secret_value(name, own.head);
        (is_secret && !own.is_code).then_some(own.at)
    }

    /// The value after a suggestive name; `chosen` if it is that of a password, which may be short
    /// or made of words.
    pub(super) fn after_name(&mut self, at: Range<usize>, chosen: bool) -> Option<Range<usize>> {
        let text = self.text;
        let name = name_start(text, at.start)..name_end(text, at.end);
        let other = self
            .assigned_password(name.clone())
            .or_else(|| self.variable_value(name.clone()))
            .or_else(|| self.piped_password(name.clone()))
            .or_else(|| self.by_program_name(name.clone()))
            .or_else(|| self.delimited(name.clone()));
        if other.is_some() {
            return other;
        }
        let start = skip_to_value(text, name.end);
        if start == name.end {
            return None;
        }
        let own = self.run(start);
        let (before, whole) = (&text[..name.start], &text[name.clone()]);
        let gap = &text[name.end..start];
        let is_assignment = chosen
            && (is_assigned(gap)
                || whole.starts_with(b"--")
                || gap.starts_with(b">")
                || gap.starts_with(b" is ")
                || (text[at.clone()].starts_with(b"PASS") && gap.contains(&b'\''))
                || follows_login(before));
        let option = text.get(name.end) == Some(&b' ') && whole.starts_with(b"--");
        let is_sure = !chosen
            && name.end == at.end
            && (is_assigned(gap) || option)
            && (is_certain(whole) || is_certain_after(before, whole));
        let placed = names_value(text, &name);
        let open = placed && !own.at.is_empty() && own.open;
        let is_meant = is_sure && (open || is_certain_value(&own, placed));
        let is_one = is_meant
            || match own.reads_as_words() {
                true => chosen && is_random(own.head),
                false => own.is_random() || (is_assignment && may_be_password(own.head)),
            };
        // A function that is called is no secret.
        (is_one && text.get(own.at.end) != Some(&b'(')).then_some(own.at)
    }

    /// The value named as a password at a position where only values stand: in an attribute or
    /// element of XML, an entry of a connection string or query, a constant definition.
    fn delimited(&mut self, name: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let whole = &text[name.clone()];
        let chosen = matches!(expected_form(whole), Some("pwd" | "password"));
        if !chosen && !is_certain(whole) {
            return None;
        }
        let before = &text[name.start.saturating_sub(LOOK_BEHIND)..name.start];
        let quotes = quote_count(text, name.end);
        let rest = &text[name.end + quotes..];
        let tag = before.iter().rev().find(|byte| b"<>".contains(byte)) == Some(&b'<');
        let entry = before.trim_ascii_end().last();
        let listed = entry.is_some_and(|byte| b";&?".contains(byte))
            || before.ends_with(b",")
            || before.ends_with(b"from-literal=");
        let defined = || {
            let quotes = |byte: &u8| b"\\\"' ".contains(byte);
            let call = before.iter().rposition(|byte| !quotes(byte));
            call.is_some_and(|call| before[..=call].ends_with(b"define("))
        };
        let separator_len = match rest {
            [b'>', ..] if tag && quotes == 0 => 1,
            [b'=', b'"' | b'\'' | b'\\', ..] if tag && quotes == 0 => 1,
            [b'=', ..] if listed && quotes == 0 => 1,
            [b',', b' ', ..] if quotes > 0 && defined() => 2,
            [b',', ..] if quotes > 0 && defined() => 1,
            _ if quotes > 0 && tag && rest.starts_with(b" value=") => 7,
            _ => return None,
        };
        let own = self.value(name.end + quotes + separator_len)?;
        let word = &text[own.clone()];
        let open = self.is_open(own.end);
        let element = rest[0] == b'>' && !open && !text[own.end..].starts_with(b"<");
        let code = matches!(text.get(own.end), Some(b'(' | b'[' | b')'))
            || matches!(word, [b'/' | b'~' | b'.', ..])
            || word.contains(&b'.') && reads_as_words(word);
        let is_none = is_null(word, false) || has(&["required", "string", "password"], word, false);
        (!element && !code && !is_none && (chosen || is_key_like(word))).then_some(own)
    }

    /// The value of a variable whose name is in capitals and leaves no doubt. `name` goes from its
    /// start to the equals sign.
    fn variable_value(&mut self, name: Range<usize>) -> Option<Range<usize>> {
        let whole = &self.text[name.clone()];
        let is_variable = self.text.get(name.end) == Some(&b'=')
            && !whole.starts_with(b"-")
            && !whole.iter().any(u8::is_ascii_lowercase)
            && is_certain(whole);
        if !is_variable {
            return None;
        }
        let own = self.value(name.end + 1)?;
        let word = &self.text[own.clone()];
        // Names in a row share one value, which is searched for each of them.
        let mut head = word.iter().take(MAX_JUDGED);
        let code = is_code(self.text, own.end)
            || head.any(|byte| b"./:@".contains(byte))
            || word.ends_with(b"_")
            // The name of another variable.
            || word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
        let enough = self.is_open(own.end) || word.len() >= MIN_VARIABLE;
        (enough && !code && !word.iter().all(u8::is_ascii_digit)).then_some(own)
    }
}

/// Whether a word of a name, together with the text before it, leaves no doubt: `API key`,
/// `?key=`.
fn is_certain_after(before: &[u8], word: &[u8]) -> bool {
    let kind = || {
        let last = before.len().saturating_sub("private ".len());
        let last = before[last..].to_ascii_lowercase();
        let kinds = [&b"api "[..], b"access ", b"secret ", b"private "];
        kinds.iter().any(|kind| last.ends_with(kind))
    };
    word.eq_ignore_ascii_case(b"key") && (matches!(before.last(), Some(b'?' | b'&')) || kind())
}

/// Whether a value after a certain name is a secret: paths, members and calls are not; words only
/// if the name is `placed` where nothing but values follow.
fn is_certain_value(own: &Run<'_>, placed: bool) -> bool {
    let code = own.is_code || memchr::memchr2(b'.', b'/', own.head).is_some();
    !code && may_be_password(own.head) && (placed || !own.reads_as_words())
}

/// Whether a name is that of a parameter in a URL's query (`?token=`), of a long option
/// (`--token=`) or of a header (`X-Api-Key:`).
fn names_value(text: &[u8], name: &Range<usize>) -> bool {
    let whole = &text[name.clone()];
    let queried = matches!(text[..name.start].last(), Some(b'?' | b'&'));
    match text.get(name.end) {
        Some(b'=') => queried || whole.starts_with(b"--"),
        Some(b':') => whole.starts_with(b"X-") || whole.starts_with(b"x-"),
        _ => false,
    }
}

/// Whether a value follows the word `password` and a blank because of the text before it:
/// `machine x login y password z`, as in a `.netrc`.
fn follows_login(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(LOOK_BEHIND)..];
    let contains = |word: &[u8]| memchr::memmem::find(near, word).is_some();
    let apart = before
        .last()
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    apart && (contains(b"login ") || contains(b"machine "))
}

/// Whether a colon or an equals sign stands between a name and its value.
fn is_assigned(gap: &[u8]) -> bool {
    let wide = [&b"uff1a"[..], "：".as_bytes()];
    let has_wide = |colon: &&[u8]| memchr::memmem::find(gap, colon).is_some();
    memchr::memchr2(b':', b'=', gap).is_some() || wide.iter().any(has_wide)
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
