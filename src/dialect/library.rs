//! The known tables: those built into the program, and those a user adds.
//!
//! A table is found by its name or an alias; its stack is flattened on request. A built-in table is
//! parsed when it is needed: until then only its header is, which is everything but the rules, and
//! contains its names and the clues to its dialect. So the program parses some kilobytes at start,
//! not half a megabyte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::program::{Program, StackEntry};
use super::table::{Rule, Table, TableFaults};
use jsonrpc::nearest;

/// The files in `mappings/`, by name: paths and texts. The names lie among the texts: a name that is
/// not read keeps the text beside it out of memory.
const BUILTIN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/mappings.rs"));

/// How many tables are built in, and the digest over them.
pub const TABLES: &str = env!("TABLES");

/// The digest over the built-in tables.
pub const TABLES_DIGEST: &str = env!("TABLES_DIGEST");

/// Their headers, in the same order.
const HEADERS: &str = include_str!(concat!(env!("OUT_DIR"), "/headers.json"));

/// All known tables.
#[derive(Clone, Debug, Default)]
pub struct Library {
    sources: Vec<Source>,
    /// All complete tables, once they are requested.
    tables: OnceLock<Vec<Arc<Table>>>,
    /// The programs that were requested, so that each is compiled once.
    programs: Arc<Mutex<HashMap<String, Arc<Program>>>>,
}

/// One table, with its file.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, as the user named it.
    pub file: Cow<'static, str>,
    /// The text of the file.
    pub text: Cow<'static, str>,
    /// Whether it is built in.
    pub builtin: bool,
    header: Arc<Table>,
    full: OnceLock<Arc<Table>>,
}

/// A dialect that is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// No table has this name.
    #[error("no dialect is called `{name}`; {}", suggestion(.near, .known))]
    Unknown {
        /// The name that was requested.
        name: String,
        /// The most similar name or alias, if one is similar.
        near: Option<String>,
        /// The known names.
        known: String,
    },
    /// Tables extend each other in a cycle, or too deeply.
    #[error("the dialect `{name}` builds on itself; remove it from `extends` or `reads`")]
    Cycle {
        /// The table.
        name: String,
    },
}

impl Library {
    /// The built-in tables. Their headers are parsed now, their rules when they are needed.
    #[must_use]
    pub fn builtin() -> Self {
        let mut library = Self::default();
        let headers: Vec<Table> =
            serde_json::from_str(HEADERS).expect("the built-in tables have no faults");
        for ((file, text), header) in BUILTIN.iter().zip(headers) {
            library.put(Source {
                file: (*file).into(),
                text: (*text).into(),
                builtin: true,
                header: Arc::new(header),
                full: OnceLock::new(),
            });
        }
        library
    }

    /// Adds one table; it replaces one of the same name.
    ///
    /// # Errors
    /// All faults of the file.
    pub fn add(&mut self, file: &str, text: &str) -> Result<Arc<Table>, TableFaults> {
        let table = Arc::new(Table::read(file, text)?);
        self.put(Source {
            file: file.to_owned().into(),
            text: text.to_owned().into(),
            builtin: false,
            header: Arc::clone(&table),
            full: Arc::clone(&table).into(),
        });
        Ok(table)
    }

    fn put(&mut self, source: Source) {
        self.sources
            .retain(|known| known.header.name != source.header.name);
        self.sources.push(source);
        self.tables = OnceLock::new();
        self.programs = Arc::default();
    }

    /// All tables with their files.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// All tables, in the order of their files.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Table>] {
        let whole = |source: &Source| Arc::clone(source.table());
        self.tables
            .get_or_init(|| self.sources.iter().map(whole).collect())
    }

    /// The headers of all tables: their names and clues, without their rules.
    pub fn headers(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.sources.iter().map(|source| &source.header)
    }

    /// A table by its name or an alias, with its file.
    ///
    /// # Errors
    /// When there is none.
    pub fn source(&self, name: &str) -> Result<&Source, DialectError> {
        let own = |source: &&Source| source.header.name == name;
        let alias = |source: &&Source| source.header.aliases.iter().any(|alias| alias == name);
        let found = self
            .sources
            .iter()
            .find(own)
            .or_else(|| self.sources.iter().find(alias));
        found.ok_or_else(|| {
            let names = || self.headers().map(|cover| cover.name.as_str());
            let aliases = self.headers().flat_map(|cover| &cover.aliases);
            let all: Vec<&str> = names()
                .chain(["canonical", "auto"])
                .chain(aliases.map(String::as_str))
                .collect();
            DialectError::Unknown {
                name: name.to_owned(),
                near: nearest(name, all).map(str::to_owned),
                known: names().collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// A table by its name or an alias.
    ///
    /// # Errors
    /// When there is none.
    pub fn table(&self, name: &str) -> Result<&Arc<Table>, DialectError> {
        self.source(name).map(Source::table)
    }

    /// A rule of a table.
    #[must_use]
    pub fn rule(&self, table: &str, id: &str) -> Option<&Rule> {
        let mut rules = self.table(table).ok()?.rules.iter();
        rules.find(|rule| *rule.id == *id)
    }

    /// A dialect, with the tables it builds on. `canonical` is the empty one.
    ///
    /// # Errors
    /// When it, or a table it extends, is unknown.
    pub fn program(&self, name: &str) -> Result<Arc<Program>, DialectError> {
        // The map is valid even after a panic.
        let mut programs = self.programs.lock();
        if let Some(program) = programs.get(name) {
            return Ok(Arc::clone(program));
        }
        let stack = match name {
            "canonical" => Vec::new(),
            name => self.stack(name)?,
        };
        let program = Arc::new(Program::new(stack));
        programs.insert(name.to_owned(), Arc::clone(&program));
        Ok(program)
    }

    /// The layers of a dialect: its own table first, then those it builds on, the nearest to
    /// canonical last.
    ///
    /// # Errors
    /// When it, or a table it extends, is unknown.
    pub fn stack(&self, name: &str) -> Result<Vec<StackEntry>, DialectError> {
        let mut stack: Vec<StackEntry> = Vec::new();
        let mut open = vec![(name.to_owned(), true)];
        while let Some((name, writes)) = open.pop() {
            let table = self.table(&name)?;
            match stack
                .iter()
                .position(|known| known.table.name == table.name)
            {
                Some(0) => return Err(DialectError::Cycle { name }),
                Some(at) if stack[at].writes || !writes => continue,
                // The tables below a table that writes write, too.
                Some(at) => stack[at].writes = true,
                None => stack.push(StackEntry {
                    table: Arc::clone(table),
                    writes,
                }),
            }
            open.extend(
                table
                    .extends
                    .iter()
                    .rev()
                    .map(|name| (name.clone(), writes)),
            );
            open.extend(table.reads.iter().rev().map(|name| (name.clone(), false)));
        }
        Ok(stack)
    }

    /// The built-in tables: the paths of their files, and their text.
    pub fn builtin_files() -> impl Iterator<Item = (&'static str, &'static str)> {
        BUILTIN.iter().copied()
    }
}

impl Source {
    /// The table. One that is built in is parsed when it is requested first.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        self.full
            .get_or_init(|| Arc::new(Table::builtin(&self.text)))
    }
}

/// The remedy for a name that no table has.
fn suggestion(near: &Option<String>, known: &str) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {known}"),
    }
}
