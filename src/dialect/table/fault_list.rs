//! The faults of one file while it is checked, and where the rules are written that short forms stand
//! for.

use std::cell::{OnceCell, RefCell};

use super::document::Document;
use super::fault::{TableFault, TableFaults};

/// Maximum number of faults of one file that are reported.
const MAX_FAULTS: usize = 100;

/// Where the rules that short forms stand for are written: pointers into the table, and into the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(pub(super) Vec<(String, String)>);

/// The faults of one file while it is checked.
#[derive(Debug)]
pub(crate) struct FaultList<'f> {
    document: &'f Document<'f>,
    origins: OnceCell<Origins>,
    found: RefCell<Vec<TableFault>>,
}

impl Origins {
    /// The place in the file where a place of the table is written.
    pub(crate) fn written(&self, pointer: &str) -> String {
        let inside = |(made, _): &&(String, String)| {
            let rest = pointer.strip_prefix(&**made);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match (self.0.iter().filter(inside)).max_by_key(|(made, _)| made.len()) {
            Some((made, written)) => format!("{written}{}", &pointer[made.len()..]),
            None => pointer.to_owned(),
        }
    }
}

impl<'f> FaultList<'f> {
    pub(super) fn new(document: &'f Document<'f>) -> Self {
        Self {
            document,
            origins: OnceCell::new(),
            found: RefCell::default(),
        }
    }

    /// Sets where the rules that short forms stand for are written.
    pub(super) fn set_origins(&self, origins: Origins) {
        let _ = self.origins.set(origins);
    }

    /// Adds a fault.
    pub(crate) fn add(&self, pointer: &str, what: impl Into<String>, remedy: impl Into<String>) {
        // The place of each is found by scanning the file again, so their number is limited.
        let mut found = self.found.borrow_mut();
        if found.len() > MAX_FAULTS {
            return;
        }
        if found.len() == MAX_FAULTS {
            let what = format!("there are more faults than these {MAX_FAULTS}");
            return found.push(self.document.fault_at_end(what, "correct these first"));
        }
        let pointer = self.written(pointer);
        let mut fault = self.document.fault(&pointer, what.into(), remedy.into());
        fault.rule = self.rule(&pointer);
        found.push(fault);
    }

    /// The place in the file where a place of the table is written.
    pub(crate) fn written(&self, pointer: &str) -> String {
        let origins = self.origins.get();
        origins.map_or_else(|| pointer.to_owned(), |origins| origins.written(pointer))
    }

    /// The id of the rule that contains a place.
    fn rule(&self, pointer: &str) -> Option<String> {
        let index = pointer.strip_prefix("/rules/")?.split('/').next()?;
        let rule = &self.document.content["rules"].get(index.parse::<usize>().ok()?)?;
        rule["id"].as_str().map(str::to_owned)
    }

    /// All faults, in the order of the file.
    pub(super) fn into_faults(self) -> TableFaults {
        let mut found = self.found.into_inner();
        found.sort_by_key(|fault| (fault.line, fault.column));
        TableFaults(found)
    }
}
