//! The JSON Schema of tables, which is made from the types, and the words that it knows.

use std::fs;

use serde_json::{Value, json};

use super::{answer, faults, relay, table};

/// A word that no list of known words has or nearly has.
const STRANGE: &str = "QQQQQQQQQQQQ";

/// Editors read the stored file.
#[test]
fn the_schema_is_printed_as_it_is_stored() {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/schema/table.json");
    let printed = relay(&["dialect", "schema"], "").stdout;
    if std::env::var_os("INSTA_UPDATE").is_some() {
        fs::write(stored, &printed).unwrap();
    }
    assert_eq!(fs::read_to_string(stored).unwrap(), printed);
}

#[test]
fn every_operation_is_in_the_schema_with_a_description() {
    let schema = answer(&["dialect", "schema"], 0);
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    for (name, count) in [("Converter", 20), ("Action", 32)] {
        let words = schema["$defs"][name]["oneOf"].as_array().unwrap();
        assert_eq!(words.len(), count, "{name}");
        for word in words {
            assert!(word["description"].is_string(), "{word}");
            let word = word["const"].as_str().unwrap();
            assert!(readme.contains(&format!("`{word}`")), "{word} in README");
        }
    }
}

/// The fault of a strange key or word lists those that are known at its place.
#[test]
fn a_strange_word_gets_the_known_ones() {
    let mut probe = table("probe");
    probe["speaker"] = json!(STRANGE);
    probe["detect"] = json!([{STRANGE: 1, "update": {}}]);
    let rule = &mut probe["rules"][0];
    rule["do"] = json!([STRANGE, "tell_permission"]);
    rule["on"][STRANGE] = json!(1);
    rule["when"] = json!({"dialect": {"/a": {STRANGE: 1}, "/b": {"is": STRANGE}}});
    rule["rest"] = json!({"drop": "x", STRANGE: 1});
    rule["rows"] = json!([{"dialect": "/a", "canonical": "/a", "as": STRANGE}]);
    let found = faults(&probe);
    for (place, remedy) in [
        ("/speaker", "one of: client, agent"),
        (
            "/detect/0/QQQQQQQQQQQQ",
            "known here: agentInfo, clientInfo, ",
        ),
        ("/rules/0/do/0", "one of: find_tool_call, "),
        ("/rules/0/do/1", "write `join_permission_title`"),
        (
            "/rules/0/on/QQQQQQQQQQQQ",
            "known here: from, kind, method, ",
        ),
        (
            "/rules/0/when/dialect/~1a/QQQQQQQQQQQQ",
            "known here: const, is, in, ",
        ),
        ("/rules/0/when/dialect/~1b/is", "one of: null, boolean, "),
        ("/rules/0/rest/QQQQQQQQQQQQ", "known here: drop"),
        ("/rules/0/rows/0/as", "one of: json_text, "),
    ] {
        let at = |fault: &&Value| fault["pointer"] == place;
        let fault = found
            .iter()
            .find(at)
            .unwrap_or_else(|| panic!("{place}: {found:#?}"));
        let own = fault["remedy"].as_str().unwrap();
        assert!(own.starts_with(remedy), "{place}: {own}");
    }
}
