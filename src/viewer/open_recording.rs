//! One open recording: its content, the searches in it, and the thread that reads and lints it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use super::content::Content;
use super::reader_thread;
use super::search::Searches;
use crate::recording::Recording;

/// One recording.
#[derive(Debug)]
pub(super) struct OpenRecording {
    pub(super) name: String,
    /// The path of its first file, as a command line names it.
    pub(super) path: PathBuf,
    /// The thread ends when it is dropped.
    pub(super) content: Arc<Content>,
    searches: Mutex<Searches>,
}

impl OpenRecording {
    /// Opens a recording, of which `path` is shown, and starts to read it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn open(recording: Recording, path: PathBuf) -> io::Result<Arc<Self>> {
        let opened = Arc::new(Self {
            name: recording.name.clone(),
            path,
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
