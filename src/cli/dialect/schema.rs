//! `acp-relay dialect schema`: the JSON Schema of mapping tables, for editors.
//!
//! The names of conversions and actions come from their lists in `crate::dialect`; the keys of each
//! object are written here, and `tests/it/dialect_cli` checks that the table reader knows exactly
//! these. A copy is kept at `mappings/schema/table.json`. What a schema cannot state is left to
//! `check`.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::cli::console;
use crate::dialect::Converter;
use crate::dialect::table::{Action, FORMAT};

pub(super) fn run() -> ExitCode {
    console::print_json(&schema(), 0)
}

fn schema() -> Value {
    let mut table = table();
    let about = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A mapping table of acp-relay",
        "description": "One dialect of the Agent Client Protocol as two columns; mappings/README.md specifies the language.",
    });
    let mut all = about.as_object().cloned().unwrap_or_default();
    all.append(table.as_object_mut().expect("an object was made above"));
    all.insert("$defs".to_owned(), definitions());
    Value::Object(all)
}

fn table() -> Value {
    let properties = json!({
        "$schema": text("Where this schema is, for editors."),
        "format": {"description": "The version of the language.", "const": FORMAT},
        "dialect": text("The dialect's name."),
        "aliases": list(&text("A name that means this table, too.")),
        "title": text("One line for a person."),
        "why": text("Where the dialect comes from."),
        "source": note(),
        "notes": note(),
        "dates": text("When it was spoken."),
        "speaker": {"description": "The side that speaks it, when only one does.", "enum": ["client", "agent", "both"]},
        "extends": list(&text("A table this one builds on, nearest first.")),
        "reads": list(&text("A table that is built on for reading alone.")),
        "detect": list(&of("clue")),
        "framing": text("The framing its peers use."),
        "jsonrpc": {
            "description": "Where its writers put `jsonrpc`: always, or only on these methods and their answers.",
            "anyOf": [{"const": "always"}, object(&json!({"only": list(&text("A method."))}), &[])],
        },
        "ids": {"description": "Whether its peers understand only 32-bit integers as ids.", "enum": ["any", "int32"]},
        "params": {"description": "Whether its peers want `params` in every request.", "enum": ["any", "always"]},
        "memory": {"type": "object", "additionalProperties": of("slot")},
        "shapes": {"type": "object", "additionalProperties": list(&of("case"))},
        "rules": list(&of("rule")),
    });
    object(&properties, &["format", "dialect", "title"])
}

fn definitions() -> Value {
    let case = case();
    let mut rule = case.clone();
    merge(
        &mut rule,
        json!({
            "id": text("Its name, unique in the table."),
            "why": text("Why the rule is there, with its source."),
            "on": selector(&["method", "answers", "errors_of"], json!({"kind": {"description": "The dialect has a request where canonical has a notification.", "const": "dialect_asks"}}), &["from"]),
            "cases": list(&of("case")),
            "split": object(&json!({"dialect": of("pointer"), "canonical": of("pointer")}), &[]),
            "failure": {"description": "What becomes of a message that cannot be translated.", "enum": ["pass", "refuse"]},
            "loses": list(&object(&json!({
                "when": of("guard"),
                "at": list(&json!({"type": "string", "pattern": "^(/|$)", "description": "A place in a canonical message; `*` is any one name or index."})),
                "why": note(),
            }), &["at"])),
            "examples": list(&json!({"type": "object", "description": "One message in both columns, with the keys of vectors."})),
            "source": note(),
            "seen": note(),
            "until": note(),
            "notes": note(),
        }),
    );
    json!({
        "pointer": {"type": "string", "pattern": "^(/|$)", "description": "A JSON Pointer (RFC 6901), relative to params, result or error."},
        "way": {"description": "read: from the dialect to canonical; write: back.", "enum": ["read", "write"]},
        "names": {
            "description": "A method, or its names in the two columns.",
            "anyOf": [text("The same in both."), object(&json!({"dialect": text("In the dialect."), "canonical": text("In canonical.")}), &[])],
        },
        "guard": {"type": "object", "description": "Pointers and what is expected there.", "additionalProperties": expectation()},
        "conversion": {"enum": Converter::ALL.map(|(name, _)| name)},
        "action": {"enum": Action::ALL.map(|(name, _)| name)},
        "error": object(&json!({"code": {"type": "integer"}, "message": text("What went wrong."), "data": true}), &["code", "message"]),
        "clue": clue(),
        "slot": selector(&["method", "answers"], json!({
            "when": of("guard"),
            "at": of("pointer"),
            "by": of("pointer"),
            "per": {"enum": ["connection", "session", "request"]},
            "why": note(),
        }), &["from", "at", "per"]),
        "row": row(),
        "values": values(),
        "emit": object(&json!({
            "way": of("way"),
            "place": {"enum": ["before", "after"]},
            "method": text("The further message's method."),
            "each": of("pointer"),
            "rows": list(&of("row")),
            "why": note(),
        }), &["method"]),
        "case": object(&case, &[]),
        "rule": object(&rule, &["id", "why", "on"]),
    })
}

