//! The recorded agent, played to clients that behave as the recorded one did, and to others.

use std::time::Duration;

use acp_relay::recording::replay::{InjectedFault, MatchRule, ReplayRules, Speed, Unmatched};

use super::stage::{CONVERSATION, PlayedAgent};

const NEW: &str = r#"{"jsonrpc":"2.0","id":"x","method":"session/new","params":{"mcpServers":[],"cwd":"/new/place"}}"#;
const HI: &str = r#"{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"hi"}]}}"#;
const LONG: &str = r#"{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"long"}]}}"#;
const OTHER: &str = r#"{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"what?"}]}}"#;
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s-old"}}"#;
const YES: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;

fn played(set: impl FnOnce(&mut ReplayRules)) -> PlayedAgent {
    let mut rules = ReplayRules::default();
    set(&mut rules);
    PlayedAgent::of(CONVERSATION, rules)
}

fn faulty(schedule: &str) -> PlayedAgent {
    played(|rules| rules.faults = InjectedFault::parse_all(schedule).unwrap())
}

fn error_of(line: &str) -> (i64, String) {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let code = value["error"]["code"].as_i64().expect("an error");
    (code, value["error"]["message"].as_str().unwrap().to_owned())
}

#[test]
fn a_turn_waits_for_the_clients_answer_and_uses_the_live_names() {
    let mut agent = played(|_| {});
    assert!(agent.output().is_empty(), "an agent waits for a request");
    assert_eq!(
        agent.ask(NEW),
        [r#"{"jsonrpc":"2.0","id":"x","result":{"sessionId":"s-old"}}"#]
    );
    let asked = agent.ask(HI);
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[0].contains(r#""text":"in /new/place/a""#),
        "{asked:?}"
    );
    assert!(asked[1].contains(r#""id":7,"method":"session/request_permission""#));
    assert!(agent.output().is_empty(), "it waits for the permission");
    let rest = agent.ask(YES);
    assert!(rest[0].contains("tool_call"), "{rest:?}");
    assert_eq!(
        rest[1..],
        [r#"{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}"#]
    );
}

#[test]
fn requests_are_matched_by_params_by_shape_or_in_order() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"someone else"},"clientCapabilities":{"terminal":true}}}"#;
    for by in [MatchRule::Strict, MatchRule::Shape, MatchRule::Order] {
        let received = played(|rules| rules.matching = by).ask(initialize);
        assert_eq!(received.len(), 1);
        assert!(
            received[0].contains("result"),
            "{by}: the client's name must not count: {received:?}"
        );
    }

    let answers = |matching, text: &str| {
        let received = played(|rules| rules.matching = matching).ask(text);
        !received[0].contains("\"error\"")
    };
    let empty =
        r#"{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s-old"}}"#;
    assert_eq!(
        [MatchRule::Strict, MatchRule::Shape, MatchRule::Order].map(|by| answers(by, HI)),
        [true; 3]
    );
    assert_eq!(
        [MatchRule::Strict, MatchRule::Shape, MatchRule::Order].map(|by| answers(by, OTHER)),
        [false, true, true]
    );
    assert_eq!(
        [MatchRule::Strict, MatchRule::Shape, MatchRule::Order].map(|by| answers(by, empty)),
        [false, false, true]
    );
    // Strict finds the second turn although the first was not requested.
    let long = played(|_| {}).ask(LONG);
    assert!(long[0].contains("agent_thought_chunk"), "{long:?}");
}

#[test]
fn a_request_that_was_not_recorded_gets_an_error_that_states_so() {
    let mut agent = played(|_| {});
    let unknown = r#"{"jsonrpc":"2.0","id":9,"method":"session/fork","params":{}}"#;
    let (code, message) = error_of(&agent.ask(unknown)[0]);
    assert_eq!(code, -32059);
    assert!(
        message.contains("no session/fork is in the recording"),
        "{message}"
    );
    let (_, message) = error_of(&agent.ask(OTHER)[0]);
    assert!(
        message.contains("2 times more, but not with these params (match=strict)"),
        "{message}"
    );
    agent.ask(NEW);
    let (_, message) = error_of(&agent.ask(NEW)[0]);
    assert!(
        message.contains("1 times, and was asked more often"),
        "{message}"
    );
}

