//! The page that `config show` prints: lines of TOML, and behind each who has said so.
//!
//! Not here: which lines there are (see `show`), and who has said what (see `source`).

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::path::Path;

use clap::ValueEnum;

use super::sheet::is_bare;
use super::source::Sources;
use crate::cli::common::FramingChoice;
use crate::cli::discretion;
use crate::conversation::Choice;

/// Where the remarks begin, in characters.
const COLUMN: usize = 56;

/// The page that is shown.
pub(super) struct Page<'a> {
    text: String,
    pub(super) sources: &'a Sources<'a>,
    /// The path of the table that is written, with a full stop behind it.
    table: String,
}

impl<'a> Page<'a> {
    pub(super) const fn new(sources: &'a Sources<'a>) -> Self {
        Self {
            text: String::new(),
            sources,
            table: String::new(),
        }
    }

    /// All that was written.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The path of a key in the table that is written.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}{key}", self.table)
    }

    /// Begins a table.
    pub(super) fn open(&mut self, heading: &str, path: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{heading}");
        path.clone_into(&mut self.table);
    }

    /// A key, its value in TOML, and who has said so.
    pub(super) fn line(&mut self, key: &str, flag: Option<&str>, value: impl Display) {
        let from = self.sources.of(flag, &self.path(key));
        self.remarked(key, value, &from);
    }

    pub(super) fn remarked(&mut self, key: &str, value: impl Display, from: &str) {
        let said = format!("{} = {value}", bare(key));
        let _ = writeln!(self.text, "{said:COLUMN$}  # {from}");
    }

    pub(super) fn maybe(&mut self, key: &str, flag: Option<&str>, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, flag, quote(value));
        }
    }

    pub(super) fn list(&mut self, key: &str, flag: Option<&str>, texts: &[String]) {
        if !texts.is_empty() {
            self.line(key, flag, list(texts));
        }
    }

    pub(super) fn tongue(&mut self, choice: Option<&Choice>, flag: &str) {
        if let Some(choice) = choice {
            let name = match choice {
                Choice::Auto => "auto",
                Choice::Canonical => "canonical",
                Choice::Named(name) => name,
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

/// One of the values that a flag takes.
pub(super) fn word<T: ValueEnum>(value: &T) -> String {
    let name = value.to_possible_value();
    quote(name.as_ref().map_or("", |name| name.get_name()))
}

/// A number as one, anything else as a text.
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

/// A key as TOML has it.
pub(super) fn bare(key: &str) -> String {
    match is_bare(key) {
        true => key.to_owned(),
        false => quote(key),
    }
}

/// A text in quotes, without what looks like a secret.
pub(super) fn quote(text: &str) -> String {
    let text = discretion::clean(text);
    let quoted = serde_json::Value::from(&*text).to_string();
    // A string of JSON is one of TOML, but for this.
    quoted.replace('\u{7f}', "\\u007f")
}
