//! A fault of a configuration file, with its position and remedy.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal as _};
use std::ops::Range;

use crate::cli::log_redaction;
use crate::cli::snippets::FileFault;

/// Which faults are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum CheckLevel {
    /// Those in the values themselves: flags may override their combination, and `serve` itself
    /// finds what is missing on this machine.
    Values,
    /// Also what `serve` would reject with the file and no flags.
    Complete,
    /// Also what is missing on this machine.
    Machine,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Fault {
    /// Byte offsets in the file.
    pub(super) at: Range<usize>,
    /// What is wrong, as a clause.
    pub(super) what: String,
    /// The remedy, as a clause; empty if it is not known.
    pub(super) remedy: String,
    /// Whether it is only a note: the state of the machine may be different at run time.
    pub(super) is_note: bool,
}

impl Fault {
    pub(super) fn new(at: Range<usize>, what: impl Into<String>, remedy: &str) -> Self {
        Self {
            at,
            what: what.into(),
            remedy: remedy.to_owned(),
            is_note: false,
        }
    }
}

/// All faults of a file, in its order, with the notes.
#[derive(Debug)]
pub(in crate::cli) struct Faults {
    /// The file's name as given.
    file: String,
    /// Its text.
    text: String,
    /// Line and column of each, both from 1; the column in characters.
    pub(super) found: Vec<(usize, usize, Fault)>,
}

impl Faults {
    /// Sorts the faults of `text` by position.
    pub(super) fn new(file: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.at.start);
        faults.dedup();
        let found = faults.into_iter().map(|fault| {
            let before = text.get(..fault.at.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let begins = before.rfind('\n').map_or(0, |at| at + 1);
            (line, before[begins..].chars().count() + 1, fault)
        });
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            found: found.collect(),
        }
    }

    /// A line each, and whether it is only a note.
    pub(in crate::cli) fn lines(&self) -> impl Iterator<Item = (bool, String)> {
        let text = self.to_string();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let notes = self.found.iter().map(|(_, _, fault)| fault.is_note);
        notes.collect::<Vec<_>>().into_iter().zip(lines)
    }

    /// Whether there are only notes.
    pub(super) fn has_only_notes(&self) -> bool {
        self.found.iter().all(|(_, _, fault)| fault.is_note)
    }

    /// For stderr: below the lines of the file on a terminal, else a line each.
    pub(in crate::cli) fn report(&self) -> String {
        if !io::stderr().is_terminal() {
            return self.to_string();
        }
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        self.snippets(!plain)
    }

    fn snippets(&self, colours: bool) -> String {
        let shown = self.found.iter().map(|(_, _, fault)| {
            let fault = FileFault {
                file: &self.file,
                text: &self.text,
                at: fault.at.clone(),
                is_note: fault.is_note,
                part: "",
                what: &fault.what,
                remedy: &fault.remedy,
            };
            fault.snippet(colours)
        });
        let text = shown.collect::<Vec<_>>().join("\n\n");
        log_redaction::clean(text.trim_end()).into_owned()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, column, fault)) in self.found.iter().enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            let (file, what) = (&self.file, &fault.what);
            let note = if fault.is_note { "note: " } else { "" };
            write!(f, "{end}{file}:{line}:{column}: {note}{what}")?;
            if !fault.remedy.is_empty() {
                write!(f, "; {}", fault.remedy)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_shown_below_their_lines() {
        let text = "[agents.a]\ncomand = 1\n";
        let remedy = "did you mean `command`?";
        let unknown = Fault::new(11..17, "`agents.a.comand` is not known", remedy);
        let whole = Fault::new(0..text.len(), "agents.a names no agent", "");
        let faults = Faults::new("x.toml", text, vec![unknown, whole]);
        let shown = faults.snippets(false);
        for part in [
            "error: agents.a names no agent",
            "--> x.toml:1:1",
            "1 | [agents.a]\n  | ^^^^^^^^^^\n",
            "error: `agents.a.comand` is not known",
            "--> x.toml:2:1",
            "2 | comand = 1\n  | ^^^^^^\n",
            "help: did you mean `command`?",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        let nothing = Fault::new(0..0, "there is no agent", "");
        let shown = Faults::new("x.toml", "", vec![nothing]).snippets(false);
        assert!(shown.contains("there is no agent"), "{shown}");
    }
}
