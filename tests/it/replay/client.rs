//! The recorded client, played to agents that do as the recorded one did, and to others.

use std::time::Duration;

use acp_relay::recording::replay::{IgnoreRules, compare};
use serde_json::json;

use super::stage::{Guest, TALK, script};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
const OPENED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-new"}}"#;
const CHUNK: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-new","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"in /old/ws/a"}}}}"#;
const TOOL: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-new","update":{"sessionUpdate":"tool_call","toolCallId":"t9"}}}"#;
const DONE: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;
const THOUGHT: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-new","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}"#;
const USAGE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-new","update":{"sessionUpdate":"usage_update","used":1}}}"#;
const CANCELLED: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#;

/// The permission request, with these options.
fn permission(options: &[(&str, &str, &str)]) -> String {
    let options: Vec<_> = options
        .iter()
        .map(|(id, kind, name)| json!({"optionId": id, "kind": kind, "name": name}))
        .collect();
    json!({"jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": {
        "sessionId": "s-new", "toolCall": {"toolCallId": "t9"}, "options": options,
    }})
    .to_string()
}

/// A client whose first prompt was said.
fn prompted() -> Guest {
    let mut guest = Guest::of(TALK);
    assert!(guest.receive(&[]).0[0].contains("initialize"));
    assert!(guest.receive(&[INITIALIZED]).0[0].contains("session/new"));
    let (reported, _) = guest.receive(&[OPENED]);
    assert_eq!(reported.len(), 1);
    assert!(
        reported[0].contains(r#""sessionId":"s-new""#),
        "{reported:?}"
    );
    guest
}

#[test]
fn each_message_waits_for_what_came_before_it() {
    let mut guest = prompted();
    let (reported, wait) = guest.receive(&[CHUNK]);
    assert_eq!((reported.len(), wait), (0, Some(Duration::from_secs(60))));
    let same = [("y", "allow_once", "Yes"), ("n", "reject_once", "No")];
    let (reported, _) = guest.receive(&[&permission(&same)]);
    assert_eq!(
        reported,
        [
            r#"{"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#
        ]
    );
    assert!(guest.receive(&[TOOL]).0.is_empty());
    assert!(guest.receive(&[DONE]).0[0].contains("long"));
    // It cancels once it has heard what it had heard before it cancelled.
    assert!(guest.receive(&[]).0.is_empty());
    assert!(guest.receive(&[THOUGHT]).0[0].contains("session/cancel"));
    assert_eq!(guest.receive(&[USAGE, CANCELLED]), (vec![], None));
    let compared = compare(&script(TALK), guest.driver.live(), &IgnoreRules::default());
    assert_eq!(compared.differences, []);
    assert_eq!((compared.turns, compared.steps), (vec![5, 11], 15));
}

#[test]
fn a_permission_is_chosen_by_its_kind() {
    let mut guest = prompted();
    let other = [("no", "reject_once", "No"), ("once", "allow_once", "Go on")];
    let (reported, _) = guest.receive(&[CHUNK, &permission(&other)]);
    assert!(reported[0].contains(r#""optionId":"once""#), "{reported:?}");
    let mut guest = prompted();
    let (reported, _) = guest.receive(&[CHUNK, &permission(&[("no", "reject_once", "No")])]);
    assert!(
        reported[0].contains("-32059") && reported[0].contains("no option"),
        "{reported:?}"
    );
}

#[test]
fn what_was_never_asked_is_refused_and_reported() {
    let mut guest = prompted();
    let terminal =
        r#"{"jsonrpc":"2.0","id":4,"method":"terminal/create","params":{"sessionId":"s-new"}}"#;
    let (reported, _) = guest.receive(&[terminal]);
    assert!(
        reported[0].contains(r#""id":4"#) && reported[0].contains("-32059"),
        "{reported:?}"
    );
    // The turn ends without the permission; the client goes on.
    assert!(guest.receive(&[CHUNK, TOOL, DONE]).0[0].contains("long"));
    guest.receive(&[THOUGHT, USAGE, CANCELLED]);
    let compared = compare(&script(TALK), guest.driver.live(), &IgnoreRules::default());
    let stated: Vec<_> = compared
        .differences
        .iter()
        .map(|one| (one.kind, one.turn, one.title.as_str()))
        .collect();
    assert!(
        stated.contains(&("missing", 1, "session/request_permission")),
        "{stated:?}"
    );
    assert!(
        stated.contains(&("extra", 1, "terminal/create")),
        "{stated:?}"
    );
    assert!(stated.iter().all(|one| one.1 == 1), "{stated:?}");
}

#[test]
fn what_is_ignored_or_was_redacted_is_no_difference() {
    let talk = TALK.replace("in /old/ws/a", "‹redacted:012345›");
    let mut guest = prompted();
    let same = [("y", "allow_once", "Yes"), ("n", "reject_once", "No")];
    let tool = TOOL.replace("\"t9\"", "\"t9\",\"rawOutput\":5");
    guest.receive(&[CHUNK, &permission(&same), &tool, DONE]);
    guest.receive(&[THOUGHT]);
    guest.receive(&[USAGE, CANCELLED]);
    let ignoring = |places: &[&str], messages: &[&str]| {
        let ignored = IgnoreRules {
            places: places.iter().map(|one| one.parse().unwrap()).collect(),
            messages: messages.iter().map(|&text| text.to_owned()).collect(),
        };
        compare(&script(&talk), guest.driver.live(), &ignored).differences
    };
    let found = ignoring(&[], &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].event), ("changed", Some(9)));
    assert_eq!(found[0].patch[0]["path"], "/body/update/rawOutput");
    assert_eq!(ignoring(&["/params/update/rawOutput"], &[]), []);
    assert_eq!(ignoring(&["/params/*/rawOutput"], &[]), []);
    assert_eq!(ignoring(&["/result/update/rawOutput"], &[]).len(), 1);
    assert_eq!(ignoring(&[], &["\"sessionUpdate\":\"tool_call\""]), []);
    // Only of notifications: without a request its answer would make no sense.
    assert_eq!(ignoring(&[], &["optionId"]).len(), 1);
}

#[test]
fn what_a_run_used_and_where_a_cancelled_text_ends_is_no_difference() {
    let differs = |from: &str, to: &str| {
        assert!(TALK.contains(from), "{from}");
        let other = script(&TALK.replace(from, to));
        compare(&script(TALK), &other, &IgnoreRules::default()).differences
    };
    assert_eq!(differs(r#""used":1"#, r#""used":2000"#), []);
    assert_eq!(
        differs(r#""text":"hm""#, r#""text":"hm, let me think""#),
        []
    );
    assert_eq!(differs(r#""text":"hm""#, r#""text":"h""#), []);
    assert_eq!(differs(r#""text":"hm""#, r#""text":"no""#).len(), 1);
    // What was asked is not a text that goes on.
    assert_eq!(differs(r#""text":"long""#, r#""text":"longer""#).len(), 1);
}

#[test]
fn silence_is_given_up_on() {
    let mut guest = prompted();
    let (_, wait) = guest.receive(&[CHUNK]);
    guest.now += wait.unwrap();
    // First the permission is not waited for any longer, then the answer.
    while let (_, Some(wait)) = guest.receive(&[]) {
        guest.now += wait;
    }
    let troubles = guest.driver.problems();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(
        troubles[0].starts_with("event 5, session/prompt: there is no answer"),
        "{troubles:?}"
    );
}

#[test]
fn an_end_of_the_agent_is_reported() {
    let mut guest = prompted();
    guest.driver.end();
    assert_eq!(guest.receive(&[]), (vec![], None));
    let troubles = guest.driver.problems();
    assert!(
        troubles[0].contains("ended its stream before it answered"),
        "{troubles:?}"
    );
    assert!(troubles[1].contains("before event 11"), "{troubles:?}");
}

#[test]
fn answers_are_given_in_their_order() {
    const ASKED: &str = r#"
> {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}
< {"jsonrpc":"2.0","id":5,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}
< {"jsonrpc":"2.0","id":6,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/b"}}
> {"jsonrpc":"2.0","id":6,"result":{"content":"b"}}
> {"jsonrpc":"2.0","id":5,"result":{"content":"a"}}
< {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
"#;
    let ask = |id: u8, path: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"fs/read_text_file","params":{{"sessionId":"s","path":"{path}"}}}}"#
        )
    };
    let mut guest = Guest::of(ASKED);
    guest.receive(&[]);
    // The other one was answered first, so it is waited for.
    assert!(guest.receive(&[&ask(5, "/a")]).0.is_empty());
    let (reported, _) = guest.receive(&[&ask(6, "/b")]);
    assert!(reported[0].contains(r#""content":"b""#) && reported[1].contains(r#""content":"a""#));
    assert_eq!(reported.len(), 2, "{reported:?}");

    // An agent that asks one after the other has its answer once it is silent.
    let mut slow = Guest::of(ASKED);
    slow.receive(&[]);
    let (_, wait) = slow.receive(&[&ask(5, "/a")]);
    slow.now += wait.unwrap();
    assert!(slow.receive(&[]).0[0].contains(r#""content":"a""#));
}

#[test]
fn what_was_left_open_may_be_answered_once_all_is_reported() {
    let open = r#"
> {"jsonrpc":"2.0","id":1,"method":"_never/answered"}
< {"jsonrpc":"2.0","method":"_told"}
"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"gone"}}"#;
    let stated = r#"{"jsonrpc":"2.0","method":"_told"}"#;
    for closes in [true, false] {
        let mut guest = Guest::of(open);
        guest.receive(&[]);
        guest.receive(&[stated]);
        if closes {
            guest.driver.close();
        }
        guest.receive(&[answer]);
        guest.driver.end();
        let compared = compare(&script(open), guest.driver.live(), &IgnoreRules::default());
        assert_eq!(compared.differences.is_empty(), closes, "{compared:?}");
        if closes {
            assert_eq!(guest.driver.problems().len(), 0);
        }
    }
}

#[test]
fn fewer_lines_that_are_no_messages_are_no_difference_and_more_are() {
    let plain = "> {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n";
    let noisy = format!("< starting at 10:15\n{plain}");
    let other = format!("< starting at 10:16\n{plain}");
    let differs = |a: &str, b: &str| {
        let compared = compare(&script(a), &script(b), &IgnoreRules::default());
        !compared.differences.is_empty()
    };
    assert!(!differs(&noisy, plain) && !differs(&noisy, &other));
    assert!(differs(plain, &noisy));
}
