//! Encodes single values of a line: numbers, times, strings.
//!
//! Each is appended to the output behind a prefix.

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
    // With a one before it, the fraction keeps its zeros; the point takes the place of the one.
    let point = out.len();
    digits(out, 1_000_000 + micros % 1_000_000);
    out[point] = b'.';
}

/// A number in decimal digits; `serde_json` writes them faster than `write!`.
fn digits(out: &mut Vec<u8>, value: u64) {
    serde_json::to_writer(out, &value).expect("a number can be written to memory");
}
