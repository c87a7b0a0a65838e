//! Every vector and every example, in two spellings: as it stands, and with all names and texts
//! escaped in part and all whole numbers as `1.0`. Both mean the same, so the same must come of them.
//!
//! Not here: what has to come of them (see `dialect`), and spellings of the envelope (see `wire`).

use std::fmt::Write;

use acp_relay::dialect::{Translation, Translator};
use acp_relay::jsonrpc::{Frame, Side};
use serde_json::Value;

use super::golden::{examples, side, vectors};
use super::line::{scanned, value};

/// What no rule looks into, and some rules carry as text: its spelling is kept in there.
const CARRIED: [&str; 4] = ["rawInput", "rawOutput", "input", "arguments"];

/// A JSON text in the other spelling. Ids are the sender's own, and are answered as they were
/// spelled.
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

/// A text in quotes. Letters are escaped, but for every third one.
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

/// The same value whatever its numbers are spelled like.
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

/// All that comes of a conversation with a peer.
fn reported(vector: &Value, peer: Side, oddly: bool) -> Vec<Value> {
    let program = super::library().program(vector["dialect"].as_str().unwrap());
    let mut translator = Translator::new(peer, program.unwrap());
    let context = vector["context"].as_array().into_iter().flatten();
    let mut reported = Vec::new();
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
        let frame = Frame::from(text);
        let at = scanned(&frame);
        let outcome: Translation = if reads {
            translator.read(&frame, &at)
        } else {
            translator.write(&frame, &at)
        };
        reported.extend(
            outcome
                .frames(&frame)
                .iter()
                .map(|frame| plain(value(frame))),
        );
        reported.extend(outcome.replies.iter().map(|frame| plain(value(frame))));
    }
    reported
}

#[test]
fn what_is_spelled_otherwise_means_the_same() {
    let (mut faults, mut judged) = (Vec::new(), 0);
    for vector in [vectors(), examples()].concat() {
        for peer in [Side::Client, Side::Agent] {
            let (one, other) = (
                reported(&vector, peer, false),
                reported(&vector, peer, true),
            );
            judged += 1;
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
    assert!(judged > 1000, "only {judged} were judged");
    assert!(faults.is_empty(), "{}\n{}", faults.len(), faults.join("\n"));
}
