//! Bounds: the state of a conversation stays small however long it is and however large its
//! messages are, no forgotten request is answered wrongly, and no message is half translated.

use std::sync::{Arc, LazyLock};

use acp_relay::dialect::{DialectEvent, Forward, Program, Translator};
use acp_relay::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use proptest::prelude::*;
use serde_json::Value;

use super::golden::{side, vectors};
use super::line::value;
use super::pass;

/// The golden vectors.
static SEEDS: LazyLock<Vec<Value>> = LazyLock::new(vectors);

fn program(name: &str) -> Arc<Program> {
    super::library().program(name).unwrap()
}

#[test]
fn the_state_of_an_endless_conversation_stays_small() {
    // As many rounds as there are cases, and more than any table of the state holds.
    let rounds = u64::from(super::cases(6000).cases);
    // Those with the largest state: the original protocol, and one with slots for tool calls.
    for name in ["zed-legacy-0.0.9", "goref"] {
        let peer = Side::Client;
        let mut relay = Translator::new(peer, program(name));
        let mut flood = |rounds: std::ops::Range<u64>| {
            let held = allocation_counter::measure(|| {
                for round in rounds {
                    let call = format!(
                        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s{round:0200}","update":{{"sessionUpdate":"tool_call","toolCallId":"t{round:0200}","title":"T","kind":"read"}}}}}}"#
                    );
                    let Forward::Frames(frames) = pass(&mut relay, false, call).outcome.forward
                    else {
                        continue;
                    };
                    // It has requests where canonical has notifications.
                    for id in frames
                        .iter()
                        .filter_map(|made| value(made).get("id").cloned())
                    {
                        let answer =
                            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":{round}}}}}"#);
                        pass(&mut relay, true, answer);
                    }
                }
            });
            held.bytes_current
        };
        let first = flood(0..rounds);
        assert!(first < 16 << 20, "{name} holds {first} bytes");
        let second = flood(rounds..2 * rounds);
        assert!(second < 1 << 20, "{name} holds {second} bytes more");
        // An answer to an unknown request belongs to no request.
        let stray = r#"{"jsonrpc":"2.0","id":"never","result":{"content":"x"}}"#;
        let outcome = pass(&mut relay, true, stray).outcome;
        assert_eq!(outcome.forward, Forward::Unchanged, "{name}");
        assert!(outcome.replies.is_empty(), "{name}");
    }
}

/// A chunk of many parts, which becomes a message for each.
fn chunks(elements: usize) -> String {
    let list = vec![r#"{"type":"text","text":"x"}"#; elements].join(",");
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"kind":"agent_message_chunk","content":{{"role":"assistant","content":[{list}]}}}}}}}}"#
    )
}

#[test]
fn a_list_is_split_into_at_most_4096_messages() {
    for (elements, is_cut) in [(4096, true), (4097, false)] {
        let mut relay = Translator::new(Side::Agent, program("acpex"));
        let made = pass(&mut relay, true, chunks(elements)).outcome;
        let untranslatable = |note: &DialectEvent| *note == DialectEvent::Untranslatable;
        match made.forward {
            Forward::Frames(frames) => assert_eq!((frames.len(), is_cut), (elements, true)),
            Forward::Unchanged => assert!(!is_cut, "{elements}"),
        }
        let noted = made.notes.iter().any(|note| untranslatable(&note.what));
        assert_eq!(noted, !is_cut, "{elements}");
    }
}

#[test]
fn splitting_a_list_costs_linear_memory() {
    let cost = |elements: usize| {
        let mut relay = Translator::new(Side::Agent, program("acpex"));
        let chunks = chunks(elements);
        let mut made = None;
        let allocated = allocation_counter::measure(|| {
            made = Some(pass(&mut relay, true, chunks));
        });
        let frames = made.map(|made| made.outcome.frames(&made.frame).len());
        assert_eq!(frames, Some(elements));
        allocated.bytes_total
    };
    // Not with the square of their number: that would be sixteen times as much.
    let (some, four_times) = (cost(250), cost(1000));
    assert!(four_times < 6 * some, "{some} B, then {four_times} B");
}

#[test]
fn deep_and_wide_messages_are_translated_or_passed() {
    let depth = Limits::default().nesting.min(512) - 8;
    let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let wide = format!("[{}1]", "{},".repeat(1000));
    let many: Vec<String> = (0..300).map(|at| format!("\"k{at}\":{at}")).collect();
    let many = format!("{{{}}}", many.join(","));
    let long = format!("\"{}\"", "\\u00e9x".repeat(2000));
    let places = [
        (
            "session/update",
            r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","content":#,"rawOutput":#}}"#,
        ),
        (
            "session/update",
            r#"{"sessionId":"s","update":{"kind":"plan","content":{"steps":#},"plan":{"steps":#}}}"#,
        ),
        ("session/prompt", r#"{"sessionId":"s","prompt":#}"#),
        (
            "session/request_permission",
            r#"{"sessionId":"s","toolCall":#,"options":#}"#,
        ),
        (
            "initialize",
            r##"{"protocolVersion":1,"clientCapabilities":#,"capabilities":#}"##,
        ),
        ("session/new", r#"{"cwd":"/","mcpServers":#}"#),
    ];
    for table in super::library().tables() {
        for heavy in [&deep, &wide, &many, &long] {
            for (method, place) in places {
                let body = place.replace('#', heavy);
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{body}}}"#);
                for peer in [Side::Client, Side::Agent] {
                    let mut relay = Translator::new(peer, program(&table.name));
                    for reads in [true, false] {
                        pass(&mut relay, reads, &text).all();
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(super::cases(500))]

    /// A message of a vector with bytes changed: no panic, each result is a message, and what
    /// cannot be translated is refused or passes unchanged.
    #[test]
    fn damaged_messages_are_translated_completely_or_not_at_all(
        which: prop::sample::Index, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4), write: bool,
    ) {
        const PARTS: [&str; 14] = ["null", "1", "\"\"", "\"a\"", "[]", "{}", "true", "-1e9", "[{}]", "{\"a\":[]}", "\"\\ud800\"", ",", "\"type\"", "\"kind\":0,"];
        let vector = which.get(&SEEDS);
        let mut text = vector["dialect_msg"].to_string();
        for (at, part) in edits {
            // A value, or the beginning of one, is replaced.
            let starts: Vec<usize> = text.match_indices([':', ',', '[']).map(|(at, _)| at + 1).collect();
            let Some(start) = (!starts.is_empty()).then(|| *at.get(&starts)) else { continue };
            let end = text[start..].find([',', '}', ']']).map_or(text.len(), |end| start + end);
            let part: &&str = part.get(&PARTS);
            text.replace_range(start..end, part);
        }
        if matches!(scan(&Frame::from(text.clone()), &Limits::default()), Scanned::Message(_)) {
            let from = side(vector);
            let peer = if write { from.other() } else { from };
            let mut relay = Translator::new(peer, program(vector["dialect"].as_str().unwrap()));
            let passed = pass(&mut relay, !write, text);
            passed.all();
            let failed = passed.outcome.notes.iter().any(|note| note.what == DialectEvent::Untranslatable);
            if failed && passed.outcome.fired.is_empty() {
                let [forwarded, replies] = passed.values();
                let refused = replies.iter().any(|back| back["error"]["code"] == -32058);
                let whole = forwarded.iter().all(|made| made["params"] == value(&passed.frame)["params"]);
                prop_assert!(whole, "{:?} {forwarded:?}", passed.frame);
                prop_assert!(refused == forwarded.is_empty(), "{:?} {replies:?}", passed.frame);
            }
        }
    }
}
