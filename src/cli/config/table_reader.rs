//! Reads one table of the file, key by key.
//!
//! An unexpected value is a fault at its position, and reading continues. A key that was never read
//! is a fault as well, reported by `finish`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::keys::{self, Form, Keys};
use super::nearest::did_you_mean;
use crate::cli::renamed;

/// The faults of a file found so far.
#[derive(Debug, Default)]
pub(super) struct FaultList(RefCell<Vec<Fault>>);

/// A table and its position.
#[derive(Debug)]
pub(super) struct TableReader<'f> {
    /// Its path, such as `agents.goose`; empty for the whole file.
    name: String,
    pub(super) at: Range<usize>,
    table: &'f DeTable<'f>,
    found: &'f FaultList,
    known_keys: RefCell<Vec<String>>,
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Positioned<T> {
    pub(super) at: Range<usize>,
    pub(super) value: T,
}

impl FaultList {
    pub(super) fn add(&self, fault: Fault) {
        self.0.borrow_mut().push(fault);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(super) fn into_inner(self) -> Vec<Fault> {
        self.0.into_inner()
    }
}

impl<'f> TableReader<'f> {
    pub(super) fn new(
        name: String,
        at: Range<usize>,
        table: &'f DeTable<'f>,
        found: &'f FaultList,
    ) -> Self {
        Self {
            name,
            at,
            table,
            found,
            known_keys: RefCell::default(),
        }
    }

    /// Adds a fault at `at`.
    pub(super) fn fault(&self, at: &Range<usize>, what: impl Into<String>) {
        self.found.add(Fault::new(at, what));
    }

    /// Adds a fault with its remedy.
    pub(super) fn fault_with(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.found.add(Fault::new(at, what).with_remedy(remedy));
    }

