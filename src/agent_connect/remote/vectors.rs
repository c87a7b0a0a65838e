//! The cases in `tests/vectors/agent_connect` that say how a server is understood: what is given, and
//! `at` which pointers of what follows from it there is what.

use serde_json::{Value, json};

use super::descriptor::{Descriptor, Generation};
use super::error::RemoteError;
use super::payload::typed_answer;
use super::question::{InterruptAction, interrupt_action};
use super::run_event::{self, Interrupt, RemoteOutcome, RunEvent, text};
use super::sent_content::{SentContent, message_ids};
use super::{graph, input, server};
use crate::agent_connect::api::content::text_in;
use crate::agent_connect::api::permissions::Permissions;

/// What follows from a case of a file.
type Show = fn(&Value) -> Value;

#[test]
fn a_server_is_understood_as_the_vectors_say() {
    let files: [(&str, Show); 6] = [
        ("content", new_content),
        ("descriptors", descriptor),
        ("errors", error),
        ("events", event),
        ("inputs", input_of_prompt),
        ("questions", question),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/agent_connect");
    for (file, show) in files {
        let text = std::fs::read_to_string(format!("{folder}/{file}.jsonl")).expect("the vectors");
        for line in text.lines() {
            let case: Value = serde_json::from_str(line).expect("a case");
            let found = show(&case);
            for (pointer, expected) in case["at"].as_object().expect("pointers") {
                let found = found.pointer(pointer).unwrap_or(&Value::Null);
                assert_eq!(found, expected, "{pointer} of {case}");
            }
        }
    }
}

/// The texts sent for each step, after the messages before the run.
fn new_content(case: &Value) -> Value {
    let mut sent = SentContent::new(message_ids(list(case, "old")));
    let steps = list(case, "steps").iter().map(|step| {
        let given = &step[1];
        let messages = given.as_array().map(Vec::as_slice).unwrap_or_default();
        let new = match step[0].as_str() {
            Some("snapshot") => sent.take_new(messages),
            Some("messages") => sent.add_messages(messages),
            Some("chunk") => sent.add_chunk(given).into_iter().collect(),
            _ => {
                sent.record_update(given);
                Vec::new()
            }
        };
        json!(new.iter().filter_map(text_in).collect::<Vec<_>>())
    });
    steps.collect()
}

/// An agent by its document; without one, the server requires a key.
fn descriptor(case: &Value) -> Value {
    let id = "a".to_owned();
    let agent = match case.get("document") {
        Some(document) => Descriptor::new(id, Generation::New, document.clone()),
        None => Descriptor::unknown(id, true),
    };
    let chosen = case["chosen"].as_object().cloned().unwrap_or_default();
    let choice = |given: &Value| agent.choice(given[0].as_str().expect("an id"), &given[1]);
    let choices: Vec<Option<Value>> = list(case, "choices").iter().map(choice).collect();
    json!({
        "initialize": agent.initialize_result(),
        "stream_mode": agent.stream_mode(),
        "options": agent.options(&chosen),
        "choices": choices,
    })
}

/// The error for the client by a server's response, or by its error of a run.
fn error(case: &Value) -> Value {
    let error = match case["status"].as_u64() {
        Some(status) => {
            let status = status.try_into().expect("a status");
            RemoteError::from_http(status, text(case, "body").expect("a body").as_bytes())
        }
        None => RemoteError::from_run(case["errcode"].as_i64(), text(case, "description")),
    };
    error.to_json()
}

/// What is read from the event of a `LangGraph` server by its name, from the state of such a server's
/// thread, from another server's outcome, or from the data of its event.
fn event(case: &Value) -> Value {
    let outcome = if let Some(state) = case.get("state") {
        Some(graph::outcome(state))
    } else if let Some(answer) = case.get("outcome") {
        run_event::outcome(answer)
    } else {
        let read = match text(case, "graph") {
            Some(name) => graph::event(name, &case["data"]),
            None => run_event::parse_event(&case["data"]),
        };
        match read {
            RunEvent::Messages(messages) => return json!({ "event": { "messages": messages } }),
            RunEvent::NewMessages(messages) => return json!({ "event": { "new": messages } }),
            RunEvent::Chunk(message) => return json!({ "event": { "chunk": message } }),
            RunEvent::Update(update) => return json!({ "event": { "update": update } }),
            RunEvent::Custom(custom) => return json!({ "event": { "custom": custom } }),
            RunEvent::Outcome(outcome) => Some(outcome),
            RunEvent::Ignored => None,
        }
    };
    match outcome {
        Some(RemoteOutcome::Result { values, messages }) => json!({
            "event": { "result": [values, messages] },
            "stop": run_event::stop_reason(&values),
        }),
        Some(RemoteOutcome::Interrupt(one)) => {
            json!({ "event": { "interrupt": [one.name, one.payload, one.wrapped] } })
        }
        Some(RemoteOutcome::Failed(error)) => {
            json!({ "event": { "failed": [error.code, error.message] } })
        }
        None => json!({ "event": null }),
    }
}

/// The input for the text of a prompt, by the input's schema.
fn input_of_prompt(case: &Value) -> Value {
    let prompt = [json!({ "type": "text", "text": case["text"] })];
    match input::input(Some(&case["schema"]), &prompt, &[]) {
        Ok(input) => json!({ "input": input }),
        Err(failure) => json!({ "refused": failure.code }),
    }
}

/// What becomes of an interrupt, and what each of the client's answers to it means; an answer without
/// a result is an error.
fn question(case: &Value) -> Value {
    let interrupt = Interrupt {
        name: text(case, "interrupt").expect("a name").to_owned(),
        payload: case["payload"].clone(),
        wrapped: false,
    };
    let forms = case["forms"] != false;
    let question = match interrupt_action("s", "r", &interrupt, case.get("schema"), forms) {
        InterruptAction::Ask(question) => question,
        InterruptAction::Inform(text) => return json!({ "inform": text }),
        InterruptAction::Resume(payload) => return json!({ "resume": payload }),
    };
    let answers = list(case, "answers").iter().map(|given| {
        let rule = match given["rule"] == "allow" {
            true => Permissions::Allow,
            false => Permissions::Reject,
        };
        let answer = question.answer(given.get("result"), rule);
        let approves = answer.as_ref().is_some_and(|with| question.approves(with));
        json!([answer, approves])
    });
    json!({ "answers": answers.collect::<Vec<_>>(), "params": question.params })
}

fn list<'a>(case: &'a Value, name: &str) -> &'a [Value] {
    case[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn a_text_is_the_only_member_of_an_answer() {
    let one = json!({ "properties": { "day": { "type": "string" } } });
    let monday = json!({ "day": "Monday" });
    assert_eq!(typed_answer("Monday", Some(&one)), monday);
}

#[test]
fn path_segments_are_escaped() {
    assert_eq!(server::segment("b7a9-x_1.0"), "b7a9-x_1.0");
    assert_eq!(server::segment("../a?b"), "..%2Fa%3Fb");
    assert_eq!(server::segment(".."), "%2E%2E");
}
