//! The recordings that a viewer shows: one or those of a folder, and those that are dropped onto
//! its page.
//!
//! The page names them by their index in a list, so no path comes from a client. Dropped files are
//! kept in a folder for temporary files, which is deleted with the library. A capture becomes a
//! recording there.

use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tempfile::TempDir;

use super::content::Content;
use super::reader_thread;
use super::search::Searches;
use recording::{NotRecording, PACKED, PLAIN, Recording, open, recordings};

/// Maximum number of recordings kept open.
const MAX_OPEN: usize = 4;

/// Maximum bytes of dropped files that are kept.
const MAX_DROPPED: u64 = 512 << 20;

/// What a dropped file counts at least.
const MIN_DROPPED: u64 = 4 << 10;

/// Maximum bytes of a capture that becomes a recording on the way: memory for several times as much
/// is needed.
const MAX_CAPTURE: u64 = 64 << 20;

/// Makes a recording of a capture of another program that was changed last at a time; or says why it
/// is none.
pub type ImportCapture = fn(&[u8], SystemTime) -> Result<Vec<u8>, String>;

/// The recordings of a viewer.
#[derive(Debug)]
pub(super) struct RecordingLibrary {
    folder: Option<PathBuf>,
    import: ImportCapture,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Only grows: an index in it is a name.
    recordings: Vec<Recording>,
    /// Those of the folder, by name.
    known: HashMap<String, usize>,
    /// The most recently used is last.
    open: Vec<(usize, Arc<OpenRecording>)>,
    /// The folders of dropped files.
    dropped: Vec<TempDir>,
    /// Bytes of dropped files, those that are being received included.
    dropped_bytes: u64,
    /// No more files are kept.
    closed: bool,
}

/// One open recording: its content, the searches in it, and the thread that reads and lints it.
#[derive(Debug)]
pub(super) struct OpenRecording {
    pub(super) name: String,
    /// The path of its first file, as a command line names it.
    pub(super) path: PathBuf,
    /// The thread ends when it is dropped.
    pub(super) content: Arc<Content>,
    searches: Mutex<Searches>,
}

/// Why dropped files are not shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum DropError {
    /// The query does not describe the body.
    #[error("the files are not {0}")]
    Malformed(&'static str),
    #[error(
        "a viewer keeps at most {} MiB of dropped files; `acp-relay inspect open FILE` opens \
         larger ones",
        MAX_DROPPED >> 20
    )]
    TooLarge,
    /// A file is no recording.
    #[error("{0}")]
    NotRecording(String),
    #[error("the files cannot be kept: {0}")]
    Io(#[from] io::Error),
}

impl RecordingLibrary {
    /// The recording that the file at `path` belongs to, or is imported to; or all in the folder
    /// `path`.
    ///
    /// # Errors
    /// There is no readable recording.
    pub(super) fn of(path: &Path, import: ImportCapture) -> io::Result<Self> {
        let mut library = Self {
            folder: None,
            import,
            state: Mutex::default(),
        };
        let state = library.state.get_mut();
        if fs::metadata(path)?.is_dir() {
            library.folder = Some(fs::canonicalize(path)?);
            library.list()?;
            return Ok(library);
        }
        // A faulty file is reported now and not on the page.
        open(path)?;
        let recording = Recording::of(path)?;
        if let Err(NotRecording::OtherFormat) = recording.check() {
            let folder = temporary_folder()?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let copy = folder.path().join(format!("{name}{PLAIN}"));
            convert(path, &copy, import).map_err(io::Error::other)?;
            state.recordings = vec![Recording::of(&copy)?];
            state.dropped.push(folder);
        } else {
            state.recordings = vec![recording];
        }
        Ok(library)
    }

    /// The folder, as people know it.
    pub(super) fn folder(&self) -> Option<String> {
        let folder = self.folder.as_ref()?;
        Some(folder.to_string_lossy().into_owned())
    }

    /// All recordings, also those that were there before, with their files of now.
    ///
    /// # Errors
    /// The folder cannot be read any more.
    pub(super) fn list(&self) -> io::Result<Vec<Recording>> {
        let found = self.folder.as_deref().map(recordings).transpose()?;
        let mut state = self.state.lock();
        let state = &mut *state;
        for recording in found.into_iter().flatten() {
            let at = state.known.get(&recording.name);
            if let Some(known) = at.and_then(|at| state.recordings.get_mut(*at)) {
                *known = recording;
                continue;
            }
            let at = state.recordings.len();
            state.known.insert(recording.name.clone(), at);
            state.recordings.push(recording);
        }
        Ok(state.recordings.clone())
    }

    /// The recording at an index of the list.
    pub(super) fn recording(&self, at: usize) -> Option<Recording> {
        self.state.lock().recordings.get(at).cloned()
    }

