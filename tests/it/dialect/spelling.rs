//! Every vector and every example in two spellings: unchanged, and with names and texts partly
//! escaped and whole numbers as `1.0`. Both have the same meaning, so the results must be equal.
//!
//! Not here: the expected results (see `dialect`), and spellings of the envelope (see `wire`).

use std::fmt::Write;

use acp_relay::dialect::Translator;
use acp_relay::jsonrpc::Side;
use serde_json::Value;

use super::golden::{examples, side, vectors};
use super::pass;

/// Members that no rule reads, and some rules carry as text: their spelling is kept.
const CARRIED: [&str; 4] = ["rawInput", "rawOutput", "input", "arguments"];

/// A JSON text in the other spelling. Ids belong to the sender, and keep their spelling in answers.
fn spell(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => quote(text, out),
        Value::Number(number) if number.is_i64() => write!(out, "{number}.0").unwrap(),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { " ,\t" } else { " " });
                spell(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { " ,\t" } else { " " });
                quote(name, out);
                out.push_str(" : ");
                if name == "id" || CARRIED.contains(&&**name) {
                    write!(out, "{value}").unwrap();
                } else {
                    spell(value, out);
                }
            }
            out.push('}');
        }
        _ => write!(out, "{value}").unwrap(),
    }
}

/// A quoted text. All characters but every third letter are escaped.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for (at, unit) in text.encode_utf16().enumerate() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() && (at + text.len()).is_multiple_of(3) => {
                out.push(byte.into());
            }
            _ => write!(out, "\\u{unit:04x}").unwrap(),
        }
    }
    out.push('"');
}

/// The value with one spelling of numbers.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) => number.into(),
            None => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(name, it)| (name, plain(it))).collect())
        }
        other => other,
    }
}

/// All results of a conversation with a peer.
fn results(vector: &Value, peer: Side, oddly: bool) -> Vec<Value> {
    let program = super::library().program(vector["dialect"].as_str().unwrap());
    let mut translator = Translator::new(peer, program.unwrap());
    let context = vector["context"].as_array().into_iter().flatten();
    let mut results = Vec::new();
    for line in context.chain([vector]) {
        let reads = side(line) == peer;
        let column = if reads {
            "dialect_msg"
        } else {
            "canonical_msg"
        };
        if !line[column].is_object() {
            continue;
        }
        let mut text = line[column].to_string();
        if oddly {
            text.clear();
            spell(&line[column], &mut text);
        }
        let values = pass(&mut translator, reads, text).values().concat();
        results.extend(values.into_iter().map(plain));
    }
    results
}

#[test]
fn another_spelling_gives_the_same_results() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for vector in [vectors(), examples()].concat() {
        for peer in [Side::Client, Side::Agent] {
            let (one, other) = (results(&vector, peer, false), results(&vector, peer, true));
            checked += 1;
            if one != other {
                let name = &vector["name"];
                let differs = one.iter().zip(&other).find(|(one, other)| one != other);
                faults.push(match differs {
                    Some((one, other)) => format!("{name}, the {peer}:\n  {one}\n  {other}"),
                    None => format!("{name}, the {peer}: {} and {}", one.len(), other.len()),
                });
            }
        }
    }
    assert!(checked > 1000, "only {checked} were checked");
    assert!(faults.is_empty(), "{}\n{}", faults.len(), faults.join("\n"));
}

/// Chunks are tested without reading them again; a member that occurs twice counts as its last
/// occurrence there, too.
#[test]
fn the_last_of_two_members_of_a_chunk_counts() {
    let program = super::library().program("loose-v1").unwrap();
    let fires = |update: &str| {
        let mut relay = Translator::new(Side::Agent, program.clone());
        let update = format!(r#"{{"sessionUpdate":"agent_message_chunk",{update}}}"#);
        let params = format!(r#"{{"sessionId":"s","update":{update}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
        !pass(&mut relay, true, text).outcome.fired.is_empty()
    };
    let kept = [
        r#""content":{"type":"text","text":"a"}"#,
        r#""content":{"text":"a","type":"text"}"#,
        r#""content":{"type":"text","text":"\"type\":\"resource\" \u0041"}"#,
        r#""content":{"type":"resourceLink","uri":"file:///a","type":"text","text":""}"#,
        r#""content":"a","content":{"type":"text","text":"a"}"#,
        r#""content":{"type":"text","text":"a"},"_meta":{"type":"resourceLink"}"#,
    ];
    let changed = [
        r#""content":"a""#,
        r#""content":{"type":"text","text":"a"},"content":"a""#,
        r#""content":{"type":"resourceLink","uri":"file:///a"}"#,
        r#""content":{ "type":"resourceLink","uri":"file:///a"}"#,
        r#""content":{"type":"text","uri":"file:///a","type":"resourceLink"}"#,
        r#""content":{"type":"text","uri":"file:///a","\u0074ype":"resourceLink"}"#,
        r#""content":{"type":"resource\u004cink","uri":"file:///a"}"#,
        r#""content":{"_meta":{"type":"text"},"type":"resourceLink","uri":"file:///a"}"#,
    ];
    for update in kept {
        assert!(!fires(update), "{update}");
    }
    for update in changed {
        assert!(fires(update), "{update}");
    }
}
