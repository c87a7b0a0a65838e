//! Reads a table from its file.

use serde::Deserialize as _;
use serde_json::Value;

use super::check;
use super::fault::{FaultList, TableFault, TableFaults};
use super::types::Table;
use crate::dialect::validate;

/// The newest `format` that this program reads.
const FORMAT: u64 = 1;

impl Table {
    /// Reads and checks one table. `file` is its name in faults.
    ///
    /// # Errors
    /// All faults of the file, in its order.
    pub fn read(file: &str, text: &str) -> Result<Self, TableFaults> {
        let content: Value = serde_json::from_str(text).map_err(|error| {
            let what = format!("this is not JSON: {error}");
            single(file, (error.line(), error.column().max(1)), what)
        })?;
        let faults = FaultList::new(file, text, &content);
        if let Some(format) = content["format"].as_u64().filter(|format| *format > FORMAT) {
            let what = format!("format {format} is newer than this program, which reads {FORMAT}");
            faults.add("/format", what, "this table needs a newer version");
            return Err(faults.into_faults());
        }
        let mut sound = content.clone();
        check::check(&mut sound, &faults);
        let rules = sound["rules"].as_array().into_iter().flatten().enumerate();
        let places: Vec<usize> = rules
            .filter(|(_, rule)| !rule.is_null())
            .map(|(at, _)| at)
            .collect();
        let table = Self::deserialize(sound);
        if let Ok(table) = &table {
            validate::check(table, &places, &faults);
        }
        let found = faults.into_faults();
        if !found.0.is_empty() {
            return Err(found);
        }
        // The schema admits nothing that cannot be read.
        table.map_err(|error| single(file, (1, 1), error.to_string()))
    }

    /// A table that is part of the program. A test shows that there are no faults to look for.
    pub(in crate::dialect) fn builtin(text: &str) -> Self {
        serde_json::from_str(text).expect("the built-in tables have no faults")
    }
}

/// The one fault of a file that cannot be read any further.
fn single(file: &str, (line, column): (usize, usize), what: String) -> TableFaults {
    TableFaults(vec![TableFault {
        file: file.to_owned(),
        line,
        column,
        rule: None,
        pointer: String::new(),
        what,
        remedy: "correct it".to_owned(),
    }])
}
