//! Checks a mapping table and runs its examples. `dialect` has the validation of a table by itself.

use serde_json::{Value, json};

use dialect::table::{content, fault_at};
use dialect::{DialectError, Library, Source, TableFault};

/// A table, and what is wrong with it.
#[derive(Debug)]
pub struct CheckedTable {
    /// The name of its file.
    pub file: String,
    /// The content of its file.
    pub text: String,
    /// The table, if it is valid by itself.
    source: Option<Source>,
    /// Its faults.
    pub faults: Vec<TableFault>,
    /// What is advised.
    pub notes: Vec<TableFault>,
}

impl CheckedTable {
    /// Adds the table in a file to those that are known.
    pub fn add(tables: &mut Library, file: String, text: String) -> Self {
        let added = tables.add(&file, &text);
        let source = tables.sources().last().filter(|_| added.is_ok());
        Self {
            source: source.cloned(),
            faults: added.err().unwrap_or_default().0,
            notes: Vec::new(),
            file,
            text,
        }
    }

    /// A table that is known.
    pub fn known(source: &Source) -> Self {
        Self {
            file: source.file.to_string(),
            text: source.text.to_string(),
            source: Some(source.clone()),
            faults: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Checks it beside the others, all of which are added before; `strict`: what is advised is required.
    pub fn check(&mut self, tables: &Library, strict: bool) {
        let found = self.faults_in(tables);
        self.faults.extend(found);
        let advice = (self.source.as_ref())
            .map(|source| source.table().advice(&self.file, &self.text))
            .unwrap_or_default();
        match strict {
            true => self.faults.extend(advice),
            false => self.notes = advice,
        }
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
    }

    /// The numbers of its rules and examples.
    pub fn counts(&self) -> Option<(usize, usize)> {
        let rules = &self.source.as_ref()?.table().rules;
        let examples = rules.iter().map(|rule| rule.examples().len()).sum();
        Some((rules.len(), examples))
    }

    /// As JSON, without the text.
    pub fn json(&self) -> Value {
        let (rules, examples) = self.counts().unzip();
        let source = self.source.as_ref();
        json!({
            "file": self.file,
            "dialect": source.map(|source| source.table().name.as_str()),
            "rules": rules,
            "examples": examples,
            "faults": self.faults,
            "notes": self.notes,
        })
    }

    /// The faults that depend on the other tables. Examples are run only where there are no others.
    fn faults_in(&self, tables: &Library) -> Vec<TableFault> {
        let content = content(&self.file, &self.text);
        let names = |key| content[key].as_array().into_iter().flatten();
        let parents = ["extends", "reads"].into_iter().flat_map(names);
        let unknown = parents.filter_map(|name| tables.table(name.as_str()?).err());
        let mut faults: Vec<_> = unknown.map(|unknown| self.parent_fault(&unknown)).collect();
        let Some(source) = self.source.as_ref().filter(|_| faults.is_empty()) else {
            return faults;
        };
        let table = source.table();
        if let Err(unknown) = tables.program(&table.name) {
            return vec![self.parent_fault(&unknown)];
        }
        for other in tables
            .tables()
            .iter()
            .filter(|other| other.name != table.name)
        {
            for alias in &table.aliases {
                if other.name == *alias || other.aliases.contains(alias) {
                    let what = format!("`{alias}` also means the table `{}`", other.name);
                    faults.push(self.fault("aliases", what, "choose another alias".to_owned()));
                }
            }
        }
        let examples = tables.check_examples(source);
        faults.extend(examples.err().unwrap_or_default().0);
        faults
    }

    fn parent_fault(&self, unknown: &DialectError) -> TableFault {
        let DialectError::Unknown { name, near, .. } = unknown else {
            return self.fault(
                "extends",
                unknown.to_string(),
                "break the circle".to_owned(),
            );
        };
        let add = "add the table with --table or --dialect-dir";
        let remedy = match near {
            Some(near) => format!("write `{near}` if that is meant, or {add}"),
            None => add.to_owned(),
        };
        let what = format!("no dialect is called `{name}`");
        self.fault("extends", what, remedy)
    }

    /// A fault of one of the keys of the table.
    fn fault(&self, key: &str, what: String, remedy: String) -> TableFault {
        fault_at(&self.file, &self.text, key, what, remedy)
    }
}
