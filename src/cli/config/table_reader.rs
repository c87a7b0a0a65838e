//! Reads one table of the file by the declarations of its keys.
//!
//! An unexpected value is a fault at its position, and reading continues. So is a key that is not
//! declared.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use clap::Arg;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::{DECLARED, declared, tables_in};
use super::fault::Fault;
use super::keys::{self, Form, Keys};
use super::nearest::did_you_mean;
use crate::cli::renamed;
use crate::dialect::Library;
use crate::jsonrpc::limits::Limit;
use crate::transport::Endpoint;

/// What the tables of a file share.
#[derive(Debug, Default)]
pub(super) struct FileReader {
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

/// A table and its position.
#[derive(Debug)]
pub(super) struct TableReader<'f> {
    /// Its path, such as `agents.goose`; empty for the whole file.
    name: String,
    /// The path of the declarations of its keys, such as `agents`.
    declared: String,
    pub(super) at: Range<usize>,
    table: &'f DeTable<'f>,
    file: &'f FileReader,
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Positioned<T> {
    pub(super) at: Range<usize>,
    pub(super) value: T,
}

impl<'f> TableReader<'f> {
    /// The whole file.
    pub(super) fn new(tree: &'f Spanned<DeTable<'f>>, file: &'f FileReader) -> Self {
        Self {
            name: String::new(),
            declared: String::new(),
            at: tree.span(),
            table: tree.get_ref(),
            file,
        }
    }

    /// An endpoint in this file, whose relative paths start at its folder.
    pub(super) fn relative(&self, at: Endpoint) -> Endpoint {
        at.relative_to(&self.file.folder)
    }

    /// Whether the table has no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Adds a fault at `at`.
    pub(super) fn fault(&self, at: &Range<usize>, what: impl Into<String>) {
        self.add(Fault::new(at, what));
    }

    /// Adds a fault with its remedy.
    pub(super) fn fault_with(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(Fault::new(at, what).with_remedy(remedy));
    }

    /// Adds a fault of the value of a key.
    pub(super) fn fault_of(&self, key: &str, what: &str) {
        self.fault(&self.at(key), format!("{}: {what}", self.path(key)));
    }

    /// Adds a fault if a key of this table is missing.
    pub(super) fn require(&self, key: &str, remedy: &str) {
        if self.has(key).is_none() {
            let what = format!("{}: `{key}` is missing", self.name);
            self.fault_with(&self.at, what, remedy);
        }
    }

    /// Adds a note.
    pub(super) fn note(&self, at: &Range<usize>, what: impl Into<String>, remedy: &str) {
        self.add(Fault::new(at, what).with_remedy(remedy).into_note());
    }

    /// Adds a fault for each given key that does not suit: `unsuited` says what it is for.
    pub(super) fn check_suited(&self, unsuited: impl Fn(&str) -> Option<&'static str>) {
        for (key, value) in self.table {
            let is_given = !matches!(value.get_ref(), DeValue::Boolean(false))
                || self.form(key.get_ref()) != Some(Form::Flag);
            if let Some(is_for) = unsuited(key.get_ref()).filter(|_| is_given) {
                let what = format!("`{}` is for {is_for}", self.path(key.get_ref()));
                self.fault(&value.span(), what);
            }
        }
    }

    /// The path of this table.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The path of a key in this table.
    pub(super) fn path(&self, key: &str) -> String {
        join(&self.name, key)
    }

    /// The position of a key, or else of the table.
    pub(super) fn at(&self, key: &str) -> Range<usize> {
        self.has(key).unwrap_or_else(|| self.at.clone())
    }

    /// The position of a key, if it is present; its value is not checked.
    pub(super) fn has(&self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).map(Spanned::span)
    }

