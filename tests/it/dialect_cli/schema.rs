//! The JSON Schema of tables: current, and neither narrower nor wider than the reader.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::{answer, relay, table, write};

/// A word that no list of known words has or nearly has.
const STRANGE: &str = "QQQQQQQQQQQQ";

fn schema() -> Value {
    answer(&["dialect", "schema"], 0)
}

#[test]
fn the_schema_is_printed_as_it_is_stored() {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/schema/table.json");
    let printed = relay(&["dialect", "schema"], "").stdout;
    assert_eq!(fs::read_to_string(stored).unwrap(), printed);
}

#[test]
fn every_built_in_table_fits_the_schema() {
    let schema = schema();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "json") {
            let table: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert!(fits(&schema, &schema, &table), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 10);
    assert!(!fits(
        &schema,
        &schema,
        &json!({"format": 1, "dialect": "x", "title": "y", "rulse": []})
    ));
}

/// The known words that the parser lists, by the place of the unknown one.
fn known(table: &Value, prefix: &str) -> BTreeMap<String, BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "probe.json", table);
    let all = answer(&["dialect", "check", "--json", &file], 1);
    let faults = all["files"][0]["faults"].as_array().unwrap();
    faults
        .iter()
        .filter_map(|fault| {
            let words = fault["remedy"].as_str()?.strip_prefix(prefix)?;
            let words = words.split(", ").map(str::to_owned).collect();
            Some((fault["pointer"].as_str()?.to_owned(), words))
        })
        .collect()
}

fn keys(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object().unwrap();
    properties.keys().cloned().collect()
}

#[test]
fn the_schema_has_the_keys_that_the_parser_knows() {
    let probe = json!({
        "format": 1, "dialect": "probe", "title": "t", STRANGE: 1,
        "jsonrpc": {"only": [], STRANGE: 1},
        "detect": [{STRANGE: 1, "update": {}}],
        "memory": {"m": {STRANGE: 1, "from": "agent", "method": "x", "at": "/a", "per": "session"}},
        "rules": [{
            STRANGE: 1, "id": "r", "why": "w",
            "on": {"from": "agent", "method": {"dialect": "a", STRANGE: 1}, STRANGE: 1},
            "split": {"dialect": "/x", STRANGE: 1},
            "when": {STRANGE: 1, "dialect": {"/a": {STRANGE: 1}}},
            "rest": {"drop": "x", STRANGE: 1},
            "emit": [{"method": "m", STRANGE: 1}],
            "answer": {"result": 1, STRANGE: 1},
            "fail": {"code": 1, "message": "m", STRANGE: 1},
            "cases": [{STRANGE: 1}],
            "rows": [
                {"dialect": "/a", STRANGE: 1},
                {"dialect": "/b", "each": {"shape": "s", STRANGE: 1}},
                {"dialect": "/c", "recall": {"slot": "m", STRANGE: 1}},
                {"dialect": "/d", "derive": {"from": "/a", "as": "list", STRANGE: 1}}
            ]
        }]
    });
    let known = known(&probe, "known here: ");
    let schema = schema();
    let defs = &schema["$defs"];
    let (case, row) = (&defs["case"]["properties"], &defs["row"]["properties"]);
    let rule = &defs["rule"]["properties"];
    let expectation = &defs["guard"]["additionalProperties"]["anyOf"];
    let words = expectation.as_array().unwrap().iter();
    let words = words
        .filter(|one| one.get("properties").is_some())
        .flat_map(keys)
        .collect();
    let objects = [
        ("", keys(&schema)),
        (
            "/jsonrpc",
            keys(&schema["properties"]["jsonrpc"]["anyOf"][1]),
        ),
        ("/detect/0", keys(&defs["clue"])),
        ("/memory/m", keys(&defs["slot"])),
        ("/rules/0", keys(&defs["rule"])),
        ("/rules/0/on", keys(&rule["on"])),
        ("/rules/0/on/method", keys(&defs["names"]["anyOf"][1])),
        ("/rules/0/split", keys(&rule["split"])),
        ("/rules/0/when", keys(&case["when"])),
        ("/rules/0/when/dialect/~1a", words),
        ("/rules/0/rest", keys(&case["rest"]["anyOf"][1])),
        ("/rules/0/emit/0", keys(&defs["emit"])),
        ("/rules/0/answer", keys(&case["answer"])),
        ("/rules/0/fail", keys(&defs["error"])),
        ("/rules/0/cases/0", keys(&defs["case"])),
        ("/rules/0/rows/0", keys(&defs["row"])),
        ("/rules/0/rows/1/each", keys(&row["each"]["anyOf"][1])),
        ("/rules/0/rows/2/recall", keys(&row["recall"]["anyOf"][1])),
        ("/rules/0/rows/3/derive", keys(&row["derive"])),
    ];
    for (place, keys) in objects {
        let pointer = format!("{place}/{STRANGE}");
        assert_eq!(known.get(&pointer), Some(&keys), "at {place:?}");
    }
}

