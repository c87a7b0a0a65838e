//! Loads the mapping tables in use: those built in and the user's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::cli::bounded::{self, MAX_BYTES};
use crate::cli::exit;
use dialect::{Library, TableFaults};

/// Tables besides the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(in crate::cli) struct Tables {
    /// A mapping table to use besides those built in; may be given several times
    ///
    /// A table replaces an earlier one of the same name, built-in ones included.
    #[arg(id = "dialects.tables", long = "table", value_name = "FILE")]
    #[arg(global = true)]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// A folder of mapping tables (*.json, *.toml) to use besides those built in; may be given several times
    #[arg(id = "dialects.folders", long = "dialect-dir", value_name = "DIR")]
    #[arg(global = true)]
    folders: Vec<PathBuf>,
}

/// Why the tables cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    File {
        path: String,
        #[source]
        error: io::Error,
    },
    /// Tables have faults.
    #[error("mapping tables have faults, so nothing was done\n{0}")]
    Faults(TableFaults),
}

impl Tables {
    /// Whether there are only the built-in tables.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// The library of the built-in tables and the user's.
    ///
    /// # Errors
    /// A file cannot be read, or all faults of all of the user's tables.
    pub(in crate::cli) fn library(&self) -> Result<Library, LoadError> {
        let mut library = Library::builtin();
        let mut faults = TableFaults::default();
        for (file, text) in self.user_tables()? {
            let found = library.add(&file, &text).err();
            faults.0.extend(found.into_iter().flat_map(|found| found.0));
        }
        match faults.0.is_empty() {
            true => Ok(library),
            false => Err(LoadError::Faults(faults)),
        }
    }

    /// The same. An error is printed, and the exit code is returned.
    pub(in crate::cli) fn load(&self) -> Result<Library, ExitCode> {
        self.library().map_err(|error| error.fail())
    }

    /// A digest of all tables: that of the built-in ones, then `+` and that of the user's.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(in crate::cli) fn digest(&self) -> Result<String, LoadError> {
        let builtin = dialect::TABLES_DIGEST;
        if self.is_empty() {
            return Ok(builtin.to_owned());
        }
        let mut own = blake3::Hasher::new();
        for (_, text) in self.user_tables()? {
            own.update(text.as_bytes());
        }
        Ok(format!("{builtin}+{}", &own.finalize().to_hex()[..8]))
    }

    /// The user's tables: file names, as given, and texts.
    fn user_tables(&self) -> Result<Vec<(String, String)>, LoadError> {
        let mut own = Vec::new();
        for path in self.folders.iter().chain(&self.files) {
            for path in files(path)? {
                let text = read(&path)?;
                own.push((path.display().to_string(), text));
            }
        }
        Ok(own)
    }
}

impl LoadError {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        let path = path.display().to_string();
        Self::File { path, error }
    }

    /// Prints the error and returns the exit code.
    pub(in crate::cli) fn fail(&self) -> ExitCode {
        let code = match self {
            Self::File { .. } => exit::NO_INPUT,
            Self::Faults(_) => exit::DATA,
        };
        exit::fail(code, self)
    }
}

/// Reads the text of a table's file.
pub(super) fn read(path: &Path) -> Result<String, LoadError> {
    bounded::read_file(path, MAX_BYTES).map_err(|error| LoadError::file(path, error))
}

/// The file itself, or the tables in a folder, sorted.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let wrong = |error| LoadError::file(path, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if (path.extension()).is_some_and(|ending| ending == "json" || ending == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
