//! Handles JSON and other escapes around secrets: the search runs on text as it is spelled, without
//! decoding it.

use std::ops::Range;

/// Characters that may stand between the name of a secret and its value.
const SEPARATORS: &[u8] = b" \t=:\"'`\\>";

/// Maximum distance of a name and its value: quotes, escaped twice, and a colon.
const MAX_GAP: usize = 12;

/// Whether a word may begin at `at`. The letters of an escape such as `\n` or `\u201c` are not part
/// of a word, nor is the last letter of a terminal escape such as `[31m`.
pub(crate) fn begins_word(text: &[u8], at: usize) -> bool {
    let back = |by: usize| at.checked_sub(by).map(|at| text[at]);
    if back(1) == Some(b'\\') {
        // The `n` of an escaped line break; an escaped backslash does not count.
        let slashes = text[..at].iter().rev().take_while(|byte| **byte == b'\\');
        return slashes.count() % 2 == 0;
    }
    if back(1).is_none_or(|byte| !byte.is_ascii_alphanumeric()) || back(2) == Some(b'\\') {
        return true;
    }
    // Escapes of JSON, of programming languages and of URLs.
    let escaped = [(&b"\\u"[..], 4), (b"\\x", 2), (b"%", 2)]
        .into_iter()
        .find_map(|(sign, digits)| {
            let start = at.checked_sub(sign.len() + digits)?;
            escape(&text[start..at], sign, digits)
        });
    if let Some(code) = escaped {
        // Some encoders escape letters, too.
        return !u8::try_from(code).is_ok_and(|byte| byte.is_ascii_alphanumeric());
    }
    let before = text[..at].strip_suffix(b"m").unwrap_or_default();
    let colours = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let count = before.iter().rev().take_while(colours).count();
    before[..before.len() - count].ends_with(b"[")
}

/// Where the value of a name that ends at `from` would begin: after colons, quotes and blanks,
/// including those of other scripts.
pub(super) fn skip_gap(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < from + MAX_GAP {
        let rest = &text[at..];
        at += match rest {
            [b'\\', ..] if escape(rest, b"\\u", 4).is_some_and(is_separator) => 6,
            [b'%', ..] if escape(rest, b"%", 2).is_some_and(is_separator) => 3,
            [b'\\', b't', ..] => 2,
            // A line break separates a name from its value only after a colon.
            [b'\\', b'n' | b'r', ..] if from < at => 2,
            [b'\n' | b'\r', ..] if from < at => 1,
            // The letter of an escape does not belong to what follows.
            [b'\\', letter, ..] if letter.is_ascii_alphanumeric() => break,
            [byte, ..] if SEPARATORS.contains(byte) => 1,
            // All non-ASCII separators take three bytes, except « and ».
            [0xc2, ..] | [0xe2..=0xef, ..] => match first_char(rest) {
                Some(separator) if is_separator(separator.into()) => separator.len_utf8(),
                _ => break,
            },
            _ => break,
        };
    }
    at
}

/// The range of a secret, adjusted when it begins in the middle of an escape, which stays whole.
pub(super) fn after_escape(text: &[u8], secret: Range<usize>) -> Range<usize> {
    let slashes = text[..secret.start].iter().rev();
    let slashes = slashes.take_while(|byte| **byte == b'\\').count();
    (secret.start + slashes % 2).min(secret.end)..secret.end
}

/// The number of quotes at `from`, escaped or not, up to three.
pub(super) fn quote_count(text: &[u8], from: usize) -> usize {
    let bytes = text[from..].iter().take(3);
    bytes.take_while(|byte| b"\\\"'".contains(byte)).count()
}

/// The code of the escape that a text begins with: `prefix` and so many hexadecimal digits.
fn escape(text: &[u8], prefix: &[u8], digits: usize) -> Option<u32> {
    let digits = text.strip_prefix(prefix)?.get(..digits)?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    digits
        .iter()
        .try_fold(0, |code, byte| Some(code << 4 | digit(byte)?))
}

/// The first character of a text.
fn first_char(text: &[u8]) -> Option<char> {
    let head = &text[..text.len().min(3)];
    let valid = match std::str::from_utf8(head) {
        Ok(head) => head,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next()
}

/// Whether a character is a colon, a quote or a blank.
fn is_separator(code: u32) -> bool {
    match u8::try_from(code) {
        Ok(byte) if byte.is_ascii() => SEPARATORS.contains(&byte),
        // Blanks, « and »; general, CJK and full-width punctuation.
        _ => {
            matches!(code, 0xa0 | 0xab | 0xbb | 0x2000..=0x206f | 0x3000..=0x303f | 0xff01..=0xff0f | 0xff1a..=0xff20)
        }
    }
}
