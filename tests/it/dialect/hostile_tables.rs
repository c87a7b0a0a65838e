//! Hostile tables: whatever they do to permission requests and answers, the rules of permission
//! hold, for the peer on either side.
//!
//! Not here: the tables of this repository (see `permission`).

use std::sync::Arc;

use acp_relay::dialect::{Library, Program, Translator};
use acp_relay::jsonrpc::Side;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::line::Received;
use super::pass;
use super::permission::{broken, options_of};

/// Few enough that a table meets what it maps.
const KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];
const IDS: [&str; 5] = ["a", "b", "c", "allow", "reject"];

/// Pairs that a table maps one way.
fn pairs(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = move || prop::sample::select(words.to_vec());
    prop::collection::btree_map(word(), word(), 0..4).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(one, two)| json!([one, two]))
            .collect()
    })
}

/// A row; the way back looks up the second of each pair.
fn row(place: &str, read: Value, write: Value) -> Value {
    let mut row = json!({ "dialect": place, "canonical": place });
    for (name, pairs) in [("read_values", read), ("write_values", write)] {
        if pairs.as_array().is_some_and(|pairs| !pairs.is_empty()) {
            row[name] = pairs;
        }
    }
    row
}

fn table() -> impl Strategy<Value = String> {
    let parts = (
        pairs(&KINDS),
        pairs(&KINDS),
        pairs(&IDS),
        pairs(&IDS),
        pairs(&IDS),
        pairs(&IDS),
    );
    let forced = prop::option::of(prop::sample::select(IDS.to_vec()));
    let hides = prop::sample::select(vec!["/kind", "/effect"]);
    (parts, forced, hides, 0..3_u8).prop_map(|((k1, k2, i1, i2, a1, a2), forced, hides, way)| {
        let mut kind = row("/kind", k1, k2);
        kind["dialect"] = hides.into();
        let id = row("/optionId", i1, i2);
        let mut answer = vec![row("/outcome/optionId", a1, a2)];
        if let Some(forced) = forced {
            let column = if way == 0 { "dialect" } else { "canonical" };
            let mut all = vec![json!({ "const": "selected" }), json!({ "const": forced })];
            all[0][column] = "/outcome/outcome".into();
            all[1][column] = "/outcome/optionId".into();
            answer = all;
        }
        let rule = |id: &str, on: Value, rows: Value| {
            json!({ "id": id, "why": "ill", "lossy": "all", "on": on, "rows": rows, "examples": [{}] })
        };
        let each = json!([{ "dialect": "/options", "canonical": "/options", "each": [kind, id] }]);
        let rules = json!([
            rule("ask", json!({ "from": "agent", "method": "session/request_permission" }), each),
            rule("answer", json!({ "from": "client", "answers": "session/request_permission" }), answer.into()),
        ]);
        json!({ "format": 1, "dialect": "ill", "title": "Ill", "rules": rules }).to_string()
    })
}

fn program(table: &str) -> Arc<Program> {
    let mut library = Library::default();
    library
        .add("ill.json", table)
        .unwrap_or_else(|faults| panic!("{faults}\n{table}"));
    library.program("ill").unwrap()
}

/// An agent asks, a client picks the option at `at` or cancels; one of them uses the dialect.
/// Returns the options shown, the id picked and what the agent receives.
fn decide(
    dialect: Side,
    program: Arc<Program>,
    options: &Value,
    at: Option<usize>,
) -> Option<(Value, Option<String>, Received)> {
    let mut relay = Translator::new(dialect, program);
    let mut pass = |from: Side, message: &Value| -> Option<Value> {
        let [forwarded, _] = pass(&mut relay, from == dialect, message).values();
        forwarded.into_iter().next()
    };
    let call = json!({ "toolCallId": "t", "title": "x" });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params });
    let shown = pass(Side::Agent, &ask)?["params"]["options"].clone();
    let picked = match at {
        Some(at) => Some(shown.get(at)?["optionId"].as_str()?.to_owned()),
        None => None,
    };
    let outcome = match &picked {
        Some(id) => json!({ "outcome": "selected", "optionId": id }),
        None => json!({ "outcome": "cancelled" }),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "outcome": outcome } });
    let there = pass(Side::Client, &answer).into_iter().collect();
    Some((
        shown,
        picked,
        Received {
            there,
            ..Received::default()
        },
    ))
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn no_hostile_table_grants_a_refusal_or_turns_once_into_always(
        table in table(), options in options_of(&IDS, &KINDS), at in prop::option::of(0..5_usize), agent in any::<bool>(),
    ) {
        let dialect = if agent { Side::Agent } else { Side::Client };
        if let Some((shown, picked, received)) = decide(dialect, program(&table), &options, at) {
            let found = broken(&options, &shown, picked.as_deref(), &received, !agent);
            prop_assert!(found.is_none(), "{found:?}\n{table}\n{options}\n{shown}\n{picked:?}\n{received:#?}");
        }
    }
}
