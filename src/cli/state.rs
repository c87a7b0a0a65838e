//! The state directory and the files in it that are nobody else's business.
//!
//! A file that others can read is refused and not mended: whoever has read it keeps what it said.
//! Checked as ssh checks keys. Not here: what the files hold (see `token`).

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

/// Names the directory.
const VARIABLE: &str = "ACP_RELAY_STATE_DIR";

/// Longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Bits of a mode that let others in: to read or to write.
const OTHERS: u32 = 0o077;
/// Those that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Why a file is not to be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// There is nothing to be found or made: no home, no permission, no room.
    #[error("{0}")]
    Unavailable(String),
    /// It is there and must not be used.
    #[error("{0}")]
    Unsafe(String),
}

/// The state directory, which need not be there yet.
#[derive(Clone, Debug)]
pub(super) struct State(PathBuf);

impl State {
    /// Finds its place: $ACP_RELAY_STATE_DIR, $XDG_STATE_HOME/acp-relay or ~/.local/state/acp-relay.
    pub(super) fn find() -> Result<Self, Fault> {
        let given = |name| env::var_os(name).filter(|value| !value.is_empty());
        // A relative path would be another directory for each program that uses it.
        let absolute = |name| {
            given(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        if given(VARIABLE).is_some() {
            return absolute(VARIABLE)
                .map(Self)
                .ok_or_else(|| Fault::Unsafe(format!("{VARIABLE} has to be an absolute path")));
        }
        if let Some(home) = absolute("XDG_STATE_HOME") {
            return Ok(Self(home.join("acp-relay")));
        }
        match absolute("HOME") {
            Some(home) => Ok(Self(home.join(".local/state/acp-relay"))),
            None => Err(Fault::Unavailable(format!(
                "there is no place for the token: neither {VARIABLE} nor HOME is set"
            ))),
        }
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the directory if need be, and holds its lock until what is returned is dropped, so that
    /// of two programs that change something the second sees what the first has done.
    pub(super) fn lock(&self) -> Result<File, Fault> {
        let unavailable = |fault: io::Error| {
            let path = self.0.display();
            Fault::Unavailable(format!("the directory {path} cannot be used ({fault})"))
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.0).map_err(unavailable)?;
        let directory = File::open(&self.0).map_err(unavailable)?;
        let about = directory.metadata().map_err(unavailable)?;
        judge(&self.0, &about, OTHERS_WRITE, "go-w")?;
        flock(&directory, FlockOperation::LockExclusive)
            .map_err(|errno| unavailable(errno.into()))?;
        Ok(directory)
    }
}

/// Reads a file that only its owner may read; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, Fault> {
    let shown = path.display();
    let opened = fs::OpenOptions::new()
        .read(true)
        // Neither a link nor a pipe that nobody writes to.
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
            let what = format!("{shown} is a symbolic link, and may point elsewhere tomorrow");
            return Err(Fault::Unsafe(what));
        }
        Err(fault) => {
            return Err(Fault::Unavailable(format!(
                "{shown} cannot be read ({fault})"
            )));
        }
    };
    let unavailable = |fault| Fault::Unavailable(format!("{shown} cannot be read ({fault})"));
    let about = file.metadata().map_err(unavailable)?;
    if !about.is_file() {
        return Err(Fault::Unsafe(format!("{shown} is no file")));
    }
    judge_secret(path, &about)?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    if read.map_err(unavailable)? as u64 > LONGEST {
        return Err(Fault::Unsafe(format!("{shown} is too long")));
    }
    Ok(Some(text))
}

/// Writes such a file, whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let new = path.with_extension("new");
    let write = || -> io::Result<()> {
        // What a relay that was killed has left behind. Whoever writes holds the lock.
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
        Fault::Unavailable(format!("{} cannot be written ({fault})", path.display()))
    })
}

/// Refuses a file with a secret in it that others could read.
pub(super) fn judge_secret(path: &Path, about: &fs::Metadata) -> Result<(), Fault> {
    judge(path, about, OTHERS, "go-rwx")
}

fn judge(path: &Path, about: &fs::Metadata, open: u32, remedy: &str) -> Result<(), Fault> {
    let path = path.display();
    let (owner, mode) = (about.uid(), about.mode() & 0o777);
    if owner != 0 && owner != geteuid().as_raw() {
        let what = format!("{path} belongs to somebody else (user {owner})");
        return Err(Fault::Unsafe(what));
    }
    if mode & open != 0 {
        let what = format!("{path} is open to others (mode {mode:04o}); chmod {remedy} {path}");
        return Err(Fault::Unsafe(what));
    }
    Ok(())
}
