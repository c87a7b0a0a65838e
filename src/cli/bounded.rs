//! Files of a bounded length: tables, configurations, secrets.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Largest file that people write, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// Reads the text of a regular file of at most `most` bytes.
///
/// # Errors
/// It is something else, is longer, is not UTF-8, or cannot be read.
pub(super) fn read_file(path: &Path, most: u64) -> io::Result<String> {
    // A device may never end, and opening a pipe without a writer blocks.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_text(File::open(path)?, most)
}

/// Reads what has at most `most` bytes.
///
/// # Errors
/// It is longer, or cannot be read.
pub(super) fn read(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = from.take(most + 1).read_to_end(&mut bytes)?;
    let (count, unit) = match most >> 20 {
        0 => (most >> 10, "KiB"),
        count => (count, "MiB"),
    };
    match length as u64 > most {
        true => Err(io::Error::other(format!(
            "it is longer than {count} {unit}"
        ))),
        false => Ok(bytes),
    }
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// It is longer, is not UTF-8, or cannot be read.
pub(super) fn read_text(from: impl Read, most: u64) -> io::Result<String> {
    String::from_utf8(read(from, most)?).map_err(|_| io::Error::other("it is not UTF-8"))
}
