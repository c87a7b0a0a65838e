//! Encodes single values of a line: numbers, times, strings.
//!
//! Each is appended to the output behind a prefix. Every frame has some of them, so digits are
//! written two at a time for speed.

/// An array of strings.
pub(super) fn list(out: &mut Vec<u8>, name: &[u8], texts: &[String]) {
    out.extend_from_slice(name);
    for (at, value) in texts.iter().enumerate() {
        text(out, if at == 0 { b"[" } else { b"," }, value);
    }
    out.push(b']');
}

/// A string that needs no escapes.
pub(super) fn quoted(out: &mut Vec<u8>, name: &[u8], raw: &[u8]) {
    out.extend_from_slice(name);
    out.push(b'"');
    out.extend_from_slice(raw);
    out.push(b'"');
}

/// Any string.
pub(super) fn text(out: &mut Vec<u8>, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    serde_json::to_writer(out, value).expect("a text can be written to memory");
}

/// The JSON form of a string without its quotes.
pub(super) fn escaped(value: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 2);
    text(&mut out, b"", value);
    out[1..out.len() - 1].to_vec()
}

/// A number.
pub(super) fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    digits(out, value);
}

/// Microseconds, written as seconds.
pub(super) fn seconds(out: &mut Vec<u8>, name: &[u8], micros: u64) {
    out.extend_from_slice(name);
    digits(out, micros / 1_000_000);
    let mut rest = (micros % 1_000_000) as u32;
    let mut point = *b".000000";
    for pair in [5, 3, 1] {
        point[pair..pair + 2].copy_from_slice(&two(rest % 100));
        rest /= 100;
    }
    out.extend_from_slice(&point);
}

/// A number in decimal digits.
fn digits(out: &mut Vec<u8>, mut value: u64) {
    let mut buffer = [0; 20];
    let mut at = buffer.len();
    loop {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&two((value % 100) as u32));
        value /= 100;
        if value == 0 {
            break;
        }
    }
    at += usize::from(buffer[at] == b'0');
    out.extend_from_slice(&buffer[at..]);
}

/// The two digits of a number below 100.
const fn two(value: u32) -> [u8; 2] {
    [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_formatted() {
        for (value, expected) in [
            (0, "0 0.000000"),
            (7, "7 0.000007"),
            (100, "100 0.000100"),
            (1_002_030, "1002030 1.002030"),
            (u64::MAX, "18446744073709551615 18446744073709.551615"),
        ] {
            let mut out = Vec::new();
            number(&mut out, b"", value);
            seconds(&mut out, b" ", value);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
