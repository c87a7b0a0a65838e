//! Secrets and what only looks like one: `tests/vectors/secrets/*.jsonl`.
//!
//! Each line is a message or another text. `K3Y` and `WEAK` in it stand for a key and a password,
//! which must be removed, as must the text of `secret`; the text of `stays` must remain. In a line
//! with `kept` nothing is found, and it keeps its bytes.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use acp_relay::jsonrpc::{Limits, is_json};
use acp_relay::recording::redact::{Mode, Redactor};
use serde_json::Value;

/// The placeholders in the vectors, and their values.
pub(super) const PLACEHOLDERS: [(&str, &str); 2] = [
    ("K3Y", "abcdefgh0123456789abcdefgh"),
    ("WEAK", "hunter2swordfish"),
];

#[test]
fn the_secrets_of_each_vector_are_removed_and_other_text_is_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/secrets");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    let (mut count, mut faults) = (0, Vec::new());
    for file in files {
        let kind = file.file_stem().unwrap().to_str().unwrap();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            count += 1;
            if let Err(fault) = check(&redactor, &row) {
                faults.push(format!("{kind}: {}: {fault}", row["name"]));
            }
        }
    }
    assert!(count > 150, "only {count} vectors were found");
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn check(redactor: &Redactor, row: &Value) -> Result<(), String> {
    let (message, text) = (row["message"].as_str(), row["text"].as_str());
    let template = message.or(text).unwrap();
    let given = PLACEHOLDERS
        .iter()
        .fold(template.to_owned(), |text, (placeholder, value)| {
            text.replace(placeholder, value)
        });
    let clean = match message {
        Some(_) if !is_json(given.as_bytes(), &Limits::default()) => {
            return Err("is no JSON".to_owned());
        }
        Some(_) => redactor
            .json(given.as_bytes(), None)
            .map(|clean| clean.text),
        None => redactor.text(given.as_bytes()),
    };
    let Some(clean) = clean.map(|clean| String::from_utf8(clean).unwrap()) else {
        return match row["kept"].as_bool() {
            Some(true) => Ok(()),
            _ => Err(format!("nothing found in {given}")),
        };
    };
    if row["kept"] == true {
        return Err(format!("found something: {clean}"));
    }
    let secrets = PLACEHOLDERS
        .iter()
        .filter(|(_, value)| given.contains(value))
        .map(|(_, value)| *value)
        .chain(row["secret"].as_str());
    for secret in secrets {
        if clean.contains(secret) {
            return Err(format!("{secret} is still in {clean}"));
        }
    }
    if let Some(stays) = row["stays"].as_str()
        && !clean.contains(stays)
    {
        return Err(format!("{stays} is not in {clean}"));
    }
    if message.is_some() && !is_json(clean.as_bytes(), &Limits::default()) {
        return Err(format!("is no JSON any more: {clean}"));
    }
    Ok(())
}

#[test]
fn a_line_that_is_cut_off_in_a_string_does_not_hide_a_secret_in_the_next_one() {
    let redactor = Redactor::new(Mode::Default, Vec::new(), [7; 32]);
    let lines = r#"{"env":[{"na
{"x":[{"name":"API_TOKEN","value":"letmein"}],"stays":1}"#;
    let clean = redactor.text(lines.as_bytes()).expect("a secret is found");
    let clean = String::from_utf8(clean).unwrap();
    assert!(!clean.contains("letmein"), "{clean}");
    assert!(
        clean.contains(r#""name":"API_TOKEN""#) && clean.contains(r#""stays":1"#),
        "{clean}"
    );
}

/// `src/recording/redact/rules.txt`: id, pattern, example, near text, source.
#[test]
fn the_example_of_each_rule_is_found_and_what_comes_near_is_kept() {
    let table = include_str!("../../../src/recording/redact/rules.txt");
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    let (mut ids, mut faults) = (HashSet::new(), Vec::new());
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [id, pattern, example, near, source] = columns[..] else {
            panic!("{row}");
        };
        let filled = |text: &str| text.replace("K3Y", PLACEHOLDERS[0].1).replace("\\n", "\n");
        let example = filled(example);
        // The maker's mark and the shortest key with it; without a bound, the row has a near text.
        let bounds = pattern
            .strip_suffix('}')
            .and_then(|own| own.split_once('{'));
        let least = bounds.map(|(_, bounds)| bounds.split(',').next().unwrap().parse().unwrap());
        let near = match (near, least) {
            ("-", Some(least)) => short_of(&example, pattern, least),
            (near, _) => filled(near),
        };
        let finds = |text: &str| redactor.text(text.as_bytes()).is_some();
        let is_whole = source.starts_with("https://") && ids.insert(id);
        if !is_whole || !finds(&example) || finds(&near) {
            faults.push(format!("{id}: {example} and not {near}"));
        }
    }
    assert!(ids.len() > 200, "{}", ids.len());
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The example of a maker's key, one character shorter than the pattern wants.
fn short_of(example: &str, pattern: &str, least: usize) -> String {
    match pattern.strip_prefix('*') {
        Some(mark) => {
            let mark = &mark[..mark.find('{').unwrap()];
            let at = example.find(mark).unwrap();
            let end = example.len().min(at + mark.len() + 3);
            example[end.saturating_sub(least - 1)..end].to_owned()
        }
        None => example[..least - 1].to_owned(),
    }
}
