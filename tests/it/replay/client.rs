//! The recorded client, played to agents that behave as the recorded one did, and to others.

use std::time::Duration;

use acp_relay::recording::replay::{IgnoreRules, compare};
use serde_json::json;

use super::stage::{CONVERSATION, PlayedClient, script};

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

/// A played client that has sent its first prompt.
fn prompted() -> PlayedClient {
    let mut client = PlayedClient::of(CONVERSATION);
    assert!(client.receive(&[]).0[0].contains("initialize"));
    assert!(client.receive(&[INITIALIZED]).0[0].contains("session/new"));
    let (sent, _) = client.receive(&[OPENED]);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains(r#""sessionId":"s-new""#), "{sent:?}");
    client
}

#[test]
fn each_message_waits_for_what_preceded_it() {
    let mut client = prompted();
    let (sent, wait) = client.receive(&[CHUNK]);
    assert_eq!((sent.len(), wait), (0, Some(Duration::from_secs(60))));
    let same = [("y", "allow_once", "Yes"), ("n", "reject_once", "No")];
    let (sent, _) = client.receive(&[&permission(&same)]);
    assert_eq!(
        sent,
        [
            r#"{"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#
        ]
    );
    assert!(client.receive(&[TOOL]).0.is_empty());
    assert!(client.receive(&[DONE]).0[0].contains("long"));
    // It cancels once it has received what it had received before the recorded cancel.
    assert!(client.receive(&[]).0.is_empty());
    assert!(client.receive(&[THOUGHT]).0[0].contains("session/cancel"));
    assert_eq!(client.receive(&[USAGE, CANCELLED]), (vec![], None));
    let compared = compare(
        &script(CONVERSATION),
        client.driver.live(),
        &IgnoreRules::default(),
    );
    assert_eq!(compared.differences, []);
    assert_eq!((compared.turns, compared.steps), (vec![5, 11], 15));
}

#[test]
fn a_permission_is_chosen_by_its_kind() {
    let mut client = prompted();
    let other = [("no", "reject_once", "No"), ("once", "allow_once", "Go on")];
    let (sent, _) = client.receive(&[CHUNK, &permission(&other)]);
    assert!(sent[0].contains(r#""optionId":"once""#), "{sent:?}");
    let mut client = prompted();
    let (sent, _) = client.receive(&[CHUNK, &permission(&[("no", "reject_once", "No")])]);
    assert!(
        sent[0].contains("-32059") && sent[0].contains("no option"),
        "{sent:?}"
    );
}

#[test]
fn a_request_that_was_not_recorded_is_refused_and_reported() {
    let mut client = prompted();
    let terminal =
        r#"{"jsonrpc":"2.0","id":4,"method":"terminal/create","params":{"sessionId":"s-new"}}"#;
    let (sent, _) = client.receive(&[terminal]);
    assert!(
        sent[0].contains(r#""id":4"#) && sent[0].contains("-32059"),
        "{sent:?}"
    );
    // The turn ends without the permission; the client goes on.
    assert!(client.receive(&[CHUNK, TOOL, DONE]).0[0].contains("long"));
    client.receive(&[THOUGHT, USAGE, CANCELLED]);
    let compared = compare(
        &script(CONVERSATION),
        client.driver.live(),
        &IgnoreRules::default(),
    );
    let found: Vec<_> = compared
        .differences
        .iter()
        .map(|one| (one.kind, one.turn, one.title.as_str()))
        .collect();
    assert!(
        found.contains(&("missing", 1, "session/request_permission")),
        "{found:?}"
    );
    assert!(
        found.contains(&("extra", 1, "terminal/create")),
        "{found:?}"
    );
    assert!(found.iter().all(|one| one.1 == 1), "{found:?}");
}

#[test]
fn ignored_and_redacted_values_make_no_difference() {
    let conversation = CONVERSATION.replace("in /old/ws/a", "‹redacted:012345›");
    let mut client = prompted();
    let same = [("y", "allow_once", "Yes"), ("n", "reject_once", "No")];
    let tool = TOOL.replace("\"t9\"", "\"t9\",\"rawOutput\":5");
    client.receive(&[CHUNK, &permission(&same), &tool, DONE]);
    client.receive(&[THOUGHT]);
    client.receive(&[USAGE, CANCELLED]);
    let ignoring = |places: &[&str], messages: &[&str]| {
        let ignored = IgnoreRules {
            places: places.iter().map(|one| one.parse().unwrap()).collect(),
            messages: messages.iter().map(|&text| text.to_owned()).collect(),
        };
        compare(&script(&conversation), client.driver.live(), &ignored).differences
    };
    let found = ignoring(&[], &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].event), ("changed", Some(9)));
    assert_eq!(found[0].patch[0]["path"], "/body/update/rawOutput");
    assert_eq!(ignoring(&["/params/update/rawOutput"], &[]), []);
    assert_eq!(ignoring(&["/params/*/rawOutput"], &[]), []);
    assert_eq!(ignoring(&["/result/update/rawOutput"], &[]).len(), 1);
    assert_eq!(ignoring(&[], &["\"sessionUpdate\":\"tool_call\""]), []);
    // This ignores notifications only: without its request an answer would make no sense.
    assert_eq!(ignoring(&[], &["optionId"]).len(), 1);
}

#[test]
fn usage_and_the_end_of_a_cancelled_text_make_no_difference() {
    let differs = |from: &str, to: &str| {
        assert!(CONVERSATION.contains(from), "{from}");
        let other = script(&CONVERSATION.replace(from, to));
        compare(&script(CONVERSATION), &other, &IgnoreRules::default()).differences
    };
    assert_eq!(differs(r#""used":1"#, r#""used":2000"#), []);
    assert_eq!(
        differs(r#""text":"hm""#, r#""text":"hm, let me think""#),
        []
    );
    assert_eq!(differs(r#""text":"hm""#, r#""text":"h""#), []);
    assert_eq!(differs(r#""text":"hm""#, r#""text":"no""#).len(), 1);
    // A prompt is not a text that may be cut.
    assert_eq!(differs(r#""text":"long""#, r#""text":"longer""#).len(), 1);
}

#[test]
fn the_wait_for_a_silent_agent_ends() {
    let mut client = prompted();
    let (_, wait) = client.receive(&[CHUNK]);
    client.now += wait.unwrap();
    // The wait for the permission request ends first, then the wait for the answer.
    while let (_, Some(wait)) = client.receive(&[]) {
        client.now += wait;
    }
    let problems = client.driver.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("event 5, session/prompt: there is no answer"),
        "{problems:?}"
    );
}

#[test]
fn the_end_of_the_agents_stream_is_reported() {
    let mut client = prompted();
    client.driver.end();
    assert_eq!(client.receive(&[]), (vec![], None));
    let problems = client.driver.problems();
    assert!(
        problems[0].contains("ended its stream before it answered"),
        "{problems:?}"
    );
    assert!(problems[1].contains("before event 11"), "{problems:?}");
}

#[test]
fn the_played_client_answers_in_the_recorded_order() {
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
    let mut client = PlayedClient::of(ASKED);
    client.receive(&[]);
    // The recorded client answered the other request first, so this one waits.
    assert!(client.receive(&[&ask(5, "/a")]).0.is_empty());
    let (sent, _) = client.receive(&[&ask(6, "/b")]);
    assert!(sent[0].contains(r#""content":"b""#) && sent[1].contains(r#""content":"a""#));
    assert_eq!(sent.len(), 2, "{sent:?}");

    // An agent that sends one request after the other gets its answer once it is silent.
    let mut slow = PlayedClient::of(ASKED);
    slow.receive(&[]);
    let (_, wait) = slow.receive(&[&ask(5, "/a")]);
    slow.now += wait.unwrap();
    assert!(slow.receive(&[]).0[0].contains(r#""content":"a""#));
}

#[test]
fn an_open_request_may_be_answered_after_the_last_message() {
    let open = r#"
> {"jsonrpc":"2.0","id":1,"method":"_never/answered"}
< {"jsonrpc":"2.0","method":"_told"}
"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"gone"}}"#;
    let notification = r#"{"jsonrpc":"2.0","method":"_told"}"#;
    for closes in [true, false] {
        let mut client = PlayedClient::of(open);
        client.receive(&[]);
        client.receive(&[notification]);
        if closes {
            client.driver.close();
        }
        client.receive(&[answer]);
        client.driver.end();
        let compared = compare(&script(open), client.driver.live(), &IgnoreRules::default());
        assert_eq!(compared.differences.is_empty(), closes, "{compared:?}");
        if closes {
            assert_eq!(client.driver.problems().len(), 0);
        }
    }
}

#[test]
fn fewer_lines_that_are_no_messages_make_no_difference_and_more_lines_do() {
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
