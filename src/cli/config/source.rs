//! The source of a value: a flag, a variable, a line of the file, or the default.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// All sources.
pub(super) struct Sources<'a> {
    /// The parsed command line, and its definition.
    pub(super) matches: &'a ArgMatches,
    pub(super) command: &'a Command,
    /// Lines of the file, from 1, by the paths of keys: `auth.require-token`,
    /// `listeners.0.endpoint`.
    pub(super) lines: BTreeMap<String, usize>,
}

impl Sources<'_> {
    /// The source of the value of the flag `id`, if there is one, and the key `path`.
    pub(super) fn of(&self, id: Option<&str>, path: &str) -> String {
        id.and_then(|id| self.flag(id))
            .or_else(|| Some(format!("line {}", self.lines.get(path)?)))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// The same for the command line and the environment only.
    fn flag(&self, id: &str) -> Option<String> {
        let mut flags = self.command.get_arguments();
        let flag = flags.find(|flag| flag.get_id() == id)?;
        match self.matches.value_source(id)? {
            ValueSource::CommandLine => Some(match flag.get_long() {
                Some(long) => format!("--{long}"),
                None => "command line".to_owned(),
            }),
            ValueSource::EnvVariable => {
                let name = flag.get_env().unwrap_or_default();
                Some(format!("${}", name.to_string_lossy()))
            }
            _ => None,
        }
    }
}

/// The lines of all keys in a file.
pub(super) fn lines(text: &str) -> BTreeMap<String, usize> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let mut lines = BTreeMap::new();
    walk(text, "", tree.get_ref(), &mut lines);
    lines
}

fn walk(text: &str, above: &str, table: &DeTable<'_>, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let path = format!("{above}{}", key.get_ref());
        lines.insert(path.clone(), line(text, key.span().start));
        match value.get_ref() {
            DeValue::Table(table) => walk(text, &format!("{path}."), table, lines),
            DeValue::Array(items) => {
                let tables = items.iter().map(Spanned::get_ref).enumerate();
                for (index, item) in tables {
                    if let DeValue::Table(table) = item {
                        walk(text, &format!("{path}.{index}."), table, lines);
                    }
                }
            }
            _ => {}
        }
    }
}

fn line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.matches('\n').count() + 1
}
