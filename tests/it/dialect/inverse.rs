//! Conversions with an inverse: the way back restores the value; those without one are stable after
//! one round trip.
//!
//! They are called through a table, as users call them. Not here: their guesses (see the examples
//! of the tables).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use acp_relay::dialect::table::schema;
use acp_relay::dialect::{Converter, Library, Program, Translator};
use acp_relay::jsonrpc::Side;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::pass;

/// The names of all conversions, as the schema of tables lists them.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = schema()["$defs"]["Converter"]["oneOf"].as_array().unwrap();
    names
        .iter()
        .map(|word| word["const"].as_str().unwrap())
        .collect()
});

static PROGRAMS: LazyLock<HashMap<&str, Arc<Program>>> =
    LazyLock::new(|| NAMES.iter().map(|name| (*name, program(name))).collect());

/// A table with only this conversion.
fn program(name: &str) -> Arc<Program> {
    let rule = json!({
        "id": "r", "why": "w", "lossy": "maybe", "on": { "from": "agent", "method": "m" },
        "rows": [{ "dialect": "/v", "canonical": "/v", "as": name }], "examples": [{}],
    });
    let table = json!({ "format": 1, "dialect": "d", "title": "D", "rules": [rule] });
    let mut library = Library::default();
    library
        .add("d.json", &table.to_string())
        .unwrap_or_else(|faults| panic!("{name}: {faults}"));
    library.program("d").unwrap()
}

/// The converted value; `None` when it is left out.
fn convert(name: &str, reads: bool, v: &Value) -> Option<Value> {
    let peer = if reads { Side::Agent } else { Side::Client };
    let mut relay = Translator::new(peer, Arc::clone(&PROGRAMS[name]));
    let message = json!({ "jsonrpc": "2.0", "method": "m", "params": { "v": v } });
    let [forwarded, _] = pass(&mut relay, reads, message).values();
    forwarded[0]["params"].get("v").cloned()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "text",
            "image",
            "1",
            "-7",
            "01",
            "{}",
            "[1]",
            "{\"a\":[null]}",
            " [ 1 ] ",
            "/a b",
            "/%41",
            "file:///x%20y",
            "file:///%zz",
            "file://host/x",
            "a",
            "b"
        ])
        .prop_map(str::to_owned),
        "[/%a\"\\\\\u{e9}\u{0} 1]{0,6}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // A number like 1.0 is restored as 1.
        any::<u8>().prop_map(|byte| Value::from(f64::from(byte) / 4.0 + 0.125)),
        text().prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "a",
        "b",
        "name",
        "value",
        "type",
        "text",
        "content",
        "image",
        "audio",
        "embeddedContext",
        "create",
        "output",
        "waitForExit",
        "kill",
        "release",
        "\u{e9}\"",
    ]);
    leaf.prop_recursive(3, 16, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..5)
                .prop_map(|all| all.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()),
        ]
    })
}

/// A value like those that conversions expect.
fn shaped() -> impl Strategy<Value = Value> {
    let flag = any::<bool>();
    let named = prop::collection::vec((text(), any_value()), 0..4);
    prop_oneof![
        any_value(),
        text().prop_map(Value::from),
        text().prop_map(|text| json!({ "type": "text", "text": text })),
        text().prop_map(|text| json!([{ "type": "content", "content": { "type": "text", "text": text } }])),
        prop::collection::vec(text(), 0..4).prop_map(|all| json!(all)),
        prop::collection::btree_map(text(), Just(true), 0..4).prop_map(|all| json!(all)),
        named.prop_map(|all| all.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()),
        prop::collection::vec(flag, 3).prop_map(|on| json!({ "image": on[0], "audio": on[1], "embeddedContext": on[2] })),
        prop::collection::vec(any::<bool>(), 5).prop_map(|on| json!({ "create": on[0], "output": on[1], "waitForExit": on[2], "kill": on[3], "release": on[4] })),
    ]
}

proptest! {
    #![proptest_config(super::cases(1500))]

    #[test]
    fn a_conversion_with_an_inverse_is_reversible(v in shaped(), which: prop::sample::Index, reads: bool) {
        let name = *which.get(&NAMES);
        let conversion: Converter = serde_json::from_value(json!(name)).unwrap();
        if conversion.has_inverse()
            && let Some(made) = convert(name, reads, &v)
            && made != v
        {
            let back = convert(name, !reads, &made);
            prop_assert_eq!(back.as_ref(), Some(&v), "{}, reads {}: {}", name, reads, made);
        }
    }
}