fn case() -> Value {
    json!({
        "name": text("The case's name."),
        "why": text("Why the case is there."),
        "when": object(&json!({"dialect": of("guard"), "canonical": of("guard")}), &[]),
        "only": of("way"),
        "lossy": text("What is lost."),
        "rows": list(&of("row")),
        "rest": {
            "description": "What becomes of members that no row and no guard names.",
            "anyOf": [
                {"enum": ["keep", "meta"]},
                object(&json!({"dialect": of("pointer"), "canonical": of("pointer"), "drop": text("Why.")}), &[]),
            ],
        },
        "emit": list(&of("emit")),
        "answer": object(&json!({"result": true, "error": of("error")}), &[]),
        "fail": of("error"),
        "refuse": of("error"),
        "drop": text("Why the message or the element is left out."),
        "do": list(&of("action")),
    })
}

fn row() -> Value {
    let properties = json!({
        "dialect": of("pointer"),
        "canonical": of("pointer"),
        "why": note(),
        "note": note(),
        "lossy": note(),
        "only": of("way"),
        "copy": {"type": "boolean", "description": "The value also stays at its old place."},
        "values": of("values"),
        "read_values": of("values"),
        "write_values": of("values"),
        "other": {"description": "What every other value is read as."},
        "park": {"type": "boolean", "description": "A value that would not come back is parked."},
        "each": {"anyOf": [list(&of("row")), object(&json!({"shape": text("A shape of this table.")}), &["shape"])]},
        "in": list(&of("row")),
        "shape": text("A shape of this table."),
        "as": of("conversion"),
        "default": {"description": "Written when there is nothing, removed on the way back."},
        "const": {"description": "Always written."},
        "recall": {"anyOf": [
            text("A slot."),
            object(&json!({"slot": text("A slot."), "by": of("pointer"), "or": {"description": "When nothing is remembered."}}), &["slot"]),
        ]},
        "derive": object(&json!({"from": of("pointer"), "as": of("conversion")}), &["from", "as"]),
        "into": {"description": "The column that is filled.", "enum": ["dialect", "canonical"]},
        "drop": text("Why the value is left out."),
    });
    object(&properties, &[])
}

fn clue() -> Value {
    let info = json!({"type": "object", "description": "Members and their values."});
    object(
        &json!({
            "agentInfo": info,
            "clientInfo": info,
            "version": text("A bound such as `<1.0`."),
            "initialize": of("guard"),
            "initialize_result": of("guard"),
            "update": of("guard"),
            "why": note(),
        }),
        &[],
    )
}

/// A constant, or a test of one word. A non-empty object that is no test needs `const`.
fn expectation() -> Value {
    let types = json!({"enum": ["null", "boolean", "number", "string", "array", "object"]});
    let tests = [
        ("is", list(&types)),
        ("in", json!({"type": "array"})),
        ("not_in", json!({"type": "array"})),
        ("absent", json!({"type": "boolean"})),
        ("matches", text("A regular expression.")),
        ("const", json!(true)),
    ];
    let mut all: Vec<Value> = tests
        .iter()
        .map(|(word, what)| object(&json!({*word: what}), &[word]))
        .collect();
    all.push(json!({"type": ["null", "boolean", "number", "string", "array"]}));
    all.push(json!({"const": {}}));
    json!({"anyOf": all})
}

fn values() -> Value {
    let pair = json!({"type": "array", "minItems": 2, "maxItems": 2});
    json!({
        "description": "Dialect values and their canonical values.",
        "anyOf": [{"type": "object"}, {"type": "array", "items": pair}],
    })
}

/// Selects messages of one side by one of the `kinds`; `more` are further keys.
fn selector(kinds: &[&str], more: Value, required: &[&str]) -> Value {
    let mut properties =
        json!({"from": {"description": "The side that sends.", "enum": ["client", "agent"]}});
    for kind in kinds {
        properties[*kind] = of("names");
    }
    merge(&mut properties, more);
    let mut all = object(&properties, required);
    all["anyOf"] = kinds
        .iter()
        .map(|kind| json!({"required": [kind]}))
        .collect();
    all
}

fn of(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": about})
}

/// A remark for people; the program does not read it.
fn note() -> Value {
    json!({"description": "For people."})
}

/// A list, or a single item.
fn list(item: &Value) -> Value {
    json!({"anyOf": [{"type": "array", "items": item}, item]})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    let mut all = Map::new();
    all.insert("type".to_owned(), "object".into());
    all.insert("properties".to_owned(), properties.clone());
    if !required.is_empty() {
        all.insert("required".to_owned(), required.into());
    }
    all.insert("additionalProperties".to_owned(), false.into());
    Value::Object(all)
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
