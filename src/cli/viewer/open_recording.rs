//! One open recording: its content, the searches in it, and the threads that read and lint it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use super::content::{Content, Progress};
use super::lint_thread::LintThread;
use super::reader_thread::ReaderThread;
use super::search::Searches;
use crate::recording::{Recording, open};

/// One recording.
#[derive(Debug)]
pub(super) struct OpenRecording {
    /// The path of its first file.
    pub(super) path: PathBuf,
    pub(super) content: Arc<Content>,
    searches: Mutex<Searches>,
    /// Dropping them ends the threads.
    _stop: [SyncSender<()>; 2],
}

impl OpenRecording {
    /// Opens a recording, and starts to read it.
    ///
    /// # Errors
    /// Its first file cannot be opened, or a thread cannot be started.
    pub(super) fn open(recording: Recording) -> io::Result<Arc<Self>> {
        let (reading, stopped) = sync_channel(0);
        let (linting, ended) = sync_channel(0);
        let first = recording.segments.first().ok_or(io::ErrorKind::NotFound)?;
        open(first)?;
        let shared = Arc::new(Self {
            path: fs::canonicalize(first)?,
            content: Arc::default(),
            searches: Mutex::default(),
            _stop: [reading, linting],
        });
        let reader = ReaderThread {
            shared: Arc::downgrade(&shared.content),
            recording,
            stopped,
            progress: Progress::default(),
        };
        let thread = thread::Builder::new().name("viewer".to_owned());
        thread.spawn(move || reader.read())?;
        let inspector = LintThread {
            recording: Arc::downgrade(&shared.content),
            stopped: ended,
        };
        let thread = thread::Builder::new().name("viewer-lint".to_owned());
        thread.spawn(move || inspector.run())?;
        Ok(shared)
    }

    pub(super) fn searches(&self) -> MutexGuard<'_, Searches> {
        self.searches.lock()
    }
}
