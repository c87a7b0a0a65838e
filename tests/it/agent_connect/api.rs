//! The types of the API, by the cases in `tests/vectors/agent_connect`: the input, and the expected
//! values at the pointers in `at`.

use acp_relay::agent_connect::api::agent::{AgentInfo, agent_id, parse_id};
use acp_relay::agent_connect::api::content::{TurnOutput, text_in};
use acp_relay::agent_connect::api::descriptor::{Descriptor, Generation};
use acp_relay::agent_connect::api::error::{ApiError, RpcError};
use acp_relay::agent_connect::api::history_filter::HistoryFilter;
use acp_relay::agent_connect::api::input::input;
use acp_relay::agent_connect::api::interrupt::{AgentQuestion, Permissions};
use acp_relay::agent_connect::api::openapi;
use acp_relay::agent_connect::api::page::ResultPage;
use acp_relay::agent_connect::api::question::{InterruptAction, interrupt_action, typed_answer};
use acp_relay::agent_connect::api::run::{Interrupt, RunOutcome, Timestamp};
use acp_relay::agent_connect::api::run_event::{self, RunEvent, stop_reason};
use acp_relay::agent_connect::api::run_request::RunRequest;
use acp_relay::agent_connect::api::search::AgentFilter;
use acp_relay::agent_connect::api::sent_content::{SentContent, message_ids};
use serde_json::{Value, json};

use super::{cases, list};

/// The result of a case of a file.
type Show = fn(&Value) -> Value;

#[test]
fn the_api_matches_the_vectors() {
    let files: [(&str, Show); 11] = [
        ("agents", agent),
        ("answers", answer),
        ("bodies", body),
        ("content", new_content),
        ("descriptors", descriptor),
        ("errors", error),
        ("events", event),
        ("histories", history),
        ("inputs", input_of_prompt),
        ("outputs", output),
        ("questions", question),
    ];
    for (file, show) in files {
        for case in cases("agent_connect", file) {
            let found = show(&case);
            for (pointer, expected) in case["at"].as_object().unwrap() {
                let found = found.pointer(pointer).unwrap_or(&Value::Null);
                assert_eq!(found, expected, "{pointer} of {case}");
            }
        }
    }
}

/// An agent by its configuration and its answer to `initialize`, and its error.
fn agent(case: &Value) -> Value {
    let text = |name: &str| case[name].as_str();
    let agent = AgentInfo::new(text("name"), text("about"), &case["initialized"], "");
    let matches = |version: Option<&str>| {
        agent.matches(&AgentFilter {
            name: Some(agent.name.clone()),
            version: version.map(str::to_owned),
        })
    };
    assert!(matches(None) && !matches(Some("2")), "{case}");
    let descriptor = agent.descriptor(case["forms"] == true);
    let blocks = &descriptor["specs"]["input"]["properties"]["prompt"]["items"];
    let blocks = list(blocks, "anyOf").iter();
    let blocks = blocks.map(|block| &block["properties"]["type"]["const"]);
    let supports = ["close", "fork", "list"].map(|name| agent.supports(name));
    json!({
        "entry": agent.entry(),
        "reopen": agent.reopen_method(),
        "supports": supports,
        "run_error": agent.run_error(&case["error"]),
        "blocks": blocks.collect::<Vec<_>>(),
        "descriptor": descriptor,
    })
}

/// The answer to an agent's request by a resume payload.
fn answer(case: &Value) -> Value {
    let question = match case["question"].as_str() {
        Some("form") => form(),
        _ => permission(),
    };
    match question.answer(&case["resume"]) {
        Ok(answer) => json!({ "answer": answer }),
        Err(fault) => refused(&fault),
    }
}

/// A request for a run, by its body and the agent's answer when the session is opened.
fn body(case: &Value) -> Value {
    match RunRequest::read(case["body"].clone()) {
        Ok(request) => json!({
            "prompt": request.input.prompt,
            "history": request.input.history,
            "webhook": request.webhook,
            "keeps_thread": request.keeps_thread(),
            "delay": request.delay,
            "mcp_servers": request.setup.mcp_servers,
            "options": request.setup.options_for(&case["opened"]),
        }),
        Err(fault) => refused(&fault),
    }
}

/// Which updates replay the messages of a thread.
fn history(case: &Value) -> Value {
    let mut filter = HistoryFilter::new(list(case, "messages"));
    let updates = list(case, "updates").iter();
    let history: Vec<bool> = updates.map(|update| filter.is_history(update)).collect();
    json!({ "history": history })
}

/// The output of the updates of a turn.
fn output(case: &Value) -> Value {
    let mut output = TurnOutput::default();
    for update in list(case, "updates") {
        output.apply(update);
    }
    json!({ "messages": output.messages(), "text": output.text(), "activity": output.activity() })
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
    let choice = |given: &Value| agent.choice(given[0].as_str().unwrap(), &given[1]);
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
            let status = status.try_into().unwrap();
            RpcError::from_http(status, case["body"].as_str().unwrap().as_bytes())
        }
        None => RpcError::from_run(case["errcode"].as_i64(), case["description"].as_str()),
    };
    error.to_json()
}

