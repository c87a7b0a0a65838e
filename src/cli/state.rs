//! The state directory and its private files.
//!
//! A file that others can read is rejected and not repaired: others may have read its content
//! already. The checks are those that ssh applies to keys.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

/// The variable that names the directory.
const VARIABLE: &str = "ACP_RELAY_STATE_DIR";

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Mode bits that let other users read or write.
const OTHERS: u32 = 0o077;
/// Mode bits that let other users write.
const OTHERS_WRITE: u32 = 0o022;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
    /// It cannot be found or created: no home, no permission, no space.
    #[error("{0}")]
    Unavailable(String),
    /// It exists, but must not be used.
    #[error("{0}")]
    Unsafe(String),
}

/// The state directory, which need not exist yet.
#[derive(Clone, Debug)]
pub(super) struct StateDir(PathBuf);

impl StateDir {
    /// Finds it: $ACP_RELAY_STATE_DIR, $XDG_STATE_HOME/acp-relay or ~/.local/state/acp-relay.
    pub(super) fn find() -> Result<Self, StateError> {
        let given = |name| env::var_os(name).filter(|value| !value.is_empty());
        // A relative path would be another directory for each program that uses it.
        let absolute = |name| {
            given(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        if given(VARIABLE).is_some() {
            return absolute(VARIABLE).map(Self).ok_or_else(|| {
                StateError::Unsafe(format!("{VARIABLE} has to be an absolute path"))
            });
        }
        if let Some(home) = absolute("XDG_STATE_HOME") {
            return Ok(Self(home.join("acp-relay")));
        }
        match absolute("HOME") {
            Some(home) => Ok(Self(home.join(".local/state/acp-relay"))),
            None => Err(StateError::Unavailable(format!(
                "there is no directory for the token: neither {VARIABLE} nor HOME is set"
            ))),
        }
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates the directory if necessary, and locks it until the returned file is dropped, so that
    /// of two programs that change something the second sees the changes of the first.
    pub(super) fn lock(&self) -> Result<File, StateError> {
        let unavailable = |fault: io::Error| {
            let path = self.0.display();
            StateError::Unavailable(format!("the directory {path} cannot be used ({fault})"))
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.0).map_err(unavailable)?;
        let directory = File::open(&self.0).map_err(unavailable)?;
        let about = directory.metadata().map_err(unavailable)?;
        check_writers(&self.0, &about)?;
        flock(&directory, FlockOperation::LockExclusive)
            .map_err(|errno| unavailable(errno.into()))?;
        Ok(directory)
    }
}

/// Reads a file that only its owner may read; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, StateError> {
    let shown = path.display();
    let opened = fs::OpenOptions::new()
        .read(true)
        // Do not follow links, and do not wait for a writer of a pipe.
        .custom_flags(
            (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
                .bits()
                .cast_signed(),
        )
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) => {
            let what = format!("{shown} is a symbolic link, whose target may change; use a file");
            return Err(StateError::Unsafe(what));
        }
        Err(fault) => {
            return Err(StateError::Unavailable(format!(
                "{shown} cannot be read ({fault})"
            )));
        }
    };
    let unavailable = |fault| StateError::Unavailable(format!("{shown} cannot be read ({fault})"));
    let about = file.metadata().map_err(unavailable)?;
    if !about.is_file() {
        return Err(StateError::Unsafe(format!("{shown} is not a regular file")));
    }
    check_secret(path, &about)?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    if read.map_err(unavailable)? as u64 > MAX_BYTES {
        return Err(StateError::Unsafe(format!("{shown} is too long")));
    }
    Ok(Some(text))
}

/// Writes such a file atomically.
pub(super) fn write(path: &Path, text: &str) -> Result<(), StateError> {
    let new = path.with_extension("new");
    let write = || -> io::Result<()> {
        // A leftover of a relay that was killed. The caller holds the lock.
        match fs::remove_file(&new) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|fault| {
        StateError::Unavailable(format!("{} cannot be written ({fault})", path.display()))
    })
}

/// Rejects a file with a secret that other users could read.
pub(super) fn check_secret(path: &Path, about: &fs::Metadata) -> Result<(), StateError> {
    check_mode(path, about, OTHERS, "go-rwx")
}

/// Rejects a file that other users could change.
pub(super) fn check_writers(path: &Path, about: &fs::Metadata) -> Result<(), StateError> {
    check_mode(path, about, OTHERS_WRITE, "go-w")
}

fn check_mode(
    path: &Path,
    about: &fs::Metadata,
    open: u32,
    remedy: &str,
) -> Result<(), StateError> {
    let path = path.display();
    let (owner, mode) = (about.uid(), about.mode() & 0o777);
    if owner != 0 && owner != geteuid().as_raw() {
        let what = format!("{path} belongs to another user (user {owner})");
        return Err(StateError::Unsafe(what));
    }
    if mode & open != 0 {
        let what = format!("{path} is open to others (mode {mode:04o}); chmod {remedy} {path}");
        return Err(StateError::Unsafe(what));
    }
    Ok(())
}
