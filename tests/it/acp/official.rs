//! The official types as the reference: `check` accepts what they accept, and calls refused what
//! they refuse.

use std::sync::LazyLock;

use acp_relay::acp::{Checker, Consequence, Violation, ViolationKind};
use acp_relay::jsonrpc::Side;
use agent_client_protocol_schema::v1;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::generate::Generator;
use super::{describe, frame};

/// A definition that a method uses.
#[derive(Debug)]
pub(crate) struct Official {
    pub(crate) name: &'static str,
    /// Reads a value as the official type, and writes it again.
    pub(crate) pass: fn(&Value) -> Result<Value, String>,
}

macro_rules! official {
    ($($name:ident)*) => {
        &[$(Official {
            name: stringify!($name),
            pass: |value| {
                let read = serde_json::from_value::<v1::$name>(value.clone());
                let read = read.map_err(|error| error.to_string())?;
                serde_json::to_value(read).map_err(|error| error.to_string())
            },
        }),*]
    };
}

pub(crate) const OFFICIAL: &[Official] = official! {
    AuthenticateRequest AuthenticateResponse CancelNotification CancelRequestNotification
    CloseSessionRequest CloseSessionResponse CompleteElicitationNotification
    CreateElicitationRequest CreateElicitationResponse CreateTerminalRequest
    CreateTerminalResponse DeleteSessionRequest DeleteSessionResponse InitializeRequest
    InitializeResponse KillTerminalRequest KillTerminalResponse ListSessionsRequest
    ListSessionsResponse LoadSessionRequest LoadSessionResponse LogoutRequest LogoutResponse
    NewSessionRequest NewSessionResponse PromptRequest PromptResponse ReadTextFileRequest
    ReadTextFileResponse ReleaseTerminalRequest ReleaseTerminalResponse RequestPermissionRequest
    RequestPermissionResponse ResumeSessionRequest ResumeSessionResponse SessionNotification
    SetSessionConfigOptionRequest SetSessionConfigOptionResponse SetSessionModeRequest
    SetSessionModeResponse TerminalOutputRequest TerminalOutputResponse WaitForTerminalExitRequest
    WaitForTerminalExitResponse WriteTextFileRequest WriteTextFileResponse
};

/// The schema file, which is data and not an API.
pub(crate) static PUBLISHED: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../src/acp/acp-v1.schema.json")).unwrap()
});

/// The properties below try the types of all methods.
#[test]
fn the_types_of_all_methods_are_tried() {
    for (name, definition) in PUBLISHED["$defs"].as_object().unwrap() {
        let is_known = OFFICIAL.iter().any(|one| one.name == name);
        assert!(is_known || definition.get("x-method").is_none(), "{name}");
    }
}

/// The walk reads these words of JSON Schema; a new one in the file has to be added to it.
#[test]
fn the_published_schema_has_only_words_that_are_read() {
    const READ: [&str; 17] = [
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "format",
        "items",
        "maximum",
        "minLength",
        "minimum",
        "oneOf",
        "properties",
        "required",
        "type",
        "unevaluatedProperties",
        "x-deserialize-default-on-error",
        "x-deserialize-default-on-null",
    ];
    // Words without a meaning for a checker, or (`not`, `discriminator`) implied by the constants
    // of the variants.
    const IGNORED: [&str; 9] = [
        "default",
        "description",
        "discriminator",
        "not",
        "title",
        "x-deserialize-skip-invalid-items",
        "x-docs-ignore",
        "x-method",
        "x-side",
    ];
    fn walk(schema: &Value) {
        for (word, value) in schema.as_object().into_iter().flatten() {
            let word = word.as_str();
            assert!(
                READ.contains(&word) || IGNORED.contains(&word),
                "{word}: {schema}"
            );
            match word {
                "properties" => value.as_object().unwrap().values().for_each(walk),
                "allOf" | "anyOf" | "oneOf" => value.as_array().unwrap().iter().for_each(walk),
                "items" | "additionalProperties" | "unevaluatedProperties" => walk(value),
                _ => {}
            }
        }
    }
    PUBLISHED["$defs"]
        .as_object()
        .unwrap()
        .values()
        .for_each(walk);
}

