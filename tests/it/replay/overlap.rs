//! What a client says while a turn is open: the played agent answers it as recorded, then, and not
//! when the turn is over.

use acp_relay::recording::replay::{MatchRule, ReplayRules};

use super::stage::House;

/// A turn of `a` in which the client sets a mode, asks for another session and has a turn in it,
/// and cancels; the answers come in another order than the requests.
const BUSY: &str = r#"
> {"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/ws","mcpServers":[]}}
< {"jsonrpc":"2.0","id":0,"result":{"sessionId":"a"}}
> {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"a","prompt":[{"type":"text","text":"one"}]}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a1"}}}}
< {"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"a","options":[]}}
> {"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":"a","modeId":"fast"}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"current_mode_update","currentModeId":"fast"}}}
< {"jsonrpc":"2.0","id":2,"result":{}}
> {"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/ws","mcpServers":[]}}
< {"jsonrpc":"2.0","id":3,"result":{"sessionId":"b"}}
> {"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"b","prompt":[{"type":"text","text":"two"}]}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"b","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b1"}}}}
< {"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}
> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"a"}}
> {"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"cancelled"}}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a2"}}}}
< {"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}
"#;

const NEW: &str =
    r#"{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/here","mcpServers":[]}}"#;
const ONE: &str = r#"{"jsonrpc":"2.0","id":"one","method":"session/prompt","params":{"sessionId":"a","prompt":[{"type":"text","text":"one"}]}}"#;
const MODE: &str = r#"{"jsonrpc":"2.0","id":"mode","method":"session/set_mode","params":{"sessionId":"a","modeId":"fast"}}"#;
const TWO: &str = r#"{"jsonrpc":"2.0","id":"two","method":"session/prompt","params":{"sessionId":"b","prompt":[{"type":"text","text":"two"}]}}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"a"}}"#;
const NO: &str = r#"{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"cancelled"}}}"#;

fn house(matching: MatchRule) -> House {
    let rules = ReplayRules {
        matching,
        ..ReplayRules::default()
    };
    House::of(BUSY, rules)
}

/// Whether each line holds its word, in this order.
fn holds(received: &[String], words: &[&str]) {
    assert_eq!(
        received.len(),
        words.len(),
        "{received:#?} instead of {words:?}"
    );
    for (line, word) in received.iter().zip(words) {
        assert!(line.contains(word), "{received:#?} instead of {words:?}");
    }
}

#[test]
fn what_is_asked_during_a_turn_is_answered_during_it() {
    for matching in [MatchRule::Strict, MatchRule::Shape, MatchRule::Order] {
        let mut house = house(matching);
        holds(&house.ask(NEW), &[r#""sessionId":"a""#]);
        holds(&house.ask(ONE), &["a1", "request_permission"]);
        holds(
            &house.ask(MODE),
            &["current_mode_update", r#""id":"mode","result":{}"#],
        );
        holds(&house.ask(NEW), &[r#""sessionId":"b""#]);
        holds(
            &house.ask(TWO),
            &["b1", r#""id":"two","result":{"stopReason":"end_turn"}"#],
        );
        holds(&house.ask(CANCEL), &[]);
        holds(
            &house.ask(NO),
            &["a2", r#""id":"one","result":{"stopReason":"cancelled"}"#],
        );
    }
}

/// A client that is faster or slower than the recorded one.
#[test]
fn it_may_come_in_another_order() {
    // All at once, before the agent has said anything.
    let mut eager = house(MatchRule::Strict);
    eager.ask(NEW);
    holds(&eager.ask(NEW), &[r#""sessionId":"b""#]);
    for text in [ONE, TWO, MODE] {
        eager.receive(text);
    }
    let received = eager.listen();
    assert_eq!(received.len(), 6, "{received:#?}");
    for (id, count) in [
        (r#""id":"one""#, 0),
        (r#""id":"two""#, 1),
        (r#""id":"mode""#, 1),
    ] {
        assert_eq!(
            received.iter().filter(|line| line.contains(id)).count(),
            count,
            "{received:#?}"
        );
    }
    // The answer before the cancel, which the turn waits for.
    holds(&eager.ask(NO), &[]);
    holds(&eager.ask(CANCEL), &["a2", r#""id":"one""#]);

    // The mode once the turn is over.
    let mut late = house(MatchRule::Strict);
    late.ask(NEW);
    late.ask(ONE);
    late.receive(CANCEL);
    // It is waited for a moment, and then no more.
    holds(
        &late.ask(NO),
        &["after 1s", "a2", r#""stopReason":"cancelled""#],
    );
    holds(&late.ask(MODE), &["current_mode_update", r#""id":"mode""#]);
}

/// Two turns are open in two sessions, and one is cancelled.
#[test]
fn a_cancel_ends_the_turn_of_its_session_alone() {
    let two_open = BUSY.replace(
        r#"< {"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}"#,
        r#"< {"jsonrpc":"2.0","id":10,"method":"session/request_permission","params":{"sessionId":"b","options":[]}}"#,
    );
    let two_open = two_open
        + r#"> {"jsonrpc":"2.0","id":10,"result":{"outcome":{"outcome":"cancelled"}}}
< {"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}
"#;
    let mut house = House::of(&two_open, ReplayRules::default());
    house.ask(NEW);
    house.ask(ONE);
    house.ask(NEW);
    holds(&house.ask(TWO), &["b1", r#""id":10"#]);
    house.receive(CANCEL);
    holds(
        &house.ask(NO),
        &[
            "after 1s",
            "a2",
            r#""id":"one","result":{"stopReason":"cancelled"}"#,
        ],
    );
    let allowed = NO.replace("\"id\":9", "\"id\":10");
    holds(
        &house.ask(&allowed),
        &[r#""id":"two","result":{"stopReason":"end_turn"}"#],
    );
}

/// Two requests are answered in the other order, and the first one's answer waits for the second
/// to be asked, but not for ever.
#[test]
fn answers_come_in_the_recorded_order() {
    let crossed = r#"
> {"jsonrpc":"2.0","id":1,"method":"_x/one"}
> {"jsonrpc":"2.0","id":2,"method":"_x/two"}
< {"jsonrpc":"2.0","id":2,"result":"two"}
< {"jsonrpc":"2.0","id":1,"result":"one"}
"#;
    let one = r#"{"jsonrpc":"2.0","id":"a","method":"_x/one"}"#;
    let two = r#"{"jsonrpc":"2.0","id":"b","method":"_x/two"}"#;
    let mut house = House::of(crossed, ReplayRules::default());
    house.receive(one);
    house.receive(two);
    holds(&house.listen(), &["\"two\"", "\"one\""]);
    let mut alone = House::of(crossed, ReplayRules::default());
    holds(&alone.ask(one), &["after 1s", "\"one\""]);
}
