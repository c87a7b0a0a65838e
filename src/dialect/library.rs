//! The tables that are known: those the program carries, and those a user adds.
//!
//! A table is found by its name or an alias; its stack is flattened when it is asked for. Not
//! here: reading one file (see `table`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::program::Program;
use super::table::{Fault, Faults, Table, nearest};
use super::vectors::{Report, Vector};

/// The files in `mappings/`, by name.
const BUILTIN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/mappings.rs"));

/// All known tables.
#[derive(Clone, Debug, Default)]
pub struct Library {
    tables: Vec<Arc<Table>>,
    /// The programs that were asked for, so that each is compiled once.
    programs: Arc<Mutex<HashMap<String, Arc<Program>>>>,
}

/// A dialect that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    /// No table has this name.
    #[error("no dialect is called `{name}`; {}", tip(.near, .known))]
    Name {
        /// The name that was asked for.
        name: String,
        /// The name or alias nearest to it, if one is near.
        near: Option<String>,
        /// The names there are.
        known: String,
    },
    /// Tables extend each other in a circle, or too deep.
    #[error("the dialect `{name}` extends itself; remove it from `extends`")]
    Circle {
        /// The table.
        name: String,
    },
}

impl Library {
    /// The tables the program carries.
    ///
    /// # Errors
    /// The faults of all of them; `cargo test` proves that there are none.
    pub fn builtin() -> Result<Self, Faults> {
        let mut library = Self::default();
        let mut faults = Faults::default();
        for (file, text) in BUILTIN {
            if let Err(found) = library.add(file, text) {
                faults.0.extend(found.0);
            }
        }
        if faults.0.is_empty() {
            Ok(library)
        } else {
            Err(faults)
        }
    }

    /// Adds one table; one of the same name is replaced.
    ///
    /// # Errors
    /// All faults of the file.
    pub fn add(&mut self, file: &str, text: &str) -> Result<Arc<Table>, Faults> {
        let table = Arc::new(Table::read(file, text)?);
        self.tables.retain(|known| known.name != table.name);
        self.tables.push(Arc::clone(&table));
        self.programs = Arc::default();
        Ok(table)
    }

    /// All tables, in the order of their files.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// A table by its name or an alias.
    ///
    /// # Errors
    /// When there is none.
    pub fn table(&self, name: &str) -> Result<&Arc<Table>, Unknown> {
        let own = |table: &&Arc<Table>| table.name == name;
        let alias = |table: &&Arc<Table>| table.aliases.iter().any(|alias| alias == name);
        let found = self
            .tables
            .iter()
            .find(own)
            .or_else(|| self.tables.iter().find(alias));
        found.ok_or_else(|| {
            let names = || self.tables.iter().map(|table| table.name.as_str());
            let aliases = self.tables.iter().flat_map(|table| &table.aliases);
            let all: Vec<&str> = names()
                .chain(["canonical", "auto"])
                .chain(aliases.map(String::as_str))
                .collect();
            Unknown::Name {
                name: name.to_owned(),
                near: near(name, &all).map(str::to_owned),
                known: names().collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// A dialect, with the tables it builds on. `canonical` is the empty one.
    ///
    /// # Errors
    /// When it, or a table it extends, is not known.
    pub fn program(&self, name: &str) -> Result<Arc<Program>, Unknown> {
        // A map that a panic has left is a map still.
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(name) {
            return Ok(Arc::clone(program));
        }
        let program = self.compile(name)?;
        programs.insert(name.to_owned(), Arc::clone(&program));
        Ok(program)
    }

    fn compile(&self, name: &str) -> Result<Arc<Program>, Unknown> {
        let stack = match name {
            "canonical" => Vec::new(),
            name => self.stack(name)?,
        };
        Ok(Arc::new(Program::new(stack)))
    }

    /// The layers of a dialect: its own table first, then those it builds on, the nearest to
    /// canonical last.
    ///
    /// # Errors
    /// When it, or a table it extends, is not known.
    pub fn stack(&self, name: &str) -> Result<Vec<Arc<Table>>, Unknown> {
        let mut stack: Vec<Arc<Table>> = Vec::new();
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            let table = self.table(&name)?;
            if let Some(at) = stack.iter().position(|known| known.name == table.name) {
                if at == 0 {
                    return Err(Unknown::Circle { name });
                }
                continue;
            }
            stack.push(Arc::clone(table));
            open.extend(table.extends.iter().rev().cloned());
        }
        Ok(stack)
    }

    /// Runs the examples of a table in the ways they state.
    ///
    /// # Errors
    /// One fault per example that does not hold.
    pub fn check_examples(&self, file: &str, text: &str, table: &Table) -> Result<(), Faults> {
        let mut faults = Faults::default();
        for rule in &table.rules {
            for example in &rule.examples {
                let failed = match Vector::of_example(table, rule, example) {
                    Ok(vector) => vector.run(self),
                    Err(what) => vec![Report::failed(&rule.id, what)],
                };
                for report in failed.into_iter().filter(|report| report.fault.is_some()) {
                    faults.0.push(Fault {
                        file: file.to_owned(),
                        line: super::table::line_of(text, &example.at),
                        rule: Some(rule.id.clone()),
                        pointer: example.at.clone(),
                        what: format!(
                            "the example does not hold {}: {}",
                            report.way,
                            report.fault.unwrap_or_default()
                        ),
                        remedy: "correct the rule or the example".to_owned(),
                    });
                }
            }
        }
        if faults.0.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    /// The text of a table that the program carries, by its file's name.
    #[must_use]
    pub fn builtin_files() -> &'static [(&'static str, &'static str)] {
        BUILTIN
    }
}

/// What to do about a name that no table has.
fn tip(near: &Option<String>, known: &str) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {known}"),
    }
}

/// The name that is most likely meant: the one with the fewest other letters, or else the shortest
/// that has the word in it.
fn near<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let has = |name: &&&str| word.len() > 2 && name.contains(word);
    let longer = || names.iter().filter(has).min_by_key(|name| name.len());
    nearest(word, names).or_else(|| longer().copied())
}
