//! The output of `config show`: lines of TOML, each with the source of its value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{Display, Write as _};

use clap::Arg;

use super::keys::{self, Form};
use super::merge::CommandLine;
use super::table_reader::is_bare;
use crate::cli::admin::AdminAddress;
use crate::cli::log_redaction;

/// The column of the comments, in characters.
const COLUMN: usize = 56;

/// Replaces a value that may be secret.
const HIDDEN: &str = "‹hidden›";

/// The report being written.
pub(super) struct Report<'a> {
    text: String,
    pub(super) line: &'a CommandLine,
    /// Lines of the file, from 1, by the paths of keys: `auth.require-token`,
    /// `listeners.0.endpoint`.
    lines: BTreeMap<String, usize>,
    /// The path of the current table, with a trailing dot.
    table: String,
}

impl<'a> Report<'a> {
    pub(super) const fn new(line: &'a CommandLine, lines: BTreeMap<String, usize>) -> Self {
        Self {
            text: String::new(),
            line,
            lines,
            table: String::new(),
        }
    }

    /// The whole text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The path of a key in the current table.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.table)
    }

    /// Starts a table.
    pub(super) fn open(&mut self, heading: &str, path: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{heading}");
        path.clone_into(&mut self.table);
    }

    /// Writes a key, its value in TOML, and the source of the value.
    pub(super) fn line(&mut self, key: &str, flag: Option<&str>, value: impl Display) {
        let from = self.source(flag, &self.path(key));
        self.line_from(key, value, &from);
    }

    /// The source of the value of the flag `id`, if there is one, and the key `path`.
    pub(super) fn source(&self, id: Option<&str>, path: &str) -> String {
        id.and_then(|id| self.line.source(id))
            .or_else(|| Some(format!("line {}", self.lines.get(path)?)))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Whether the file has a key.
    pub(super) fn is_in_file(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    pub(super) fn line_from(&mut self, key: &str, value: impl Display, from: &str) {
        let setting = format!("{} = {value}", bare(key));
        let _ = writeln!(self.text, "{setting:COLUMN$}  # {from}");
    }
}

/// The values of an option as TOML, without those that may be secret.
pub(super) fn toml(arg: &Arg, values: &[OsString]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| match value.to_string_lossy() {
            // Without the forms that mean the same.
            text if keys::is::<AdminAddress>(arg) => match text.parse::<AdminAddress>() {
                Ok(address) => address.to_string(),
                Err(_) => text.into_owned(),
            },
            text => text.into_owned(),
        })
        .collect();
    let last = texts.last().map_or("", String::as_str);
    let name = |text: &String, end| text.split(end).next().unwrap_or_default().to_owned();
    match keys::form(arg) {
        Form::Map => {
            let entries = texts.iter().map(|text| bare(&name(text, '=')));
            let entries: Vec<_> = entries
                .map(|name| format!("{name} = \"{HIDDEN}\""))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Form::List if keys::value_name(arg) == "NAME: VALUE" => {
            let headers = texts.iter().map(|text| name(text, ':'));
            list(
                &headers
                    .map(|name| format!("{name}: {HIDDEN}"))
                    .collect::<Vec<_>>(),
            )
        }
        Form::List => list(&texts),
        Form::Text => quote(last),
        Form::Number => number(last),
        Form::Flag | Form::Bool => last.to_owned(),
    }
}

/// A number as TOML, or any other text as a string.
pub(super) fn number(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) => number.to_string(),
        Err(_) => quote(text),
    }
}

pub(super) fn words(argv: &[OsString]) -> String {
    let words = argv.iter().map(|word| word.to_string_lossy().into_owned());
    list(&words.collect::<Vec<_>>())
}

pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A key as TOML.
pub(super) fn bare(key: &str) -> String {
    match is_bare(key) {
        true => key.to_owned(),
        false => quote(key),
    }
}

/// A TOML string, with secrets redacted.
pub(super) fn quote(text: &str) -> String {
    let text = log_redaction::clean(text);
    let quoted = serde_json::Value::from(&*text).to_string();
    // A JSON string is a TOML string, except for this character.
    quoted.replace('\u{7f}', "\\u007f")
}
