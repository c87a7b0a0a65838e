//! Opens recordings, and reports why a file cannot be read as one.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::{console, exit};
use crate::recording::{NotRecording, Recording};

/// Opens the recording that the file at `path` belongs to. Prints an error and returns the exit
/// code.
pub(super) fn recording(path: &Path) -> Result<Recording, ExitCode> {
    let recording = open_unchecked(path)?;
    match recording.check() {
        Ok(()) => Ok(recording),
        Err(misfit) => Err(report_unusable(path, &misfit)),
    }
}

/// Like [`recording`], without a check of the content.
pub(super) fn open_unchecked(path: &Path) -> Result<Recording, ExitCode> {
    if let Some(misfit) = NotRecording::of(path) {
        return Err(report_unusable(path, &misfit));
    }
    let found = std::fs::File::open(path).and_then(|_| Recording::of(path));
    found.map_err(|error| report_unreadable(path, &error))
}

/// Prints why a file cannot be read as a recording.
pub(super) fn report_unusable(path: &Path, misfit: &NotRecording) -> ExitCode {
    match misfit {
        NotRecording::Unreadable(error) => report_unreadable(path, error),
        misfit => exit::fail(exit::NO_INPUT, &format!("{}: {misfit}", path.display())),
    }
}

/// Prints that a file cannot be written, or exists already.
pub(super) fn report_uncreatable(path: &Path, error: &io::Error) -> ExitCode {
    let what = format!("{}: {}", path.display(), console::explain(error));
    exit::fail(exit::CANNOT_CREATE, &what)
}

/// Prints that a file cannot be read.
pub(super) fn report_unreadable(path: &Path, error: &io::Error) -> ExitCode {
    let (file, text) = (path.display().to_string(), error.to_string());
    // Some errors name the file themselves.
    if text.starts_with(&file) {
        return exit::fail(exit::NO_INPUT, &text);
    }
    let mut why = format!("{file}: {}", console::explain(error));
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        why += &format!(
            ": the folder {} does not exist; `acp-relay inspect ls DIR` lists the recordings in one",
            folder.display()
        );
    }
    exit::fail(exit::NO_INPUT, &why)
}
