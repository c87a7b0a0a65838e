//! Rewrites files so that each message is one line.
//!
//! Supported besides one message a line: JSON pretty-printed over several lines, one text after
//! another or in an array; messages with `Content-Length` headers; and either in UTF-16, as some
//! shells write redirected output. A message keeps the number of the line it began in where
//! possible: surrounding lines become empty. A line that is JSON by itself, or that cannot be
//! interpreted, stays unchanged.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use serde_json::value::RawValue;

use jsonrpc::{Limits, is_json};

/// Bytes at the beginning of a file that decide whether it has to be expanded.
const HEAD: usize = 4096;

/// Failed attempts to parse a multi-line text that are allowed for each line, on average. After
/// that, multi-line texts are no longer searched for.
const MAX_ATTEMPTS: usize = 16;

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Whether a file with this beginning may have messages that are not one a line.
#[must_use]
pub(super) fn needs_expanding(head: &[u8]) -> bool {
    if !matches!(utf16_unit(head), Ok(None)) {
        return true;
    }
    let text = head.get(..HEAD).unwrap_or(head);
    let text = text.strip_prefix(BOM).unwrap_or(text);
    // An incomplete line is a long one.
    let mut rows = text.split_inclusive(|byte| *byte == b'\n');
    rows.any(|row| row.ends_with(b"\n") && (header_field(row).is_some() || is_unfinished(row)))
}

/// The text with one message a line.
///
/// # Errors
/// When it is UTF-16 with half a character in it, or UTF-32.
pub fn expand(text: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let text = match utf16_unit(text)? {
        Some(unit) => Cow::Owned(to_utf8(text, unit)?),
        None => Cow::Borrowed(text.strip_prefix(BOM).unwrap_or(text)),
    };
    let rows = || text.split(|byte| *byte == b'\n');
    if rows().all(|row| header_field(row).is_none() && (!opens_json(row) || is_whole(row))) {
        return Ok(text);
    }
    let mut expander = Expander::new(&text);
    while expander.at < text.len() {
        expander.step();
    }
    Ok(Cow::Owned(expander.out))
}

/// A JSON text in one line: line breaks, which occur only between its tokens, become spaces.
pub fn one_line(json: &[u8]) -> impl Iterator<Item = u8> {
    let plain = |byte: &u8| if b"\r\n".contains(byte) { b' ' } else { *byte };
    json.trim_ascii().iter().map(plain)
}

/// A text and the state of its expansion.
struct Expander<'t> {
    text: &'t [u8],
    at: usize,
    /// Line feeds before `at`.
    feeds: usize,
    out: Vec<u8>,
    /// Line feeds in `out`.
    written: usize,
    /// Lines that may still be parsed without success.
    attempts: usize,
}

impl<'t> Expander<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            at: 0,
            feeds: 0,
            out: Vec::with_capacity(text.len()),
            written: 0,
            attempts: MAX_ATTEMPTS.saturating_mul(feeds(text) + 1),
        }
    }

    /// Handles the next item: a message with headers, a text over several lines, or a line.
    fn step(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let row = rest.get(..end).unwrap_or_default();
        if let Some(body) = below_header(rest) {
            self.write_message(body.clone());
            self.skip(body.end);
        } else if opens_json(row)
            && !is_whole(row)
            && let Some(end) = self.multi_line(rest)
        {
            let (text, after) = rest.split_at_checked(end).unwrap_or_default();
            let elements = text.trim_ascii_start().starts_with(b"[");
            let elements = elements.then(|| serde_json::from_slice::<Vec<&RawValue>>(text));
            match elements {
                Some(Ok(elements)) => {
                    for element in elements {
                        let text = element.get();
                        let start = text.as_ptr() as usize - rest.as_ptr() as usize;
                        self.write_message(start..start + text.len());
                    }
                }
                _ => self.write_message(0..end),
            }
            // After an element of an array, a comma remains.
            let after = after.iter();
            let blank = after.take_while(|byte| b" \t\r,".contains(byte)).count();
            let feed = usize::from(rest.get(end + blank) == Some(&b'\n'));
            self.skip(end + blank + feed);
        } else {
            if !row.trim_ascii().is_empty() {
                self.begin_line(self.feeds);
                self.out.extend_from_slice(row);
                self.out.push(b'\n');
            }
            self.skip(rest.len().min(row.len() + 1));
        }
    }

    /// The end of the JSON text that begins here, if it spans several lines.
    fn multi_line(&mut self, rest: &[u8]) -> Option<usize> {
        if self.attempts == 0 {
            return None;
        }
        let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        match texts.next()? {
            Ok(_) => {
                let end = texts.byte_offset();
                let text = rest.get(..end)?.trim_ascii_start();
                memchr::memchr(b'\n', text).map(|_| end)
            }
            Err(error) => {
                self.attempts = self.attempts.saturating_sub(error.line());
                None
            }
        }
    }

    /// Writes the message at `range` of the remaining text as a line.
    fn write_message(&mut self, range: Range<usize>) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let before = rest.get(..range.start).unwrap_or_default();
        self.begin_line(self.feeds + feeds(before));
        self.out
            .extend(one_line(rest.get(range).unwrap_or_default()));
        self.out.push(b'\n');
    }

    /// Begins the line after `number` others, or the next one if that has passed.
    fn begin_line(&mut self, number: usize) {
        for _ in self.written..number {
            self.out.push(b'\n');
        }
        self.written = self.written.max(number) + 1;
    }

    fn skip(&mut self, count: usize) {
        let skipped = self.text.get(self.at..self.at + count);
        self.feeds += feeds(skipped.unwrap_or_default());
        self.at += count;
    }
}

