//! A client understands an agent's call by the name that its own dialect has for it. The policy
//! stops every such name, in each dialect and at any depth of its stack.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_relay::conversation::DialectChoice;
use acp_relay::dialect::Library;
use acp_relay::jsonrpc::Side;
use acp_relay::policy::{Disk, MessagePolicy, PathMap, PolicyRules};
use serde_json::{Value, json};

use super::Exchange;

/// An empty disk.
#[derive(Debug)]
struct Empty;

impl Disk for Empty {
    fn resolve(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn exists(&self, _: &Path) -> bool {
        false
    }
}

/// How many messages a client of that dialect receives when a guarded agent calls that method.
fn passes(library: &Arc<Library>, dialect: &str, method: &str) -> usize {
    let client = DialectChoice::Named(dialect.to_owned());
    let mut exchange = Exchange::new(library, &client, &DialectChoice::Canonical);
    let rules = PolicyRules {
        guarded: true,
        ..PolicyRules::default()
    };
    let policy = MessagePolicy::new(rules, PathMap::default(), Box::new(Empty));
    exchange.core = exchange.core.with_policy(Some(Box::new(policy)));
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
    // With a name that neither has, the notification passes and the request does not.
    assert_eq!(passes(&library, "lower", "_own/get"), 1);
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
