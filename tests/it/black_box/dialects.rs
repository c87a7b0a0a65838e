//! Translation between dialects, seen from both ends of the program.

use std::fs;

use serde_json::{Value, json};

use crate::support::link::run as block_on;
use crate::support::program::Program;

/// An agent that writes each line it reads to a file, and then prints the next of its answers.
const AGENT: &str = "
import json, sys
received, answers = open(sys.argv[1], 'a'), iter(json.load(open(sys.argv[2])))
for line in sys.stdin:
    received.write(line)
    received.flush()
    for answer in next(answers, []):
        print(answer, flush=True)
";

/// What both ends received in one conversation, without line ends.
struct Exchange {
    client: Vec<String>,
    agent: Vec<String>,
}

impl Exchange {
    /// Runs the program between a client and an agent. After each message of the client so many
    /// lines are read; for each line that the agent reads it prints its own list of lines.
    fn hold(options: &[&str], client: &[(Value, usize)], agent: &[&[Value]]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let [script, log, answers] = ["agent.py", "received", "answers"].map(path);
        fs::write(&script, AGENT).unwrap();
        fs::write(&log, "").unwrap();
        let texts = |all: &&[Value]| all.iter().map(Value::to_string).collect::<Vec<_>>();
        let texts: Vec<Vec<String>> = agent.iter().map(texts).collect();
        fs::write(&answers, json!(texts).to_string()).unwrap();
        let mut received = Vec::new();
        block_on(async {
            let command = ["--", "python3", &script, &log, &answers];
            let mut program = Program::start(&[&["connect"], options, &command].concat());
            for (message, lines) in client {
                program.write(&format!("{message}\n")).await;
                for _ in 0..*lines {
                    let line = program.line().await;
                    received.push(line.expect("a line for the client, not the end"));
                }
            }
            program.end();
            while let Some(line) = program.line().await {
                received.push(line);
            }
            program.exit().await;
        });
        let agent = fs::read_to_string(&log).unwrap();
        Self {
            client: received,
            agent: agent.lines().map(str::to_owned).collect(),
        }
    }

    fn client(&self, at: usize) -> Value {
        serde_json::from_str(&self.client[at]).unwrap()
    }

    fn agent(&self, at: usize) -> Value {
        serde_json::from_str(&self.agent[at]).unwrap()
    }
}

fn ask(id: i64, method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    message["params"] = params;
    message
}

fn answer(id: i64, result: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id});
    message["result"] = result;
    message
}

fn select(id: &str, current: &str, options: Value) -> Value {
    let mut option = json!({"id": id, "name": id, "category": "model", "type": "select"});
    option["currentValue"] = current.into();
    option["options"] = options;
    option
}

fn values(all: &[&str]) -> Value {
    all.iter()
        .map(|value| json!({"value": value, "name": value}))
        .collect()
}

fn models() -> Value {
    json!({"currentModelId": "a", "availableModels": [
        {"modelId": "a", "name": "A", "description": "first", "_meta": {"tier": 1}},
        {"modelId": "b/high", "name": "B", "context": 9}]})
}

/// A client that opens a session and chooses a model.
fn choice(opened: Value, model: &str) -> Exchange {
    let client = [
        (
            ask(
                0,
                "initialize",
                json!({"protocolVersion": 1, "clientInfo": {"name": "x", "version": "1"}}),
            ),
            1,
        ),
        (
            ask(1, "session/new", json!({"cwd": "/", "mcpServers": []})),
            1,
        ),
        (
            ask(
                2,
                "session/set_model",
                json!({"sessionId": "s", "modelId": model}),
            ),
            1,
        ),
    ];
    let mut result = opened;
    result["sessionId"] = "s".into();
    let agent: [&[Value]; 3] = [
        &[answer(0, json!({"protocolVersion": 1}))],
        &[answer(1, result)],
        &[answer(2, json!({}))],
    ];
    Exchange::hold(&[], &client, &agent)
}

