//! What the functions that read the parts of a file share: the context, and the values that occur
//! in several tables.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::table_reader::TableReader;
use crate::cli::limits::Setting;
use crate::conversation::DialectChoice;
use crate::dialect::Library;
use crate::jsonrpc::limits::Limit;

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
    pub(super) dialects: OnceCell<Library>,
}

impl Context {
    /// The dialects that may be named, if they are known.
    fn dialects(&self) -> Option<&Library> {
        if !self.builtin {
            return None;
        }
        Some(self.dialects.get_or_init(Library::builtin))
    }
}

/// The names of agents.
pub(super) type Names = BTreeSet<String>;

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
        &format!("describe it below [agents.{name}]"),
    );
}

/// Reports a dialect that does not exist.
pub(super) fn check_dialect(
    reader: &TableReader<'_>,
    choice: Option<&DialectChoice>,
    context: &Context,
) {
    if let Some(DialectChoice::Named(name)) = choice
        && let Some(Err(unknown)) = context.dialects().map(|library| library.table(name))
    {
        let what = format!("{}: {unknown}", reader.path("dialect"));
        reader.fault(&reader.at("dialect"), what);
    }
}

/// The limits in the table `key`; `find` returns the one of a name there, or else the fault and its
/// remedy.
pub(super) fn settings(
    reader: &TableReader<'_>,
    key: &'static str,
    find: impl Fn(&str) -> Result<&'static Limit, [String; 2]>,
) -> Vec<Setting> {
    let Some(reader) = reader.table(key) else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, text) in reader.entries() {
        match find(&name.value).map(|limit| (limit, limit.read(&text.value))) {
            Ok((limit, Ok(value))) => settings.push(Setting { limit, value }),
            Ok((_, Err(what))) => {
                let path = reader.path(&name.value);
                reader.fault(&text.at, format!("{path}: {what}"));
            }
            Err([what, remedy]) => reader.fault_with(&name.at, what, remedy),
        }
    }
    settings
}
