//! A client understands an agent's call by the name that its own dialect has for it. The policy
//! stops every such name, in each dialect and at any depth of its stack.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_relay::conversation::DialectChoice;
use acp_relay::dialect::Library;
use acp_relay::jsonrpc::{Frame, Side};
use acp_relay::policy::{Disk, MessagePolicy, PathMap, PolicyRules};
use serde_json::{Value, json};

use super::Exchange;

/// A disk without links that has every file.
#[derive(Debug)]
struct Full;

impl Disk for Full {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn exists(&self, _: &Path) -> bool {
        true
    }
}

/// A conversation of a guarded agent that may use `/x`.
fn guarded(library: &Arc<Library>, client: &DialectChoice) -> Exchange {
    let mut exchange = Exchange::new(library, client, &DialectChoice::Canonical);
    let rules = PolicyRules {
        guarded: true,
        roots: vec!["/x".into()],
        ..PolicyRules::default()
    };
    let policy = MessagePolicy::new(rules, PathMap::default(), Box::new(Full));
    exchange.core = exchange.core.with_policy(Some(Box::new(policy)));
    exchange
}

/// How many messages a client of that dialect receives when a guarded agent calls that method.
fn passes(library: &Arc<Library>, dialect: &str, method: &str) -> usize {
    let client = DialectChoice::Named(dialect.to_owned());
    let mut exchange = guarded(library, &client);
    let params = json!({ "sessionId": "s", "path": "/etc/x", "content": "" });
    let calls = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }),
        json!({ "jsonrpc": "2.0", "method": method, "params": params }),
    ];
    let received = calls
        .iter()
        .map(|call| exchange.send(Side::Agent, call)[0].len());
    received.sum()
}

/// Methods of an agent that a table names other than canonical does.
fn renamed(table: &Value) -> Vec<&str> {
    let rules = table["rules"].as_array().into_iter().flatten();
    let agents = rules.filter(|rule| rule["on"]["from"] == "agent");
    let names = agents.map(|rule| &rule["on"]["method"]);
    let other = names.filter(|names| names["dialect"] != names["canonical"]);
    other
        .filter_map(|names| names["dialect"].as_str())
        .collect()
}

#[test]
fn the_policy_stops_renamed_methods_of_every_dialect() {
    let mut library = Library::builtin();
    let table = |name: &str, extends: &str, dialect: &str, canonical: &str| {
        let on =
            json!({ "from": "agent", "method": { "dialect": dialect, "canonical": canonical } });
        let rule = json!({ "id": "r", "why": "w", "lossy": "maybe", "on": on, "examples": [{}] });
        json!({ "format": 1, "dialect": name, "title": "T", "extends": [extends], "rules": [rule] })
    };
    // Its client uses `get` for the method that the table below it names `readTextFile`.
    let upper = table("upper", "zed-legacy-0.0.9", "get", "readTextFile");
    let lower = table("lower", "loose-v1", "_own/put", "fs/write_text_file");
    for one in [&upper, &lower] {
        library.add("own.json", &one.to_string()).unwrap();
    }
    let library = Arc::new(library);
    for (dialect, method) in [
        ("upper", "get"),
        ("upper", "readTextFile"),
        ("upper", "writeTextFile"),
        ("lower", "_own/put"),
    ] {
        assert_eq!(passes(&library, dialect, method), 0, "{dialect} {method}");
    }
    assert_eq!(passes(&library, "lower", "_own/get"), 0);
    let mut seen = 0;
    for (file, text) in Library::builtin_files() {
        let table: Value = serde_json::from_str(text).unwrap();
        let dialect = table["dialect"].as_str().unwrap();
        for method in renamed(&table) {
            assert_eq!(passes(&library, dialect, method), 0, "{file} {method}");
            seen += 1;
        }
    }
    assert!(seen >= 18, "only {seen} names were found");
}

