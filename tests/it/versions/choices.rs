//! The answers to permission requests that choose nothing.

use acp_relay::jsonrpc::Side;
use serde_json::json;

use super::memory::Talk;

#[test]
fn an_empty_string_is_no_choice() {
    for (client, agent) in [(1, 1), (1, 2), (2, 1)] {
        for outcome in [
            json!(""),
            json!({"outcome": ""}),
            json!({"optionId": ""}),
            json!({"outcome": "", "optionId": ""}),
            json!({"outcome": "selected", "optionId": ""}),
        ] {
            let mut talk = Talk::of(client, agent);
            let options = json!([{"optionId": "", "name": "yes", "kind": "allow_once"},
                                 {"optionId": "no", "name": "no", "kind": "reject_once"}]);
            let asked = json!({"sessionId": "s", "title": "t", "options": options,
                               "toolCall": {"toolCallId": "c", "title": "t"}});
            talk.ask(Side::Agent, "p", "session/request_permission", &asked);
            talk.answer(Side::Client, "p", &json!({"outcome": outcome}));
            let received = &talk.received[Side::Agent as usize];
            let answer = received.last().unwrap();
            let chosen = answer.contains(r#""optionId":"""#);
            assert!(
                answer.contains(r#""p""#) && !chosen,
                "{client}, {agent}: {answer}"
            );
        }
    }
}
