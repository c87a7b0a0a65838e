//! One table of the file, read key by key.
//!
//! What is not as expected is a fault at its place, and reading goes on. A key that nobody asked
//! for is a fault as well, told when the sheet is closed. Not here: what the keys mean.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;

/// How alike two words have to be for one to be offered for the other.
const ALIKE: f64 = 0.8;

/// The faults found so far, by all sheets of a file.
#[derive(Debug, Default)]
pub(super) struct Found(RefCell<Vec<Fault>>);

/// A table and its place.
#[derive(Debug)]
pub(super) struct Sheet<'f> {
    /// How it is called, such as `agents.goose`; empty for the file itself.
    name: String,
    pub(super) at: Range<usize>,
    table: &'f DeTable<'f>,
    found: &'f Found,
    asked: RefCell<Vec<&'static str>>,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot<T> {
    pub(super) at: Range<usize>,
    pub(super) value: T,
}

impl Found {
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

impl<'f> Sheet<'f> {
    pub(super) fn new(
        name: String,
        at: Range<usize>,
        table: &'f DeTable<'f>,
        found: &'f Found,
    ) -> Self {
        Self {
            name,
            at,
            table,
            found,
            asked: RefCell::default(),
        }
    }

    /// Something is wrong at `at`.
    pub(super) fn fault(&self, at: &Range<usize>, what: impl Into<String>) {
        self.found.add(Fault::new(at, what));
    }

    /// The same, and what to do about it.
    pub(super) fn fault_with(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.found.add(Fault::new(at, what).with_remedy(remedy));
    }

    /// A word at `at` that is none of those known. What to do is to take the one that was probably
    /// meant, or else what `otherwise` says.
    pub(super) fn fault_unknown<'k>(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        (word, known): (&str, impl IntoIterator<Item = &'k str>),
        otherwise: impl Into<String>,
    ) {
        match nearest(word, known) {
            Some(near) => self.fault_with(at, what, format!("did you mean `{near}`?")),
            None => self.fault_with(at, what, otherwise),
        }
    }

    /// Each of these keys that stands here is for something else.
    pub(super) fn fault_misplaced(
        &self,
        keys: &[&'static str],
        is_for: &str,
        remedy: Option<&str>,
    ) {
        for (key, at) in keys.iter().filter_map(|key| Some((key, self.has(key)?))) {
            let what = format!("`{}` is for {is_for}", self.path(key));
            match remedy {
                Some(remedy) => self.fault_with(&at, what, remedy),
                None => self.fault(&at, what),
            }
        }
    }

    /// Something is worth a word.
    pub(super) fn note(&self, at: &Range<usize>, what: impl Into<String>, remedy: &str) {
        self.found
            .add(Fault::new(at, what).with_remedy(remedy).into_note());
    }

    /// How it is called itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How a key of this sheet is called.
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

    /// Whether nothing stands there.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Where the key stands, or else the table.
    pub(super) fn at(&self, key: &'static str) -> Range<usize> {
        self.has(key).unwrap_or_else(|| self.at.clone())
    }

    /// Whether the key stands there; its value is not looked at.
    pub(super) fn has(&self, key: &'static str) -> Option<Range<usize>> {
        self.value(key).map(|value| value.span())
    }

    pub(super) fn text(&self, key: &'static str) -> Option<Spot<String>> {
        self.value(key).and_then(|value| self.as_text(key, value))
    }

    /// What `read` makes of a text, unless it says why not.
    pub(super) fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read_at(key, read).map(|read| read.value)
    }

    /// The same, with its place.
    pub(super) fn read_at<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Spot<T>> {
        let Spot { at, value } = self.text(key)?;
        match read(&value) {
            Ok(value) => Some(Spot { at, value }),
            Err(what) => {
                self.fault(&at, format!("{}: {what}", self.path(key)));
                None
            }
        }
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.unexpected(key, "true or false", value),
        }
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &'static str) -> Option<Vec<Spot<String>>> {
        let value = self.value(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.unexpected(key, "a list of texts, [\"…\", \"…\"]", value);
        };
        let texts = items.iter().map(|item| self.as_text(key, item));
        // What is no text is a fault by now; the others are read all the same.
        Some(texts.flatten().collect())
    }

    /// A list of texts that `read` makes something of.
    pub(super) fn list<T>(
        &self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let texts = self.texts(key).unwrap_or_default();
        let each = texts.into_iter().filter_map(|Spot { at, value }| {
            let fault = |what| self.fault(&at, format!("{}: {what}", self.path(key)));
            read(&value).map_err(fault).ok()
        });
        each.collect()
    }

    /// A table within this one.
    pub(super) fn sheet(&self, key: &'static str) -> Option<Self> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.below(self.path(key), value.span(), table)),
            _ => self.unexpected(key, "a table", value),
        }
    }

    /// A list of tables, `[[KEY]]`.
    pub(super) fn sheets(&self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let what = format!("tables, each below a line [[{key}]]");
            return self.unexpected(key, &what, value).unwrap_or_default();
        };
        let tables = items.iter().filter_map(|item| match item.get_ref() {
            DeValue::Table(table) => Some(self.below(self.path(key), item.span(), table)),
            _ => self.unexpected(key, "tables", item),
        });
        tables.collect()
    }

    /// All entries, whatever their keys: each key with its value as text or number.
    pub(super) fn entries(&self) -> Vec<(Spot<String>, Spot<String>)> {
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
                Spot { at, value: name },
                Spot {
                    at: value_at,
                    value: text,
                },
            ))
        });
        entries.collect()
    }

    /// All entries that are tables, whatever their keys.
    pub(super) fn tables(&self) -> Vec<(Spot<String>, Self)> {
        let tables = self.table.iter().filter_map(|(key, value)| {
            let name = key.get_ref().to_string();
            let DeValue::Table(table) = value.get_ref() else {
                return self.unexpected(&name, "a table", value);
            };
            let sheet = self.below(self.path(&name), key.span(), table);
            let at = key.span();
            Some((Spot { at, value: name }, sheet))
        });
        tables.collect()
    }

    /// All that was wanted has been asked for: what else stands there is not known.
    pub(super) fn close(&self) {
        let known = self.asked.borrow();
        for key in self.table.keys() {
            let name = &**key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let what = format!("`{}` is not known", self.path(name));
            let mut all = known.clone();
            all.sort_unstable();
            all.dedup();
            let expected = format!("expected one of {}", all.join(", "));
            self.fault_unknown(&key.span(), what, (name, all), expected);
        }
    }

    fn below(&self, name: String, at: Range<usize>, table: &'f DeTable<'f>) -> Self {
        Self::new(name, at, table, self.found)
    }

    fn value(&self, key: &'static str) -> Option<&'f Spanned<DeValue<'f>>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    fn as_text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Spot<String>> {
        let at = value.span();
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                self.fault(&at, format!("{}: a NUL character", self.path(key)));
                None
            }
            DeValue::String(text) => Some(Spot {
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

/// Whether TOML has this key without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !key.is_empty() && key.bytes().all(bare)
}

/// The word of `known` that was probably meant.
pub(in crate::cli) fn nearest<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let alike = known
        .into_iter()
        .map(|near| (strsim::jaro(&word, near), near));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(alike, _)| *alike >= ALIKE)
        .map(|(_, near)| near)
}
