//! Reads the tables of the file by the declarations of their keys.
//!
//! An unexpected value is a fault at its position, and reading continues. So is a key that is not
//! declared.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;

use clap::Arg;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::{DRAIN, TABLES, Table, contradict, declared, tables_in};
use super::fault::Fault;
use super::keys::{Key, Keys};
use super::option::{self, Form, form, value_name};
use crate::cli::{features, renamed};
use dialect::Library;
use jsonrpc::did_you_mean;
use jsonrpc::limits::Limit;

/// What the tables of a file share.
#[derive(Debug)]
pub(super) struct FileReader<'f> {
    pub(super) text: &'f str,
    /// The base of relative paths.
    pub(super) folder: PathBuf,
    /// The names of the agents.
    pub(super) agents: BTreeSet<String>,
    /// The dialects that may be named, loaded when one is, because that takes longer than all the
    /// rest; none if the file names tables of its own.
    pub(super) dialects: Option<OnceCell<Library>>,
    /// The faults found so far.
    pub(super) found: RefCell<Vec<Fault>>,
}

/// A table with its keys.
#[derive(Debug)]
pub(super) struct TableReader<'f> {
    /// Its path, such as `agents.goose`; empty for the whole file.
    pub(super) name: String,
    pub(super) at: Range<usize>,
    pub(super) keys: Keys,
    declared: &'static Table,
    table: &'f DeTable<'f>,
    file: &'f FileReader<'f>,
}

/// Tables by their names, and the position of each name.
type NamedTables<'f> = Vec<(Range<usize>, String, TableReader<'f>)>;

/// A text and its position.
type PlacedText = (Range<usize>, String);

impl<'f> TableReader<'f> {
    /// The whole file.
    pub(super) fn root(tree: &'f Spanned<DeTable<'f>>, file: &'f FileReader<'f>) -> Self {
        let (name, at) = (String::new(), tree.span());
        Self::read(name, at, &TABLES[0], tree.get_ref(), file)
    }

    /// Reads the declared keys, and adds a fault for each other key.
    fn read(
        name: String,
        at: Range<usize>,
        declared: &'static Table,
        table: &'f DeTable<'f>,
        file: &'f FileReader<'f>,
    ) -> Self {
        let keys = Keys::default();
        let mut reader = Self {
            name,
            at,
            keys,
            declared,
            table,
            file,
        };
        reader.check_known();
        let mut present: Vec<&str> = Vec::new();
        for (key, arg) in super::declared::declared(declared.path) {
            let Some((own, value)) = table.get_key_value(key) else {
                continue;
            };
            let (path, id) = (reader.path(key), arg.get_id().as_str());
            let texts = reader.texts(&path, form(arg), value);
            if form(arg) != Form::Flag || texts.iter().any(|(_, text)| text == "true") {
                if let Some(other) = present.iter().find(|other| contradict(other, id)) {
                    let what = format!("`{path}` is given besides `{}`", option::path(other).1);
                    reader.fault(value.span(), what, "use only one of them");
                    continue;
                }
                present.push(id);
            }
            let values = texts.into_iter().filter_map(|(at, text)| {
                reader.check_name(&path, arg, &at, &text);
                let read = option::read(arg, &text, &file.folder);
                let fault = |what| reader.fault(at, format!("{path}: {what}"), "");
                read.map_err(fault).ok()
            });
            let values = values.collect();
            let drain = DRAIN.iter().find(|(drain, _)| *drain == id);
            let before = file.text.get(..own.span().start).unwrap_or_default();
            reader.keys.set(Key {
                id: drain.map_or(id, |(_, limit)| limit).to_owned(),
                from: format!("line {}", before.matches('\n').count() + 1),
                values,
            });
        }
        reader
    }

    /// Adds a fault at `at`. The remedy is empty if there is none.
    pub(super) fn fault(&self, at: Range<usize>, what: impl Into<String>, remedy: &str) {
        self.file
            .found
            .borrow_mut()
            .push(Fault::new(at, what, remedy));
    }

    /// Adds a note about a key.
    pub(super) fn note(&self, key: &str, what: &str, remedy: &str) {
        let what = format!("{}: {what}", self.path(key));
        let fault = Fault::new(self.at(key), what, remedy);
        let fault = Fault {
            is_note: true,
            ..fault
        };
        self.file.found.borrow_mut().push(fault);
    }

    /// Adds a fault of the value of a key.
    pub(super) fn fault_of(&self, key: &str, what: impl Display) {
        self.fault(self.at(key), format!("{}: {what}", self.path(key)), "");
    }

