//! The output of `config show`: lines of TOML, each with the source of its value.

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::path::Path;

use clap::ValueEnum;

use super::source::Sources;
use super::table_reader::is_bare;
use crate::cli::framing::FramingChoice;
use crate::cli::log_redaction;
use crate::conversation::DialectChoice;

/// The column of the comments, in characters.
const COLUMN: usize = 56;

/// The report being written.
pub(super) struct Report<'a> {
    text: String,
    pub(super) sources: &'a Sources<'a>,
    /// The path of the current table, with a trailing dot.
    table: String,
}

impl<'a> Report<'a> {
    pub(super) const fn new(sources: &'a Sources<'a>) -> Self {
        Self {
            text: String::new(),
            sources,
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
        let from = self.sources.of(flag, &self.path(key));
        self.line_from(key, value, &from);
    }

    pub(super) fn line_from(&mut self, key: &str, value: impl Display, from: &str) {
        let setting = format!("{} = {value}", bare(key));
        let _ = writeln!(self.text, "{setting:COLUMN$}  # {from}");
    }

    pub(super) fn optional(&mut self, key: &str, flag: Option<&str>, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, flag, quote(value));
        }
    }

    pub(super) fn list(&mut self, key: &str, flag: Option<&str>, texts: &[String]) {
        if !texts.is_empty() {
            self.line(key, flag, list(texts));
        }
    }

    pub(super) fn dialect(&mut self, choice: Option<&DialectChoice>, flag: &str) {
        if let Some(choice) = choice {
            let name = match choice {
                DialectChoice::Auto => "auto",
                DialectChoice::Canonical => "canonical",
                DialectChoice::Named(name) => name,
            };
            self.line("dialect", Some(flag), quote(name));
        }
    }

    pub(super) fn framing(&mut self, choice: Option<FramingChoice>, flag: &str) {
        if let Some(choice) = choice {
            self.line("framing", Some(flag), word(&choice));
        }
    }
}

/// One of the values of an option, as TOML.
pub(super) fn word<T: ValueEnum>(value: &T) -> String {
    let name = value.to_possible_value();
    quote(name.as_ref().map_or("", |name| name.get_name()))
}

/// A number as TOML, or any other text as a string.
pub(super) fn number(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) => number.to_string(),
        Err(_) => quote(text),
    }
}

pub(super) fn path(path: &Path) -> String {
    quote(&path.display().to_string())
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