#[test]
fn notifications_that_acp_or_a_table_names_pass_the_policy() {
    let schemas = [
        include_str!("../../../src/acp/acp-v1.schema.json"),
        include_str!("../../../src/acp/acp-v2-draft.schema.json"),
    ]
    .map(|text| serde_json::from_str::<Value>(text).unwrap());
    let defined = schemas
        .iter()
        .flat_map(|schema| schema["$defs"].as_object().unwrap().values())
        .filter_map(|definition| definition["x-method"].as_str());
    let mut names: BTreeSet<String> = defined.map(str::to_owned).collect();
    // Commands are never a guarded agent's, and files and pages are checked.
    names.retain(|name| !name.starts_with("terminal/") && !name.starts_with("fs/"));
    names.remove("elicitation/create");
    for (_, text) in Library::builtin_files() {
        let table: Value = serde_json::from_str(text).unwrap();
        for rule in table["rules"].as_array().into_iter().flatten() {
            let (on, method) = (&rule["on"], &rule["on"]["method"]);
            let dialect = method.as_str().or_else(|| method["dialect"].as_str());
            let canonical = method.as_str().or_else(|| method["canonical"].as_str());
            let asks = on["kind"] == "dialect_asks";
            let (Some(dialect), Some(canonical)) = (dialect, canonical) else {
                continue;
            };
            let notifies = ["session/update", "$/cancel_request"].contains(&canonical)
                || canonical.starts_with('_');
            if on["from"] == "agent" && notifies && !asks {
                names.insert(dialect.to_owned());
            }
        }
    }
    assert!(
        names.len() > 20 && names.contains("_x.ai/models/update"),
        "{names:?}"
    );
    let library = super::library();
    for name in names {
        let mut exchange = guarded(library, &DialectChoice::Canonical);
        let call = json!({ "jsonrpc": "2.0", "method": name });
        let [received, _] = exchange.send(Side::Agent, &call);
        assert_eq!(received, [call], "{name}");
    }
}

/// The spellings of a name that a reader takes for it when it ignores case.
fn spellings(name: &str) -> Vec<String> {
    let mut first = name.to_owned();
    first[..1].make_ascii_uppercase();
    let mut last = name.to_owned();
    last[name.len() - 1..].make_ascii_uppercase();
    let mut all = vec![name.to_ascii_uppercase(), first, last];
    for (letter, other) in [
        ('s', "ſ"),
        ('k', "\u{212a}"),
        ('i', "ı"),
        ('I', "İ"),
        ('d', "D"),
    ] {
        all.push(name.replacen(letter, other, 1));
    }
    let escaped: String = all[0]
        .chars()
        .map(|letter| format!("\\u{:04x}", u32::from(letter)))
        .collect();
    all.push(escaped);
    all.retain(|one| one != name);
    all
}

#[test]
fn members_that_a_reader_ignoring_case_would_mistake_are_refused() {
    let envelope = ["jsonrpc", "id", "method", "params", "result", "error"];
    let names = [&envelope[..], &["sessionId", "path", "url", "mode"]].concat();
    let checked = [
        ("session/update", r#"{"sessionId":"s"#),
        ("session/request_permission", r#"{"sessionId":"s"#),
        ("fs/read_text_file", r#"{"sessionId":"s","path":"/x"#),
        ("elicitation/create", r#"{"mode":"form","message":"m"#),
    ];
    let library = super::library();
    let mut tried = 0;
    let mut passes = |text: String| {
        let mut exchange = guarded(library, &DialectChoice::Canonical);
        tried += 1;
        let [received, _] = exchange.send_frame(Side::Agent, Frame::from(text));
        received.len()
    };
    for (method, params) in checked {
        let id = match method {
            "session/update" => "",
            _ => r#""id":1,"#,
        };
        for spelling in names.iter().flat_map(|name| spellings(name)) {
            let text = |inside: &str, beside: &str| {
                format!(
                    r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}"{inside}}}{beside}}}"#
                )
            };
            let more = format!(r#","{spelling}":1"#);
            assert_eq!(passes(text("", &more)), 0, "{method} beside {spelling}");
            let is_checked = method.starts_with("fs/") || method.starts_with("elic");
            let expected = usize::from(!is_checked);
            assert_eq!(passes(text(&more, "")), expected, "{method} in {spelling}");
        }
        let other = r#","Other":1,"paths":2,"sessıon":3"#;
        let text = format!(
            r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}"{other}}}{other}}}"#
        );
        assert_eq!(passes(text), 1, "{method}");
    }
    assert!(tried > 400, "only {tried} were tried");
}