#[test]
fn an_answer_with_another_terminal_id_is_not_reported_as_different() {
    let conversation = r#"
> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}
< {"jsonrpc":"2.0","id":0,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}
> {"jsonrpc":"2.0","id":0,"result":{"terminalId":"1"}}
< {"jsonrpc":"2.0","id":5,"method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"1"}}
> {"jsonrpc":"2.0","id":5,"result":{"exitCode":0}}
< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","toolCallId":"1"}}
"#;
    let mut agent = PlayedAgent::of(conversation, ReplayRules::default());
    agent.ask(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#);
    let asked = agent.ask(r#"{"jsonrpc":"2.0","id":0,"result":{"terminalId":"term-77"}}"#);
    assert!(asked[0].contains(r#""terminalId":"term-77""#), "{asked:?}");
    assert_eq!(agent.actor.notice(), None);
    let done = agent.ask(r#"{"jsonrpc":"2.0","id":5,"result":{"exitCode":1}}"#);
    assert!(done[0].contains(r#""toolCallId":"1""#), "{done:?}");
    let notice = agent.actor.notice().unwrap();
    assert!(notice.contains("otherwise than in event 5"), "{notice}");
}

#[test]
fn a_line_that_is_no_message_gets_an_error_unless_it_was_recorded() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#;
    let object = r#"{"jsonrpc":"2.0","id":{"a":1},"method":"initialize","params":{}}"#;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"initialize"}}"#,
        "x".repeat(300)
    );
    let all = [batch, object, &long, "garbage", "{}"];
    let mut agent = played(|_| {});
    for line in all {
        let received = agent.ask(line);
        assert_eq!(received.len(), 1, "{line}: {received:?}");
        let (code, _) = error_of(&received[0]);
        assert!([-32600, -32700].contains(&code), "{line}: {received:?}");
        assert_eq!(
            agent.actor.notice().as_deref(),
            Some("received a line that is not a message")
        );
    }
    // A recorded line gets its recorded answer, once.
    let recorded: String = all.iter().map(|line| format!("> {line}\n")).collect();
    let conversation =
        format!("{CONVERSATION}{recorded}< {{\"id\":null,\"error\":{{\"code\":1}}}}\n");
    let mut agent = PlayedAgent::of(&conversation, ReplayRules::default());
    for line in all {
        assert_eq!(agent.ask(line), [""; 0], "{line}");
    }
    assert_eq!(agent.ask("garbage").len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_ends_the_wait_for_it() {
    let mut agent = played(|_| {});
    agent.ask(HI);
    let rest = agent.ask(r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#);
    assert!(rest[0].contains("tool_call"), "{rest:?}");
    assert!(rest[1].contains("end_turn"), "{rest:?}");
}

#[test]
fn the_nearest_turn_may_be_played_again_under_other_names() {
    let mut agent = played(|rules| rules.unmatched = Unmatched::Nearest);
    agent.ask(NEW);
    let again = agent.ask(NEW);
    assert!(again[0].contains(r#""sessionId":"s-old~2""#), "{again:?}");
    let hi = HI.replace("s-old", "s-old~2");
    let first = agent.ask(&hi);
    assert!(
        first.iter().all(|line| line.contains("s-old~2")),
        "{first:?}"
    );
    // The same turn again, while its permission request is open.
    let second = agent.ask(&hi.replace("\"id\":5", "\"id\":15"));
    assert!(
        second[1].contains(r#""id":"replay-1","method":"session/request_permission""#),
        "{second:?}"
    );
    let done = agent.ask(&YES.replace("\"id\":7", "\"id\":\"replay-1\""));
    assert!(done[1].contains(r#""id":15,"#), "{done:?}");
    let done = agent.ask(YES);
    assert!(done[1].contains(r#""id":5,"#), "{done:?}");
}

#[test]
fn a_turn_waits_for_its_recorded_cancel() {
    let mut agent = played(|_| {});
    assert_eq!(agent.ask(LONG).len(), 1);
    let rest = agent.ask(CANCEL);
    assert!(rest[0].contains("usage_update"), "{rest:?}");
    assert!(
        rest[1].contains(r#""id":6,"result":{"stopReason":"cancelled"}"#),
        "{rest:?}"
    );
    assert_eq!(rest.len(), 2);
}

#[test]
fn a_cancel_that_was_not_recorded_ends_the_turn() {
    let mut agent = played(|_| {});
    assert_eq!(agent.ask(HI).len(), 2);
    assert_eq!(
        agent.ask(CANCEL),
        [r#"{"jsonrpc":"2.0","id":5,"result":{"stopReason":"cancelled"}}"#]
    );
    assert!(agent.ask(YES).is_empty(), "an answer to no open request");
    assert!(agent.ask(CANCEL).is_empty(), "nothing to cancel");
    let request = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":6}}"#;
    agent.ask(LONG);
    assert!(agent.ask(request)[1].contains(r#""id":6,"result":{"stopReason":"cancelled"}"#));
}

#[test]
fn pauses_are_those_of_the_recording() {
    let pauses = |speed: &str, max_idle| {
        let mut agent = played(|rules| {
            rules.speed = speed.parse().unwrap();
            rules.max_idle = max_idle;
        });
        agent.now = Duration::from_secs(100);
        let received = agent.ask(HI);
        received
            .into_iter()
            .filter(|line| line.starts_with("after"))
            .collect::<Vec<_>>()
    };
    assert!(pauses("max", None).is_empty());
    assert_eq!(pauses("1", None), ["after 1s", "after 1s"]);
    assert_eq!(pauses("10", None), ["after 100ms", "after 100ms"]);
    assert_eq!(
        pauses("0.5", Some(Duration::from_millis(1500))),
        ["after 1.5s", "after 1.5s"]
    );
    assert!("0".parse::<Speed>().is_err() && "fast".parse::<Speed>().is_err());
}

#[test]
fn faults_are_injected_after_their_event() {
    let mut dropped = faulty("after 5 drop");
    assert!(
        dropped.ask(HI)[0].contains("request_permission"),
        "the update is missing"
    );

    let mut late = faulty("# slow\n\nafter 6 delay 2s\n");
    assert_eq!(late.ask(HI)[1], "after 2s");

    let mut wrong = faulty("after 8 error -32603 out of memory");
    wrong.ask(HI);
    let rest = wrong.ask(YES);
    assert!(
        rest[0].contains("tool_call"),
        "only an answer becomes an error"
    );
    assert_eq!(error_of(&rest[1]), (-32603, "out of memory".to_owned()));

    let mut noisy = faulty("after 5 garbage not json");
    assert_eq!(noisy.ask(HI)[0], "not json");

    let mut gone = faulty("after 6 close");
    let received = gone.ask(HI);
    assert_eq!(received[1..], ["closed"], "{received:?}");
    assert_eq!(gone.output(), ["closed"]);
}

#[test]
fn the_answer_to_a_dropped_request_is_not_waited_for() {
    let mut agent = faulty("after 6 drop");
    let received = agent.ask(HI);
    assert!(
        received.last().unwrap().contains("end_turn"),
        "{received:?}"
    );
}

#[test]
fn an_error_in_a_fault_schedule_names_its_line() {
    for wrong in [
        "after x drop",
        "before 3 drop",
        "after 3 explode",
        "after 3 delay 5",
        "after 3 error x",
        "after 3 drop it",
    ] {
        let fault = InjectedFault::parse_all(&format!("\n{wrong}")).unwrap_err();
        assert!(fault.starts_with("line 2: "), "{wrong}: {fault}");
    }
}

#[test]
fn the_agent_closes_when_the_client_has_ended() {
    let mut agent = played(|_| {});
    agent.ask(HI);
    agent.actor.end();
    assert_eq!(agent.output(), ["closed"]);
}

#[test]
fn requests_that_were_not_recorded_are_forwarded_to_a_live_agent() {
    let mut agent = played(|rules| rules.unmatched = Unmatched::Forward);
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    assert_eq!(agent.ask(initialize).len(), 1);
    agent.ask(NEW);
    let forwarded = agent.ask(&NEW.replace("\"x\"", "\"y\""));
    assert!(
        forwarded[0].contains("replay-introduction"),
        "{forwarded:?}"
    );
    assert!(forwarded[1].contains("session/new"), "{forwarded:?}");
    let mut live = |text: &str| {
        agent
            .actor
            .receive_live(&acp_relay::jsonrpc::Frame::from(text.to_owned()));
        agent.output()
    };
    assert!(live(r#"{"jsonrpc":"2.0","id":"replay-introduction","result":{}}"#).is_empty());
    assert_eq!(
        live(r#"{"jsonrpc":"2.0","id":"y","result":{"sessionId":"theirs"}}"#).len(),
        1
    );
    // The session is the live agent's, so its messages are forwarded.
    let asked = agent.ask(&HI.replace("s-old", "theirs"));
    assert!(asked[0].starts_with("forwarded"), "{asked:?}");
    agent.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}"#.into(),
    );
    assert!(agent.output()[0].contains(r#""id":"replay-live-1""#));
    let answer = agent.ask(r#"{"jsonrpc":"2.0","id":"replay-live-1","result":{}}"#);
    assert!(
        answer[0].starts_with("forwarded") && answer[0].contains(r#"\"id\":7"#),
        "{answer:?}"
    );
    // The side that waits for an unreadable answer gets an error.
    agent.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{}}"#.into(),
    );
    assert!(agent.output()[0].contains(r#""id":"replay-live-2""#));
    let received = agent.ask(r#"{"jsonrpc":"2.0","id":"replay-live-2","result":{},"result":{}}"#);
    let of = |id: u8| format!(r#"\"id\":{id},\"error\":{{\"code\":-32600"#);
    assert!(
        received.len() == 1 && received[0].starts_with("forwarded") && received[0].contains(&of(8)),
        "{received:?}"
    );
    agent.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{},"params":{}}"#.into(),
    );
    let received = agent.output();
    assert!(
        received.len() == 1 && received[0].starts_with("forwarded") && received[0].contains(&of(9)),
        "{received:?}"
    );
    agent.ask(
        &HI.replace("s-old", "theirs")
            .replace("\"id\":5", "\"id\":55"),
    );
    agent
        .actor
        .receive_live(&r#"{"jsonrpc":"2.0","id":55,"result":{},"result":{}}"#.into());
    let received = agent.output();
    assert!(received[0].contains(r#""id":55,"error""#), "{received:?}");
    agent.actor.lose_live();
    let (code, _) = error_of(&agent.output()[0]);
    assert_eq!(code, -32050);
}