    /// Adds a fault about an unknown word at `at`. The remedy is the known word that was probably
    /// meant, or else `otherwise`.
    pub(super) fn fault_unknown<'k>(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        (word, known): (&str, impl IntoIterator<Item = &'k str>),
        otherwise: &str,
    ) {
        self.fault_with(at, what, did_you_mean(word, known, otherwise));
    }

    /// Adds a fault for each of these keys that is present, because they are for something else.
    pub(super) fn fault_misplaced(&self, keys: &[&str], is_for: &str, remedy: Option<&str>) {
        for (key, at) in keys.iter().filter_map(|key| Some((key, self.has(key)?))) {
            let what = format!("`{}` is for {is_for}", self.path(key));
            match remedy {
                Some(remedy) => self.fault_with(&at, what, remedy),
                None => self.fault(&at, what),
            }
        }
    }

    /// Adds a note.
    pub(super) fn note(&self, at: &Range<usize>, what: impl Into<String>, remedy: &str) {
        self.found
            .add(Fault::new(at, what).with_remedy(remedy).into_note());
    }

    /// The path of this table.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The path of a key in this table.
    pub(super) fn path(&self, key: &str) -> String {
        let key = match is_bare(key) {
            true => Cow::Borrowed(key),
            false => Cow::Owned(format!("{key:?}")),
        };
        match self.name.is_empty() {
            true => key.into_owned(),
            false => format!("{}.{key}", self.name),
        }
    }

    /// Whether the table has no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The position of a key, or else of the table.
    pub(super) fn at(&self, key: &str) -> Range<usize> {
        self.has(key).unwrap_or_else(|| self.at.clone())
    }

    /// The position of a key, if it is present; its value is not checked.
    pub(super) fn has(&self, key: &str) -> Option<Range<usize>> {
        self.value(key).map(|value| value.span())
    }

    /// Reads the keys that `command` declares for `table`, which is this one.
    pub(super) fn keys(&self, command: &Command, table: &str, folder: &Path) -> Keys {
        let mut found = Keys::default();
        let mut present: Vec<&Arg> = Vec::new();
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let (own, key) = keys::path(id);
            if own != table {
                continue;
            }
            let Some(value) = self.value(key) else {
                continue;
            };
            let texts = self.texts_of(key, keys::form(arg), value);
            let is_set =
                keys::form(arg) != Form::Flag || texts.iter().any(|one| one.value == "true");
            if let Some(other) = present
                .iter()
                .find(|other| is_set && keys::contradict(command, other, arg))
            {
                let (_, other) = keys::path(other.get_id().as_str());
                let what = format!("`{}` is given besides `{other}`", self.path(key));
                self.fault_with(&value.span(), what, "use only one of them");
                continue;
            }
            if is_set {
                present.push(arg);
            }
            let read = texts.iter().filter_map(|Positioned { at, value }| {
                let fault = |what| self.fault(at, format!("{}: {what}", self.path(key)));
                keys::read(arg, value, folder).map_err(fault).ok()
            });
            let read: Vec<_> = read.collect();
            if !read.is_empty() {
                found.push(id, read);
            }
        }
        found
    }

    /// A string.
    pub(super) fn text(&self, key: &str) -> Option<Positioned<String>> {
        self.value(key).and_then(|value| self.as_text(key, value))
    }

    /// A list of strings.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<Positioned<String>>> {
        let value = self.value(key)?;
        Some(self.texts_of(key, Form::List, value))
    }

    /// A table in this one.
    pub(super) fn table(&self, key: &str) -> Option<Self> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.nested(self.path(key), value.span(), table)),
            _ => self.unexpected(key, "a table", value),
        }
    }

    /// A list of tables, `[[KEY]]`.
    pub(super) fn table_array(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let what = format!("tables, each below a line [[{key}]]");
            return self.unexpected(key, &what, value).unwrap_or_default();
        };
        let tables = items.iter().filter_map(|item| match item.get_ref() {
            DeValue::Table(table) => Some(self.nested(self.path(key), item.span(), table)),
            _ => self.unexpected(key, "tables", item),
        });
        tables.collect()
    }

    /// All entries with any keys: each key, and its value as text, which is a string or a number.
    pub(super) fn entries(&self) -> Vec<(Positioned<String>, Positioned<String>)> {
        let entries = self.table.iter().filter_map(|(key, value)| {
            let name = key.get_ref().to_string();
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
                DeValue::Float(number) => number.as_str().to_owned(),
                _ => return self.unexpected(&name, "a text or a number", value),
            };
            let (at, value_at) = (key.span(), value.span());
            Some((
                Positioned { at, value: name },
                Positioned {
                    at: value_at,
                    value: text,
                },
            ))
        });
        entries.collect()
    }

    /// All entries with any keys that are tables.
    pub(super) fn tables(&self) -> Vec<(Positioned<String>, Self)> {
        let tables = self.table.iter().filter_map(|(key, value)| {
            let name = key.get_ref().to_string();
            let DeValue::Table(table) = value.get_ref() else {
                return self.unexpected(&name, "a table", value);
            };
            let reader = self.nested(self.path(&name), key.span(), table);
            let at = key.span();
            Some((Positioned { at, value: name }, reader))
        });
        tables.collect()
    }

    /// Adds a fault for each key that was never read.
    pub(super) fn finish(&self) {
        let known = self.known_keys.borrow();
        let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        for key in self.table.keys() {
            let name = &**key.get_ref();
            if known.contains(&name) {
                continue;
            }
            if let Some(new) = renamed::key(name).filter(|new| known.contains(new)) {
                let what = format!("`{}` is now `{new}`", self.path(name));
                self.fault(&key.span(), what);
                continue;
            }
            let what = format!("`{}` is not known", self.path(name));
            let expected = format!("expected one of {}", known.join(", "));
            self.fault_unknown(&key.span(), what, (name, known.clone()), &expected);
        }
    }

    fn nested(&self, name: String, at: Range<usize>, table: &'f DeTable<'f>) -> Self {
        Self::new(name, at, table, self.found)
    }

    fn value(&self, key: &str) -> Option<&'f Spanned<DeValue<'f>>> {
        self.known_keys.borrow_mut().push(key.to_owned());
        self.table.get(key)
    }

    /// The texts in a value of this form; true and false are texts, too. What is none is a fault.
    fn texts_of(
        &self,
        key: &str,
        form: Form,
        value: &Spanned<DeValue<'_>>,
    ) -> Vec<Positioned<String>> {
        let at = value.span();
        match (form, value.get_ref()) {
            (Form::Flag | Form::Bool, DeValue::Boolean(flag)) => {
                let value = flag.to_string();
                return vec![Positioned { at, value }];
            }
            (Form::Flag | Form::Bool, _) => self.unexpected(key, "true or false", value),
            (Form::Text, _) => return self.as_text(key, value).into_iter().collect(),
            (Form::List, DeValue::Array(items)) => {
                // Values that are not strings are faults; the others are still read.
                let texts = items.iter().filter_map(|item| self.as_text(key, item));
                return texts.collect();
            }
            (Form::List, _) => self.unexpected(key, "a list of texts, [\"…\", \"…\"]", value),
        }
        .unwrap_or_default()
    }

    fn as_text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Positioned<String>> {
        let at = value.span();
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                self.fault(&at, format!("{}: a NUL character", self.path(key)));
                None
            }
            DeValue::String(text) => Some(Positioned {
                at,
                value: text.to_string(),
            }),
            _ => self.unexpected(key, "a text in quotes", value),
        }
    }

    fn unexpected<T>(&self, key: &str, expected: &str, value: &Spanned<DeValue<'_>>) -> Option<T> {
        let kind = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let what = format!("{}: expected {expected}, found {kind}", self.path(key));
        self.fault(&value.span(), what);
        None
    }
}

/// Whether TOML allows this key without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !key.is_empty() && key.bytes().all(bare)
}
