//! Permission is sacred, whatever a table says: from the option a person picks to the option an
//! agent is told, through every table in both roles, and through tables that mean ill.
//!
//! Not here: the laws on single values (see `laws`).

use acp_relay::jsonrpc::Side;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::line::{Line, Received};
use super::speech::begun;

/// Kinds, those that mean nothing, and none.
const KINDS: [&str; 7] = [
    "allow_once",
    "allow_always",
    "reject_once",
    "reject_always",
    "",
    "maybe",
    "none",
];

/// Ids that are names, kinds, words of dialects, or empty.
const IDS: [&str; 16] = [
    "a",
    "b",
    "proceed_once",
    "allow_once",
    "allow_always",
    "reject_once",
    "reject_always",
    "allow",
    "alwaysAllow",
    "alwaysAllowTool",
    "reject",
    "cancel",
    "cancelled",
    "selected",
    "yes",
    "",
];

/// What a permission option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Once,
    Always,
    Refusal,
    Unknown,
}

fn meaning(kind: &str) -> Meaning {
    match kind {
        "allow_once" => Meaning::Once,
        "allow_always" => Meaning::Always,
        "reject_once" | "reject_always" => Meaning::Refusal,
        _ => Meaning::Unknown,
    }
}

/// The meanings of all options with this id: several with one id can mean several things.
fn meanings(options: &Value, id: &str) -> Vec<Meaning> {
    let all = options.as_array().into_iter().flatten();
    let named = all.filter(|option| option["optionId"] == id);
    named
        .map(|option| meaning(option["kind"].as_str().unwrap_or_default()))
        .collect()
}

/// Lists of options with these ids and kinds; the kind `none` is left out.
pub(super) fn options_of(
    ids: &'static [&'static str],
    kinds: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let (id, kind) = (prop::sample::select(ids), prop::sample::select(kinds));
    prop::collection::vec((id, kind), 0..5).prop_map(|all| {
        let options = all.into_iter().map(|(id, kind)| {
            let mut option = json!({ "optionId": id, "name": id, "kind": kind });
            if kind == "none" {
                option.as_object_mut().unwrap().remove("kind");
            }
            option
        });
        Value::Array(options.collect())
    })
}

/// What a client answers: an option it was shown, a word it was not shown, or nothing.
#[derive(Clone, Debug)]
enum Answer {
    Shown(usize),
    Word(&'static str),
    Cancelled,
    Unknown(Value),
}

fn answer() -> impl Strategy<Value = Answer> {
    let odd = prop::sample::select(vec![
        json!({}),
        json!(null),
        json!({ "outcome": { "outcome": "maybe", "optionId": "a" } }),
        json!({ "outcome": { "outcome": "selected" } }),
        json!({ "outcome": "selected", "optionId": "allow" }),
        json!({ "outcome": { "outcome": "cancelled", "optionId": "allow" } }),
        json!("allow"),
        json!(["allow_always"]),
        json!({ "outcome": { "outcome": ["selected"], "optionId": 7 } }),
    ]);
    prop_oneof![
        4 => (0..5_usize).prop_map(Answer::Shown),
        2 => prop::sample::select(IDS.to_vec()).prop_map(Answer::Word),
        1 => Just(Answer::Cancelled),
        1 => odd.prop_map(Answer::Unknown),
    ]
}

/// Asks and answers over a dialect. Returns the options that were shown, the id that was picked,
/// and what the agent hears; `None` when the question does not arrive.
fn decide(
    line: &mut Line,
    options: &Value,
    answer: &Answer,
) -> Option<(Value, Option<String>, Received)> {
    let session = line.session(Side::Agent).to_owned();
    let call = json!({ "toolCallId": "t1", "title": "Run", "kind": "execute" });
    let params = json!({ "sessionId": session, "toolCall": call, "options": options });
    let (_, received) = line.request(Side::Agent, "session/request_permission", &params);
    let asked = received
        .there
        .iter()
        .find(|one| one["method"] == "session/request_permission")?;
    let shown = asked["params"]["options"].clone();
    let picked = match answer {
        Answer::Shown(at) => Some(shown.as_array()?.get(*at)?["optionId"].as_str()?.to_owned()),
        Answer::Word(word) => Some((*word).to_owned()),
        Answer::Cancelled | Answer::Unknown(_) => None,
    };
    let result = match (&picked, answer) {
        (Some(id), _) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
        (None, Answer::Unknown(odd)) => odd.clone(),
        _ => json!({ "outcome": { "outcome": "cancelled" } }),
    };
    let message = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
    let received = line.send(Side::Client, &message);
    Some((shown, picked, received))
}

/// What is wrong with what an agent hears. `strict` is one that speaks canonical: it is told only
/// what it offered.
pub(super) fn broken(
    options: &Value,
    shown: &Value,
    picked: Option<&str>,
    received: &Received,
    strict: bool,
) -> Option<String> {
    let Some(got) = received.there.first() else {
        return Some("the agent hears nothing".to_owned());
    };
    let stated = got["result"]["outcome"]["optionId"].as_str();
    let stated = stated.filter(|_| got["result"]["outcome"]["outcome"] == "selected")?;
    let reached = meanings(options, stated);
    if reached.is_empty() && !options.as_array().is_some_and(Vec::is_empty) {
        return strict.then(|| format!("`{stated}` was not offered"));
    }
    let allows = |all: &[Meaning]| {
        all.iter()
            .any(|one| matches!(one, Meaning::Once | Meaning::Always))
    };
    let Some(picked) = picked else {
        return allows(&reached).then(|| "no answer allows".to_owned());
    };
    let meant = meanings(shown, picked);
    if meant.is_empty() {
        // A word that was not shown may be repaired to what it says, never to more.
        let more = picked != "allow_always" && reached.contains(&Meaning::Always);
        let plainly = ["allow", "always", "proceed", "yes"]
            .iter()
            .any(|word| picked.starts_with(word));
        let refusal = allows(&reached) && !plainly;
        return (more || refusal)
            .then(|| format!("`{picked}` was not shown and allows `{stated}`"));
    }
    if meant.contains(&Meaning::Refusal)
        && !meant.iter().any(|one| *one != Meaning::Refusal)
        && allows(&reached)
    {
        return Some(format!("the refusal `{picked}` allows `{stated}`"));
    }
    if meant.iter().all(|one| *one == Meaning::Once) && reached.contains(&Meaning::Always) {
        return Some(format!("`{picked}` once becomes `{stated}` always"));
    }
    None
}

proptest! {
    #![proptest_config(super::cases(1500))]

    #[test]
    fn no_table_makes_more_of_an_answer_than_was_meant(
        options in options_of(&IDS, &KINDS), answer in answer(), which: prop::sample::Index,
    ) {
        let library = super::library();
        let name = &which.get(library.tables()).name;
        let mut line = begun(&library.program(name).unwrap());
        if let Some((shown, picked, received)) = decide(&mut line, &options, &answer) {
            let found = broken(&options, &shown, picked.as_deref(), &received, true);
            prop_assert!(found.is_none(), "{name}: {found:?}\n{options}\n{shown}\n{picked:?}\n{received:#?}");
        }
    }
}
