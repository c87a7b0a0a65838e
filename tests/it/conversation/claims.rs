//! Sessions that other relays may have: each is claimed before a message that names it passes,
//! however it is spelled.

use std::sync::Arc;
use std::time::Instant;

use acp_relay::conversation::{
    Cause, Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox,
};
use acp_relay::dialect::Library;
use acp_relay::dialect::versions::VersionPolicies;
use acp_relay::jsonrpc::{Frame, Limits, Side};
use serde_json::{Value, json};

/// Nothing for both.
const NONE: [Vec<Value>; 2] = [Vec::new(), Vec::new()];

struct Play {
    core: Conversation,
    out: Outbox,
    now: Instant,
}

impl Play {
    fn new(dialects: DialectOptions) -> Self {
        let limits = Arc::new(Limits::default());
        let traits = LinkTraits {
            client_half_close: true,
            ..LinkTraits::default()
        };
        Self {
            out: Outbox::new(&limits),
            core: Conversation::new(limits, traits, dialects, Instant::now()).claiming(true),
            now: Instant::now(),
        }
    }

    /// A side sends a message; what the client and the agent receive.
    fn sends(&mut self, from: Side, message: &Value) -> [Vec<Value>; 2] {
        let frame = Frame::from(message.to_string().into_bytes());
        self.core.handle_frame(from, frame, self.now, &mut self.out);
        self.received()
    }

    fn client(&mut self, id: u64, method: &str, params: &Value) -> [Vec<Value>; 2] {
        self.sends(Side::Client, &request(id, method, params))
    }

    fn claimed(&mut self, result: Result<(), &str>) -> [Vec<Value>; 2] {
        let result = result.map_err(str::to_owned);
        self.core.handle_claimed(result, self.now, &mut self.out);
        self.received()
    }

    fn received(&mut self) -> [Vec<Value>; 2] {
        [Side::Client, Side::Agent].map(|side| {
            let frames = std::iter::from_fn(|| self.out.pop(side));
            let values = frames.map(|frame| serde_json::from_slice(frame.as_bytes()).unwrap());
            values.collect()
        })
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn methods(messages: &[Value]) -> Vec<&str> {
    let methods = messages.iter().map(|message| message["method"].as_str());
    methods.map(Option::unwrap_or_default).collect()
}

#[test]
fn a_request_waits_for_the_claim_of_the_session_that_it_names() {
    let mut play = Play::new(DialectOptions::default());
    let load = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
    assert_eq!(play.client(1, "session/load", &load), NONE);
    assert_eq!(play.core.next_claim().as_deref(), Some("s"));
    // It is asked for once, and the client is not read meanwhile.
    assert_eq!(play.core.next_claim(), None);
    assert!(play.core.is_claiming(Side::Client) && !play.core.is_claiming(Side::Agent));
    let prompt = json!({"sessionId": "s", "prompt": []});
    assert_eq!(play.client(2, "session/prompt", &prompt), NONE);
    let [_, agent] = play.claimed(Ok(()));
    assert_eq!(methods(&agent), ["session/load", "session/prompt"]);
    assert_eq!(play.core.next_claim(), None);
    // Whatever the method is.
    play.client(3, "_own/enter", &json!({"sessionId": "other"}));
    assert_eq!(play.core.next_claim().as_deref(), Some("other"));
    let [client, agent] = play.claimed(Err("it lives on the host h"));
    assert_eq!((client[0]["id"].as_u64(), agent.len()), (Some(3), 0));
    let message = client[0]["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("on this host: it lives on the host h"),
        "{message}"
    );
    // No reader may take another session than the one that is claimed.
    for (params, code) in [
        (r#"{"sessionId":"s","sessionId":"other"}"#, -32600),
        (r#"{"sessionId":"s","session\u0049d":"other"}"#, -32600),
        (r#"{"sessionId":"s","session_id":"other"}"#, -32053),
        (r#"{"SessionID":"other"}"#, -32053),
    ] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":4,"method":"session/load","params":{params}}}"#);
        let frame = Frame::from(text.into_bytes());
        play.core
            .handle_frame(Side::Client, frame, play.now, &mut play.out);
        let [client, agent] = play.received();
        assert_eq!(client[0]["error"]["code"], code, "{params}");
        assert!(
            agent.is_empty() && play.core.next_claim().is_none(),
            "{params}"
        );
    }
    let long = json!({"sessionId": "s".repeat(2000)});
    assert_eq!(play.client(5, "session/load", &long)[0].len(), 1);
}

#[test]
fn an_answer_that_names_a_new_session_waits_for_its_claim() {
    let mut play = Play::new(DialectOptions::default());
    play.client(1, "session/new", &json!({}));
    let made = json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "n"}});
    let update =
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "n"}});
    assert_eq!(play.sends(Side::Agent, &made), NONE);
    assert_eq!(play.sends(Side::Agent, &update), NONE);
    assert_eq!(play.core.next_claim().as_deref(), Some("n"));
    assert_eq!(play.claimed(Ok(())), [vec![made, update], vec![]]);
    play.client(2, "session/new", &json!({}));
    let again = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "m"}});
    play.sends(Side::Agent, &again);
    assert_eq!(play.core.next_claim().as_deref(), Some("m"));
    let [client, _] = play.claimed(Err("no"));
    assert_eq!(
        (&client[0]["id"], &client[0]["error"]["code"]),
        (&json!(2), &json!(-32053))
    );
}

