//! The recorded agent, played to clients that do as the recorded one did, and to others.

use std::time::Duration;

use acp_relay::recording::replay::{InjectedFault, MatchRule, ReplayRules, Speed, Unmatched};

use super::stage::{House, TALK};

const NEW: &str = r#"{"jsonrpc":"2.0","id":"x","method":"session/new","params":{"mcpServers":[],"cwd":"/new/place"}}"#;
const HI: &str = r#"{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"hi"}]}}"#;
const LONG: &str = r#"{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"long"}]}}"#;
const OTHER: &str = r#"{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"what?"}]}}"#;
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s-old"}}"#;
const YES: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;

fn house(set: impl FnOnce(&mut ReplayRules)) -> House {
    let mut rules = ReplayRules::default();
    set(&mut rules);
    House::of(TALK, rules)
}

fn faulty(schedule: &str) -> House {
    house(|rules| rules.faults = InjectedFault::parse_all(schedule).unwrap())
}

fn error_of(line: &str) -> (i64, String) {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let code = value["error"]["code"].as_i64().expect("an error");
    (code, value["error"]["message"].as_str().unwrap().to_owned())
}

#[test]
fn a_turn_waits_for_the_clients_answer_and_goes_by_the_live_names() {
    let mut house = house(|_| {});
    assert!(house.listen().is_empty(), "an agent waits to be asked");
    assert_eq!(
        house.ask(NEW),
        [r#"{"jsonrpc":"2.0","id":"x","result":{"sessionId":"s-old"}}"#]
    );
    let asked = house.ask(HI);
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked[0].contains(r#""text":"in /new/place/a""#),
        "{asked:?}"
    );
    assert!(asked[1].contains(r#""id":7,"method":"session/request_permission""#));
    assert!(house.listen().is_empty(), "it waits for the permission");
    let rest = house.ask(YES);
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
        let received = house(|rules| rules.matching = by).ask(initialize);
        assert_eq!(received.len(), 1);
        assert!(
            received[0].contains("result"),
            "{by}: who asks is no part of it: {received:?}"
        );
    }

    let answers = |matching, text: &str| {
        let received = house(|rules| rules.matching = matching).ask(text);
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
    // Strict finds the second turn although the first was not asked for.
    let long = house(|_| {}).ask(LONG);
    assert!(long[0].contains("agent_thought_chunk"), "{long:?}");
}

#[test]
fn what_was_not_recorded_is_an_error_that_reports_so() {
    let mut house = house(|_| {});
    let unknown = r#"{"jsonrpc":"2.0","id":9,"method":"session/fork","params":{}}"#;
    let (code, message) = error_of(&house.ask(unknown)[0]);
    assert_eq!(code, -32059);
    assert!(
        message.contains("no session/fork is in the recording"),
        "{message}"
    );
    let (_, message) = error_of(&house.ask(OTHER)[0]);
    assert!(
        message.contains("2 times more, but not with these params (match=strict)"),
        "{message}"
    );
    house.ask(NEW);
    let (_, message) = error_of(&house.ask(NEW)[0]);
    assert!(
        message.contains("1 times, and was asked more often"),
        "{message}"
    );
}

#[test]
fn a_terminal_of_another_name_is_no_other_answer() {
    let talk = r#"
> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}
< {"jsonrpc":"2.0","id":0,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}
> {"jsonrpc":"2.0","id":0,"result":{"terminalId":"1"}}
< {"jsonrpc":"2.0","id":5,"method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"1"}}
> {"jsonrpc":"2.0","id":5,"result":{"exitCode":0}}
< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","toolCallId":"1"}}
"#;
    let mut house = House::of(talk, ReplayRules::default());
    house.ask(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#);
    let asked = house.ask(r#"{"jsonrpc":"2.0","id":0,"result":{"terminalId":"term-77"}}"#);
    assert!(asked[0].contains(r#""terminalId":"term-77""#), "{asked:?}");
    assert_eq!(house.actor.notice(), None);
    let done = house.ask(r#"{"jsonrpc":"2.0","id":5,"result":{"exitCode":1}}"#);
    assert!(done[0].contains(r#""toolCallId":"1""#), "{done:?}");
    let remark = house.actor.notice().unwrap();
    assert!(remark.contains("otherwise than in event 5"), "{remark}");
}

#[test]
fn what_is_no_message_is_reported_so_unless_it_was_recorded() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#;
    let object = r#"{"jsonrpc":"2.0","id":{"a":1},"method":"initialize","params":{}}"#;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"initialize"}}"#,
        "x".repeat(300)
    );
    let all = [batch, object, &long, "garbage", "{}"];
    let mut house = house(|_| {});
    for line in all {
        let received = house.ask(line);
        assert_eq!(received.len(), 1, "{line}: {received:?}");
        let (code, _) = error_of(&received[0]);
        assert!([-32600, -32700].contains(&code), "{line}: {received:?}");
        assert_eq!(
            house.actor.notice().as_deref(),
            Some("received a line that is not a message")
        );
    }
    // What it said in the recording has the answer that it had there, and once.
    let recorded: String = all.iter().map(|line| format!("> {line}\n")).collect();
    let talk = format!("{TALK}{recorded}< {{\"id\":null,\"error\":{{\"code\":1}}}}\n");
    let mut house = House::of(&talk, ReplayRules::default());
    for line in all {
        assert_eq!(house.ask(line), [""; 0], "{line}");
    }
    assert_eq!(house.ask("garbage").len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_is_not_waited_for_again() {
    let mut house = house(|_| {});
    house.ask(HI);
    let rest = house.ask(r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#);
    assert!(rest[0].contains("tool_call"), "{rest:?}");
    assert!(rest[1].contains("end_turn"), "{rest:?}");
}

#[test]
fn the_nearest_may_be_played_again_under_other_names() {
    let mut house = house(|rules| rules.unmatched = Unmatched::Nearest);
    house.ask(NEW);
    let again = house.ask(NEW);
    assert!(again[0].contains(r#""sessionId":"s-old~2""#), "{again:?}");
    let hi = HI.replace("s-old", "s-old~2");
    let first = house.ask(&hi);
    assert!(
        first.iter().all(|line| line.contains("s-old~2")),
        "{first:?}"
    );
    // The same turn once more, while its permission request is open.
    let second = house.ask(&hi.replace("\"id\":5", "\"id\":15"));
    assert!(
        second[1].contains(r#""id":"replay-1","method":"session/request_permission""#),
        "{second:?}"
    );
    let done = house.ask(&YES.replace("\"id\":7", "\"id\":\"replay-1\""));
    assert!(done[1].contains(r#""id":15,"#), "{done:?}");
    let done = house.ask(YES);
    assert!(done[1].contains(r#""id":5,"#), "{done:?}");
}

#[test]
fn a_cancel_is_waited_for_where_there_was_one() {
    let mut house = house(|_| {});
    assert_eq!(house.ask(LONG).len(), 1);
    let rest = house.ask(CANCEL);
    assert!(rest[0].contains("usage_update"), "{rest:?}");
    assert!(
        rest[1].contains(r#""id":6,"result":{"stopReason":"cancelled"}"#),
        "{rest:?}"
    );
    assert_eq!(rest.len(), 2);
}

#[test]
fn a_cancel_that_was_not_recorded_ends_the_turn() {
    let mut house = house(|_| {});
    assert_eq!(house.ask(HI).len(), 2);
    assert_eq!(
        house.ask(CANCEL),
        [r#"{"jsonrpc":"2.0","id":5,"result":{"stopReason":"cancelled"}}"#]
    );
    assert!(house.ask(YES).is_empty(), "an answer that nobody waits for");
    assert!(house.ask(CANCEL).is_empty(), "nothing to cancel");
    let request = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":6}}"#;
    house.ask(LONG);
    assert!(house.ask(request)[1].contains(r#""id":6,"result":{"stopReason":"cancelled"}"#));
}

#[test]
fn pauses_are_those_of_the_recording() {
    let pauses = |speed: &str, max_idle| {
        let mut house = house(|rules| {
            rules.speed = speed.parse().unwrap();
            rules.max_idle = max_idle;
        });
        house.now = Duration::from_secs(100);
        let received = house.ask(HI);
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
fn faults_strike_after_their_event() {
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
    assert_eq!(gone.listen(), ["closed"]);
}

#[test]
fn a_request_that_was_dropped_is_not_waited_for() {
    let mut house = faulty("after 6 drop");
    let received = house.ask(HI);
    assert!(
        received.last().unwrap().contains("end_turn"),
        "{received:?}"
    );
}

#[test]
fn a_schedule_reports_what_is_wrong_with_it() {
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
fn the_agent_ends_when_the_client_has_and_nothing_is_left() {
    let mut house = house(|_| {});
    house.ask(HI);
    house.actor.end();
    assert_eq!(house.listen(), ["closed"]);
}

#[test]
fn a_live_agent_has_what_was_not_recorded() {
    let mut house = house(|rules| rules.unmatched = Unmatched::Forward);
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    assert_eq!(house.ask(initialize).len(), 1);
    house.ask(NEW);
    let forwarded = house.ask(&NEW.replace("\"x\"", "\"y\""));
    assert!(
        forwarded[0].contains("replay-introduction"),
        "{forwarded:?}"
    );
    assert!(forwarded[1].contains("session/new"), "{forwarded:?}");
    let mut live = |text: &str| {
        house
            .actor
            .receive_live(&acp_relay::jsonrpc::Frame::from(text.to_owned()));
        house.listen()
    };
    assert!(live(r#"{"jsonrpc":"2.0","id":"replay-introduction","result":{}}"#).is_empty());
    assert_eq!(
        live(r#"{"jsonrpc":"2.0","id":"y","result":{"sessionId":"theirs"}}"#).len(),
        1
    );
    // The session is the live agent's, so all that is about it goes there.
    let asked = house.ask(&HI.replace("s-old", "theirs"));
    assert!(asked[0].starts_with("forwarded"), "{asked:?}");
    house.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{}}"#.into(),
    );
    assert!(house.listen()[0].contains(r#""id":"replay-live-1""#));
    let answer = house.ask(r#"{"jsonrpc":"2.0","id":"replay-live-1","result":{}}"#);
    assert!(
        answer[0].starts_with("forwarded") && answer[0].contains(r#"\"id\":7"#),
        "{answer:?}"
    );
    // What cannot be read is told to who waits for it, on either side.
    house.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{}}"#.into(),
    );
    assert!(house.listen()[0].contains(r#""id":"replay-live-2""#));
    let stated = house.ask(r#"{"jsonrpc":"2.0","id":"replay-live-2","result":{},"result":{}}"#);
    let of = |id: u8| format!(r#"\"id\":{id},\"error\":{{\"code\":-32600"#);
    assert!(
        stated.len() == 1 && stated[0].starts_with("forwarded") && stated[0].contains(&of(8)),
        "{stated:?}"
    );
    house.actor.receive_live(
        &r#"{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{},"params":{}}"#.into(),
    );
    let stated = house.listen();
    assert!(
        stated.len() == 1 && stated[0].starts_with("forwarded") && stated[0].contains(&of(9)),
        "{stated:?}"
    );
    house.ask(
        &HI.replace("s-old", "theirs")
            .replace("\"id\":5", "\"id\":55"),
    );
    house
        .actor
        .receive_live(&r#"{"jsonrpc":"2.0","id":55,"result":{},"result":{}}"#.into());
    let received = house.listen();
    assert!(received[0].contains(r#""id":55,"error""#), "{received:?}");
    house.actor.lose_live();
    let (code, _) = error_of(&house.listen()[0]);
    assert_eq!(code, -32050);
}
