//! `acp-relay dialect check`: validates mapping tables and runs their examples.
//!
//! Reports all faults of all files at once; `dialect` has the validation.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::tables::{LoadError, files, read};
use crate::cli::console::{self, Output};
use crate::cli::snippets::FileFault;
use crate::cli::text::Paint;
use analysis::text::counted;
use dialect::table::{content, fault_at};
use dialect::{DialectError, Library, Source, TableFault};

/// The arguments of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no fault; 1 faults; 64 usage; 65 a table given with --table has faults; 66 a file cannot be read."
)]
pub(super) struct Check {
    /// Tables, or folders of tables; without any, all known tables are checked
    files: Vec<PathBuf>,
    /// Also require what is only advised otherwise: a reason and an example for each rule, and names of
    /// methods that ACP has
    #[arg(long)]
    strict: bool,
    /// Print a JSON object instead
    #[arg(long)]
    json: bool,
}

/// The result of one file.
struct Checked {
    file: String,
    text: String,
    /// The table, if it is valid by itself.
    source: Option<Source>,
    faults: Vec<TableFault>,
    /// What is advised.
    notes: Vec<TableFault>,
}

pub(super) fn run(args: &Check, mut tables: Library) -> ExitCode {
    let checked = match check(args, &mut tables) {
        Ok(checked) => checked,
        Err(error) => return error.fail(),
    };
    let faults: usize = checked.iter().map(|one| one.faults.len()).sum();
    let notes: usize = checked.iter().map(|one| one.notes.len()).sum();
    let code = u8::from(faults > 0);
    if args.json {
        let files: Vec<Value> = checked.iter().map(Checked::json).collect();
        return console::print_json(
            &json!({"files": files, "faults": faults, "notes": notes}),
            code,
        );
    }
    let paint = Paint::of(&Output::new());
    let mut text: String = checked.iter().map(|one| one.text(paint)).collect();
    let (checked, faults) = (counted(checked.len(), "table"), counted(faults, "fault"));
    text += &format!("{checked}, {faults}");
    if notes > 0 {
        text += &format!(", {}", counted(notes, "note"));
    }
    console::print(&text, code)
}

/// Adds all files before it checks the first, because they may extend each other.
fn check(args: &Check, tables: &mut Library) -> Result<Vec<Checked>, LoadError> {
    let mut checked: Vec<Checked> = Vec::new();
    for path in &args.files {
        for path in files(path)? {
            let text = read(&path)?;
            let file = path.display().to_string();
            let added = tables.add(&file, &text);
            let source = tables.sources().last().filter(|_| added.is_ok());
            checked.push(Checked {
                source: source.cloned(),
                faults: added.err().unwrap_or_default().0,
                notes: Vec::new(),
                file,
                text,
            });
        }
    }
    if args.files.is_empty() {
        checked.extend(tables.sources().iter().map(|source| Checked {
            file: source.file.to_string(),
            text: source.text.to_string(),
            source: Some(source.clone()),
            faults: Vec::new(),
            notes: Vec::new(),
        }));
    }
    for one in &mut checked {
        let found = one.faults_in(tables);
        one.faults.extend(found);
        let advice = (one.source.as_ref())
            .map(|source| source.table().advice(&one.file, &one.text))
            .unwrap_or_default();
        match args.strict {
            true => one.faults.extend(advice),
            false => one.notes = advice,
        }
        one.faults.sort_by_key(|fault| (fault.line, fault.column));
    }
    Ok(checked)
}

impl Checked {
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

    /// The numbers of its rules and examples.
    fn counts(&self) -> Option<(usize, usize)> {
        let rules = &self.source.as_ref()?.table().rules;
        let examples = rules.iter().map(|rule| rule.examples().len()).sum();
        Some((rules.len(), examples))
    }

    fn text(&self, paint: Paint) -> String {
        let shown = self.faults.iter().map(|fault| {
            let shown = FileFault {
                file: &self.file,
                text: &self.text,
                at: fault.at.clone(),
                is_note: false,
                part: fault.rule.as_deref().unwrap_or_default(),
                what: &fault.what,
                remedy: &fault.remedy,
            };
            let snippet = shown.snippet(paint.is_enabled());
            format!("{snippet}\n{}\n", paint.diff(&fault.diff))
        });
        let mut text: String = shown.collect();
        text.extend(self.notes.iter().map(|note| format!("note: {note}\n")));
        let file = &self.file;
        match self.counts() {
            Some((rules, examples)) if self.faults.is_empty() => {
                let (rules, examples) = (counted(rules, "rule"), counted(examples, "example"));
                text += &format!("{file}: no faults; {rules}, {examples}\n");
            }
            Some(_) => {}
            None => {
                let why = "its examples were not run, because the table has faults";
                text += &format!("{file}: {why}\n");
            }
        }
        text
    }

    fn json(&self) -> Value {
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
}