#[test]
fn a_session_that_is_closed_deleted_or_not_entered_is_given_up() {
    let mut play = Play::new(DialectOptions::default());
    let result = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    let error =
        |id: u64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}});
    let mut id = 0;
    let mut ask = |play: &mut Play, method: &str, answer: &dyn Fn(u64) -> Value| {
        id += 1;
        play.client(id, method, &json!({"sessionId": "s"}));
        let is_new = play.core.next_claim().is_some();
        if is_new {
            play.claimed(Ok(()));
        }
        play.sends(Side::Agent, &answer(id));
        (is_new, !play.core.released().is_empty())
    };
    // More than a client may have at a time.
    for _ in 0..3000 {
        assert_eq!(ask(&mut play, "session/load", &error), (true, true));
        assert_eq!(ask(&mut play, "session/load", &result), (true, false));
        assert_eq!(ask(&mut play, "session/prompt", &error), (false, false));
        assert_eq!(ask(&mut play, "session/close", &error), (false, false));
        assert_eq!(ask(&mut play, "session/close", &result), (false, true));
        assert_eq!(ask(&mut play, "session/delete", &result), (true, true));
    }
}

#[test]
fn a_batch_and_a_table_with_other_names_pass_no_session_unclaimed() {
    let limits = Arc::new(Limits::default());
    let mut library = Library::builtin();
    let table = json!({"format": 1, "dialect": "own", "title": "T",
        "method": {"open": {"is": "session/load", "members": {"chat": "sessionId"}}}});
    library.add("own.json", &table.to_string()).unwrap();
    let named = DialectChoice::Named("own".to_owned());
    let (library, plain) = (Arc::new(library), DialectChoice::Canonical);
    let own = DialectOptions::new(&library, &named, &plain).unwrap();
    let versions = DialectOptions::new(&library, &plain, &plain)
        .unwrap()
        .with_versions(limits, VersionPolicies::default(), [None; 2]);
    let load = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
    let batch = json!([request(1, "session/resume", &load)]);
    let renamed = request(
        1,
        "open",
        &json!({"chat": "s", "cwd": "/", "mcpServers": []}),
    );
    for (dialects, version, message) in [(versions, 2, batch), (own, 1, renamed)] {
        let mut play = Play::new(dialects);
        let begin = json!({"protocolVersion": version, "clientCapabilities": {}, "capabilities": {},
            "info": {"name": "c", "version": "1"}});
        play.client(0, "initialize", &begin);
        let begun = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1,
            "agentCapabilities": {"loadSession": true}}});
        play.sends(Side::Agent, &begun);
        assert_eq!(play.sends(Side::Client, &message), NONE, "{message}");
        assert_eq!(play.core.next_claim().as_deref(), Some("s"), "{message}");
        let [client, agent] = play.claimed(Err("no"));
        assert!(client[0].to_string().contains("-32053"), "{client:?}");
        assert!(agent.is_empty(), "{agent:?}");
    }
}

#[test]
fn what_waits_when_the_agent_is_lost_is_answered() {
    let mut play = Play::new(DialectOptions::default());
    play.client(1, "session/load", &json!({"sessionId": "s"}));
    assert_eq!(play.core.next_claim().as_deref(), Some("s"));
    let (now, how) = (play.now, "was reset".to_owned());
    play.core.handle_lost(Side::Agent, how, now, &mut play.out);
    let [client, _] = play.received();
    assert_eq!(client[0]["id"], 1, "{client:?}");
    assert!(client[0]["error"].is_object(), "{client:?}");
    assert_eq!(play.claimed(Ok(())), NONE);
    assert!(
        play.core
            .end_cause()
            .is_some_and(|cause| *cause != Cause::Stopped)
    );
}

#[test]
fn after_a_panic_what_waits_for_a_claim_and_each_request_of_a_batch_are_answered() {
    let mut play = Play::new(DialectOptions::default());
    play.client(1, "session/load", &json!({"sessionId": "s"}));
    assert_eq!(play.core.next_claim().as_deref(), Some("s"));
    let calls = [2, 3].map(|id| request(id, "session/list", &json!({})));
    let batch = Frame::from(json!(calls).to_string().into_bytes());
    play.core.answer_after_panic(Some(&batch), &mut play.out);
    let [client, _] = play.received();
    let mut ids: Vec<_> = client.iter().map(|one| one["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)], "{client:?}");
    assert!(
        client.iter().all(|one| one["error"].is_object()),
        "{client:?}"
    );
}
