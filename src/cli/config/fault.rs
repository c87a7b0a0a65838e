//! A fault of a configuration file, with its position and remedy.

use std::fmt;
use std::ops::Range;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Fault {
    /// Byte offset in the file.
    pub(super) at: usize,
    /// What is wrong, as a clause.
    pub(super) what: String,
    /// The remedy, as a clause, if it is known.
    pub(super) remedy: Option<String>,
    /// Whether it is only a note: the state of the machine may be different at run time.
    pub(super) is_note: bool,
}

/// All faults of a file, in its order, with the notes.
#[derive(Debug)]
pub(in crate::cli) struct Faults {
    /// The file's name as given.
    pub(super) file: String,
    /// Line and column of each, both from 1; the column in characters.
    pub(super) found: Vec<(usize, usize, Fault)>,
}

impl Fault {
    pub(super) fn new(at: &Range<usize>, what: impl Into<String>) -> Self {
        Self {
            at: at.start,
            what: what.into(),
            remedy: None,
            is_note: false,
        }
    }

    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(super) const fn into_note(mut self) -> Self {
        self.is_note = true;
        self
    }
}

impl Faults {
    /// Sorts the faults of `text` by position.
    pub(super) fn new(file: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.at);
        faults.dedup();
        let found = faults.into_iter().map(|fault| {
            let before = text.get(..fault.at).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let begins = before.rfind('\n').map_or(0, |at| at + 1);
            (line, before[begins..].chars().count() + 1, fault)
        });
        Self {
            file: file.to_owned(),
            found: found.collect(),
        }
    }

    /// Whether there are only notes.
    pub(super) fn has_only_notes(&self) -> bool {
        self.found.iter().all(|(_, _, fault)| fault.is_note)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, column, fault)) in self.found.iter().enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            let note = if fault.is_note { "note: " } else { "" };
            write!(
                f,
                "{end}{}:{line}:{column}: {note}{}",
                self.file, fault.what
            )?;
            if let Some(remedy) = &fault.remedy {
                write!(f, "; {remedy}")?;
            }
        }
        Ok(())
    }
}
