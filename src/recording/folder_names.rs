//! Finds the names of a folder in texts, where conversations of different folders are compared or
//! played.

use std::ops::Range;

use super::redact::begins_word;

/// Length of a name, without its root, from which it does not occur by chance.
const MIN_LEN: usize = 8;

/// Whether a folder's name is long enough that it does not occur by chance.
pub fn is_long(folder: &str) -> bool {
    folder.trim_start_matches('/').len() >= MIN_LEN
}

/// The occurrences of a folder in a text, JSON or not. One with a long name is also found within
/// words (`a/src/main.rs` in a diff is found in any case), and without its root, which some agents
/// leave out (OpenCode).
pub fn find_folder<'a>(
    text: &'a [u8],
    folder: &'a [u8],
    is_long: bool,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let name = folder.strip_prefix(b"/").unwrap_or(folder);
    let has_root = name.len() < folder.len();
    memchr::memmem::find_iter(text, name).filter_map(move |at| {
        let end = at + name.len();
        let before = text.get(..at)?;
        let root = before.strip_suffix(b"/").filter(|_| has_root);
        let before = root.unwrap_or(before);
        let begins = match root {
            Some(_) => is_long || begins_name(before),
            None => (is_long || !has_root) && begins_name(before),
        };
        (begins && ends_name(text.get(end..)?)).then_some(before.len()..end)
    })
}

/// Whether a folder's name may begin after `before`, and is not the rest of a longer one.
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
        // The sides of a diff.
        b'a' | b'b' if rest.last().is_none_or(|byte| !byte.is_ascii_alphanumeric()) => {
            begins_name(rest)
        }
        // `file:///src`.
        b'/' => rest.ends_with(b":/"),
        // `-I/src`.
        b'I' | b'L' if let Some(rest) = rest.strip_suffix(b"-") => begins_name(rest),
        // The end of an escape in JSON or of a terminal colour.
        byte if byte.is_ascii_alphanumeric() => begins_word(before, before.len()),
        byte => !b"_-.~})*%".contains(byte),
    }
}

/// Whether a folder's name ends before `after`; a full stop may follow it.
fn ends_name(after: &[u8]) -> bool {
    let next = after.iter().find(|byte| **byte != b'.');
    !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
}
