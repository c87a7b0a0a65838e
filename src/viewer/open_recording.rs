//! One open recording: its content, the searches in it, and the thread that reads and lints it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use super::content::Content;
use super::reader_thread;
use super::search::Searches;
use crate::recording::{Recording, open};

/// One recording.
#[derive(Debug)]
pub(super) struct OpenRecording {
    pub(super) name: String,
    /// The path of its first file.
    pub(super) path: PathBuf,
    /// The thread ends when it is dropped.
    pub(super) content: Arc<Content>,
    searches: Mutex<Searches>,
}

impl OpenRecording {
    /// Opens a recording, and starts to read it.
    ///
    /// # Errors
    /// Its first file cannot be opened, or the thread cannot be started.
    pub(super) fn open(recording: Recording) -> io::Result<Arc<Self>> {
        let first = recording.segments.first().ok_or(io::ErrorKind::NotFound)?;
        open(first)?;
        let opened = Arc::new(Self {
            name: recording.name.clone(),
            path: fs::canonicalize(first)?,
            content: Arc::default(),
            searches: Mutex::default(),
        });
        let content = Arc::downgrade(&opened.content);
        let thread = thread::Builder::new().name("viewer".to_owned());
        thread.spawn(move || reader_thread::read(&content, recording))?;
        Ok(opened)
    }

    pub(super) fn searches(&self) -> MutexGuard<'_, Searches> {
        self.searches.lock()
    }
}
