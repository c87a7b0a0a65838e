//! Announces the admin listener of a running relay to commands of the same user: a small file with
//! its address, named after the process id, which exists while the relay runs.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, geteuid, test_kill_process};

use super::address::AdminAddress;
use crate::cli::state::StateDir;

/// The file. Drop removes it.
#[derive(Debug)]
pub(super) struct AddressFile(PathBuf);

impl AddressFile {
    /// Writes the address of this process's listener.
    pub(super) fn create(place: &AdminAddress) -> io::Result<Self> {
        let folder = folder().ok_or(io::ErrorKind::NotFound)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        if !is_private(&folder) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let path = folder.join(std::process::id().to_string());
        // A file with our process id is left from an earlier process.
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let created = Self(path);
        writeln!(file, "{place}")?;
        Ok(created)
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The admin listeners of this user's relays, with process ids. Files of relays that were killed
/// are removed.
pub(super) fn find() -> Vec<(u32, AdminAddress)> {
    let Some(folder) = folder().filter(|folder| is_private(folder)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(number) = number else { continue };
        if !is_running(number) {
            let _ = fs::remove_file(entry.path());
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        found.extend(text.trim_end().parse().ok().map(|place| (number, place)));
    }
    found.sort_by_key(|(number, _)| *number);
    found
}

/// The folder of such files, in the state directory.
fn folder() -> Option<PathBuf> {
    Some(StateDir::find().ok()?.file("admin"))
}

/// Whether no other user could have put files there.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder)
        .is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

fn is_running(pid: u32) -> bool {
    let parsed = i32::try_from(pid).ok().and_then(Pid::from_raw);
    parsed.is_some_and(|pid| test_kill_process(pid).is_ok())
}
