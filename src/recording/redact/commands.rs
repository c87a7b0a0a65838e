//! Passwords in command lines: behind `--password`, in a variable before a command, and where some
//! programs take them (`mysql -psecret`, `curl -u me:secret`, `sshpass -p secret`).
//!
//! There a word or a letter may be one, so only what stands for one, or talks of it, is none. Not
//! here: options that are looked for before their program (see `options`), and what looks like a key
//! wherever it stands (see `shapes`).

use std::ops::Range;

use super::escapes::begins_word;

/// Bytes of a line that are looked at behind a program's name.
const LINE: usize = 256;

/// What stands behind the name of an option in a sentence.
const SAID: [&str; 24] = [
    "a",
    "an",
    "and",
    "are",
    "argument",
    "as",
    "at",
    "but",
    "flag",
    "flags",
    "for",
    "from",
    "if",
    "in",
    "instead",
    "is",
    "on",
    "option",
    "options",
    "or",
    "parameter",
    "the",
    "to",
    "with",
];

/// The password behind a name that goes from `name.start`, or further back, to `name.end`, and says
/// that it is one. `last` is the word that was looked at last: names may stand so close that each is
/// in the word of the one before.
pub(super) fn assigned(
    text: &[u8],
    name: Range<usize>,
    begun: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let before = &text[..name.start];
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let length = before.iter().rev().take(24).take_while(part).count();
    let whole = &text[name.start - length..name.end];
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
    let open = begun && own.end == text.len();
    let is_said = option && text[name.end] == b' ' && is_said(word, open);
    // A call, an element or a member is code.
    let code = matches!(text.get(own.end), Some(b'(' | b'[')) || word.contains(&b'.');
    let nothing = [&b"None"[..], b"null", b"nil", b"true", b"false"].contains(&word);
    let is_none = is_said || nothing || (variable && code);
    (!is_none).then_some(own)
}

/// The password in the line of a program whose name, or the beginning of it, is at `at`.
pub(super) fn given(text: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    if !begins_word(text, at.start) {
        return None;
    }
    let ends = |byte: &u8| b"\n\r|;&`".contains(byte);
    let rest = &text[at.end..text.len().min(at.end + LINE)];
    let rest = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let escaped = memchr::memmem::find(rest, b"\\n").unwrap_or(rest.len());
    let mut from = at.end;
    let line = at.end + escaped;
    let program = &text[at];
    while from < line {
        let blank = text[from..line].iter().position(|byte| *byte == b' ');
        let word = from..blank.map_or(line, |blank| from + blank);
        let next = (word.end + 1).min(line);
        let behind = |name: &[u8]| {
            text[word.clone()]
                .starts_with(name)
                .then(|| word.start + name.len())
        };
        let found = match program {
            b"sshpass" => behind(b"-p").map(|at| if at == word.end { next } else { at }),
            b"curl " => behind(b"--user=")
                .or_else(|| behind(b"--proxy-user="))
                .or_else(|| ends_in_user(&text[word.clone()]).then_some(next))
                .or_else(|| behind(b"-u").or_else(|| behind(b"-U"))),
            // A password that stands apart is the name of a database.
            _ => behind(b"-p").filter(|at| *at < word.end),
        };
        if let Some(own) = found.and_then(|at| value(text, at, &mut (0..0))) {
            if program != b"curl " {
                return Some(own);
            }
            let colon = memchr::memchr(b':', &text[own.clone()])?;
            return (own.start + colon + 1 < own.end).then(|| own.start + colon + 1..own.end);
        }
        from = next.max(from + 1);
    }
    None
}

/// Whether an option of `curl`, or several of one letter, has a user as the next word.
fn ends_in_user(option: &[u8]) -> bool {
    let letters = option.strip_prefix(b"-").unwrap_or_default();
    let short = letters.iter().all(u8::is_ascii_alphabetic) && letters.len() <= 8;
    let user = matches!(letters.last(), Some(b'u' | b'U'));
    (short && user) || [&b"--user"[..], b"--proxy-user"].contains(&option)
}

/// Whether a word, or its beginning, is one that stands behind the name of an option in a sentence.
pub(super) fn is_said(word: &[u8], open: bool) -> bool {
    SAID.iter().any(|known| match open {
        true => known.as_bytes().starts_with(word),
        false => known.as_bytes() == word,
    })
}

/// A word of a command line, in quotes or not, that does not stand for another.
pub(super) fn value(text: &[u8], start: usize, last: &mut Range<usize>) -> Option<Range<usize>> {
    let quotes = text[start..]
        .iter()
        .take_while(|byte| b"\\\"'".contains(byte));
    let start = start + quotes.count().min(3);
    let ends = |byte: &u8| *byte <= b' ' || b"\"'\\`;|&<>(),[]".contains(byte);
    if !last.contains(&start) {
        let length = text[start..].iter().position(ends);
        *last = start..length.map_or(text.len(), |length| start + length);
    }
    let own = start..last.end;
    let first = text.get(own.start).filter(|_| !own.is_empty())?;
    (!b"$%{*-=".contains(first)).then_some(own)
}
