//! Decides whether a text is random or made of words.

/// Minimum length of a secret that is recognised only by its name and its randomness.
const MIN_RANDOM: usize = 16;

/// Minimum length for recognising an incomplete random text: one less may remain visible of a
/// secret that arrives in pieces.
const MIN_PARTIAL: usize = 12;

/// The same after the known prefix of a maker's keys.
const MIN_PARTIAL_KEY: usize = 8;

/// Whether a complete text, after a suggestive name, is more than a word or a number.
pub(super) fn is_random(text: &[u8]) -> bool {
    if text.len() < MIN_RANDOM {
        return false;
    }
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let total = text.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|part| -part * part.log2())
        .sum();
    let digits = text.iter().any(u8::is_ascii_digit);
    let letters = text.iter().any(u8::is_ascii_alphabetic);
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase);
    entropy > 3.0 && letters && (digits || (mixed && entropy > 3.5))
}

/// Whether an incomplete text, after a suggestive name, is random so far.
pub(super) fn is_random_so_far(text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase);
    let letters = text.iter().any(u8::is_ascii_alphabetic);
    text.len() >= MIN_PARTIAL && letters && (digits || mixed) && !reads_as_words(text)
}

/// The same after the known prefix of a maker's keys, which is stronger evidence.
pub(super) fn is_key_so_far(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| !byte.is_ascii_alphanumeric());
    // The parts of names such as `g8_b8_a8` are shorter.
    text.len() >= MIN_PARTIAL_KEY && parts.any(|part| part.len() >= 4) && !reads_as_words(text)
}

/// Whether a text is made of words, as names, paths and calls are and keys are not: parts of
/// letters, possibly with a digit or two at the end, or short numbers, with a minimum average
/// length.
pub(super) fn reads_as_words(text: &[u8]) -> bool {
    let (mut parts, mut letters, mut at) = (0_usize, 0_usize, 0);
    while at < text.len() {
        let count =
            |from: usize, is: fn(&u8) -> bool| text[from..].iter().take_while(|b| is(b)).count();
        let (capitals, digits) = (
            count(at, u8::is_ascii_uppercase),
            count(at, u8::is_ascii_digit),
        );
        let small = count(at + capitals, u8::is_ascii_lowercase);
        if capitals + small > 0 {
            // `HTTPServer` is two words, `Server` is one.
            parts += 1 + usize::from(capitals > 1 && small > 0);
            letters += capitals + small;
            at += capitals + small;
            let digits = count(at, u8::is_ascii_digit);
            let is_followed = text.get(at + digits).is_some_and(u8::is_ascii_lowercase);
            if digits > 2 || (digits > 0 && is_followed) {
                return false;
            }
            at += digits;
        } else if digits > 0 {
            let is_followed = text.get(at + digits).is_some_and(u8::is_ascii_alphabetic);
            if digits > 4 || is_followed {
                return false;
            }
            at += digits;
        } else {
            at += 1;
        }
    }
    // A part of thirty letters is not a word.
    parts > 0 && letters >= 3 * parts && letters <= 20 * parts
}
