//! The common parts of the scripts in `tests/vectors/http*`: cases, names, and what a message holds.
//! tests/README.md explains their language.

use std::fs;

use acp_relay::jsonrpc::Frame;
use serde_json::Value;

/// Names and what they stand for.
pub(super) type Names = Vec<(String, String)>;

/// One run of a case: its name, its lines, and the names that they may use.
pub(super) struct Run {
    pub(super) case: String,
    pub(super) lines: Vec<String>,
    names: Names,
}

/// The runs of all cases of a file.
pub(super) fn runs_of(file: &str, names: &[(&str, &str)]) -> Vec<Run> {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let mut names: Names = names.iter().map(owned).collect();
    let mut cases: Vec<Vec<String>> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match cases.last_mut() {
            _ if line.starts_with("== ") => cases.push(vec![line[3..].to_owned()]),
            Some(case) => case.push(line.to_owned()),
            None => define(&mut names, line.strip_prefix("let ").unwrap(), ' '),
        }
    }
    assert!(cases.len() > 5, "{file}");
    let runs = cases.into_iter().flat_map(|mut lines| {
        let case = lines.remove(0);
        let (with, lines): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .partition(|line| line.starts_with("with "));
        let with = if with.is_empty() {
            vec![String::new()]
        } else {
            with
        };
        let run = |with: &String| {
            let mut names = names.clone();
            for definition in with.trim_start_matches("with ").split(" | ") {
                if !definition.is_empty() {
                    define(&mut names, definition, '=');
                }
            }
            let (case, lines) = (case.clone(), lines.clone());
            Run { case, lines, names }
        };
        with.iter().map(run).collect::<Vec<_>>()
    });
    runs.collect()
}

impl Run {
    /// A line with what its names stand for; none for a line that defines one.
    pub(super) fn expand(&mut self, line: &str) -> Option<String> {
        if let Some(definition) = line.strip_prefix("let ") {
            define(&mut self.names, definition, ' ');
            return None;
        }
        Some(expand(line, &self.names))
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.names.insert(0, (name.to_owned(), value));
    }
}

fn define(names: &mut Names, definition: &str, between: char) {
    let (name, value) = definition.split_once(between).expect(definition);
    let value = expand(value, names);
    names.insert(0, (name.to_owned(), value));
}

fn expand(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${name}"), value)
    })
}

/// Checks a message: it is `expected`, or has at least the members after `~`.
pub(super) fn check(frame: &Frame, expected: &str, at: &str) {
    match expected.strip_prefix('~') {
        None => assert_eq!(*frame, Frame::from(expected.to_owned()), "{at}"),
        Some(members) => {
            let members: Value = serde_json::from_str(members).expect(at);
            let found: Value = serde_json::from_slice(frame.as_bytes()).expect(at);
            assert!(holds(&found, &members), "{at}: {found}");
        }
    }
}

/// Whether a value has at least these members; a text after `~` is a part of the other.
fn holds(found: &Value, members: &Value) -> bool {
    match (found, members) {
        (Value::Object(found), Value::Object(members)) => members
            .iter()
            .all(|(name, member)| found.get(name).is_some_and(|one| holds(one, member))),
        (Value::String(found), Value::String(part)) if part.starts_with('~') => {
            found.contains(&part[1..])
        }
        _ => found == members,
    }
}

/// The headers in `NAME: VALUE; NAME: VALUE`.
pub(super) fn fields(text: &str) -> Vec<(&str, &str)> {
    let fields = text
        .split("; ")
        .filter_map(|field| field.trim().split_once(": "));
    fields.collect()
}