    /// The recording at an index of the list, opened.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub(super) fn get(&self, at: usize) -> io::Result<Arc<OpenRecording>> {
        let mut state = self.state.lock();
        let recording = state.recordings.get(at).cloned();
        let recording = recording.ok_or(io::ErrorKind::NotFound)?;
        let opened = match state.open.iter().position(|(known, _)| *known == at) {
            Some(at) => state.open.remove(at).1,
            None => {
                let first = recording.segments.first().ok_or(io::ErrorKind::NotFound)?;
                let mut path = fs::canonicalize(first)?;
                if state.dropped.iter().any(|folder| first.starts_with(folder)) {
                    path = path.file_name().unwrap_or_default().into();
                }
                OpenRecording::open(recording, path)?
            }
        };
        if state.open.len() >= MAX_OPEN {
            state.open.remove(0);
        }
        state.open.push((at, Arc::clone(&opened)));
        Ok(opened)
    }

    /// Whether there are files that were dropped or imported.
    pub(super) fn has_copies(&self) -> bool {
        !self.state.lock().dropped.is_empty()
    }

    /// Deletes the dropped files, although requests may still be answered.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.dropped.clear();
    }

    /// Adds the recordings in dropped files, of which the names and lengths are given; `next`
    /// returns their content, one after the other, until it is complete. Returns the indices of the
    /// recordings.
    ///
    /// # Errors
    /// They are too large, or one is no recording; then none is kept.
    pub(super) fn add_dropped(
        &self,
        files: &[(String, u64)],
        next: impl FnMut() -> io::Result<Option<Bytes>>,
    ) -> Result<Vec<usize>, DropError> {
        let lengths = files.iter().map(|(_, length)| (*length).max(MIN_DROPPED));
        let bytes = lengths.fold(0, u64::saturating_add);
        {
            let mut state = self.state.lock();
            if bytes > MAX_DROPPED - state.dropped_bytes {
                return Err(DropError::TooLarge);
            }
            state.dropped_bytes += bytes;
        }
        let received = receive(files, next, self.import);
        let mut state = self.state.lock();
        let (folder, found) = received.inspect_err(|_| state.dropped_bytes -= bytes)?;
        if state.closed {
            return Err(DropError::TooLarge);
        }
        let first = state.recordings.len();
        state.dropped.push(folder);
        state.recordings.extend(found);
        Ok((first..state.recordings.len()).collect())
    }
}

impl OpenRecording {
    /// Opens a recording, of which `path` is shown, and starts to read it.
    ///
    /// # Errors
    /// The thread cannot be started.
    fn open(recording: Recording, path: PathBuf) -> io::Result<Arc<Self>> {
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

/// Writes dropped files into a folder of their own. Returns it and the recordings in it.
fn receive(
    files: &[(String, u64)],
    mut next: impl FnMut() -> io::Result<Option<Bytes>>,
    import: ImportCapture,
) -> Result<(TempDir, Vec<Recording>), DropError> {
    let folder = temporary_folder()?;
    let mut rest = Bytes::new();
    for (name, length) in files {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(DropError::Malformed("named"));
        }
        let is_segment = name.ends_with(PLAIN) || name.ends_with(PACKED);
        let ending = if is_segment { "" } else { PLAIN };
        let path = folder.path().join(format!("{name}{ending}"));
        let mut file = File::create_new(path)?;
        let mut left = *length;
        while left > 0 {
            if rest.is_empty() {
                rest = next()?.ok_or(DropError::Malformed("complete"))?;
            }
            let part = rest.split_to(rest.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            file.write_all(&part)?;
            left -= part.len() as u64;
        }
    }
    if !rest.is_empty() || next()?.is_some() {
        return Err(DropError::Malformed("as long as they are said to be"));
    }
    let found = recordings(folder.path())?;
    for recording in &found {
        let checked = match (recording.check(), &*recording.segments) {
            (Err(NotRecording::OtherFormat), [path]) => convert(path, path, import),
            (checked, _) => checked.map_err(|misfit| misfit.to_string()),
        };
        let refused = |why| DropError::NotRecording(format!("{}: {why}", recording.name));
        checked.map_err(refused)?;
    }
    Ok((folder, found))
}

fn temporary_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let private = Permissions::from_mode(0o700);
    builder.prefix("acp-relay-").permissions(private).tempdir()
}

/// Writes the recording that the capture at `path` is imported to, perhaps over it. Returns why it
/// cannot be imported.
fn convert(path: &Path, to: &Path, import: ImportCapture) -> Result<(), String> {
    let described = |error: io::Error| error.to_string();
    let data = fs::metadata(path).map_err(described)?;
    if data.len() > MAX_CAPTURE {
        return Err(format!(
            "this is no recording, and more than the {} MiB of a capture that are imported on the \
             way; `acp-relay inspect import` makes a recording of it",
            MAX_CAPTURE >> 20
        ));
    }
    let text = fs::read(path).map_err(described)?;
    let changed = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let made = import(&text, changed);
    let made = made.map_err(|why| format!("this is no recording, and no capture: {why}"))?;
    fs::write(to, made).map_err(described)
}
