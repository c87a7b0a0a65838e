//! How far a string's plain content reaches.
//!
//! Most of the bytes of most messages lie inside of strings, so this is where scanning is fast or
//! slow. Not here: what ends the plain content (see `json`).

/// How many bytes stand before the next quote, backslash or control character.
///
/// Short strings are most strings: they are searched by the word. Long ones are searched in chunks
/// whose test has no branch, which the compiler turns into vector instructions.
#[inline]
pub(super) fn plain(text: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..3 {
        match text[at..].first_chunk() {
            Some(word) => match special(*word) {
                Some(place) => return at + place,
                None => at += 8,
            },
            None => return at + plain_tail(&text[at..]),
        }
    }
    at + plain_long(&text[at..])
}

#[inline(never)]
fn plain_long(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk::<64>() {
        let any = chunk.iter().fold(0_u8, |any, &byte| any | ends_plain(byte));
        if any != 0 {
            break;
        }
        at += 64;
    }
    while let Some(word) = text[at..].first_chunk() {
        match special(*word) {
            Some(place) => return at + place,
            None => at += 8,
        }
    }
    at + plain_tail(&text[at..])
}

fn plain_tail(text: &[u8]) -> usize {
    text.iter()
        .position(|&byte| ends_plain(byte) != 0)
        .unwrap_or(text.len())
}

#[inline]
fn ends_plain(byte: u8) -> u8 {
    u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20)
}

/// Where the first quote, backslash or control character of eight bytes stands.
#[inline]
fn special(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    // A byte's high bit is set where the byte is zero. Borrows can set wrong bits too, but only
    // above a right one, and only the lowest counts.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let hits = (quote | backslash | control) & HIGH;
    (hits != 0).then(|| hits.trailing_zeros() as usize / 8)
}
