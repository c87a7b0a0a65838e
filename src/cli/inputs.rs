//! Several recordings on one command line, and a filter.
//!
//! A pattern such as `recordings/*.acpr` matches each segment of a recording, and the last argument may
//! be a filter.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::recordings::LAST;
use super::{exit, recordings};
use analysis::filter::Filter;
use recording::{PACKED, PLAIN, Recording};

/// Recordings, and a filter of their events.
#[derive(Debug, Args)]
pub(super) struct Inputs {
    /// Recordings, by path or name; of one in several segments, any segment. A last argument that is
    /// neither is a filter, such as `method:session/* and dur>2s`; the fields are below
    #[arg(value_name = "FILE", default_value = LAST)]
    words: Vec<PathBuf>,
    /// The same filter, as an option
    #[arg(long, value_name = "FILTER")]
    filter: Option<Filter>,
}

impl Inputs {
    /// The files and the filter.
    ///
    /// A last word that is no recording is the filter, unless there is one already. Errors are printed,
    /// and the exit code is returned.
    pub(super) fn read(&self) -> Result<FilteredFiles, ExitCode> {
        let (mut files, mut filter) = (self.words.as_slice(), self.filter.clone());
        if let [rest @ .., last] = files
            && !rest.is_empty()
            && filter.is_none()
            && !is_file(last)
            && !recordings::is_name(last)
        {
            let read = last.to_string_lossy().parse();
            filter = Some(read.map_err(|fault| exit::fail(exit::USAGE, &fault))?);
            files = rest;
        }
        Ok((distinct(files)?, filter))
    }
}

/// The files, each recording once, and the filter.
pub(super) type FilteredFiles = (Vec<PathBuf>, Option<Filter>);

/// The files of these paths and names, with only the first of the segments of one recording.
/// Errors are printed, and the exit code is returned.
pub(super) fn distinct(words: &[PathBuf]) -> Result<Vec<PathBuf>, ExitCode> {
    let mut seen: Vec<Vec<PathBuf>> = Vec::new();
    let mut once = Vec::new();
    for word in words {
        let file = recordings::locate(word)?;
        let segments = match Recording::of(&file) {
            Ok(recording) if file.is_file() => recording.segments,
            _ => vec![file.clone()],
        };
        if !seen.contains(&segments) {
            seen.push(segments);
            once.push(file);
        }
    }
    Ok(once)
}

/// The bytes of all segments of these recordings.
pub(super) fn total_bytes(files: &[PathBuf]) -> u64 {
    let recordings = files.iter().filter_map(|file| Recording::of(file).ok());
    recordings.map(|recording| recording.bytes()).sum()
}

/// Whether an argument names a file, even one that does not exist.
fn is_file(word: &Path) -> bool {
    let text = word.to_string_lossy();
    text.ends_with(PLAIN) || text.ends_with(PACKED) || word.exists()
}
