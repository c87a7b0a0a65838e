//! What the functions that read the parts of a file share: the context, and the values that occur
//! in several tables.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;

use super::table_reader::{TableReader, nearest};
use crate::cli::dialect_options;
use crate::cli::limits::{self, Setting};
use crate::cli::renamed;
use crate::conversation::DialectChoice;
use crate::dialect::Library;

/// Which faults are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum CheckLevel {
    /// Those in the values themselves: flags may override their combination, and `serve` itself
    /// finds what is missing on this machine.
    Values,
    /// Also what `serve` would reject with the file and no flags.
    Complete,
    /// Also what is missing on this machine.
    Machine,
}

/// What the functions that read the parts of a file need.
#[derive(Debug)]
pub(super) struct Context {
    /// The base of relative paths.
    pub(super) folder: PathBuf,
    pub(super) level: CheckLevel,
    /// Whether the file names no tables of its own, so that all dialects are known.
    pub(super) builtin: bool,
    /// The built-in dialects, loaded when one is named, because that takes longer than all the
    /// rest.
    pub(super) dialects: OnceCell<Option<Library>>,
}

impl Context {
    /// The dialects that may be named, if they are known.
    fn dialects(&self) -> Option<&Library> {
        if !self.builtin {
            return None;
        }
        // The built-in tables have no faults; a test holds them to that.
        let read = || Library::builtin().ok();
        self.dialects.get_or_init(read).as_ref()
    }
}

/// The names of agents.
pub(super) type Names = BTreeSet<String>;

/// The agent of clients that name none.
pub(super) fn default_agent(reader: &TableReader<'_>, agents: &Names) -> Option<String> {
    let name = reader.text("default-agent")?;
    known_agent(reader, "default-agent", &name.value, &name.at, agents);
    Some(name.value)
}

/// Reports a name that no agent has.
pub(super) fn known_agent(
    reader: &TableReader<'_>,
    key: &str,
    name: &str,
    at: &std::ops::Range<usize>,
    agents: &Names,
) {
    if agents.contains(name) {
        return;
    }
    let what = format!("{}: there is no agent called `{name}`", reader.path(key));
    let known = (name, agents.iter().map(String::as_str));
    reader.fault_unknown(
        at,
        what,
        known,
        format!("describe it below [agents.{name}]"),
    );
}

/// Reads a dialect's name.
pub(super) fn dialect(reader: &TableReader<'_>, context: &Context) -> Option<DialectChoice> {
    reader.read("dialect", |text| {
        let Ok(choice) = dialect_options::choice(text);
        if let DialectChoice::Named(name) = &choice
            && let Some(library) = context.dialects()
        {
            library.table(name).map_err(|unknown| unknown.to_string())?;
        }
        Ok(choice)
    })
}

/// Reads one of the values of an option.
pub(super) fn one_of<T: ValueEnum>(reader: &TableReader<'_>, key: &'static str) -> Option<T> {
    reader.read(key, |text| {
        T::from_str(text, false).map_err(|_| {
            let all = T::value_variants().iter().filter_map(T::to_possible_value);
            let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
            let near = nearest(text, all.iter().map(String::as_str));
            match near {
                Some(near) => format!("`{text}` is not known; did you mean `{near}`?"),
                None => format!("`{text}` is not known; expected one of {}", all.join(", ")),
            }
        })
    })
}

/// Reads a path, relative to the file's folder.
pub(super) fn path(
    reader: &TableReader<'_>,
    key: &'static str,
    context: &Context,
) -> Option<PathBuf> {
    reader.read(key, |text| match text.is_empty() {
        true => Err("an empty path".to_owned()),
        false => Ok(context.folder.join(text)),
    })
}

/// The limits in the table `key`; `refuse` returns why one is not allowed there.
pub(super) fn settings(
    reader: &TableReader<'_>,
    key: &'static str,
    refuse: impl Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let Some(reader) = reader.table(key) else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, value) in reader.entries() {
        let path = reader.path(&name.value);
        if let Some(why) = refuse(&name.value) {
            reader.fault(&name.at, format!("{path}: {why}"));
        } else if limits::names().any(|known| known == name.value) {
            match limits::parse(&format!("{}={}", name.value, value.value)) {
                Ok(setting) => settings.push(setting),
                Err(what) => reader.fault(&value.at, format!("{path}: {what}")),
            }
        } else if let Some(what) = renamed::limit(&name.value) {
            reader.fault(&name.at, what);
        } else {
            let what = format!("there is no limit called `{}`", name.value);
            let known = (name.value.as_str(), limits::names());
            reader.fault_unknown(&name.at, what, known, "`acp-relay --help` lists them");
        }
    }
    settings
}
