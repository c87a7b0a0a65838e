//! The members of a line of the JSON log: the list of members against the code, both ways, and
//! against a real log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::stage::Relay;

/// Members of every line.
const ALWAYS: [&str; 3] = ["timestamp", "level", "message"];
/// The object of the line, with its members.
const SPAN: &str = "span";

/// The macros that log a line.
const MACROS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The members that the page lists, by table.
fn listed() -> [BTreeSet<String>; 2] {
    let page = fs::read_to_string(root().join("src/docs/log.md")).unwrap();
    let mut tables = [const { BTreeSet::new() }; 2];
    let mut at = 0;
    for line in page.lines() {
        if line.starts_with("| member |") {
            at += 1;
        }
        if let Some(rest) = line.strip_prefix("| `") {
            let (name, _) = rest.split_once('`').unwrap();
            let new = tables[at - 1].insert(name.to_owned());
            assert!(new, "{name} stands twice");
        }
    }
    tables
}

/// The arguments of a macro, after its opening bracket; strings are skipped.
fn arguments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut quoted, mut escaped) = (0, 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => {
                found.push(text[start..at].trim());
                return found;
            }
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    panic!("it does not end: {}", &text[..text.len().min(200)]);
}

/// The member that an argument sets; `None` without a name.
fn member(argument: &str) -> Option<&str> {
    let (name, rest) = match argument.split_once('=') {
        Some((name, rest)) => (name.trim(), rest),
        None => (argument, ""),
    };
    let name = name.trim_start_matches(['%', '?']);
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    (name.chars().all(plain) && !rest.starts_with('=')).then_some(name)
}

/// The members that the code names, each with a place: of lines, and of spans.
fn named() -> [BTreeMap<String, PathBuf>; 2] {
    let mut files = vec![root().join("src")];
    let mut named = [const { BTreeMap::new() }; 2];
    let mut places = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (at, _) in text.match_indices("tracing::") {
            let rest = &text[at + "tracing::".len()..];
            let Some((word, rest)) = rest.split_once("!(") else {
                continue;
            };
            let plain = word.strip_suffix("_span").unwrap_or(word);
            if !MACROS.contains(&plain) {
                continue;
            }
            places += 1;
            for argument in arguments(rest) {
                if argument.starts_with("target:") {
                    continue;
                }
                // The message itself, or the name of a span.
                if argument.starts_with('"') {
                    if plain == word {
                        break;
                    }
                    continue;
                }
                let name = member(argument);
                let name = name.unwrap_or_else(|| panic!("{}: {argument}", path.display()));
                named[usize::from(plain != word)].insert(name.to_owned(), path.clone());
            }
        }
    }
    assert!(places > 60, "only {places} places found");
    named
}

#[test]
fn the_listed_members_match_the_code() {
    let [always, details] = listed();
    let expected: BTreeSet<_> = ALWAYS
        .into_iter()
        .chain([SPAN])
        .map(str::to_owned)
        .collect();
    assert_eq!(always, expected);
    let [named, of_spans] = named();
    for (name, path) in &named {
        assert!(
            details.contains(name),
            "`{name}` ({}) is not in src/docs/log.md",
            path.display()
        );
    }
    for name in &details {
        assert!(
            named.contains_key(name),
            "`{name}` is in src/docs/log.md alone"
        );
    }
    let of_spans: Vec<_> = of_spans.into_keys().collect();
    assert_eq!(of_spans, ["conn", "from"]);
}

#[test]
fn log_lines_have_only_listed_members() {
    let [_, details] = listed();
    let options = [
        "--log",
        "trace",
        "--log-format",
        "json",
        "--record",
        "tapes",
    ];
    let mut relay = Relay::start(&options);
    relay.client().live();
    relay.scrape_until("acp_relay_connections_closed_total");
    relay.signal(rustix::process::Signal::TERM);
    let mut met = BTreeSet::new();
    loop {
        let line = relay.complaint();
        if line.is_empty() {
            break;
        }
        if line.starts_with("acp-relay: ") {
            continue;
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        // Libraries log other members, at levels that are off by default.
        if ["TRACE", "DEBUG"].contains(&line["level"].as_str().unwrap()) {
            continue;
        }
        for (name, value) in line.as_object().unwrap() {
            met.insert(name.clone());
            if name == SPAN {
                let mut names: Vec<_> = value.as_object().unwrap().keys().collect();
                names.sort();
                assert_eq!(names, ["conn", "from", "name"], "{line}");
                continue;
            }
            assert!(!value.is_object() && !value.is_array(), "{line}");
            assert!(
                ALWAYS.contains(&name.as_str()) || details.contains(name),
                "`{name}` in {line}"
            );
        }
        for name in ALWAYS {
            assert!(line[name].is_string(), "{line}");
        }
    }
    for name in ["span", "note", "client", "agent", "cause", "notes", "pid"] {
        assert!(met.contains(name), "{name} was not logged: {met:?}");
    }
}
