//! Generated input: refusals stay refusals, bytes that no rule touches are kept, nothing panics,
//! conversions are reversible.

use acp_relay::dialect::permission::{
    OfferedOptions, PermissionAnswer, check_read, check_write, same_options,
};
use acp_relay::dialect::{Forward, Translator};
use acp_relay::jsonrpc::Side;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::pass;

const KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "allow_once",
            "allow_always",
            "reject_once",
            "reject_always",
            "allow",
            "alwaysAllow",
            "reject",
            "deny",
            "cancel",
            "cancelled",
            "yes",
            "no",
            "a",
            "b",
            "selected",
        ])
        .prop_map(str::to_owned),
        "[a-z_]{1,8}",
    ]
}

fn options() -> impl Strategy<Value = Vec<(String, &'static str)>> {
    prop::collection::vec((word(), prop::sample::select(KINDS.to_vec())), 0..5).prop_map(
        |mut all| {
            all.sort();
            all.dedup_by(|one, two| one.0 == two.0);
            all
        },
    )
}

fn offered(options: &[(String, &str)]) -> OfferedOptions {
    let options: Vec<Value> = options
        .iter()
        .map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind }))
        .collect();
    OfferedOptions::read(json!({ "options": options }).to_string().as_bytes())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "update",
        "sessionUpdate",
        "kind",
        "content",
        "type",
        "text",
        "outcome",
        "optionId",
        "selected",
        "cancelled",
        "toolCall",
        "toolCallId",
        "options",
        "entries",
        "steps",
        "plan",
        "status",
        "chunk",
        "prompt",
        "_meta",
        "acp-relay",
        "sessionId",
        "mcpServers",
        "models",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..5).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(super::cases(256))]

    #[test]
    fn an_answer_that_names_a_refusal_allows_nothing(options in options(), id in word(), extra in word()) {
        let offered = offered(&options);
        let reported = json!({ "outcome": { "outcome": "selected", "optionId": id }, "also": extra });
        let ruling = check_read(reported.to_string().as_bytes(), &offered, &PermissionAnswer::Selected(id.clone()));
        if let PermissionAnswer::Selected(chosen) = &ruling.answer
            && let Some(offer) = offered.get(chosen)
        {
            let refusing = |word: &str| offered.get(word).is_some_and(|offer| offer.kind.starts_with("reject"));
            if offer.kind.starts_with("allow") {
                prop_assert!(!refusing(&id) && !refusing(&extra), "{reported} became {offer:?}");
            }
            let lasting = chosen == &id || id == "allow_always";
            if offer.kind == "allow_always" {
                prop_assert!(lasting, "{reported} became {offer:?}");
            }
        }
    }

    #[test]
    fn no_input_panics_and_every_result_is_json(
        params in json_value(), which in 0usize..64, agent in any::<bool>(), write in any::<bool>(),
        method in prop::sample::select(vec!["session/update", "session/prompt", "session/new", "initialize", "session/request_permission", "sendUserMessage", "updateToolCall", "pushToolCall", "requestToolCallConfirmation", "x/unknown"]),
        request in any::<bool>(), result in json_value(), error in any::<bool>(),
    ) {
        let library = super::library();
        let tables = library.tables();
        let program = library.program(&tables[which % tables.len()].name).unwrap();
        let peer = if agent { Side::Agent } else { Side::Client };
        let mut translator = Translator::new(peer, program);
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if request { message["id"] = json!(3); }
        pass(&mut translator, !write, message).all();
        let member = if error { "error" } else { "result" };
        pass(&mut translator, write, json!({ "jsonrpc": "2.0", "id": 3, member: result })).all();
    }

    #[test]
    fn messages_without_a_rule_keep_their_bytes(params in json_value(), which in 0usize..64, spaces in 0usize..3) {
        let library = super::library();
        let tables = library.tables();
        let program = library.program(&tables[which % tables.len()].name).unwrap();
        let mut translator = Translator::new(Side::Agent, program);
        let text = format!("{{\"jsonrpc\":\"2.0\",{}\"method\":\"_vendor/x\",\"params\":{params}}}", " ".repeat(spaces));
        prop_assert_eq!(pass(&mut translator, true, text).outcome.forward, Forward::Unchanged);
    }
}

#[test]
fn untouched_members_keep_spelling_escapes_and_surrogates() {
    let program = super::library().program("elephant").unwrap();
    let mut agent = Translator::new(Side::Agent, program);
    let sent = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","kind":"channel","rawInput":{"z":1.50e+2,"a":"\ud800 \u0041\/"},"title":"\u00e9"}}}"#;
    let Forward::Frames(made) = pass(&mut agent, true, sent).outcome.forward else {
        panic!("a rule has changed it")
    };
    let made = String::from_utf8(made[0].as_bytes().to_vec()).unwrap();
    assert!(
        made.contains(r#""rawInput":{"z":1.50e+2,"a":"\ud800 \u0041\/"},"title":"\u00e9""#),
        "{made}"
    );
}

#[test]
fn an_option_keeps_its_meaning() {
    let options =
        |kind: &str| json!({ "options": [{ "optionId": "a", "kind": kind }] }).to_string();
    let same =
        |one: &str, two: &str| same_options(options(one).as_bytes(), options(two).as_bytes());
    assert!(same("allowOnce", "allow_once") && same("allow_persistent", "allow_always"));
    assert!(!same("rejectOnce", "allow_once") && !same("allow_once", "allow_always"));
    let offered = offered(&[("a".into(), "allow_once"), ("z".into(), "allow_always")]);
    assert!(!check_write(
        &PermissionAnswer::Cancelled,
        &offered,
        br#"{"selected":{"optionId":"a"}}"#
    ));
    assert!(!check_write(
        &PermissionAnswer::Selected("a".into()),
        &offered,
        br#"{"optionId":"z"}"#
    ));
    assert!(check_write(
        &PermissionAnswer::Selected("a".into()),
        &offered,
        br#"{"optionId":"a"}"#
    ));
}
