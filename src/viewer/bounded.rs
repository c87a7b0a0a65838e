//! Reads a recording up to a bound, whatever its lines are: for work on many recordings, or on two.

use std::io::{self, Read as _};

use recording::{Entry, Recording, SegmentReader, open};

/// Passes the lines in the first `most` (unpacked) bytes of a recording to `visit` until it returns
/// false. Returns whether these were all.
///
/// # Errors
/// A segment cannot be read.
pub(super) fn each_line(
    recording: &Recording,
    most: u64,
    mut visit: impl FnMut(&Entry) -> bool,
) -> io::Result<bool> {
    let mut left = most;
    for path in &recording.segments {
        let mut file = open(path)?;
        let mut lines = SegmentReader::new(file.source().take(left));
        for entry in lines.by_ref() {
            if !visit(&entry?) {
                return Ok(false);
            }
        }
        left = lines.source().limit();
        if left == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
