//! `acp-relay dialect check`: validates mapping tables and runs their examples.
//!
//! Reports all faults of all files at once; `crate::dialect` has the validation.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::tables::{LoadError, files, read};
use crate::cli::console::{self, counted};
use crate::dialect::{DialectError, Library, Source, TableFault};

/// The arguments of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no fault; 1 faults; 64 usage; 65 a table given with --table has faults; 66 a file cannot be read."
)]
pub(super) struct Check {
    /// Tables, or folders of tables; without any, all known tables are checked
    files: Vec<PathBuf>,
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
}

pub(super) fn run(args: &Check, mut tables: Library) -> ExitCode {
    let checked = match check(&args.files, &mut tables) {
        Ok(checked) => checked,
        Err(trouble) => return trouble.fail(),
    };
    let faults: usize = checked.iter().map(|one| one.faults.len()).sum();
    let code = u8::from(faults > 0);
    if args.json {
        let files: Vec<Value> = checked.iter().map(as_json).collect();
        return console::print_json(&json!({"files": files, "faults": faults}), code);
    }
    let mut text = String::new();
    for one in &checked {
        text.push_str(&as_text(one));
    }
    let _ = writeln!(
        text,
        "{}, {}",
        counted(checked.len(), "table"),
        counted(faults, "fault")
    );
    console::print(&text, code)
}

/// Adds all files before it checks the first, because they may extend each other.
fn check(paths: &[PathBuf], tables: &mut Library) -> Result<Vec<Checked>, LoadError> {
    let mut checked: Vec<Checked> = Vec::new();
    if paths.is_empty() {
        checked.extend(tables.sources().iter().map(|source| Checked {
            file: source.file.to_string(),
            text: source.text.to_string(),
            source: Some(source.clone()),
            faults: Vec::new(),
        }));
    }
    for path in paths {
        for path in files(path)? {
            let text = read(&path)?;
            let file = path.display().to_string();
            let faults = tables.add(&file, &text).err().unwrap_or_default();
            let source = faults
                .0
                .is_empty()
                .then(|| tables.sources().last().cloned())
                .flatten();
            let faults = faults.0;
            checked.push(Checked {
                file,
                text,
                source,
                faults,
            });
        }
    }
    for one in &mut checked {
        match &one.source {
            Some(source) => one.faults = library_faults(source, tables),
            None => {
                one.faults
                    .extend(unknown_parents(&one.file, &one.text, tables));
                one.faults.sort_by_key(|fault| fault.line);
            }
        }
    }
    Ok(checked)
}

/// The faults that depend on the other tables.
fn library_faults(source: &Source, tables: &Library) -> Vec<TableFault> {
    let table = source.table();
    if let Err(unknown) = tables.program(&table.name) {
        return vec![parent_fault(&source.file, &source.text, &unknown)];
    }
    let mut faults = Vec::new();
    for other in tables
        .tables()
        .iter()
        .filter(|other| other.name != table.name)
    {
        for alias in &table.aliases {
            if other.name == *alias || other.aliases.contains(alias) {
                let what = format!("`{alias}` also means the table `{}`", other.name);
                let remedy = "choose another alias".to_owned();
                faults.push(fault(&source.file, &source.text, "aliases", what, remedy));
            }
        }
    }
    let examples = tables.check_examples(source);
    faults.extend(examples.err().unwrap_or_default().0);
    faults
}

/// A fault for each unknown table that a faulty table extends.
fn unknown_parents(file: &str, text: &str, tables: &Library) -> Vec<TableFault> {
    let table: Value = serde_json::from_str(text).unwrap_or_default();
    let names = ["extends", "reads"]
        .into_iter()
        .flat_map(|key| table[key].as_array().into_iter().flatten());
    let unknown = names.filter_map(|name| tables.table(name.as_str()?).err());
    unknown
        .map(|unknown| parent_fault(file, text, &unknown))
        .collect()
}

fn parent_fault(file: &str, text: &str, unknown: &DialectError) -> TableFault {
    let (what, remedy) = match unknown {
        DialectError::Unknown { name, near, .. } => {
            let what = format!("no dialect is called `{name}`");
            let add = "add the table with --table or --dialect-dir";
            let remedy = near.as_ref().map_or_else(
                || add.to_owned(),
                |near| format!("write `{near}` if that is meant, or {add}"),
            );
            (what, remedy)
        }
        circle => (circle.to_string(), "break the circle".to_owned()),
    };
    fault(file, text, "extends", what, remedy)
}

/// A fault of one of the keys of a table.
fn fault(file: &str, text: &str, key: &str, what: String, remedy: String) -> TableFault {
    let quoted = format!("\"{key}\"");
    let line = text.lines().position(|line| line.contains(&quoted));
    TableFault {
        file: file.to_owned(),
        line: 1 + line.unwrap_or_default(),
        rule: None,
        pointer: format!("/{key}"),
        what,
        remedy,
    }
}

fn counts(source: &Source) -> (usize, usize) {
    let rules = &source.table().rules;
    (
        rules.len(),
        rules.iter().map(|rule| rule.examples.len()).sum(),
    )
}

fn as_text(one: &Checked) -> String {
    let mut text = String::new();
    for fault in &one.faults {
        let _ = writeln!(text, "{fault}");
    }
    match &one.source {
        Some(source) if one.faults.is_empty() => {
            let (rules, examples) = counts(source);
            let _ = writeln!(
                text,
                "{}: no faults; {}, {}",
                one.file,
                counted(rules, "rule"),
                counted(examples, "example")
            );
        }
        Some(_) => {}
        None => {
            let _ = writeln!(
                text,
                "{}: its examples were not run, because the table has faults",
                one.file
            );
        }
    }
    text
}

fn as_json(one: &Checked) -> Value {
    let (rules, examples) = one.source.as_ref().map_or((None, None), |source| {
        let (rules, examples) = counts(source);
        (Some(rules), Some(examples))
    });
    json!({
        "file": one.file,
        "dialect": one.source.as_ref().map(|source| source.table().name.as_str()),
        "rules": rules,
        "examples": examples,
        "faults": one.faults,
    })
}