/// What is read from the event of a `LangGraph` server by its name, from the state of such a server's
/// thread, from another server's outcome, or from the data of its event.
fn event(case: &Value) -> Value {
    let outcome = if let Some(state) = case.get("state") {
        Some(run_event::graph_outcome(state))
    } else if let Some(answer) = case.get("outcome") {
        run_event::outcome(answer)
    } else {
        let read = match case["graph"].as_str() {
            Some(name) => run_event::parse_graph_event(name, &case["data"]),
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
        Some(RunOutcome::Result {
            values, messages, ..
        }) => json!({
            "event": { "result": [values, messages] },
            "stop": stop_reason(&values),
        }),
        Some(RunOutcome::Interrupt(one)) => {
            json!({ "event": { "interrupt": [one.name, one.payload, one.wrapped] } })
        }
        Some(RunOutcome::Error(error)) => {
            json!({ "event": { "failed": [error.code, error.message] } })
        }
        None => json!({ "event": null }),
    }
}

/// The input for the text of a prompt, by the input's schema.
fn input_of_prompt(case: &Value) -> Value {
    let prompt = [json!({ "type": "text", "text": case["text"] })];
    match input(Some(&case["schema"]), &prompt, &[]) {
        Ok(input) => json!({ "input": input }),
        Err(failure) => json!({ "refused": failure.code }),
    }
}

/// What becomes of an interrupt, and what each of the client's answers to it means; an answer without
/// a result is an error.
fn question(case: &Value) -> Value {
    let interrupt = Interrupt {
        name: case["interrupt"].as_str().unwrap().to_owned(),
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

fn refused(fault: &ApiError) -> Value {
    json!({ "status": fault.status, "refused": fault.message })
}

fn permission() -> AgentQuestion {
    let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [
        { "optionId": "y", "name": "Yes", "kind": "allow_once" },
        { "optionId": "n", "name": "No", "kind": "reject_once" },
    ] });
    AgentQuestion::from_request(json!(5), "session/request_permission", params).unwrap()
}

fn form() -> AgentQuestion {
    let params = json!({
        "sessionId": "s", "mode": "form", "message": "Which day?", "requestedSchema": {},
    });
    AgentQuestion::from_request(json!("e"), "elicitation/create", params).unwrap()
}

#[test]
fn a_permission_is_shown_with_its_id_and_granted_by_rule() {
    let question = permission();
    let payload = question.interrupt(1).payload;
    assert_eq!(
        (&payload["request_id"], &payload["more"]),
        (&json!(5), &json!(1))
    );
    let granted = json!({ "outcome": { "outcome": "selected", "optionId": "y" } });
    assert_eq!(question.by_rule(Permissions::Allow), granted);
}

#[test]
fn a_text_is_the_only_member_of_an_answer() {
    let one = json!({ "properties": { "day": { "type": "string" } } });
    let monday = json!({ "day": "Monday" });
    assert_eq!(typed_answer("Monday", Some(&one)), monday);
}

#[test]
fn the_document_has_the_limits_of_the_program() {
    let document = openapi::document("");
    let limit = |pointer: &str| {
        let pointer = format!("/components/{pointer}");
        document.pointer(&pointer).and_then(Value::as_u64).unwrap()
    };
    for pointer in [
        "parameters/offset/schema/maximum",
        "schemas/ThreadSearchRequest/properties/offset/maximum",
        "schemas/RunSearchRequest/properties/offset/maximum",
        "schemas/AgentSearchRequest/properties/offset/maximum",
    ] {
        let offset = limit(pointer);
        let page = |offset| ResultPage { limit: 1, offset }.check();
        assert!(page(offset).is_ok(), "{pointer}");
        assert!(page(offset + 1).is_err(), "{pointer}");
    }
    let config = "RunCreateStateful/properties/config/properties/recursion_limit/maximum";
    let with_limit =
        |limit: u64| json!({ "message": "hi", "config": { "recursion_limit": limit } });
    let with_delay = |limit: u64| json!({ "message": "hi", "after_seconds": limit });
    let with_url = |len: u64| json!({ "message": "hi", "webhook": "x".repeat(len as usize) });
    let bodies: [(&str, &dyn Fn(u64) -> Value); 3] = [
        (config, &with_limit),
        (
            "RunCreateStateful/properties/after_seconds/maximum",
            &with_delay,
        ),
        ("RunCreateStateless/properties/webhook/maxLength", &with_url),
    ];
    for (pointer, body) in bodies {
        let limit = limit(&format!("schemas/{pointer}"));
        assert!(RunRequest::read(body(limit)).is_ok(), "{pointer}");
        assert!(RunRequest::read(body(limit + 1)).is_err(), "{pointer}");
    }
}

#[test]
fn every_reference_in_the_document_has_a_target() {
    let document = openapi::document("");
    let text = document.to_string();
    for (at, _) in text.match_indices("#/") {
        let pointer = text[at + 1..].split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

/// Stored threads and clients refer to them.
#[test]
fn ids_of_agents_stay_the_same() {
    let goose = agent_id("goose").to_string();
    assert_eq!(goose, "0da37e86-7b23-58bb-bc4a-9b1e2ffc6de1");
    let text = "b7a9f2d4-6c1e-4a0b-9c55-000000000201";
    assert_eq!(parse_id(text).unwrap().to_string(), text);
    assert_eq!(parse_id(&text.replace('-', "")), None);
}

#[test]
fn times_are_shown_as_rfc_3339() {
    for (micros, shown) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
        (1_767_607_200_000_000, "2026-01-05T10:00:00.000000Z"),
        (-1_000_000, "1969-12-31T23:59:59.000000Z"),
    ] {
        assert_eq!(Timestamp::of_micros(micros).to_string(), shown);
    }
}

#[test]
fn stored_outcomes_are_read() {
    for stored in [
        r#"{"values":{},"messages":[1],"text":"a"}"#,
        r#"{"interrupt":"x","payload":{}}"#,
        r#"{"errcode":-32603,"description":"y"}"#,
    ] {
        let outcome: RunOutcome = serde_json::from_str(stored).unwrap();
        assert_eq!(json!(outcome).to_string(), stored);
    }
}
