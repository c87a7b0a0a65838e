//! The text of a table's file: JSON, or TOML if its name says so, and where its parts are.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::TableFault;
use crate::pointer::JsonPointer;
use crate::text;

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    toml: Option<Spanned<DeTable<'t>>>,
    /// Its content, with short forms as they are written.
    pub(crate) content: Value,
}

impl<'t> Document<'t> {
    /// Parses the text of `file`.
    ///
    /// # Errors
    /// The first place at which it is no JSON, or no TOML.
    pub(crate) fn parse(file: &'t str, text: &'t str) -> Result<Self, Box<TableFault>> {
        let fault = |at: Range<usize>, what: String| {
            let remedy = "correct it".to_owned();
            Box::new(TableFault::new(file, text, at, String::new(), what, remedy))
        };
        let mut document = Self {
            file,
            text,
            toml: None,
            content: Value::Null,
        };
        if !file.ends_with(".toml") {
            document.content = serde_json::from_str(text).map_err(|error| {
                let what = error.to_string();
                let place = format!(" at line {} column {}", error.line(), error.column());
                let what = what.strip_suffix(&place).unwrap_or(&what);
                let at = offset(text, error.line(), error.column());
                fault(
                    at..text.len().min(at + 1),
                    format!("this is not JSON: {what}"),
                )
            })?;
            return Ok(document);
        }
        let (tree, broken) = DeTable::parse_recoverable(text);
        let start = |error: &toml::de::Error| error.span().map_or(0, |at| at.start);
        if let Some(first) = broken.iter().min_by_key(|error| start(error)) {
            let what = format!("this is not TOML: {}", first.message());
            return Err(fault(first.span().unwrap_or_default(), what));
        }
        let content = table(tree.get_ref());
        document.content = content.map_err(|at| fault(at, "JSON has no such value".to_owned()))?;
        document.toml = Some(tree);
        Ok(document)
    }

    /// A fault at a place of the file.
    pub(crate) fn fault(&self, pointer: &str, what: String, remedy: String) -> TableFault {
        let at = self.place(pointer);
        TableFault::new(self.file, self.text, at, pointer.to_owned(), what, remedy)
    }

    /// The position of the deepest value on the path of `pointer` that the file contains.
    fn place(&self, pointer: &str) -> Range<usize> {
        let pointer = JsonPointer::parse(pointer);
        let names = pointer.as_ref().map_or(&[][..], |place| place.names());
        let Some(tree) = &self.toml else {
            let mut here = self.text.as_bytes().trim_ascii();
            for name in names {
                here = match text::child(here, name) {
                    Some(next) => next,
                    None => break,
                };
            }
            let start = here.as_ptr() as usize - self.text.as_ptr() as usize;
            return start..start + here.len();
        };
        let (mut at, mut table, mut list) = (tree.span(), Some(tree.get_ref()), None);
        for name in names {
            let next = match (table, list) {
                (Some(table), _) => table.get(&**name),
                (None, Some(list)) => text::array_index(name).and_then(|at| {
                    let list: &toml::de::DeArray<'_> = list;
                    list.get(at)
                }),
                (None, None) => None,
            };
            let Some(next) = next else { break };
            at = next.span();
            (table, list) = (next.get_ref().as_table(), next.get_ref().as_array());
        }
        at
    }

    /// A fault at the end of the file.
    pub(super) fn fault_at_end(&self, what: String, remedy: &str) -> TableFault {
        let end = self.text.trim_end().len();
        let (at, pointer) = (end..end, String::new());
        TableFault::new(self.file, self.text, at, pointer, what, remedy.to_owned())
    }
}

/// The byte at a line and a column, both from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.trim_end().len())
}

/// The members of a TOML table as JSON, or the place of a value that JSON does not have.
fn table(table: &DeTable<'_>) -> Result<Value, Range<usize>> {
    let mut members: Vec<_> = table.iter().collect();
    // In the order of the file.
    members.sort_by_key(|(name, _)| name.span().start);
    let member = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        Ok((name.get_ref().to_string(), json(value)?))
    };
    let members: Result<Map<_, _>, _> = members.into_iter().map(member).collect();
    members.map(Value::Object)
}

fn json(value: &Spanned<DeValue<'_>>) -> Result<Value, Range<usize>> {
    let number = match value.get_ref() {
        DeValue::String(text) => return Ok(text.to_string().into()),
        DeValue::Boolean(is) => return Ok((*is).into()),
        DeValue::Table(members) => return table(members),
        DeValue::Array(items) => return items.iter().map(json).collect(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(Number::from),
        DeValue::Float(number) => number.as_str().parse().ok().and_then(Number::from_f64),
        DeValue::Datetime(_) => None,
    };
    number.map(Value::Number).ok_or_else(|| value.span())
}