/// The range of the message after the header block that begins here. A message that is longer
/// than the rest of the text ends with it.
fn below_header(rest: &[u8]) -> Option<Range<usize>> {
    let mut at = 0;
    let mut length = None;
    for row in rest.split_inclusive(|byte| *byte == b'\n') {
        at += row.len();
        if row.trim_ascii().is_empty() {
            let end = at.saturating_add(length?).min(rest.len());
            return Some(at..end);
        }
        length = header_field(row)?.or(length);
    }
    None
}

/// The value of a `Content-Length` line, `Some(None)` for a `Content-Type` line, `None` for any
/// other line.
fn header_field(row: &[u8]) -> Option<Option<usize>> {
    let colon = memchr::memchr(b':', row.get(..HEAD).unwrap_or(row))?;
    let (name, value) = row.split_at_checked(colon)?;
    let (name, value) = (name.trim_ascii(), value.strip_prefix(b":")?.trim_ascii());
    if name.eq_ignore_ascii_case(b"content-type") {
        return Some(None);
    }
    let length = std::str::from_utf8(value).ok()?.parse().ok()?;
    name.eq_ignore_ascii_case(b"content-length")
        .then_some(Some(length))
}

/// Whether a JSON text begins in a line and continues after it. One that was torn ends anywhere.
fn is_unfinished(row: &[u8]) -> bool {
    let last = row.trim_ascii_end().last();
    opens_json(row) && last.is_some_and(|last| b"{[,:".contains(last))
}

fn opens_json(row: &[u8]) -> bool {
    matches!(row.trim_ascii_start().first(), Some(b'{' | b'['))
}

fn is_whole(row: &[u8]) -> bool {
    is_json(row.trim_ascii(), &Limits::default())
}

fn feeds(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Decodes two bytes as a unit of UTF-16.
type Unit = fn([u8; 2]) -> u16;

/// The byte order of a text in UTF-16. Without a byte order mark the first character decides,
/// because JSON begins with an ASCII character.
fn utf16_unit(text: &[u8]) -> io::Result<Option<Unit>> {
    match text {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, ..] => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is neither UTF-8 nor UTF-16; `iconv -t UTF-8` makes it the first",
        )),
        [0xFF, 0xFE, ..] | [_, 0, ..] => Ok(Some(u16::from_le_bytes)),
        [0xFE, 0xFF, ..] | [0, _, ..] => Ok(Some(u16::from_be_bytes)),
        _ => Ok(None),
    }
}

/// Converts UTF-16 to UTF-8, without the byte order mark.
fn to_utf8(text: &[u8], unit: Unit) -> io::Result<Vec<u8>> {
    let (pairs, odd) = text.as_chunks();
    let units = pairs.iter().map(|pair| unit(*pair));
    match char::decode_utf16(units).collect::<Result<String, _>>() {
        Ok(decoded) if odd.is_empty() => {
            let decoded = decoded.strip_prefix('\u{feff}').unwrap_or(&decoded);
            Ok(decoded.as_bytes().to_vec())
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is UTF-16 with half of a character in it",
        )),
    }
}