    /// Reads the declared keys, and adds a fault for each other key.
    pub(super) fn keys(&self) -> Keys {
        self.check_known();
        let mut found = Keys::default();
        let mut present: Vec<(&str, &Arg)> = Vec::new();
        for (key, arg) in declared(&self.declared) {
            let Some(value) = self.table.get(key) else {
                continue;
            };
            let (path, form) = (self.path(key), keys::form(arg));
            let texts = self.texts_of(&path, form, value);
            let is_set = form != Form::Flag || texts.iter().any(|one| one.value == "true");
            if is_set {
                let mut others = present.iter();
                if let Some((other, _)) =
                    others.find(|(_, other)| keys::contradict(&DECLARED, other, arg))
                {
                    let what = format!("`{path}` is given besides `{other}`");
                    self.fault_with(&value.span(), what, "use only one of them");
                    continue;
                }
                present.push((key, arg));
            }
            let read = texts.iter().filter_map(|text| {
                self.check_name(&path, arg, text);
                let fault = |what| self.fault(&text.at, format!("{path}: {what}"));
                keys::read(arg, &text.value, &self.file.folder)
                    .map_err(fault)
                    .ok()
            });
            let read: Vec<_> = read.collect();
            if !read.is_empty() {
                found.push(arg.get_id().as_str(), read);
            }
        }
        found
    }