#[test]
fn the_schema_has_the_words_that_the_parser_knows() {
    let probe = json!({
        "format": 1, "dialect": "probe", "title": "t", "speaker": STRANGE, "ids": STRANGE,
        "memory": {"m": {"from": "agent", "method": "x", "at": "/a", "per": STRANGE}},
        "rules": [{
            "id": "r", "why": "w", "failure": STRANGE, "only": STRANGE, "do": STRANGE,
            "on": {"from": "agent", "method": "x", "kind": STRANGE},
            "when": {"dialect": {"/a": {"is": STRANGE}}},
            "emit": [{"method": "m", "place": STRANGE}],
            "rows": [{"dialect": "/a", "as": STRANGE}, {"dialect": "/b", "into": STRANGE}]
        }, {"id": "s", "why": "w", "on": {"from": STRANGE}}]
    });
    let known = known(&probe, "one of: ");
    let schema = schema();
    let defs = &schema["$defs"];
    let rule = &defs["rule"]["properties"];
    let is = &defs["guard"]["additionalProperties"]["anyOf"][0]["properties"]["is"]["anyOf"][1];
    for (place, words) in [
        ("/speaker", &schema["properties"]["speaker"]),
        ("/ids", &schema["properties"]["ids"]),
        ("/memory/m/per", &defs["slot"]["properties"]["per"]),
        ("/rules/0/failure", &rule["failure"]),
        ("/rules/0/only", &defs["way"]),
        ("/rules/0/do", &defs["action"]),
        ("/rules/0/on/kind", &rule["on"]["properties"]["kind"]),
        ("/rules/0/when/dialect/~1a/is", is),
        (
            "/rules/0/emit/0/place",
            &defs["emit"]["properties"]["place"],
        ),
        ("/rules/0/rows/0/as", &defs["conversion"]),
        ("/rules/0/rows/1/into", &defs["row"]["properties"]["into"]),
        ("/rules/1/on/from", &rule["on"]["properties"]["from"]),
    ] {
        let one = std::slice::from_ref(&words["const"]);
        let words = words["enum"].as_array().map_or(one, Vec::as_slice).iter();
        let words = words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(known.get(place), Some(&words), "at {place}");
    }
}

/// Every word that the schema lists is one that the types have.
#[test]
fn all_words_of_the_schema_are_read() {
    let schema = schema();
    let folder = tempfile::tempdir().unwrap();
    let words = |name: &str| schema["$defs"][name]["enum"].as_array().unwrap().clone();
    let rows: Vec<Value> = words("conversion")
        .into_iter()
        .enumerate()
        .map(|(at, word)| json!({"dialect": format!("/{at}"), "canonical": format!("/{at}"), "as": word}))
        .collect();
    let mut table = table("words");
    table["rules"][0]["lossy"] = json!("much");
    table["rules"][0]["rows"] = json!(rows);
    table["rules"][0]["do"] = json!(words("action"));
    table["memory"] = ["connection", "session", "request"]
        .into_iter()
        .map(|per| {
            let slot = json!({"from": "agent", "method": "x", "at": "/a", "per": per});
            (per.to_owned(), slot)
        })
        .collect();
    let file = write(folder.path(), "words.json", &table);
    let outcome = relay(&["dialect", "list", "--table", &file], "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn an_old_word_gets_the_new_one_as_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let mut old = table("old");
    old["rules"][0]["do"] = json!("tell_permission");
    let file = write(folder.path(), "old.json", &old);
    let faults = answer(&["dialect", "check", "--json", &file], 1);
    let fault = &faults["files"][0]["faults"][0];
    assert_eq!(
        fault["what"],
        "`tell_permission` is now `join_permission_title`"
    );
    assert_eq!(fault["pointer"], "/rules/0/do");
}

/// The words of JSON Schema that ours uses.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(words) = schema.as_object() else {
        return schema == &json!(true);
    };
    words.iter().all(|(word, what)| match word.as_str() {
        "$ref" => {
            let at = what.as_str().unwrap().trim_start_matches('#');
            fits(root, root.pointer(at).unwrap(), value)
        }
        "const" => what == value,
        "enum" => what.as_array().unwrap().contains(value),
        "anyOf" => what
            .as_array()
            .unwrap()
            .iter()
            .any(|one| fits(root, one, value)),
        "type" => {
            let own = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_i64() && what == "integer" => "integer",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            what == own || what.as_array().is_some_and(|all| all.contains(&json!(own)))
        }
        "items" => value
            .as_array()
            .into_iter()
            .flatten()
            .all(|one| fits(root, what, one)),
        "minItems" => value
            .as_array()
            .is_none_or(|all| all.len() as u64 >= what.as_u64().unwrap()),
        "maxItems" => value
            .as_array()
            .is_none_or(|all| all.len() as u64 <= what.as_u64().unwrap()),
        "minLength" => value.as_str() != Some(""),
        "pattern" => value
            .as_str()
            .is_none_or(|text| text.is_empty() || text.starts_with('/')),
        "required" => {
            let names = what.as_array().unwrap().iter();
            value.as_object().is_none_or(|all| {
                names
                    .into_iter()
                    .all(|name| all.contains_key(name.as_str().unwrap()))
            })
        }
        "properties" => {
            let members = value.as_object().into_iter().flatten();
            members
                .into_iter()
                .all(|(name, one)| what.get(name).is_none_or(|what| fits(root, what, one)))
        }
        "additionalProperties" => {
            let named = |name: &str| schema["properties"].get(name).is_some();
            let members = value.as_object().into_iter().flatten();
            members
                .into_iter()
                .all(|(name, one)| named(name) || fits(root, what, one))
        }
        "maxProperties" => value
            .as_object()
            .is_none_or(|all| all.len() as u64 <= what.as_u64().unwrap()),
        "propertyNames" => {
            let names = value.as_object().into_iter().flatten();
            names
                .into_iter()
                .all(|(name, _)| fits(root, what, &json!(name)))
        }
        "$schema" | "$defs" | "title" | "description" | "format" => true,
        other => panic!("the schema uses `{other}`"),
    })
}
