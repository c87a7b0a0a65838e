//! No table may change the meaning of a permission: from the option a person picks to the option an
//! agent receives, through every table in both roles, and through hostile tables.
//!
//! Not here: checks of single values (see `properties`).

use acp_relay::jsonrpc::Side;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::line::{Line, Received};
use super::official_types::begun;

/// Kinds, unknown ones, and none.
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

/// The meaning of a permission option.
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

/// The answer of a client: an option it was shown, a word it was not shown, or none.
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

/// Asks and answers over a dialect. Returns the options shown, the id picked, and what the agent
/// receives; `None` when the request does not arrive.
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

/// The error in what an agent receives. A `strict` agent is canonical: it receives only what it
/// offered.
pub(super) fn broken(
    options: &Value,
    shown: &Value,
    picked: Option<&str>,
    received: &Received,
    strict: bool,
) -> Option<String> {
    let Some(got) = received.there.first() else {
        return Some("the agent receives nothing".to_owned());
    };
    let received_id = got["result"]["outcome"]["optionId"].as_str();
    let received_id = received_id.filter(|_| got["result"]["outcome"]["outcome"] == "selected")?;
    let granted = meanings(options, received_id);
    if granted.is_empty() && !options.as_array().is_some_and(Vec::is_empty) {
        return strict.then(|| format!("`{received_id}` was not offered"));
    }
    let allows = |all: &[Meaning]| {
        all.iter()
            .any(|one| matches!(one, Meaning::Once | Meaning::Always))
    };
    let Some(picked) = picked else {
        return allows(&granted).then(|| "no answer allows".to_owned());
    };
    let picked_meanings = meanings(shown, picked);
    if picked_meanings.is_empty() {
        // A word that was not shown may be repaired to its own meaning, never to more.
        let more = picked != "allow_always" && granted.contains(&Meaning::Always);
        let plainly = ["allow", "always", "proceed", "yes"]
            .iter()
            .any(|word| picked.starts_with(word));
        let refusal = allows(&granted) && !plainly;
        return (more || refusal)
            .then(|| format!("`{picked}` was not shown and allows `{received_id}`"));
    }
    if picked_meanings.contains(&Meaning::Refusal)
        && !picked_meanings.iter().any(|one| *one != Meaning::Refusal)
        && allows(&granted)
    {
        return Some(format!("the refusal `{picked}` allows `{received_id}`"));
    }
    if picked_meanings.iter().all(|one| *one == Meaning::Once) && granted.contains(&Meaning::Always)
    {
        return Some(format!("`{picked}` once becomes `{received_id}` always"));
    }
    None
}

proptest! {
    #![proptest_config(super::cases(1500))]

    #[test]
    fn no_table_grants_more_than_the_answer_did(
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
