//! Finds the places in a text where names may stand: whole JSON strings, and directories anywhere.

use std::ops::Range;

use crate::recording::redact::begins_word;

/// The strings in a JSON text that are values, including quotes, each with the name of its member
/// as spelled.
pub(super) fn find_strings(text: &[u8]) -> impl Iterator<Item = (Range<usize>, Option<&[u8]>)> {
    let mut at = 0;
    let mut member = None;
    std::iter::from_fn(move || {
        loop {
            match text.get(at)? {
                b'"' => {}
                byte => {
                    let is_key = byte.is_ascii_whitespace() || *byte == b':';
                    member = member.filter(|_| is_key);
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

/// The occurrences of a directory in a text, JSON or not.
pub(super) fn find_folders<'a>(
    text: &'a [u8],
    folder: &'a [u8],
) -> impl Iterator<Item = Range<usize>> + 'a {
    memchr::memmem::find_iter(text, folder).filter_map(move |at| {
        let end = at + folder.len();
        let is_one = begins_name(&text[..at]) && ends_name(text.get(end).copied());
        is_one.then_some(at..end)
    })
}

/// The end of the string that begins at `from`.
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

/// Whether a directory's name may begin after `before`, and is not the rest of a longer one.
fn begins_name(before: &[u8]) -> bool {
    let Some((last, rest)) = before.split_last() else {
        return true;
    };
    match last {
        // A line break or the like in a JSON string; not after an escaped backslash.
        b'n' | b't' | b'r' | b'b' | b'f' if rest.ends_with(b"\\") => {
            let slashes = rest.iter().rev().take_while(|byte| **byte == b'\\');
            slashes.count() % 2 == 1
        }
        // `file:///src`.
        b'/' => rest.ends_with(b":/"),
        // `-I/src`.
        b'I' | b'L' if rest.ends_with(b"-") => begins_name(&rest[..rest.len() - 1]),
        // The end of an escape in JSON or of a terminal colour.
        byte if byte.is_ascii_alphanumeric() => begins_word(before, before.len()),
        byte => !b"_-.~})*%".contains(byte),
    }
}

/// Whether a directory's name ends before `next`.
fn ends_name(next: Option<u8>) -> bool {
    !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