/// What `check` finds in a value as params or result of its definition's method.
pub(crate) fn check(name: &str, value: &Value) -> Vec<Violation> {
    let definition = &PUBLISHED["$defs"][name];
    let method = definition["x-method"].as_str().unwrap();
    let caller = match definition["x-side"].as_str() {
        Some("client") => Side::Agent,
        _ => Side::Client,
    };
    let mut conversation = Checker::new(false);
    if name.ends_with("Response") {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        let _ = conversation.check(Some(caller), &frame(&request));
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": value});
        let verdict = conversation.check(Some(caller.other()), &frame(&answer));
        assert!(verdict.checked);
        return verdict.violations;
    }
    let mut call = json!({"jsonrpc": "2.0", "method": method, "params": value});
    if name.ends_with("Request") {
        call["id"] = 1.into();
    }
    conversation.check(Some(caller), &frame(&call)).violations
}

/// The official types read an array as an object whose members are in the order of the source code,
/// which is an accident of their library.
fn positional(deviation: &Violation) -> bool {
    let found = deviation.found.as_deref().unwrap_or_default();
    deviation.kind == ViolationKind::WrongType
        && found.starts_with("an array")
        && deviation.expected.contains("an object")
}

/// A member that has the same meaning when it is left out.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        // A tool call's kind and status by default.
        Value::String(text) => text == "other" || text == "pending",
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Whether all of `part` is in `whole`, except for empty and default values.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| match whole.get(name) {
                Some(whole) => contains(whole, part),
                None => empty(part),
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(w, p)| contains(w, p))
        }
        (Value::Number(whole), Value::Number(part)) => whole.as_f64() == part.as_f64(),
        _ => whole == part,
    }
}

fn one_of_them() -> impl Strategy<Value = &'static Official> {
    (0..OFFICIAL.len()).prop_map(|at| &OFFICIAL[at])
}

/// The properties below need accepted and refused values of every definition.
#[test]
fn the_generator_makes_valid_and_invalid_values_of_each_type() {
    for one in OFFICIAL {
        let all = (0..400_u64).map(|seed| {
            let value = Generator::new(&PUBLISHED, seed, seed % 8).definition(one.name);
            (one.pass)(&value).is_ok()
        });
        let good = all.filter(|good| *good).count();
        assert!(good > 100, "{}: only {good} are good", one.name);
        // A type with only optional members cannot be refused as an object.
        let certain = PUBLISHED["$defs"][one.name].get("required").is_none();
        assert!(good < 400 || certain, "{}: none is bad", one.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Values written by the official types do not deviate.
    #[test]
    fn values_written_by_the_official_types_are_canonical(one in one_of_them(), seed: u64, noise in 0..8_u64) {
        let value = Generator::new(&PUBLISHED, seed, noise).definition(one.name);
        if let Ok(written) = (one.pass)(&value) {
            let found = check(one.name, &written);
            prop_assert!(found.is_empty(), "{}: {written}: {:#?}", one.name, describe(&found));
        }
    }

    /// `refused` is what the official types refuse, and nothing else.
    #[test]
    fn check_refuses_exactly_what_the_official_types_refuse(one in one_of_them(), seed: u64, noise in 0..8_u64) {
        let value = Generator::new(&PUBLISHED, seed, noise).definition(one.name);
        let found = check(one.name, &value);
        let refused: Vec<&Violation> = found
            .iter()
            .filter(|one| one.consequence == Consequence::Refused)
            .collect();
        match (one.pass)(&value) {
            Ok(_) => prop_assert!(refused.iter().all(|one| positional(one)), "{}: {value} is read, but: {:#?}", one.name, describe(&found)),
            Err(error) => prop_assert!(!refused.is_empty(), "{}: {value}: {error}: {:#?}", one.name, describe(&found)),
        }
    }

    /// A value without a deviation is read by the official types without loss.
    #[test]
    fn values_without_deviations_are_read_without_loss(one in one_of_them(), seed: u64, noise in 0..8_u64) {
        let value = Generator::new(&PUBLISHED, seed, noise).definition(one.name);
        if check(one.name, &value).is_empty() {
            let written = (one.pass)(&value);
            prop_assert!(written.is_ok(), "{}: {value}: {written:?}", one.name);
            let written = written.unwrap_or_default();
            prop_assert!(contains(&written, &value), "{}: {value} became {written}", one.name);
        }
    }
}
