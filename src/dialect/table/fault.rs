//! The faults of a table, each with its place and remedy. All faults of a file are reported at
//! once; `check` and `validate` find them.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::dialect::pointer::JsonPointer;
use crate::dialect::text;

/// Maximum number of faults of one file that are reported.
const MAX_FAULTS: usize = 100;

/// One fault of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableFault {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub column: usize,
    /// The rule, if the fault is in one.
    pub rule: Option<String>,
    /// The place in the file, a JSON Pointer.
    pub pointer: String,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// All faults of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFaults(pub Vec<TableFault>);

/// The faults of one file while it is checked.
#[derive(Debug)]
pub(in crate::dialect) struct FaultList<'f> {
    file: &'f str,
    text: &'f str,
    /// The content of the file.
    table: &'f Value,
    found: RefCell<Vec<TableFault>>,
}

impl<'f> FaultList<'f> {
    pub(super) fn new(file: &'f str, text: &'f str, table: &'f Value) -> Self {
        let found = RefCell::default();
        Self {
            file,
            text,
            table,
            found,
        }
    }

    /// Adds a fault.
    pub(in crate::dialect) fn add(
        &self,
        pointer: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        // The place of each is found by scanning the file again, so their number is limited.
        let mut found = self.found.borrow_mut();
        if found.len() > MAX_FAULTS {
            return;
        }
        let (line, column) = place_of(self.text, pointer);
        let mut fault = TableFault {
            file: self.file.to_owned(),
            line,
            column,
            rule: self.rule(pointer),
            pointer: pointer.to_owned(),
            what: what.into(),
            remedy: remedy.into(),
        };
        if found.len() == MAX_FAULTS {
            fault.line = self.text.lines().count();
            (fault.rule, fault.pointer) = (None, String::new());
            fault.what = format!("there are more faults than these {MAX_FAULTS}");
            fault.remedy = "correct these first".to_owned();
        }
        found.push(fault);
    }

    /// The id of the rule that contains a place.
    fn rule(&self, pointer: &str) -> Option<String> {
        let index = pointer.strip_prefix("/rules/")?.split('/').next()?;
        let rule = self.table["rules"].get(index.parse::<usize>().ok()?)?;
        rule["id"].as_str().map(str::to_owned)
    }

    /// All faults, in the order of the file.
    pub(super) fn into_faults(self) -> TableFaults {
        let mut found = self.found.into_inner();
        found.sort_by_key(|fault| (fault.line, fault.column));
        TableFaults(found)
    }
}

impl fmt::Display for TableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if let Some(rule) = &self.rule {
            write!(f, "rule `{rule}`, ")?;
        }
        let place = if self.pointer.is_empty() {
            "/"
        } else {
            &self.pointer
        };
        write!(f, "{place}: {}; {}", self.what, self.remedy)
    }
}

impl fmt::Display for TableFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(TableFault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for TableFaults {}

/// The line and the column of the deepest value on the path of `pointer` that the file contains.
pub(crate) fn place_of(file: &str, pointer: &str) -> (usize, usize) {
    let text = file.as_bytes();
    let mut here = text.trim_ascii_start();
    let place = JsonPointer::parse(pointer);
    for name in place.as_ref().map_or(&[][..], |place| place.names()) {
        let Some(next) = text::child(here, name) else {
            break;
        };
        here = next;
    }
    let before = &text[..here.as_ptr() as usize - text.as_ptr() as usize];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n');
    (line, before.len() - start.map_or(0, |at| at + 1) + 1)
}
