//! Files by which a running relay announces itself to other programs of the same user.
//!
//! Each is in a folder of the state directory and is locked while the relay runs. An unlocked file
//! was left by a relay that was killed.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::state::{self, StateDir};

/// An announcement of this process. Drop removes it.
#[derive(Debug)]
pub(super) struct Announcement {
    path: PathBuf,
    _locked: File,
}

impl Announcement {
    /// Writes `text` to the file `name` in `folder`.
    pub(super) fn create(folder: &str, name: &str, text: &str) -> io::Result<Self> {
        let state = StateDir::find().map_err(io::Error::other)?;
        let folder = state.file(folder);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let path = folder.join(name);
        let mut open = File::options();
        open.write(true).create(true).truncate(false).mode(0o600);
        let mut file = open.open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        // `all` may have removed it before it was locked.
        if !path.exists() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(Self {
            path,
            _locked: file,
        })
    }

    /// The text of the file `name` in `folder`, if a relay has it locked.
    pub(super) fn read(folder: &str, name: &str) -> Option<String> {
        let path = StateDir::find().ok()?.file(folder).join(name);
        is_locked(&path).then(|| state::read(&path).ok()?).flatten()
    }

    /// The names and texts of all in `folder`. Files of relays that were killed are removed.
    pub(super) fn all(folder: &str) -> Vec<(String, String)> {
        let folder = StateDir::find().map(|state| fs::read_dir(state.file(folder)));
        let mut found = Vec::new();
        for entry in folder.into_iter().flatten().flatten().flatten() {
            if !is_locked(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            } else if let (Ok(name), Ok(Some(text))) =
                (entry.file_name().into_string(), state::read(&entry.path()))
            {
                found.push((name, text));
            }
        }
        found
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // Already gone, or left for the next relay with this name to lock.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| {
        let locked = flock(&file, FlockOperation::NonBlockingLockShared);
        locked == Err(Errno::WOULDBLOCK)
    })
}
