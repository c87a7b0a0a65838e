//! The mapping tables in use, built-in and the user's, with their files and text.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use crate::cli::exit;
use crate::dialect::{DialectError, Library, Table, TableFaults};

/// Maximum size of a table's file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Tables besides the built-in ones.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct Tables {
    /// A mapping table to use besides those built in; may be given several times
    ///
    /// A table replaces an earlier one of the same name, built-in ones included.
    #[arg(long = "table", value_name = "FILE", global = true)]
    tables: Vec<PathBuf>,
    /// A folder of mapping tables (*.json) to use besides those built in; may be given several times
    #[arg(long = "dialect-dir", value_name = "DIR", global = true)]
    dialect_dirs: Vec<PathBuf>,
}

/// All tables, and the files they come from.
#[derive(Debug)]
pub(in crate::cli) struct TableSet {
    pub(in crate::cli) library: Arc<Library>,
    sources: Vec<Source>,
}

/// One table with its file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The file, as the user named it.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) table: Arc<Table>,
    pub(super) builtin: bool,
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
    /// These tables, after the given ones.
    pub(in crate::cli) fn after(&self, tables: &[PathBuf], folders: &[PathBuf]) -> Self {
        Self {
            tables: [tables, &self.tables].concat(),
            dialect_dirs: [folders, &self.dialect_dirs].concat(),
        }
    }

    /// The files, and the folders.
    pub(in crate::cli) fn paths(self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        (self.tables, self.dialect_dirs)
    }

    /// Whether there are only the built-in tables.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.dialect_dirs.is_empty()
    }

    /// The library of the built-in tables and the user's.
    ///
    /// # Errors
    /// A file cannot be read, or all faults of all of the user's tables.
    pub(in crate::cli) fn library(&self) -> Result<Library, LoadError> {
        let mut library = Library::builtin().map_err(LoadError::Faults)?;
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

    /// A digest of all tables: that of the built-in ones, then `+` and that of the user's.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(in crate::cli) fn digest(&self) -> Result<String, LoadError> {
        let builtin = env!("TABLES_DIGEST");
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
        for path in self.dialect_dirs.iter().chain(&self.tables) {
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

impl Source {
    /// The table as JSON, as in its file.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text).expect("a table that was read is JSON")
    }
}

impl TableSet {
    /// Loads the built-in tables and the user's.
    ///
    /// # Errors
    /// A file cannot be read, or all faults of all tables.
    pub(in crate::cli) fn open(tables: &Tables) -> Result<Self, LoadError> {
        let mut set = Self {
            library: Arc::default(),
            sources: Vec::new(),
        };
        let mut faults = TableFaults::default();
        let mut note = |added: Result<_, TableFaults>| {
            faults
                .0
                .extend(added.err().into_iter().flat_map(|faults| faults.0))
        };
        for (file, text) in Library::builtin_files() {
            note(set.put(&format!("mappings/{file}"), text.to_owned(), true));
        }
        for (file, text) in tables.user_tables()? {
            note(set.put(&file, text, false));
        }
        if faults.0.is_empty() {
            Ok(set)
        } else {
            Err(LoadError::Faults(faults))
        }
    }

    /// Adds one table of the user.
    ///
    /// # Errors
    /// All its faults.
    pub(super) fn add(&mut self, file: &str, text: String) -> Result<(), TableFaults> {
        self.put(file, text, false)
    }

    fn put(&mut self, file: &str, text: String, builtin: bool) -> Result<(), TableFaults> {
        let table = Arc::make_mut(&mut self.library).add(file, &text)?;
        self.sources.retain(|known| known.table.name != table.name);
        self.sources.push(Source {
            file: file.to_owned(),
            text,
            table,
            builtin,
        });
        Ok(())
    }

    /// All tables: the built-in ones, then the user's.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The tables of a dialect: its own first, then those it extends.
    ///
    /// # Errors
    /// One of them is unknown, or they extend each other in a circle.
    pub(super) fn stack(&self, name: &str) -> Result<Vec<&Source>, DialectError> {
        let source = |table: Arc<Table>| {
            let found = self
                .sources
                .iter()
                .find(|source| source.table.name == table.name);
            found.expect("the library and the shelf have the same tables")
        };
        Ok(self
            .library
            .stack(name)?
            .into_iter()
            .map(|layer| source(layer.table))
            .collect())
    }
}

/// Reads the text of a table's file.
pub(super) fn read(path: &Path) -> Result<String, LoadError> {
    let wrong = |error| LoadError::file(path, error);
    let refused = |why: &str| Err(wrong(io::Error::other(why)));
    let about = fs::metadata(path).map_err(wrong)?;
    // A device may never end, and opening a pipe without a writer blocks.
    if !about.is_file() {
        return refused("a table is read from a regular file only");
    }
    let mut text = String::new();
    if about.len() <= MAX_BYTES {
        let file = File::open(path).map_err(wrong)?;
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
        read.map_err(wrong)?;
    }
    if about.len().max(text.len() as u64) > MAX_BYTES {
        return refused("it is longer than 1 MiB, the limit for a table");
    }
    Ok(text)
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
        if path.extension().is_some_and(|ending| ending == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
