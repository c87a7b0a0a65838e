//! The members of a line of the JSON log: the list of members against the code, both ways, and
//! against a real log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;
use serde_json::Value;

use super::stage::Relay;

/// Members of every line.
const ALWAYS: [&str; 3] = ["timestamp", "level", "message"];
/// The object of the line, with its members.
const SPAN: &str = "span";

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

/// The members that the code names, each with a place: of lines, and of spans.
fn named() -> [BTreeMap<String, PathBuf>; 2] {
    // The members stand before the message, and after the name of a span.
    let line = r#"(?s)tracing::(?:error|warn|info|debug|trace)!\((?:target: "[a-z]*",)?([^"]*)"#;
    let span = r#"(?s)tracing::(?:error|warn|info|debug|trace)_span!\("[^"]*"([^)]*)"#;
    let calls = [line, span].map(|pattern| Regex::new(pattern).unwrap());
    let member = Regex::new(r"(?:^|,)\s*[%?]?([a-z_]+)\s*(?:=[^=]|,|$)").unwrap();
    let mut files = vec![root().join("src")];
    let mut named = [const { BTreeMap::new() }; 2];
    let mut places = 0;
    while let Some(path) = files.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            files.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (calls, named) in calls.iter().zip(&mut named) {
            for call in calls.captures_iter(&text) {
                places += 1;
                // One member ends where the next one begins.
                let own = call[1].replace(',', ",,");
                let names = member.captures_iter(&own);
                named.extend(names.map(|name| (name[1].to_owned(), path.clone())));
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