#[test]
fn set_model_becomes_the_option_that_offers_the_id_or_is_unchanged() {
    let provider = || select("provider", "acme", values(&["acme", "other"]));
    let model = || select("model", "a", values(&["a", "b"]));
    let groups = json!([{"group": "g", "name": "G", "options": values(&["c"])},
        {"group": "h", "name": "H", "options": values(&["d"])}]);
    let grouped = || select("grouped", "c", groups.clone());
    // The agent's answer to `session/new`, the id that is requested, the option that is set.
    let cases = [
        (
            json!({"configOptions": [provider(), model()]}),
            "b",
            Some("model"),
        ),
        (
            json!({"configOptions": [provider(), model()]}),
            "other",
            Some("provider"),
        ),
        (
            json!({"configOptions": [provider(), grouped()]}),
            "d",
            Some("grouped"),
        ),
        (
            json!({"configOptions": [model()], "models": models()}),
            "b",
            Some("model"),
        ),
        // No option has this value and the agent has `models`, or two options match.
        (
            json!({"configOptions": [model()], "models": models()}),
            "b/high",
            None,
        ),
        (
            json!({"configOptions": [provider(), model()]}),
            "unknown",
            None,
        ),
        (
            json!({"configOptions": [model(), select("second", "a", values(&["a"]))]}),
            "a",
            None,
        ),
        (json!({"models": models()}), "b/high", None),
        (json!({"models": models()}), "unknown", None),
        (json!({}), "a", None),
        // The agent has no other option, and checks the value itself.
        (
            json!({"configOptions": [model()]}),
            "unknown",
            Some("model"),
        ),
    ];
    for (opened, id, option) in cases {
        let exchange = choice(opened.clone(), id);
        let expected = match option {
            Some(option) => ask(
                2,
                "session/set_config_option",
                json!({"sessionId": "s", "configId": option, "value": id}),
            ),
            None => ask(
                2,
                "session/set_model",
                json!({"sessionId": "s", "modelId": id}),
            ),
        };
        assert_eq!(exchange.agent(2), expected, "{id} of {opened}");
        assert_eq!(exchange.client(2), answer(2, json!({})), "{id} of {opened}");
    }
}

#[test]
fn models_reach_every_client_unchanged_beside_the_options() {
    let own = select("model", "a", values(&["a", "b"]));
    for (opened, option) in [
        (json!({"models": models()}), "_acp-relay.model"),
        (json!({"models": models(), "configOptions": [own]}), "model"),
    ] {
        let exchange = choice(opened.clone(), "a");
        let result = &exchange.client(1)["result"];
        assert_eq!(result["models"], models(), "{opened}");
        assert_eq!(result["configOptions"][0]["id"], option, "{opened}");
        assert_eq!(result.get("_meta"), None, "{opened}");
    }
}

#[test]
fn a_prompt_before_authentication_gets_the_error_of_the_session() {
    let refusal = json!({"code": -32000, "message": "Authentication required", "data": {"k": 1}});
    let send = |id| ask(id, "sendUserMessage", json!({"chunks": [{"text": "hi"}]}));
    let client = [
        (ask(0, "initialize", json!({"protocolVersion": "0.0.9"})), 1),
        (send(1), 1),
        (send(2), 1),
        (
            json!({"jsonrpc": "2.0", "id": 3, "method": "authenticate"}),
            1,
        ),
        (send(4), 1),
    ];
    let ways = json!([{"id": "key", "name": "Key"}]);
    let refused = json!({"jsonrpc": "2.0", "id": 1_000_000_001, "error": refusal});
    let agent: [&[Value]; 5] = [
        &[answer(
            0,
            json!({"protocolVersion": 1, "authMethods": ways}),
        )],
        &[refused],
        &[answer(3, json!({}))],
        &[answer(1_000_000_002, json!({"sessionId": "s"}))],
        &[answer(4, json!({"stopReason": "end_turn"}))],
    ];
    let exchange = Exchange::hold(&["--client-dialect", "zed-legacy-0.0.9"], &client, &agent);
    for (at, id) in [(1, 1), (2, 2)] {
        let expected = json!({"jsonrpc": "2.0", "id": id, "error": refusal});
        assert_eq!(exchange.client(at), expected);
    }
    assert_eq!(exchange.client(4), answer(4, Value::Null));
    let methods = (0..exchange.agent.len()).map(|at| exchange.agent(at)["method"].clone());
    let opening = "session/new";
    let expected = [
        "initialize",
        opening,
        "authenticate",
        opening,
        "session/prompt",
    ];
    assert_eq!(methods.collect::<Vec<_>>(), expected);
    assert_eq!(exchange.agent(4)["params"]["sessionId"], "s");
}

#[test]
fn a_copilot_tool_is_one_tool_call_and_then_its_updates() {
    let tool = |status: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
            "state": "working", "lastUpdateId": "u", "updates": [
            {"type": "tool", "id": "t", "name": "Make", "kind": "create", "status": status}]}})
    };
    let client = [(
        ask(1, "session/prompt", json!({"sessionId": "s", "prompt": []})),
        3,
    )];
    let ended = answer(1, json!({"stopReason": "end_turn"}));
    let agent: [&[Value]; 1] = [&[tool("running"), tool("completed"), ended]];
    let exchange = Exchange::hold(
        &["--agent-dialect", "copilot-docs-2026-01"],
        &client,
        &agent,
    );
    assert_eq!(exchange.client.len(), 3, "{:?}", exchange.client);
    for (at, variant, status) in [
        (0, "tool_call", "in_progress"),
        (1, "tool_call_update", "completed"),
    ] {
        let update = json!({"sessionUpdate": variant, "toolCallId": "t", "title": "Make",
            "kind": "edit", "status": status});
        assert_eq!(
            exchange.client(at)["params"],
            json!({"sessionId": "s", "update": update})
        );
    }
}

