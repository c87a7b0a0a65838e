//! Where the configuration file is.
//!
//! Not here: what stands in it.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use crate::cli::{console, exit};

/// The file's place below a folder of configuration.
const BELOW: &str = "acp-relay/acp-relay.toml";
/// The system's folder of configuration.
const SYSTEM: &str = "/etc";
/// The bits of a file's mode that let others write to it.
const WRITABLE: u32 = 0o022;
/// Longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// A file that was named, or found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Place(pub(in crate::cli) PathBuf);

impl Place {
    /// The user's file, or else the system's.
    pub(in crate::cli) fn find() -> Option<Self> {
        Self::usual().into_iter().find(|place| place.0.is_file())
    }

    /// Where files are looked for, in that order.
    pub(in crate::cli) fn usual() -> Vec<Self> {
        // The base directory specification has relative paths ignored.
        let folder = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|at| at.is_absolute())
        };
        let user = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let system = Some(PathBuf::from(SYSTEM));
        let folders = user.into_iter().chain(system);
        folders.map(|folder| Self(folder.join(BELOW))).collect()
    }

    /// Its text.
    ///
    /// # Errors
    /// Why it cannot be read, for a person, and the exit code.
    pub(in crate::cli) fn text(&self) -> Result<String, (u8, String)> {
        let path = self.0.display();
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&self.0)?
                .take(LONGEST + 1)
                .read_to_end(&mut bytes)?;
            if bytes.len() as u64 > LONGEST {
                return Err(io::Error::other("it is longer than 1 MiB"));
            }
            Ok(bytes)
        };
        let bytes = read().map_err(|error| {
            let fault = format!("{path}: {}", console::why(&error));
            (exit::NO_INPUT, fault)
        })?;
        String::from_utf8(bytes).map_err(|error| {
            let fault = format!("{path}:{}", not_text(&error));
            (exit::CONFIG, fault)
        })
    }

    /// Refuses a file whose programs somebody else could choose.
    ///
    /// # Errors
    /// Who else may write to it, and what to do, for a person.
    pub(in crate::cli) fn check_owner(&self) -> Result<(), String> {
        let path = self.0.display();
        let about = fs::metadata(&self.0).map_err(|error| format!("{path}: {error}"))?;
        let ours = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
        if !ours {
            return Err(format!(
                "{path} belongs to another user, who could choose what is run here; \
                 make it yours with chown"
            ));
        }
        // What is written to a device such as /dev/null is not what is read from it.
        if about.mode() & WRITABLE != 0 && !about.file_type().is_char_device() {
            return Err(format!(
                "others may write to {path}, and so choose what is run here; \
                 `chmod go-w {path}` keeps them out"
            ));
        }
        Ok(())
    }

    /// The folder that relative paths in it begin at.
    pub(super) fn folder(&self) -> PathBuf {
        // Of `team.toml` the parent is empty, not absent.
        let parent = self.0.parent().filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        // A folder that is gone is not one that anything could be found in.
        std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
    }
}

/// Where a file is not UTF-8, with line and column: `3:9: …`.
fn not_text(error: &FromUtf8Error) -> String {
    let good = error.utf8_error().valid_up_to();
    let (before, rest) = error.as_bytes().split_at(good);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begins = before.iter().rposition(|byte| *byte == b'\n');
    let begins = begins.map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[begins..]).chars().count() + 1;
    let byte = rest.first().copied().unwrap_or_default();
    format!("{line}:{column}: byte {good} (0x{byte:02x}) is not UTF-8; save the file as UTF-8")
}
