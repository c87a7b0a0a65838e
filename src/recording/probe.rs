//! Detects whether a file is a recording, by its first lines.
//!
//! A damaged first line is tolerated as long as other lines can be read.

use std::io;
use std::path::Path;

use super::files::Recording;
use super::parse::{LineError, Parsed};

/// The number of lines that are searched for a readable one.
const MAX_LINES: usize = 64;

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRecording {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// It is a folder.
    #[error("it is a folder; `acp-relay inspect ls` lists the recordings in one")]
    Folder,
    /// It is a pipe or a device. A recording is read several times, which these do not allow.
    #[error("it is a pipe or a device, and is read more than once: write it into a file first")]
    Pipe,
    /// It is empty.
    #[error("it is empty: nothing was recorded, or it was cut off before anything was")]
    Empty,
    /// It was written by a later version of the format.
    #[error("{0}")]
    Newer(LineError),
    /// It has another format.
    #[error(
        "this is no recording; of a capture, a trace or a HAR file, `acp-relay inspect import` \
         makes one"
    )]
    OtherFormat,
}

impl NotRecording {
    /// What is wrong with the file type at `path`, before it is opened; `None` for a regular file
    /// and when there is none.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let kind = std::fs::metadata(path).ok()?.file_type();
        match () {
            () if kind.is_dir() => Some(Self::Folder),
            () if !kind.is_file() => Some(Self::Pipe),
            () => None,
        }
    }
}

impl Recording {
    /// Checks how it begins.
    ///
    /// # Errors
    /// When it cannot be read as a recording.
    pub fn check(&self) -> Result<(), NotRecording> {
        if let Some(error) = self.segments.iter().find_map(|path| NotRecording::of(path)) {
            return Err(error);
        }
        let mut is_empty = true;
        for entry in self.entries().take(MAX_LINES) {
            let (_, entry) = entry?;
            match entry.parsed {
                Parsed::Header(_) | Parsed::Event(_) => return Ok(()),
                Parsed::Invalid(fault @ LineError::Newer(_)) => {
                    return Err(NotRecording::Newer(fault));
                }
                // A recording whose only line is damaged.
                Parsed::Invalid(_) if entry.line.starts_with(b"{\"acpr\":") => return Ok(()),
                Parsed::Invalid(_) => is_empty = false,
            }
        }
        let length = |path| std::fs::metadata(path).map_or(0, |data| data.len());
        let bytes: u64 = self.segments.iter().map(length).sum();
        // An incomplete line is not returned by the reader.
        let is_torn = || self.segments.iter().any(|path| begins_header(path));
        match (is_empty, bytes) {
            (true, 0) => Err(NotRecording::Empty),
            (true, _) if is_torn() => Err(NotRecording::Empty),
            _ => Err(NotRecording::OtherFormat),
        }
    }
}

/// Whether a file holds the beginning of a header line.
fn begins_header(path: &Path) -> bool {
    use std::io::Read as _;
    const HEAD: &[u8] = b"{\"acpr\":";
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(HEAD.len() as u64).read_to_end(&mut head));
    read.is_ok() && head == HEAD
}
