//! The faults of a table, each with its place and remedy. All faults of a file are reported at
//! once; `check` and `validate` find them.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

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
    /// Of an example that fails, the lines of what is expected (`-`) and of what was made (`+`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<String>,
    /// The bytes of the file.
    #[serde(skip)]
    pub at: Range<usize>,
}

/// All faults of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFaults(pub Vec<TableFault>);

impl TableFault {
    /// A fault at these bytes of the text.
    pub(super) fn new(
        file: &str,
        text: &str,
        at: Range<usize>,
        pointer: String,
        what: String,
        remedy: String,
    ) -> Self {
        let (line, column) = position(text, at.start);
        Self {
            file: file.to_owned(),
            line,
            column,
            rule: None,
            pointer,
            what,
            remedy,
            diff: Vec::new(),
            at,
        }
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

/// The line and the column in bytes of a position in a text, both from 1.
pub(super) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n');
    (line, before.len() - start.map_or(0, |at| at + 1) + 1)
}
