//! Finds passwords in command lines: after `--password`, in a variable before a command, and where
//! specific programs expect them (`mysql -psecret`, `curl -u me:secret`, `sshpass -p secret`).
//!
//! A password may be a plain word there, so every word counts, except references to a value
//! elsewhere and words of prose. See `options` for one-letter options, `shapes` for secrets that
//! are recognisable anywhere.

use std::ops::Range;
use std::sync::LazyLock;

use super::escapes::{begins_word, quote_count};
use super::runs::is_code;
use super::table::{List, has, words};

/// Bytes of a line that are searched before and after the mark of a program.
pub(super) const LINE: usize = 256;

/// Words that follow the name of an option in prose.
static PROSE: List = LazyLock::new(|| words(include_str!("tables/prose.txt")));

/// Words for no value.
const NULLS: [&str; 5] = ["None", "null", "nil", "true", "false"];

/// The password after a name that denotes one. `last` is the word judged last: names may stand so
/// close together that each lies in the word of the one before.
pub(super) fn assigned_password(
    text: &[u8],
    name: Range<usize>,
    partial: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let whole = &text[name.clone()];
    let lower = whole.to_ascii_lowercase();
    let ends = [&b"password"[..], b"passwd", b"passphrase"];
    if !ends.iter().any(|end| lower.ends_with(end)) {
        return None;
    }
    let option = whole.starts_with(b"--");
    let variable = !option && !whole.iter().any(u8::is_ascii_lowercase);
    let start = match text.get(name.end)? {
        b'=' if option || variable => name.end + 1,
        b' ' if option => name.end + 1,
        _ => return None,
    };
    let own = value(text, start, last)?;
    let word = &text[own.clone()];
    let open = partial && own.end == text.len();
    let is_prose = option && text[name.end] == b' ' && is_prose(word, open);
    // A call, an element or a member is code.
    let code = is_code(text, own.end) || word.contains(&b'.');
    let is_none = is_prose || is_null(word, false) || (variable && code);
    (!is_none).then_some(own)
}

/// The password in the command line of a program whose name, or `login`, is at `at`.
pub(super) fn program_password(text: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    if !begins_word(text, at.start) || text.get(at.end) != Some(&b' ') {
        return None;
    }
    if text[at.clone()] == *b"login" {
        let before = &text[..at.start];
        let programs = [(&b"vault "[..], 0), (b"cargo ", 0), (b"bw ", 1)];
        let (_, place) = programs
            .iter()
            .find(|(program, _)| before.ends_with(program))?;
        return positional(text, at.end + 1, *place);
    }
    let own = words_in(text, at.end).find_map(|own| {
        let word = &text[own.clone()];
        let after = |name: &[u8]| word.starts_with(name).then(|| own.start + name.len());
        let next = || (own.end + 1).min(text.len());
        let start = after(b"--user=")
            .or_else(|| after(b"--proxy-user="))
            .or_else(|| ends_in_user(word).then(next))
            .or_else(|| after(b"-u").or_else(|| after(b"-U")))?;
        value(text, start, &mut (0..0))
    })?;
    after_user(text, own)
}

/// The password argument of a program whose name ends in `passwd` or the like.
pub(super) fn by_program_name(text: &[u8], name: Range<usize>) -> Option<Range<usize>> {
    let line = &text[name.end..line_end(text, name.end)];
    let place = match &text[name.clone()] {
        // The password is an argument with `-b`; it follows the file name unless there is `-n`.
        b"htpasswd" => {
            let short = |word: &&[u8]| word.starts_with(b"-") && !word.starts_with(b"--");
            let options = line.split(|byte| *byte == b' ').filter(short);
            let has = |letter: u8| options.clone().any(|option| option.contains(&letter));
            has(b'b').then(|| if has(b'n') { 1 } else { 2 })?
        }
        b"wpa_passphrase" | b"change_password" => 1,
        _ => return None,
    };
    positional(text, name.end + 1, place)
}

/// The argument with index `place` after `from`, not counting options.
fn positional(text: &[u8], from: usize, place: usize) -> Option<Range<usize>> {
    let plain = |own: &Range<usize>| !own.is_empty() && text[own.start] != b'-';
    let own = words_in(text, from).filter(plain).nth(place)?;
    let own = value(text, own.start, &mut (0..0))?;
    let word = &text[own.clone()];
    (!is_prose(word, false) && !word.contains(&b'=')).then_some(own)
}

/// The words of the line from `from` on.
fn words_in(text: &[u8], from: usize) -> impl Iterator<Item = Range<usize>> {
    let from = from.min(text.len());
    let line = &text[from..line_end(text, from)];
    let mut next = from;
    line.split(|byte| *byte == b' ').map(move |word| {
        let own = next..next + word.len();
        next = own.end + 1;
        own
    })
}

/// The password after a user name and a colon.
pub(super) fn after_user(text: &[u8], own: Range<usize>) -> Option<Range<usize>> {
    let colon = memchr::memchr(b':', &text[own.clone()])?;
    let password = own.start + colon + 1..own.end;
    (!password.is_empty()).then_some(password)
}

/// The end of the command or line that contains `from`.
pub(super) fn line_end(text: &[u8], from: usize) -> usize {
    let ends = |byte: &u8| b"\n\r|;&`".contains(byte);
    let rest = &text[from..text.len().min(from + LINE)];
    let rest = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    from + memchr::memmem::find(rest, b"\\n").unwrap_or(rest.len())
}

/// The start of the command or line that ends at `end`.
pub(super) fn line_start(text: &[u8], end: usize) -> usize {
    let ends = |byte: &u8| b"\n\r|;&`(".contains(byte);
    let from = end.saturating_sub(LINE);
    let start = text[from..end].iter().rposition(ends);
    start.map_or(from, |end| from + end + 1)
}

/// Whether an option of `curl`, or several one-letter options, take a user as the next word.
fn ends_in_user(option: &[u8]) -> bool {
    let letters = option.strip_prefix(b"-").unwrap_or_default();
    let short = letters.iter().all(u8::is_ascii_alphabetic) && letters.len() <= 8;
    let user = matches!(letters.last(), Some(b'u' | b'U'));
    (short && user) || [&b"--user"[..], b"--proxy-user"].contains(&option)
}

/// Whether a word, or its beginning, is one that follows the name of an option in prose.
pub(super) fn is_prose(word: &[u8], open: bool) -> bool {
    has(&PROSE, word, open)
}

/// Whether a word, or its beginning, denotes no value.
pub(super) fn is_null(word: &[u8], open: bool) -> bool {
    has(&NULLS, word, open)
}

/// A word of a command line, quoted or not, that is not a reference to a value elsewhere.
pub(super) fn value(text: &[u8], start: usize, last: &mut Range<usize>) -> Option<Range<usize>> {
    let start = start + quote_count(text, start);
    let ends = |byte: &u8| *byte <= b' ' || b"\"'\\`;|&<>(),[]".contains(byte);
    if !last.contains(&start) {
        let length = text[start..].iter().position(ends);
        *last = start..length.map_or(text.len(), |length| start + length);
    }
    let own = start..last.end;
    let first = text.get(own.start).filter(|_| !own.is_empty())?;
    (!b"$%{*-=".contains(first)).then_some(own)
}
