//! Reads a table from its file.

use serde::Deserialize as _;
use serde_json::Value;

use super::document::Document;
use super::fault::{TableFault, TableFaults};
use super::fault_list::FaultList;
use super::types::Table;
use super::{check, short};
use crate::validate;

/// The newest `format` that this program reads.
const FORMAT: u64 = 1;

impl Table {
    /// Reads and checks one table. `file` is its name in faults; a name in `.toml` is that of a TOML
    /// file.
    ///
    /// # Errors
    /// All faults of the file, in its order.
    pub fn read(file: &str, text: &str) -> Result<Self, TableFaults> {
        let document = Document::parse(file, text).map_err(|fault| TableFaults(vec![*fault]))?;
        let faults = FaultList::new(&document);
        let format = document.content["format"].as_u64();
        if let Some(format) = format.filter(|format| *format > FORMAT) {
            let what = format!("format {format} is newer than this program, which reads {FORMAT}");
            faults.add("/format", what, "this table needs a newer version");
            return Err(faults.into_faults());
        }
        let mut sound = document.content.clone();
        check::check(&mut sound, &faults);
        let origins = short::expand(&mut sound, &|place, what| {
            faults.add(place, what, "correct the path");
        });
        faults.set_origins(origins.clone());
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
        let mut table = table.map_err(|error| {
            TableFaults(vec![document.fault(
                "",
                error.to_string(),
                "correct it".to_owned(),
            )])
        })?;
        table.origins = origins;
        Ok(table)
    }

    /// What the table, which has no faults, should have: a reason and an example for each rule, and
    /// names of methods that are known.
    #[must_use]
    pub fn advice(&self, file: &str, text: &str) -> Vec<TableFault> {
        let Ok(document) = Document::parse(file, text) else {
            return Vec::new();
        };
        let faults = FaultList::new(&document);
        faults.set_origins(self.origins.clone());
        validate::advise(self, &faults);
        faults.into_faults().0
    }

    /// A table that is part of the program. A test shows that there are no faults to look for.
    pub(crate) fn builtin(text: &str) -> Self {
        serde_json::from_str(text).expect("the built-in tables have no faults")
    }
}

/// A fault of a key of the table in a file.
pub fn fault_at(file: &str, text: &str, key: &str, what: String, remedy: String) -> TableFault {
    match Document::parse(file, text) {
        Ok(document) => document.fault(&format!("/{key}"), what, remedy),
        Err(fault) => *fault,
    }
}

/// The content of a file, with rules in place of their short forms; `null` if it cannot be read.
pub fn content(file: &str, text: &str) -> Value {
    let mut content = Document::parse(file, text).map_or(Value::Null, |document| document.content);
    short::expand(&mut content, &|_, _| {});
    content
}
