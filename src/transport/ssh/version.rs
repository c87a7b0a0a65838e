//! The copies of this program that other machines have left in `~/.local/share/acp-relay`.
//!
//! A process that runs from there locks its own file, so that no other version removes it.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

/// The folder of all versions, from the home directory.
const FOLDER: &str = ".local/share/acp-relay";
/// How long a version stays that is not used.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// Keeps the copy that this process runs from, as long as the result lives; `None` if it runs from
/// elsewhere.
#[must_use]
pub fn keep() -> Option<File> {
    let program = own()?;
    let file = File::open(program).ok()?;
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    // The time of its last use.
    let _ = file.set_modified(SystemTime::now());
    Some(file)
}

/// Removes the other copies that no process runs from and that were not used for 30 days.
pub fn remove_unused() {
    let Some(own) = own() else { return };
    let (Some(folder), Some(all)) = (own.parent(), own.ancestors().nth(2)) else {
        return;
    };
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if entry.path() != folder {
            remove_if_unused(&entry.path());
        }
    }
}

/// The path of this process, if it is a copy.
fn own() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let all = program.ancestors().nth(2)?;
    all.ends_with(FOLDER).then_some(program)
}

/// Removes one version, with what copies have left that broke off.
fn remove_if_unused(folder: &Path) {
    let program = folder.join("acp-relay");
    let Ok(file) = File::open(&program) else {
        return;
    };
    let used = file.metadata().and_then(|about| about.modified());
    let is_old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT));
    if !is_old || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let _ = fs::remove_dir_all(folder);
}
