//! Finds and reads the configuration file.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::fault::{Fault, Faults};
use crate::cli::bounded::{self, MAX_BYTES};
use crate::cli::{console, exit, state};

/// The file's path below a configuration directory.
const RELATIVE_PATH: &str = "acp-relay/acp-relay.toml";
/// The system's configuration directory.
const SYSTEM: &str = "/etc";

/// The path of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct ConfigFile(pub(in crate::cli) PathBuf);

impl ConfigFile {
    /// The user's file, or else the system's.
    pub(in crate::cli) fn find() -> Option<Self> {
        Self::default_paths()
            .into_iter()
            .find(|place| place.0.is_file())
    }

    /// The default paths, in the order of search.
    pub(in crate::cli) fn default_paths() -> Vec<Self> {
        // The XDG base directory specification says to ignore relative paths.
        let folder = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|at| at.is_absolute())
        };
        let user = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let system = Some(PathBuf::from(SYSTEM));
        let folders = user.into_iter().chain(system);
        folders
            .map(|folder| Self(folder.join(RELATIVE_PATH)))
            .collect()
    }

    /// Reads the file. Errors are printed, and the exit code is returned.
    pub(in crate::cli) fn text(&self) -> Result<String, ExitCode> {
        let path = self.0.display();
        let read = File::open(&self.0).and_then(|file| bounded::read(file, MAX_BYTES));
        let bytes = read.map_err(|error| console::unreadable(&self.0, &error))?;
        String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[good];
            let what = format!("byte {good} (0x{byte:02x}) is not UTF-8");
            let fault = Fault::new(good..good, what, "save the file as UTF-8");
            let text = String::from_utf8_lossy(error.as_bytes());
            let faults = Faults::new(&path.to_string(), &text, vec![fault]);
            exit::fail(exit::CONFIG, &faults.report())
        })
    }

    /// Rejects a file that other users could change, because it says which programs run. Errors are
    /// printed, and the exit code is returned.
    pub(in crate::cli) fn check_owner(&self) -> Result<(), ExitCode> {
        let about = fs::metadata(&self.0).map_err(|error| {
            let fault = format!("{}: {error}", self.0.display());
            exit::fail(exit::FORBIDDEN, &fault)
        })?;
        // Writing to a device such as /dev/null does not change what is read from it.
        if about.file_type().is_char_device() {
            return Ok(());
        }
        state::check_writers(&self.0, &about).map_err(|fault| {
            let fault = format!("{fault}; others could choose which programs run here");
            exit::fail(exit::FORBIDDEN, &fault)
        })
    }

    /// The base folder of relative paths in the file.
    pub(super) fn folder(&self) -> PathBuf {
        // The parent of `team.toml` is empty, not absent.
        let parent = self.0.parent().filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        // If the current directory was deleted, the path stays relative.
        std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
    }
}
