//! The cases of the tests of this module, in `tests/vectors/agent_connect`.

use serde_json::Value;

/// The cases of a file.
pub(super) fn cases(file: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/agent_connect");
    let text = std::fs::read_to_string(format!("{folder}/{file}.jsonl")).expect("the vectors");
    let case = |line| serde_json::from_str(line).expect("a case");
    text.lines().map(case).collect()
}

/// The list at `name`; empty if there is none.
pub(super) fn list<'a>(case: &'a Value, name: &str) -> &'a [Value] {
    case[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Compares what a case expects, by pointers, with what was found.
pub(super) fn compare(case: &Value, found: &Value) {
    for (pointer, expected) in case["at"].as_object().expect("pointers") {
        let found = found.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(found, expected, "{pointer} of {case}");
    }
}
