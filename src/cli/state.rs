//! The state directory and its private files.
//!
//! A file that others can read is rejected and not repaired: others may have read its content
//! already. The checks are those that ssh applies to keys.

use std::env;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

use super::bounded::{self, MAX_BYTES};
use super::exit;
use super::replace_file::replace_file;

/// The variable that names the directory.
const VARIABLE: &str = "ACP_RELAY_STATE_DIR";

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

impl StateError {
    /// Prints the error and returns the exit code.
    pub(super) fn fail(&self) -> ExitCode {
        let code = match self {
            Self::Unavailable(_) => exit::CANNOT_CREATE,
            Self::Unsafe(_) => exit::FORBIDDEN,
        };
        exit::fail(code, self)
    }
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
        if let Some(path) = absolute(VARIABLE) {
            return Ok(Self(path));
        }
        if given(VARIABLE).is_some() {
            let what = format!("{VARIABLE} has to be an absolute path");
            return Err(StateError::Unsafe(what));
        }
        let home = || Some(absolute("HOME")?.join(".local/state"));
        match absolute("XDG_STATE_HOME").or_else(home) {
            Some(folder) => Ok(Self(folder.join("acp-relay"))),
            None => Err(StateError::Unavailable(format!(
                "there is no state directory: neither {VARIABLE} nor HOME is set"
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
            StateError::Unavailable(format!(
                "the directory {path} cannot be used ({fault}); make it yours, or name another one \
                 in {VARIABLE}"
            ))
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
    let refuse = |what: &str| Err(StateError::Unsafe(format!("{shown} {what}")));
    let unavailable = |fault| StateError::Unavailable(format!("{shown} cannot be read ({fault})"));
    // Do not follow links, and do not wait for a writer of a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut open = File::options();
    let opened = open
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => {
            return refuse("is a symbolic link, whose target may change; use a file");
        }
        Err(fault) => return Err(unavailable(fault)),
    };
    let about = file.metadata().map_err(unavailable)?;
    if !about.is_file() {
        return refuse("is not a regular file");
    }
    check_secret(path, &about)?;
    match bounded::read_text(file, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(fault) => refuse(&format!("cannot be read ({fault})")),
    }
}

/// Writes such a file atomically.
pub(super) fn write(path: &Path, text: &str) -> Result<(), StateError> {
    replace_file(path, text.as_bytes(), None).map_err(|fault| {
        StateError::Unavailable(format!("{} cannot be written ({fault})", path.display()))
    })
}

/// Rejects a file with a secret that other users could read.
pub(super) fn check_secret(path: &Path, about: &Metadata) -> Result<(), StateError> {
    check_mode(path, about, OTHERS, "go-rwx")
}

/// Rejects a file that other users could change.
pub(super) fn check_writers(path: &Path, about: &Metadata) -> Result<(), StateError> {
    check_mode(path, about, OTHERS_WRITE, "go-w")
}

fn check_mode(path: &Path, about: &Metadata, open: u32, remedy: &str) -> Result<(), StateError> {
    let path = path.display();
    let (owner, mode) = (about.uid(), about.mode() & 0o777);
    let what = if owner != 0 && owner != geteuid().as_raw() {
        format!("{path} belongs to another user (user {owner})")
    } else if mode & open != 0 {
        format!("{path} is open to others (mode {mode:04o}); chmod {remedy} {path}")
    } else {
        return Ok(());
    };
    Err(StateError::Unsafe(what))
}