/// One message of the client and what the agent receives.
#[test]
fn client_messages_reach_the_agent_as_the_dialects_specify() {
    let prompt = |more: Value| {
        let mut params = json!({"sessionId": "s", "prompt": []});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ask(1, "session/prompt", params)
    };
    let bare = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method});
    let cancel = |method: &str, params: Value| {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        message["params"] = params;
        message
    };
    let cases: [(&[&str], Value, Value); 6] = [
        (
            &["--client-dialect", "goref-ccui"],
            prompt(json!({"allowedTools": ["Read"]})),
            prompt(json!({"_meta": {"acp-relay": {"allowedTools": ["Read"]}}})),
        ),
        (
            &["--agent-dialect", "acpex-code"],
            bare("logout"),
            ask(1, "logout", json!({})),
        ),
        (
            &["--agent-dialect", "acpex-code"],
            bare("_x/y"),
            ask(1, "_x/y", json!({})),
        ),
        (&[], bare("logout"), bare("logout")),
        (
            &["--client-dialect", "overseer-app"],
            cancel("$/cancelRequest", json!({"requestId": 7})),
            cancel("$/cancel_request", json!({"requestId": 7})),
        ),
        (
            &["--client-dialect", "overseer-app"],
            cancel("$/cancelRequest", json!({"id": 7})),
            cancel("$/cancel_request", json!({"requestId": 7})),
        ),
    ];
    for (options, sent, expected) in cases {
        let exchange = Exchange::hold(options, &[(sent.clone(), 0)], &[&[]]);
        assert_eq!(exchange.agent(0), expected, "{options:?} {sent}");
    }
}

/// One message of the agent, in answer to a request, and what the client receives.
#[test]
fn agent_messages_reach_the_client_as_the_dialects_specify() {
    let update = |update: Value| {
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update}})
    };
    let able = |agent: Value| answer(1, json!({"protocolVersion": 1, "agentCapabilities": agent}));
    let plan = |steps: Value| update(json!({"sessionUpdate": "plan", "plan": {"steps": steps}}));
    let entries = |all: Value| update(json!({"sessionUpdate": "plan", "entries": all}));
    let cancel =
        |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 7}});
    let permission = ask(
        9,
        "session/request_permission",
        json!({"sessionId": "s", "options": [{"optionId": "a", "name": "A", "kind": "allow_once"}],
            "toolCall": {"toolCallId": "shell-permission", "kind": "execute"}}),
    );
    let goref = ["--agent-dialect", "goref"];
    let to_goref = ["--client-dialect", "goref"];
    let cases: [(&[&str], Value, Value); 8] = [
        (
            &goref,
            able(json!({"mcp": {"httpTransport": true}})),
            able(json!({"mcpCapabilities": {"http": true, "sse": false}})),
        ),
        (
            &goref,
            able(json!({"loadSession": true})),
            able(json!({"loadSession": true})),
        ),
        (
            &to_goref,
            able(json!({"mcpCapabilities": {"http": false, "sse": true}})),
            able(json!({"mcp": {"sseTransport": true}})),
        ),
        (
            &goref,
            plan(json!([{"description": "Look", "status": "completed"}, {"description": "Do"}])),
            entries(
                json!([{"content": "Look", "status": "completed", "priority": "medium"},
                {"content": "Do", "status": "pending", "priority": "medium"}]),
            ),
        ),
        (
            &goref,
            plan(json!(["Look"])),
            entries(json!([{"content": "Look", "status": "pending", "priority": "medium"}])),
        ),
        (
            &to_goref,
            entries(json!([{"content": "Look", "status": "pending", "priority": "medium"}])),
            plan(json!(["Look"])),
        ),
        (
            &["--client-dialect", "overseer-app"],
            cancel("$/cancel_request"),
            cancel("$/cancelRequest"),
        ),
        (
            &["--agent-dialect", "copilot-cli"],
            permission.clone(),
            permission,
        ),
    ];
    for (options, sent, expected) in cases {
        let asked = ask(1, "initialize", json!({"protocolVersion": 1}));
        let agent: [&[Value]; 1] = [std::slice::from_ref(&sent)];
        let exchange = Exchange::hold(options, &[(asked, 1)], &agent);
        assert_eq!(exchange.client(0), expected, "{options:?} {sent}");
        // The order of members is kept, too.
        if sent == expected {
            assert_eq!(exchange.client[0], sent.to_string());
        }
    }
}
