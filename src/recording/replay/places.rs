//! Where names may stand in a text: whole strings of JSON, and directories within anything.
//!
//! Not here: what is replaced by what (see `names`).

use std::ops::Range;

use crate::recording::redact::begins_word;

/// The strings in a JSON text that are values, with their quotes; each with the name of the member
/// that it is the value of, as it is spelled there.
pub(super) fn strings(text: &[u8]) -> impl Iterator<Item = (Range<usize>, Option<&[u8]>)> {
    let mut at = 0;
    let mut member = None;
    std::iter::from_fn(move || {
        loop {
            match text.get(at)? {
                b'"' => {}
                byte => {
                    let goes_on = byte.is_ascii_whitespace() || *byte == b':';
                    member = member.filter(|_| goes_on);
                    at += 1;
                    continue;
                }
            }
            let place = at..string_end(text, at);
            at = place.end;
            let rest = text[at..].trim_ascii_start();
            if rest.first() == Some(&b':') {
                member = Some(&text[place.start + 1..place.end - 1]);
                continue;
            }
            return Some((place, member.take()));
        }
    })
}

/// The places of a directory in a text, whether or not that is JSON.
pub(super) fn folders<'a>(
    text: &'a [u8],
    folder: &'a [u8],
) -> impl Iterator<Item = Range<usize>> + 'a {
    memchr::memmem::find_iter(text, folder).filter_map(move |at| {
        let end = at + folder.len();
        let is_one = begins_name(&text[..at]) && ends_name(text.get(end).copied());
        is_one.then_some(at..end)
    })
}

/// Where the string that begins at `from` ends.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Whether a directory's name may begin after `before`, and not be the rest of a longer one.
fn begins_name(before: &[u8]) -> bool {
    let Some((last, rest)) = before.split_last() else {
        return true;
    };
    match last {
        // The line break, or the like, of a JSON string; not behind a backslash that is one.
        b'n' | b't' | b'r' | b'b' | b'f' if rest.ends_with(b"\\") => {
            let slashes = rest.iter().rev().take_while(|byte| **byte == b'\\');
            slashes.count() % 2 == 1
        }
        // `file:///src`.
        b'/' => rest.ends_with(b":/"),
        // `-I/src`.
        b'I' | b'L' if rest.ends_with(b"-") => begins_name(&rest[..rest.len() - 1]),
        // The end of an escape, of JSON or of a terminal's colours.
        byte if byte.is_ascii_alphanumeric() => begins_word(before, before.len()),
        byte => !b"_-.~})*%".contains(byte),
    }
}

/// Whether a directory's name ends before `next`.
fn ends_name(next: Option<u8>) -> bool {
    !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