    /// A list of strings.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<Positioned<String>>> {
        let value = self.table.get(key)?;
        Some(self.texts_of(&self.path(key), Form::List, value))
    }

    /// A table in this one.
    pub(super) fn table(&self, key: &str) -> Option<Self> {
        let value = self.table.get(key)?;
        self.nested(
            key,
            value.span(),
            value,
            join(&self.declared, key),
            "a table",
        )
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
        let tables =
            items.filter_map(|item| self.nested(key, item.span(), item, key.to_owned(), "tables"));
        tables.collect()
    }

    /// All entries, which are tables of the same kind with any names.
    pub(super) fn tables(&self) -> Vec<(Positioned<String>, Self)> {
        let tables = self.table.iter().filter_map(|(key, value)| {
            let (at, name) = (key.span(), key.get_ref().to_string());
            let declared = self.declared.clone();
            let reader = self.nested(&name, at.clone(), value, declared, "a table")?;
            Some((Positioned { at, value: name }, reader))
        });
        tables.collect()
    }

    fn nested(
        &self,
        key: &str,
        at: Range<usize>,
        value: &'f Spanned<DeValue<'f>>,
        declared: String,
        expected: &str,
    ) -> Option<Self> {
        let name = self.path(key);
        let DeValue::Table(table) = value.get_ref() else {
            return self.unexpected(&name, expected, value);
        };
        Some(Self {
            name,
            declared,
            at,
            table,
            file: self.file,
        })
    }

    fn add(&self, fault: Fault) {
        self.file.found.borrow_mut().push(fault);
    }

    fn form(&self, key: &str) -> Option<Form> {
        let mut keys = declared(&self.declared);
        keys.find(|(own, _)| *own == key)
            .map(|(_, arg)| keys::form(arg))
    }

    /// Adds a fault for each key that is not declared.
    fn check_known(&self) {
        let keys = declared(&self.declared).map(|(key, _)| key);
        let mut known: Vec<&str> = keys.collect();
        known.extend(tables_in(&self.declared).map(|(key, _)| key));
        known.sort_unstable();
        for key in self.table.keys() {
            let name = &**key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let path = self.path(name);
            if let Some(new) = renamed::key(name).filter(|new| known.contains(new)) {
                self.fault(&key.span(), format!("`{path}` is now `{new}`"));
            } else if self.declared == "agents.limits" && Limit::named(name).is_some() {
                let what = format!("{path}: this limit applies to all listeners");
                self.fault_with(&key.span(), what, "move it to [limits]");
            } else {
                let expected = format!("expected one of {}", known.join(", "));
                let remedy = did_you_mean(name, known.iter().copied(), &expected);
                self.fault_with(&key.span(), format!("`{path}` is not known"), remedy);
            }
        }
    }

    /// Adds a fault if a value names an agent or a dialect that does not exist.
    fn check_name(&self, path: &str, arg: &Arg, name: &Positioned<String>) {
        let text = name.value.as_str();
        match (keys::value_name(arg), &self.file.dialects) {
            ("AGENT", _) if !self.file.agents.contains(text) => {
                let what = format!("{path}: there is no agent called `{text}`");
                let known = self.file.agents.iter().map(String::as_str);
                let remedy =
                    did_you_mean(text, known, &format!("describe it below [agents.{text}]"));
                self.fault_with(&name.at, what, remedy);
            }
            ("DIALECT", Some(dialects)) if !["auto", "canonical"].contains(&text) => {
                let library = dialects.get_or_init(Library::builtin);
                if let Err(unknown) = library.table(text) {
                    self.fault(&name.at, format!("{path}: {unknown}"));
                }
            }
            _ => {}
        }
    }

    /// The texts in a value of this form; true and false are texts, too. What is none is a fault.
    fn texts_of(
        &self,
        path: &str,
        form: Form,
        value: &Spanned<DeValue<'_>>,
    ) -> Vec<Positioned<String>> {
        match (form, value.get_ref()) {
            (Form::Flag | Form::Bool, DeValue::Boolean(flag)) => vec![Positioned {
                at: value.span(),
                value: flag.to_string(),
            }],
            (Form::Flag | Form::Bool, _) => self.unexpected(path, "true or false", value),
            (Form::Text | Form::Number, _) => self.as_text(path, form, value).into_iter().collect(),
            // Values that are not texts are faults; the others are still read.
            (Form::List, DeValue::Array(items)) => {
                let texts = items.iter();
                let texts = texts.filter_map(|item| self.as_text(path, Form::Text, item));
                texts.collect()
            }
            (Form::List, _) => self.unexpected(path, "a list of texts, [\"…\", \"…\"]", value),
            (Form::Map, DeValue::Table(table)) => self.variables(path, table),
            (Form::Map, _) => self.unexpected(path, "a table", value),
        }
    }

    fn variables(&self, path: &str, table: &DeTable<'_>) -> Vec<Positioned<String>> {
        let variables = table.iter().filter_map(|(key, value)| {
            let name = key.get_ref();
            if name.is_empty() || name.contains(['=', '\0', '\n', '\r']) {
                let what = format!("`{}` cannot be the name of a variable", name.escape_debug());
                let remedy = "a name is not empty and has no `=`, no line break and no NUL";
                self.fault_with(&key.span(), what, remedy);
                return None;
            }
            let mut variable = self.as_text(&join(path, name), Form::Number, value)?;
            variable.value = format!("{name}={}", variable.value);
            Some(variable)
        });
        variables.collect()
    }

    fn as_text(
        &self,
        path: &str,
        form: Form,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Positioned<String>> {
        let at = value.span();
        let text = match (value.get_ref(), form) {
            (DeValue::String(text), _) if text.contains('\0') => {
                self.fault_with(&at, format!("{path}: a NUL character"), "remove it");
                return None;
            }
            (DeValue::String(text), _) => text.to_string(),
            (DeValue::Integer(number), Form::Number) if number.radix() == 10 => {
                number.as_str().to_owned()
            }
            (DeValue::Float(number), Form::Number) => number.as_str().to_owned(),
            (_, Form::Number) => return self.unexpected(path, "a text or a number", value),
            _ => return self.unexpected(path, "a text in quotes", value),
        };
        Some(Positioned { at, value: text })
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
        self.fault(&value.span(), what);
        T::default()
    }
}

/// The path of a key in a table.
fn join(table: &str, key: &str) -> String {
    let key = match is_bare(key) {
        true => Cow::Borrowed(key),
        false => Cow::Owned(format!("{key:?}")),
    };
    match table.is_empty() {
        true => key.into_owned(),
        false => format!("{table}.{key}"),
    }
}

/// Whether TOML allows this key without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !key.is_empty() && key.bytes().all(bare)
}