    /// Adds a fault if a key of this table is missing.
    pub(super) fn require(&self, key: &str, remedy: &str) {
        if self.has(key).is_none() {
            let what = format!("{}: `{key}` is missing", self.name);
            self.fault(self.at.clone(), what, remedy);
        }
    }

    /// Adds a fault for each given key that does not suit: `unsuited` says what it is for.
    pub(super) fn check_suited(&self, unsuited: impl Fn(&str) -> Option<&'static str>) {
        for (key, arg) in declared(self.declared.path) {
            if let Some(value) = self.table.get(key)
                && (form(arg) != Form::Flag || value.get_ref().as_bool() != Some(false))
                && let Some(is_for) = unsuited(key)
            {
                let what = format!("`{}` is for {is_for}", self.path(key));
                self.fault(value.span(), what, "");
            }
        }
    }

    /// The path of a key in this table.
    pub(super) fn path(&self, key: &str) -> String {
        join(&self.name, key)
    }

    /// The position of a key, or else of the table.
    pub(super) fn at(&self, key: &str) -> Range<usize> {
        self.has(key).unwrap_or_else(|| self.at.clone())
    }

    /// The position of a key's value, if it is present; the value may have faults.
    pub(super) fn has(&self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).map(Spanned::span)
    }

    /// Whether a key is missing or an empty table.
    pub(super) fn is_empty(&self, key: &str) -> bool {
        let value = self.table.get(key).map(Spanned::get_ref);
        value.is_none_or(|value| value.as_table().is_some_and(DeTable::is_empty))
    }

    /// The texts in a list.
    pub(super) fn items(&self, key: &str) -> Option<Vec<PlacedText>> {
        let value = self.table.get(key)?;
        Some(self.texts(&self.path(key), Form::List, value))
    }

    /// A table in this one.
    pub(super) fn table(&self, key: &str) -> Option<Self> {
        let value = self.table.get(key)?;
        self.nested(&[key], value.span(), value, "a table")
    }

    /// A list of tables, `[[KEY]]`.
    pub(super) fn table_array(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.table.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let what = format!("tables, each below a line [[{key}]]");
            return self.unexpected(&self.path(key), &what, value);
        };
        let items = items.iter();
        let tables = items.filter_map(|item| self.nested(&[key], item.span(), item, "tables"));
        tables.collect()
    }

    /// A table of tables with names, and its position.
    pub(super) fn named_tables(&self, key: &str) -> Option<(Range<usize>, NamedTables<'f>)> {
        let value = self.table.get(key)?;
        let DeValue::Table(table) = value.get_ref() else {
            return self.unexpected(&self.path(key), "a table", value);
        };
        let tables = table.iter().filter_map(|(name, value)| {
            let path = [key, name.get_ref()];
            let reader = self.nested(&path, name.span(), value, "a table")?;
            Some((name.span(), name.get_ref().to_string(), reader))
        });
        Some((value.span(), tables.collect()))
    }

    fn nested(
        &self,
        path: &[&str],
        at: Range<usize>,
        value: &'f Spanned<DeValue<'f>>,
        expected: &str,
    ) -> Option<Self> {
        let name = path
            .iter()
            .fold(self.name.clone(), |name, key| join(&name, key));
        let DeValue::Table(table) = value.get_ref() else {
            return self.unexpected(&name, expected, value);
        };
        let mut tables = tables_in(self.declared.path);
        let (_, declared) = tables.find(|(key, _)| *key == path[0])?;
        Some(Self::read(name, at, declared, table, self.file))
    }

    /// Adds a fault for each key that is not declared.
    fn check_known(&self) {
        let table = self.declared.path;
        let mut known: Vec<&str> = declared(table).map(|(key, _)| key).collect();
        known.extend(tables_in(table).map(|(key, _)| key));
        known.sort_unstable();
        for key in self.table.keys() {
            let (name, at) = (&**key.get_ref(), key.span());
            let path = self.path(name);
            if known.contains(&name) {
            } else if let Some(new) = renamed::key(name).filter(|new| known.contains(new)) {
                self.fault(at, format!("`{path}` is now `{new}`"), "");
            } else if let Some(what) = features::missing(name) {
                self.fault(at, format!("{path}: {what}"), "");
            } else if table == "agents.limits" && Limit::named(name).is_some() {
                let what = format!("{path}: this limit applies to all listeners");
                self.fault(at, what, "move it to [limits]");
            } else {
                let expected = format!("expected one of {}", known.join(", "));
                let remedy = did_you_mean(name, known.iter().copied(), &expected);
                self.fault(at, format!("`{path}` is not known"), &remedy);
            }
        }
    }

    /// Adds a fault if a value names an agent or a dialect that does not exist.
    fn check_name(&self, path: &str, arg: &Arg, at: &Range<usize>, text: &str) {
        match (value_name(arg), &self.file.dialects) {
            ("AGENT", _) if !self.file.agents.contains(text) => {
                let what = format!("{path}: there is no agent called `{text}`");
                let known = self.file.agents.iter().map(String::as_str);
                let otherwise = format!("describe it below [agents.{text}]");
                self.fault(at.clone(), what, &did_you_mean(text, known, &otherwise));
            }
            ("DIALECT", Some(dialects)) if !["auto", "canonical"].contains(&text) => {
                let library = dialects.get_or_init(Library::builtin);
                if let Err(unknown) = library.table(text) {
                    self.fault(at.clone(), format!("{path}: {unknown}"), "");
                }
            }
            _ => {}
        }
    }

    /// The texts in a value of this form; true and false are texts, too. What is none is a fault,
    /// and the others are still read.
    fn texts(&self, path: &str, form: Form, value: &Spanned<DeValue<'_>>) -> Vec<PlacedText> {
        match (form, value.get_ref()) {
            (Form::Flag | Form::Bool, DeValue::Boolean(flag)) => {
                vec![(value.span(), flag.to_string())]
            }
            (Form::TextOrTrue, DeValue::Boolean(true)) => vec![(value.span(), "true".to_owned())],
            (Form::Flag | Form::Bool, _) => self.unexpected(path, "true or false", value),
            (Form::Text | Form::TextOrTrue | Form::Number, _) => {
                self.text(path, form, value).into_iter().collect()
            }
            (Form::List, DeValue::Array(items)) => {
                let texts = items.iter();
                let texts = texts.filter_map(|item| self.text(path, Form::Text, item));
                texts.collect()
            }
            (Form::List, _) => self.unexpected(path, "a list of texts, [\"…\", \"…\"]", value),
            (Form::Map, DeValue::Table(table)) => self.variables(path, table),
            (Form::Map, _) => self.unexpected(path, "a table", value),
        }
    }

    fn variables(&self, path: &str, table: &DeTable<'_>) -> Vec<PlacedText> {
        let variables = table.iter().filter_map(|(key, value)| {
            let name = key.get_ref();
            if name.is_empty() || name.contains(['=', '\0', '\n', '\r']) {
                let what = format!("`{}` cannot be the name of a variable", name.escape_debug());
                let remedy = "a name is not empty and has no `=`, no line break and no NUL";
                self.fault(key.span(), what, remedy);
                return None;
            }
            let (at, text) = self.text(&join(path, name), Form::Number, value)?;
            Some((at, format!("{name}={text}")))
        });
        variables.collect()
    }

    fn text(&self, path: &str, form: Form, value: &Spanned<DeValue<'_>>) -> Option<PlacedText> {
        let text = match (value.get_ref(), form) {
            (DeValue::String(text), _) if text.contains('\0') => {
                let what = format!("{path}: a NUL character");
                self.fault(value.span(), what, "remove it");
                return None;
            }
            (DeValue::String(text), _) => text.to_string(),
            (DeValue::Integer(number), Form::Number) if number.radix() == 10 => {
                number.as_str().to_owned()
            }
            (DeValue::Float(number), Form::Number) => number.as_str().to_owned(),
            (_, Form::TextOrTrue) => {
                return self.unexpected(path, "a text in quotes, or true", value);
            }
            (_, Form::Number) => return self.unexpected(path, "a text or a number", value),
            _ => return self.unexpected(path, "a text in quotes", value),
        };
        Some((value.span(), text))
    }

    /// Adds a fault, and returns nothing.
    fn unexpected<T: Default>(
        &self,
        path: &str,
        expected: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> T {
        let kind = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let what = format!("{path}: expected {expected}, found {kind}");
        self.fault(value.span(), what, "");
        T::default()
    }
}

/// The path of a key in a table.
fn join(table: &str, key: &str) -> String {
    let dot = if table.is_empty() { "" } else { "." };
    match is_bare(key) {
        true => format!("{table}{dot}{key}"),
        false => format!("{table}{dot}{key:?}"),
    }
}

/// Whether TOML allows this key without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !key.is_empty() && key.bytes().all(bare)
}
