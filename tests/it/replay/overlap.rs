//! What a client sends during a turn: the played agent answers it as recorded, during the turn and
//! not after it.

use acp_relay::recording::replay::{MatchRule, ReplayRules};

use super::stage::PlayedAgent;

/// A turn of the session `a` in which the client sets a mode, creates another session, has a turn
/// there, and cancels; the answers come in another order than the requests.
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

fn played(matching: MatchRule) -> PlayedAgent {
    let rules = ReplayRules {
        matching,
        ..ReplayRules::default()
    };
    PlayedAgent::of(BUSY, rules)
}

/// Asserts that each line contains its text, in this order.
fn assert_contains(received: &[String], texts: &[&str]) {
    assert_eq!(
        received.len(),
        texts.len(),
        "{received:#?} instead of {texts:?}"
    );
    for (line, text) in received.iter().zip(texts) {
        assert!(line.contains(text), "{received:#?} instead of {texts:?}");
    }
}

#[test]
fn a_request_during_a_turn_is_answered_during_it() {
    for matching in [MatchRule::Strict, MatchRule::Shape, MatchRule::Order] {
        let mut agent = played(matching);
        assert_contains(&agent.ask(NEW), &[r#""sessionId":"a""#]);
        assert_contains(&agent.ask(ONE), &["a1", "request_permission"]);
        assert_contains(
            &agent.ask(MODE),
            &["current_mode_update", r#""id":"mode","result":{}"#],
        );
        assert_contains(&agent.ask(NEW), &[r#""sessionId":"b""#]);
        assert_contains(
            &agent.ask(TWO),
            &["b1", r#""id":"two","result":{"stopReason":"end_turn"}"#],
        );
        assert_contains(&agent.ask(CANCEL), &[]);
        assert_contains(
            &agent.ask(NO),
            &["a2", r#""id":"one","result":{"stopReason":"cancelled"}"#],
        );
    }
}

/// A client that is faster or slower than the recorded one.
#[test]
fn requests_during_a_turn_may_come_in_another_order() {
    // All requests at once, before the agent has sent anything.
    let mut eager = played(MatchRule::Strict);
    eager.ask(NEW);
    assert_contains(&eager.ask(NEW), &[r#""sessionId":"b""#]);
    for text in [ONE, TWO, MODE] {
        eager.receive(text);
    }
    let received = eager.output();
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
    assert_contains(&eager.ask(NO), &[]);
    assert_contains(&eager.ask(CANCEL), &["a2", r#""id":"one""#]);

    // The mode once the turn is over.
    let mut late = played(MatchRule::Strict);
    late.ask(NEW);
    late.ask(ONE);
    late.receive(CANCEL);
    // The agent waits for the mode for a moment only.
    assert_contains(
        &late.ask(NO),
        &["after 1s", "a2", r#""stopReason":"cancelled""#],
    );
    assert_contains(&late.ask(MODE), &["current_mode_update", r#""id":"mode""#]);
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
    let mut agent = PlayedAgent::of(&two_open, ReplayRules::default());
    agent.ask(NEW);
    agent.ask(ONE);
    agent.ask(NEW);
    assert_contains(&agent.ask(TWO), &["b1", r#""id":10"#]);
    agent.receive(CANCEL);
    assert_contains(
        &agent.ask(NO),
        &[
            "after 1s",
            "a2",
            r#""id":"one","result":{"stopReason":"cancelled"}"#,
        ],
    );
    let allowed = NO.replace("\"id\":9", "\"id\":10");
    assert_contains(
        &agent.ask(&allowed),
        &[r#""id":"two","result":{"stopReason":"end_turn"}"#],
    );
}

/// Two requests are answered in reverse order: the first answer waits for the second request, but
/// not for ever.
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
    let mut agent = PlayedAgent::of(crossed, ReplayRules::default());
    agent.receive(one);
    agent.receive(two);
    assert_contains(&agent.output(), &["\"two\"", "\"one\""]);
    let mut alone = PlayedAgent::of(crossed, ReplayRules::default());
    assert_contains(&alone.ask(one), &["after 1s", "\"one\""]);
}
